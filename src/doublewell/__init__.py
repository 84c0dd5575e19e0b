"""doublewell: recover free energies from phase-field movies, with their scale and the numbers that defend them."""

from doublewell import bounds
from doublewell.baselines import compare
from doublewell.calibrate import SurfaceTension, calibrate
from doublewell.errors import InputError
from doublewell.evidence import lower, merge
from doublewell.export import export
from doublewell.identify import add_level_errors, identify, identify_many
from doublewell.inference import estimate
from doublewell.io import load_result, open_record, save
from doublewell.law import LAW_NAMES, Bernstein, Law, named_law
from doublewell.likelihood import Optics
from doublewell.observation import survey
from doublewell.plan import Experiment, plan
from doublewell.record import Record, phase_from_intensity
from doublewell.report import write_page
from doublewell.result import Result, physical
from doublewell.simulate import add_noise, initial_field, simulate
from doublewell.validate import validate
from doublewell.version import __version__
from doublewell.weak import weak_evidence

__all__ = [
    "LAW_NAMES",
    "Bernstein",
    "Experiment",
    "InputError",
    "Law",
    "Optics",
    "Record",
    "Result",
    "SurfaceTension",
    "__version__",
    "add_level_errors",
    "add_noise",
    "bounds",
    "calibrate",
    "compare",
    "estimate",
    "export",
    "identify",
    "identify_many",
    "initial_field",
    "load_result",
    "lower",
    "merge",
    "named_law",
    "open_record",
    "phase_from_intensity",
    "physical",
    "plan",
    "save",
    "simulate",
    "survey",
    "validate",
    "weak_evidence",
    "write_page",
]
