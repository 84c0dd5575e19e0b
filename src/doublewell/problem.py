"""Problem: what is asked, in one value. Every option is checked here once, and only this module knows the defaults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from doublewell.calibrate import Mixing, SurfaceTension, Temperature, check_units, scaling_of
from doublewell.dynamics import ALLEN_CAHN, Driving, Dynamics, dynamics_of
from doublewell.dynamics.anisotropy import check_axes
from doublewell.errors import InputError, option
from doublewell.law import INNER, Family, family_of
from doublewell.likelihood import check_window
from doublewell.observation import View, check_view
from doublewell.options import Compute, DoubleWell, Method, Observation, Weak, method_of
from doublewell.record import Boundary, Origin, Record
from doublewell.weak.weights import LEAST_FRAMES, Support, check_supports, default_supports, paper_supports, split_folds


@dataclass(frozen=True)
class Source:
    """Where a record came from: the path as it was given, and the options that it was opened with, by name."""

    path: str
    reading: tuple[tuple[str, bool | int | float | str], ...] = ()


@dataclass(frozen=True)
class RecordInfo:
    """A record by reference: its metadata, and the checksum of its values.

    ``dt`` is the mean frame interval, ``times`` the times of all frames where they are not even from 0 on.
    """

    shape: tuple[int, ...]
    dx: tuple[float, ...]
    dt: float
    times: tuple[float, ...] | None = None
    q: float | None = None
    boundary: Boundary | None = None
    length_unit: str | None = None
    time_unit: str | None = None
    origin: Origin | None = None
    checksum: str | None = None
    source: Source | None = None

    @classmethod
    def of(cls, record: Record, checksum: str | None = None) -> RecordInfo:
        """Return the reference to a record."""
        dt = float(record.times[-1] - record.times[0]) / (record.frames - 1)
        times = None if record.uniform and record.times[0] == 0.0 else tuple(record.times.tolist())
        units = record.length_unit, record.time_unit
        return cls(record.shape, record.dx, dt, times, record.q, record.boundary, *units, record.origin, checksum)


@dataclass(frozen=True)
class Resolved:
    """What a problem came to: the values that were found or chosen where it left them open.

    ``q`` and ``phases`` were given or estimated; a ``boundary`` that was not declared is "open" in a trajectory fit;
    ``supports`` are those of the weak-form fit, with the rule that chose them; ``tiled`` whether the record was fitted
    in tiles; ``noise`` the kind of noise that was assumed; ``settled`` the equation where parts of it were estimated;
    ``theta`` the strength kT / kappa of thermal noise where it was read; ``stopped`` the step of the work before which
    the time was over, None where it was not.
    """

    q: float
    phases: tuple[float, float]
    boundary: Boundary | None
    supports: tuple[tuple[int, float], ...]
    supports_rule: str
    tiled: bool = False
    noise: str = "white"
    settled: Dynamics | None = None
    theta: float | None = None
    stopped: int | None = None


@dataclass(frozen=True)
class Problem:
    """What is asked of one record, or of several of one material, which it knows by reference: hashable, picklable.

    A result stores it, and `repeat` runs it. ``values`` are the lowest and the highest value of the fields of all
    records, once they were looked at: laws whose phases are found are written over a range around them.
    """

    law: DoubleWell
    method: Method
    observation: Observation
    tension: SurfaceTension | Mixing | None = None
    check: bool = True
    dynamics: Dynamics = ALLEN_CAHN
    records: tuple[RecordInfo, ...] = ()
    values: tuple[float, float] | None = None
    temperature: Temperature | None = None

    @cached_property
    def degree(self) -> int | Literal["auto"]:
        """The degree, with the default of the method filled in."""
        if self.law.degree is not None:
            return self.law.degree
        return "auto" if self.method.bands else 2

    @property
    def family(self) -> Family:
        """The family that evidence is assembled in: of an average over degrees, the highest one."""
        options, phases = {}, self.observation.phases
        if self.law.wells == "ideal" and self.values is not None and isinstance(phases, tuple):
            low, high = self.range_of(self.values)
            options["pure"] = tuple((np.subtract(phases, 0.5 * (low + high)) / (0.5 * (high - low))).tolist())
        return family_of(self.law.wells, self.degree, **options)

    @staticmethod
    def range_of(values: tuple[float, float]) -> tuple[float, float]:
        """Return the range whose inner part a record's values are."""
        middle, reach = 0.5 * (values[0] + values[1]), 0.5 * (values[1] - values[0]) / INNER
        return middle - reach, middle + reach

    @property
    def fitted(self) -> Family:
        """The family of the first fit, from which evidence is then linearised."""
        return self.family.at(2 if self.degree == "auto" else self.degree)

    @property
    def moments(self) -> Family:
        """The family that weak moments are assembled with; equal depths are a restriction of them."""
        return self.fitted.read_with

    def view(self, record: Record | RecordInfo) -> View:
        """Return optics and what is estimated jointly with the law of a record, with its defaults filled in."""
        asked, camera = self.observation, record.origin == "camera"
        exact = (record.origin == "simulation" and asked.phases != "estimated") or self.family.found
        chosen: dict[str, Any] = {} if asked.contrast != "auto" else {"contrast": "exact" if exact else "estimated"}
        chosen |= {"pixel": camera} if asked.pixel is None else {}
        chosen |= {"blur": "some" if camera else 0.0} if asked.blur == "auto" else {}
        chosen |= {"exposure": 0.0} if asked.exposure is None else {}
        grey: Any = getattr(record, "grey", None)
        found = set() if grey is None else {item.name for item in grey.found if item.kept}
        moves = asked.drift == "estimated" or (asked.drift == "auto" and "drift" in found and grey.moved is None)
        moving = "zyx"[1 - len(record.shape) :] if moves else ""
        equation = self.dynamics.parts.estimated(len(record.dx), record.boundary) if self.method.bands else ()
        if self.dynamics.parts.thermal:  # a blur that is not declared is none, and no tension is given
            chosen, moving = chosen | ({"blur": 0.0} if asked.blur == "auto" else {}), ""
        view = View(replace(asked, **chosen), q_free=record.q is None, equation=equation, moving=moving)
        if grey is None or self.dynamics.parts.thermal:
            return view
        low, high = grey.levels
        if low > grey.dark:
            view = replace(view, dark=(low - grey.dark) / (high - grey.dark))
        if not (view.contrast and found & {"uneven light", "stray light", "fading"}):
            return view
        return replace(view, light=grey.orders)

    @property
    def scale_from(self) -> str:
        """What fixes the scale, in words, where that is not a measured tension; empty where it is, or where none is."""
        if isinstance(self.tension, Mixing):
            return "temperature and site volume"
        return "thermal noise" if self.tension is None and self.temperature is not None else ""

    def of_file(self, source: Source) -> Problem:
        """Return the problem of a record that came from a file."""
        first, *others = self.records
        return replace(self, records=(replace(first, source=source), *others))

    @property
    def averaged(self) -> bool:
        """Whether the law is an average over degrees."""
        return self.degree == "auto"


def ask(
    records: Sequence[Record], tension: Any = None, *, dynamics: Any = "allen-cahn", law: Any = None,
    method: Any = None, observation: Any = None, check: bool = True, temperature: Any = None,
) -> Problem:  # fmt: skip
    """Return the problem that options pose, checked against the records; none of their values is read."""
    laws, equation = DoubleWell.of(law), sampled(dynamics_of(dynamics), records)
    warm = None if temperature is None else Temperature.of(temperature)
    if warm is not None:
        equation = equation.changed(thermal=True)
    if laws.wells is None:
        laws = replace(laws, wells="found" if equation.gauge == "constant" else "symmetric")
    problem = Problem(
        laws,
        method_of(method),
        Observation.of(observation),
        None if tension is None else scaling_of(tension),
        bool(check),
        equation,
        temperature=warm,
    )
    _check_options(problem)
    for record in records:
        _check_record(problem, record)
    if len(records) > 1:
        _check_together(problem, records)
    return problem


def sampled(dynamics: Dynamics, records: Sequence[Any]) -> Dynamics:
    """Return an equation whose driving force, where it is a function, is sampled over the times of the records."""
    driving = dynamics.parts.driving
    if driving is None or isinstance(driving, Driving):
        return dynamics
    times = np.unique(np.concatenate([record.times for record in records if isinstance(record, Record)]))
    return dynamics.changed(driving=Driving.of(driving, times))


def observed_as(record: Record, problem: Problem) -> Record:
    """Return a record with its missing values masked where the problem asks for it; a mask of its own is kept."""
    return record.replace(mask="finite") if problem.observation.missing == "mask" and record.mask is None else record


def _check_options(problem: Problem) -> None:
    """Refuse options that contradict each other."""
    law, method, observation = problem.law, problem.method, problem.observation
    found = law.wells in ("found", "ideal")
    if found and problem.dynamics.gauge != "constant":
        raise InputError(
            f"{option('wells', str(law.wells))} is for conserved fields, whose force is known up to a constant, and "
            f"this is {problem.dynamics.name}: use {option('phases', 'estimated')}, or another dynamics"
        )
    given = observation.phases != (-1.0, 1.0) if law.wells == "found" else isinstance(observation.phases, str)
    if found and (given or observation.contrast in ("estimated", "drifting")):
        raise InputError(
            f"the coexisting phases of {problem.dynamics.name} are found by the fit, and gain and offset of the values "
            "are a choice of units beside them: leave out contrast, and phases too unless they are those of the pure "
            f"components ({option('wells', 'ideal')}) or known to be the coexisting ones ({option('wells', 'equal')})"
        )
    if found and observation.response != 1.0:
        raise InputError(
            f"{option('response')} is the curve of a camera between two known phases, and those of "
            f"{problem.dynamics.name} are found by the fit: expected values that are linear in the composition, or "
            f"known phases ({option('wells', 'equal')})"
        )
    if problem.averaged and not method.bands:
        raise InputError(
            f"{option('degree', 'auto')} needs the trajectory fit, because weak moments have no noise model: use "
            f"{option('method', 'trajectory')}, or give a degree from 0 to 8"
        )
    if method.ridge is not None and problem.averaged:
        raise InputError(f"a ridge is a choice for one degree: give {option('degree')} a number, or leave it out")
    asked = observation.noise not in ("auto", "white") or observation.contrast in ("estimated", "drifting")
    asked = asked or observation.drift not in ("auto", "none") or observation.response != 1.0
    if not method.bands and (View(observation).imaged or asked):
        raise InputError(
            "contrast, blur, pixel, drift, response, exposure, refine and noise belong to the trajectory fit: weak "
            f"moments know none of them; use {option('method', 'trajectory')}, or leave them out"
        )
    if problem.dynamics.parts.thermal:
        _check_thermal(problem)
    elif observation.noise == "none":
        raise InputError(
            f"{option('noise', 'none')} is for exact frames of a field with thermal noise: pass "
            f"{option('temperature')} too, or leave it out"
        )
    if isinstance(problem.tension, Mixing) and law.wells != "ideal":
        raise InputError(
            "temperature and site volume fix the scale through the entropy of ideal mixing, and the law has none: use "
            f"{option('wells', 'ideal')} with a conserved composition, or a surface tension"
        )


def _check_thermal(problem: Problem) -> None:
    """Refuse options that a fluctuating field does not go with."""
    method, seen = problem.method, problem.observation
    if not method.bands or method.memory is not None:
        raise InputError(
            "thermal noise is read by the trajectory fit of whole records: leave out memory, and use "
            f"{option('method', 'trajectory')}"
        )
    known = seen.response == 1.0 and seen.drift in ("auto", "none")
    plain = seen.refine in (1, "auto") and seen.noise in ("auto", "white", "none")
    if not (known and plain and seen.blur not in ("estimated", "some")):
        raise InputError(
            "thermal noise is read from pictures with a known blur at rest: expected no response, drift and refine, "
            f"white noise or none ({option('noise', 'none')}), and {option('blur')} a length"
        )
    if seen.exposure and problem.dynamics.parts.driving is not None:
        raise InputError(
            "thermal noise is not read from long exposures under a driving force: expected one of the two; set "
            f"{option('exposure', 0)} where it is short"
        )


def _check_parts(problem: Problem, record: Record) -> None:
    """Refuse parts of an equation that a record, or a method, does not go with."""
    parts, dynamics, window = problem.dynamics.parts, problem.dynamics, record.boundary in (None, "open")
    if not parts.varied:
        return
    for tensor in parts.tensors.values():
        check_axes(tensor, len(record.mesh), crossed=record.boundary == "periodic")
    parts.estimated(len(record.mesh), record.boundary)
    if dynamics.order > 2 and window and problem.method.bands:
        raise InputError(
            f"an anisotropic {dynamics.name} has no rate on an open window: expected {option('boundary', 'periodic')} "
            "or neumann"
        )
    if parts.rate is not None and parts.rate.phases != problem.observation.phases:
        raise InputError(
            f"the mobility is given over the phases {parts.rate.phases}, and those of the record are "
            f"{problem.observation.phases}: expected the same; use Mobility.of(function, phases)"
        )
    if isinstance(parts.driving, Driving):
        parts.driving.at(record.times)
    if not problem.method.bands and dynamics.gauge == "constant":
        raise InputError(
            f"the weak-form fit of {dynamics.name} knows no anisotropy: use {option('method', 'trajectory')}"
        )
    masked = record.mask is not None and not problem.method.bands
    if problem.method.corrected or problem.method.memory is not None or masked:
        raise InputError(
            "anisotropy, mobility and driving force are read from complete records as a whole, without the correction "
            f"of noise: leave out memory and the mask, and use {option('method', 'trajectory')} or weak"
        )


def _check_record(problem: Problem, record: Any) -> None:
    if not isinstance(record, Record):
        raise InputError(f"expected a Record, got {type(record).__name__}: wrap the field as Record(u, dx=, dt=)")
    _check_parts(problem, record)
    if problem.temperature is not None:
        problem.temperature.check(len(record.mesh), record.length_unit, record.time_unit, problem.tension)
    if problem.dynamics.parts.thermal and record.mask is not None and record.boundary in (None, "open"):
        raise InputError(
            "thermal noise is not read from a window with missing values: expected complete frames, or a known border "
            f"({option('boundary', 'periodic')} or neumann); cut the record to a part without gaps"
        )
    if problem.dynamics.parts.thermal and problem.observation.exposure and record.q is None:
        raise InputError(
            "thermal noise is read from long exposures where q is known, because what is left of it depends on q: "
            f"expected {option('q')}, or {option('exposure', 0)} where it is short"
        )
    check_units(problem.tension, len(record.mesh), record.length_unit, record.time_unit)
    noise, method = problem.observation.noise, problem.method
    if noise == "correlated" and record.mask is not None:
        raise InputError(
            "correlated noise and missing values do not go together: expected complete frames; cut the record to a "
            f"part without gaps, or use {option('noise', 'white')}"
        )
    if method.bands:
        check_view(record, View(problem.observation))
        if record.boundary in (None, "open"):
            check_window(record, problem.dynamics)
    elif method.corrected and (record.mask is not None or not record.uniform):
        raise InputError(
            "the corrected weak-form fit needs complete frames at even times: expected no mask and one frame interval; "
            f"use {option('method', 'weak')} or {option('method', 'trajectory')}"
        )
    given = given_supports(method.start, record)
    if given is None and (not method.bands or record.frames >= LEAST_FRAMES):
        default_supports(record, None, order=2 if method.bands else problem.dynamics.order)
    elif given is not None and method.start.ridge == "validated":
        split_folds(record.frames, max(support.frames for support in given))


def given_supports(method: Weak, record: Record) -> tuple[Support, ...] | None:
    """Return the supports that were given, checked against the record; None where a rule chooses them."""
    if method.supports is None:
        return None
    pairs = paper_supports(record) if method.supports == "paper" else method.supports
    return check_supports(pairs, record.frames, record.mesh, record.dx)


def _check_together(problem: Problem, records: Sequence[Record]) -> None:
    if len({(record.length_unit, record.time_unit) for record in records}) > 1:
        raise InputError("the records have different units: expected one unit of length and one of time for all")
    if not problem.method.bands:
        raise InputError(
            "several records are fitted together by their likelihood: leave the method out, or fit them one by one"
        )
    if problem.observation.phases == "estimated":
        raise InputError(
            f"{option('phases', 'estimated')} is for one record: several have one law and one pair of phases; estimate "
            f"them on one record, and give {option('phases')} for all"
        )


def compute_of(compute: Any, records: Sequence[Record], problem: Problem) -> Compute:
    """Return what may be used to compute; what has nothing to do is refused, not ignored."""
    chosen = Compute.of(compute)
    for name in ("workers", "scheduler", "checkpoint"):
        if getattr(chosen, name) is None:
            continue
        if len(records) > 1:
            raise InputError(
                f"{option(name)} is for the parts of one record, and several are given: leave it out, or use "
                "identify_many(records) for many records with a law each"
            )
        if problem.method.bands and problem.method.memory is None:
            raise InputError(
                f"{option(name)} is for a record in parts, and a trajectory fit without a budget is of the record as a "
                f"whole: give {option('memory')} too, such as 2GB, or leave it out"
            )
    if chosen.time_limit is not None and not (problem.method.bands and problem.method.memory is None):
        raise InputError(
            f"{option('time_limit')} is for the trajectory fit of whole records: the weak-form fit takes seconds, and "
            f"a record in tiles has a {option('checkpoint')} to resume from; leave it out"
        )
    return chosen
