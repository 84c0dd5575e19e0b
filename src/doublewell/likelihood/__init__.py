"""The likelihood of whole trajectories: models of records, one solver, and batches that are fitted together."""

from doublewell.likelihood.batch import (
    Batch,
    Trajectory,
    follow_law,
    moved,
    read_trajectories,
    read_trajectory,
    relinearise,
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
    "follow_law",
    "growth",
    "measure_resolution",
    "moved",
    "observed",
    "read_trajectories",
    "read_trajectory",
    "record_information",
    "record_model",
    "relinearise",
]
