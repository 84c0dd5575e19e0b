"""Everything that the paper takes from doublewell, so that a name that changes there changes in one file here."""

from doublewell import (
    Bernstein,
    InputError,
    Law,
    Record,
    Result,
    add_noise,
    bounds,
    calibrate,
    estimate,
    identify_many,
    initial_field,
    lower,
    named_law,
    simulate,
    survey,
    weak_evidence,
)
from doublewell.atomic import write_files
from doublewell.baselines import Baseline, BaselineFit, complete, measured
from doublewell.baselines.regression import WIDTHS, pointwise_fit, smoothing_width
from doublewell.compute.run import worker_pool
from doublewell.dynamics import ALLEN_CAHN, Grid, symbols
from doublewell.dynamics.etdrk4 import Weights, roll, step_weights
from doublewell.dynamics.grid import jax_transforms
from doublewell.errors import whole
from doublewell.evidence import Block, Evidence, Key, compact, system
from doublewell.hints import Array
from doublewell.inference import DEGREE_PRIOR, Estimate, approximation_floor
from doublewell.law import Constraint, even_family
from doublewell.law.family import namespace
from doublewell.observation import Survey
from doublewell.options import Compute, DoubleWell
from doublewell.report.style import COLOURS, FIELD_MAP, FORMATS, new_figure, render, style
from doublewell.runtime import device_names, keep_compiled, on_gpu
from doublewell.version import __version__
from doublewell.weak.assembly import PHASE_CUT
from doublewell.weak.noise import Smoother
from doublewell.weak.weights import Derivative, Fold, split_folds
