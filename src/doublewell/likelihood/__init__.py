"""The likelihood of whole trajectories: models of records, one solver, and batches that are fitted together."""

from doublewell.likelihood.batch import Batch, Trajectory, opened, points
from doublewell.likelihood.fluctuating import FluctuatingBatch
from doublewell.likelihood.iterate import Convergence, Status, Step
from doublewell.likelihood.model import check_window, first_substeps, growth, record_model
from doublewell.likelihood.project import LONG, Projector, Resolution, measure_resolution

__all__ = [
    "LONG",
    "Batch",
    "Convergence",
    "FluctuatingBatch",
    "Projector",
    "Resolution",
    "Status",
    "Step",
    "Trajectory",
    "check_window",
    "first_substeps",
    "growth",
    "measure_resolution",
    "opened",
    "points",
    "record_model",
]
