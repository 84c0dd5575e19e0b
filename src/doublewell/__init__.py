"""doublewell: recover free energies from phase-field movies, with their scale and the numbers that defend them.

The public names are loaded when they are first used (PEP 562), so that `import doublewell` and `doublewell --help` take
no time: jax, numba, scipy and matplotlib come with the functions that need them.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from doublewell.version import __version__ as __version__

if TYPE_CHECKING:
    from doublewell import bounds as bounds
    from doublewell.baselines import compare as compare
    from doublewell.calibrate import Mixing as Mixing
    from doublewell.calibrate import SurfaceTension as SurfaceTension
    from doublewell.calibrate import Temperature as Temperature
    from doublewell.calibrate import calibrate as calibrate
    from doublewell.capillary import capillary as capillary
    from doublewell.dynamics import AllenCahn as AllenCahn
    from doublewell.dynamics import Anisotropy as Anisotropy
    from doublewell.dynamics import CahnHilliard as CahnHilliard
    from doublewell.dynamics import Driving as Driving
    from doublewell.dynamics import MassConserving as MassConserving
    from doublewell.dynamics import Mobility as Mobility
    from doublewell.errors import InputError as InputError
    from doublewell.errors import Interrupted as Interrupted
    from doublewell.evidence import lower as lower
    from doublewell.evidence import merge as merge
    from doublewell.export import export as export
    from doublewell.facts import facts as facts
    from doublewell.findings import findings as findings
    from doublewell.identify import identify as identify
    from doublewell.identify import identify_many as identify_many
    from doublewell.inference import estimate as estimate
    from doublewell.io import load_result as load_result
    from doublewell.io import open_record as open_record
    from doublewell.io import save as save
    from doublewell.law import LAW_NAMES as LAW_NAMES
    from doublewell.law import Bernstein as Bernstein
    from doublewell.law import Law as Law
    from doublewell.law import named_law as named_law
    from doublewell.observation import survey as survey
    from doublewell.options import Compute as Compute
    from doublewell.options import DoubleWell as DoubleWell
    from doublewell.options import Observation as Observation
    from doublewell.options import Trajectory as Trajectory
    from doublewell.options import Weak as Weak
    from doublewell.physical import physical as physical
    from doublewell.plan import Experiment as Experiment
    from doublewell.plan import plan as plan
    from doublewell.record import Record as Record
    from doublewell.record import phase_from_intensity as phase_from_intensity
    from doublewell.report import write_page as write_page
    from doublewell.result import Result as Result
    from doublewell.simulate import add_noise as add_noise
    from doublewell.simulate import initial_field as initial_field
    from doublewell.simulate import simulate as simulate
    from doublewell.validate import validate as validate
    from doublewell.weak.assembly import weak_evidence as weak_evidence

_MODULES = {
    "calibrate": ["Mixing", "SurfaceTension", "Temperature", "calibrate"],
    "capillary": ["capillary"],
    "dynamics": ["AllenCahn", "Anisotropy", "CahnHilliard", "Driving", "MassConserving", "Mobility"],
    "errors": ["InputError", "Interrupted"],
    "evidence": ["lower", "merge"],
    "export": ["export"],
    "facts": ["facts"],
    "findings": ["findings"],
    "io": ["load_result", "open_record", "save"],
    "identify": ["identify", "identify_many"],
    "inference": ["estimate"],
    "law": ["LAW_NAMES", "Bernstein", "Law", "named_law"],
    "observation": ["survey"],
    "baselines": ["compare"],
    "options": ["Compute", "DoubleWell", "Observation", "Trajectory", "Weak"],
    "plan": ["Experiment", "plan"],
    "record": ["Record", "phase_from_intensity"],
    "report": ["write_page"],
    "physical": ["physical"],
    "result": ["Result"],
    "simulate": ["add_noise", "initial_field", "simulate"],
    "validate": ["validate"],
    "weak.assembly": ["weak_evidence"],
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = ["__version__", "bounds", *_HOME]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    """Load a public name on its first use."""
    if name == "bounds":
        return import_module("doublewell.bounds")
    if name not in _HOME:
        raise AttributeError(f"module 'doublewell' has no attribute {name!r}")
    value = getattr(import_module(f"doublewell.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """Keep `doublewell.identify` the function: the import system would replace it by the module of the same name."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
