"""The likelihood of whole trajectories: models of records, one solver, and batches that are fitted together."""

from doublewell.likelihood.batch import (
    Batch,
    Trajectory,
    moved,
)
from doublewell.likelihood.iterate import Convergence, Status, Step, Watch
from doublewell.likelihood.model import (
    MOST_SUBSTEPS,
    Observed,
    RecordModel,
    check_record,
    check_window,
    first_substeps,
    growth,
    observed,
    record_model,
)
from doublewell.likelihood.resolution import Information, Resolution, measure_resolution, record_information

__all__ = [
    "MOST_SUBSTEPS",
    "Batch",
    "Convergence",
    "Information",
    "Observed",
    "RecordModel",
    "Resolution",
    "Status",
    "Step",
    "Trajectory",
    "Watch",
    "check_record",
    "check_window",
    "first_substeps",
    "growth",
    "measure_resolution",
    "moved",
    "observed",
    "record_information",
    "record_model",
]
