"""The likelihood of whole trajectories: models, one solver, and the reader."""

from doublewell.evidence.likelihood.read import read_trajectories, read_trajectory, relinearise
from doublewell.evidence.likelihood.resolution import Resolution, measure_resolution
from doublewell.evidence.likelihood.steps import MOST_STEPS, Step, Watch
from doublewell.evidence.likelihood.trajectory import MOST_SUBSTEPS, Trajectory

__all__ = [
    "MOST_STEPS",
    "MOST_SUBSTEPS",
    "Resolution",
    "Step",
    "Trajectory",
    "Watch",
    "measure_resolution",
    "read_trajectories",
    "read_trajectory",
    "relinearise",
]
