"""The likelihood of whole trajectories: models, one solver, and the reader."""

from doublewell.evidence.likelihood.batch import read_batch, relinearise_batch
from doublewell.evidence.likelihood.resolution import Resolution, measure_resolution
from doublewell.evidence.likelihood.trajectory import MOST_STEPS, Step, Trajectory, read_trajectory, relinearise

__all__ = [
    "MOST_STEPS",
    "Resolution",
    "Step",
    "Trajectory",
    "measure_resolution",
    "read_batch",
    "read_trajectory",
    "relinearise",
    "relinearise_batch",
]
