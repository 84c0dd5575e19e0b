"""The likelihood of whole trajectories: models, one solver, and the reader."""

from doublewell.evidence.likelihood.resolution import Resolution, measure_resolution
from doublewell.evidence.likelihood.trajectory import Step, Trajectory, read_trajectory, relinearise

__all__ = ["Resolution", "Step", "Trajectory", "measure_resolution", "read_trajectory", "relinearise"]
