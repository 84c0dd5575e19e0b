"""The likelihood of whole trajectories: models, one solver, and the reader."""

from doublewell.evidence.likelihood.read import read_trajectories, read_trajectory, relinearise
from doublewell.evidence.likelihood.resolution import Resolution, measure_resolution
from doublewell.evidence.likelihood.setting import check_record, check_view, observed, record_model
from doublewell.evidence.likelihood.steps import MOST_STEPS, Step, Watch
from doublewell.evidence.likelihood.trajectory import MOST_SUBSTEPS, Beside, Trajectory
from doublewell.evidence.likelihood.view import PLAIN, Optics, View, Whitening

__all__ = [
    "MOST_STEPS",
    "MOST_SUBSTEPS",
    "PLAIN",
    "Beside",
    "Optics",
    "Resolution",
    "Step",
    "Trajectory",
    "View",
    "Watch",
    "Whitening",
    "check_record",
    "check_view",
    "measure_resolution",
    "observed",
    "read_trajectories",
    "read_trajectory",
    "record_model",
    "relinearise",
]
