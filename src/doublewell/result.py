"""Result: an identified law, its scale, and the numbers that defend it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doublewell.adequacy import UNBALANCED, Adequacy
from doublewell.calibrate import NoScale, Refusal, Scale, refusal_of, why_no_scale
from doublewell.dynamics import Dynamics
from doublewell.errors import InputError, option
from doublewell.hints import Array
from doublewell.inference import Posterior, Quantity, RidgeChoice, Scalar, SupportFit, curve_band, scalar_interval
from doublewell.law import Law, Structure
from doublewell.likelihood import Status, Step
from doublewell.observation import Survey
from doublewell.problem import Problem, Resolved
from doublewell.record import GreyQuality, Note
from doublewell.version import __version__

_UNSEEN = 0.05  # lower over upper end of theta: less is no measurement


@dataclass(frozen=True)
class Tiling:
    """How a record was cut into tiles: the largest in frames and cells, and how many were read.

    ``empty`` tiles hold no interface and tell nothing about the law. ``lost`` names those that could not be followed
    and why, ``unfinished`` those whose fields were not followed to the end. The model was tested on ``checked`` tiles.
    """

    shape: tuple[int, ...]
    read: int
    empty: int
    lost: tuple[str, ...]
    unfinished: tuple[str, ...]
    checked: int


@dataclass(frozen=True)
class Contrast:
    """Gain and offset of a record: values = m + gain (u - m) + offset, m the middle of the phases of the law.

    ``plateaus`` are the values of the record in the two pure phases; of a contrast that drifts, in the middle of the
    record. ``change`` is by how much, relative to it and to first order, the force would differ had the values been
    taken for exact, and ``cost`` the factor by which the band of the force is wider than with known gain and offset.
    """

    gain: float
    offset: float
    plateaus: tuple[float, float]
    change: float
    cost: float


@dataclass(frozen=True, eq=False, kw_only=True)
class FitQuality:
    """What a trajectory fit of one record is worth.

    ``noise`` is the standard deviation left in one pixel; ``time_size`` and ``mesh_size`` are how far, in standard
    errors, half the time step and a finer mesh would move the estimate; ``distance`` how far the law is from the point
    of linearisation; ``constraint_rise`` by how much the constraint raises twice the negative log-likelihood;
    ``adequacy`` the tests of the residual, None when they were not made; ``contrast`` gain and offset where they were
    estimated; ``dx`` and ``boundary`` those of the record, ``refine`` is how many times finer the model's mesh was,
    ``excess`` by how much the squares of all errors are larger because the residual is not noise.
    """

    dx: tuple[float, ...]
    boundary: str | None
    noise: float
    status: Status
    time_size: float
    mesh_size: float
    distance: float
    constraint_rise: float
    adequacy: Adequacy | None
    contrast: Contrast | None = None
    refine: int = 1
    excess: float = 1.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Likelihood(FitQuality):
    """How the trajectory fit went.

    ``rounds`` is the number of linearisations at the highest degree; ``extra_structure`` the probability, from the data
    alone, that the law is not a double well with a single barrier; ``segments`` into how many pieces the record was cut
    during the fit. ``residual_map`` is block by block how far the residual's variance is from its mean, in standard
    deviations, ``residual_frames`` its standard deviation in each frame. ``initial`` is the fitted initial field, moved
    along to the law, in single precision; None where a file does not hold it, and of a record in ``tiles``, each of
    which has its own. ``others`` are the fits of the second and further records where several have one law.
    """

    steps: tuple[Step, ...]
    substeps: int
    rounds: int
    extra_structure: float
    segments: int
    residual_map: Array
    residual_frames: Array
    initial: NDArray[np.float32] | None = None
    tiles: Tiling | None = None
    others: tuple[FitQuality, ...] = ()


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """The numbers behind an estimate.

    ``rows`` counts the weak moments (of a trajectory, the observations less the initial field); ``scaled_condition``
    is the condition number of the design with unit columns; ``active`` lists the coefficients at their lower bound
    ``bound``, ``contacts`` the |u| where the bracket is at its own; ``kkt`` is the relative violation of optimality, of
    the weak-form fit; ``residual`` is |A g - d| / |d|, or |observed - predicted| / |observed| of a trajectory;
    ``unconstrained`` are the coefficients without bound and ridge; ``supports`` what each support alone gives and
    ``support_spread`` their largest relative difference in the force. ``motion`` is the fraction of the squared rate of
    change that is motion and not noise, where a weak-form fit estimated q, and ``q_error`` the relative standard error
    of q then; ``held`` the number of directions that a corrected weak-form fit took from a lower degree because nearly
    all in them is noise; ``moments`` the tests of the moments of a weak-form fit, None where they were not made;
    ``capillary`` the tension over kT from the waves of flat interfaces and its 95 % interval, of a movie with both.
    """

    rows: int
    condition: float
    scaled_condition: float
    active: tuple[int, ...]
    bound: float | None
    kkt: float | None
    residual: float
    unconstrained: Array
    ridge: RidgeChoice | None
    supports: tuple[SupportFit, ...]
    support_spread: float
    survey: Survey
    likelihood: Likelihood | None = None
    contacts: tuple[float, ...] = ()
    motion: float | None = None
    held: int = 0
    q_error: float | None = None
    moments: Adequacy | None = None
    capillary: tuple[float, float, float] | None = None


@dataclass(frozen=True)
class Agreement:
    """How a record, or a tile of one, agrees with the others: chi-square of the difference of their laws.

    ``adjusted`` is the probability after Holm's correction for the number of records; ``agrees`` whether it is above
    0.1 %.
    """

    record: str
    chi2: float
    degrees: int
    p: float
    adjusted: float
    agrees: bool


@dataclass(frozen=True)
class Rival:
    """An equation that was tried: chi-square above the best, infinite where it cannot be fitted; what it would give.

    ``sd`` is the standard deviation of that chi-square where both explain the movie.
    """

    dynamics: str
    chi2: float
    text: str
    sd: float = 0.0


@dataclass(frozen=True, eq=False)
class Result:
    """An identified law: the effective force G, and with a surface tension also epsilon and F.

    ``print(result)`` gives the report, ``facts(result)`` and ``findings(result)`` what it is made of. ``grey`` states
    how the phase values were made of grey values, ``notes`` what was done when the records were read. Where several
    records were fitted together, ``agreements`` tells of each how it agrees with the others; diagnostics are those of
    the first. Of a record that was read in tiles it tells
    the same of these. Where the equation was chosen by the data, ``rivals`` are all that were tried, the best first.
    """

    law: Law
    scale: Scale | None
    diagnostics: Diagnostics
    problem: Problem
    resolved: Resolved
    version: str = __version__
    posterior: Posterior | None = None
    agreements: tuple[Agreement, ...] = ()
    grey: GreyQuality | None = None
    notes: tuple[Note, ...] = ()
    rivals: tuple[Rival, ...] = ()

    @property
    def dynamics(self) -> Dynamics:
        """The equation of motion that the law belongs to."""
        return self.resolved.settled or self.problem.dynamics

    @property
    def coefficients(self) -> Array:
        """The coefficients g_j of the effective force, in units of 1/length^2."""
        return self.law.coefficients

    @property
    def degree(self) -> int:
        """Degree of the bracket polynomial."""
        return self.law.family.degree

    @property
    def structure(self) -> Structure:
        """Stationary points and whether the law is a double well."""
        return self.law.structure

    @property
    def q(self) -> float:
        """The diffusion coefficient of u_t = q (Laplacian u - G(u)), given or estimated."""
        return self.resolved.q

    @property
    def q_estimated(self) -> bool:
        """Whether q was estimated from the record, which did not say it."""
        return self.problem.records[0].q is None

    @property
    def contrast(self) -> Contrast | None:
        """Gain and offset of the values where they were estimated."""
        fit = self.diagnostics.likelihood
        return None if fit is None else fit.contrast

    @property
    def kappa(self) -> float:
        """The coefficient of kappa/2 |grad u|^2, sigma / C_H; raises when no surface tension fixed it."""
        return self._scale().kappa

    @property
    def theta(self) -> float:
        """The strength of thermal noise, kT / kappa; raises where it was not read."""
        found = self.resolved.theta
        if found is None:
            raise InputError(f"the movie was not read as one with thermal noise: pass {option('temperature')}")
        return found

    @property
    def tension(self) -> float:
        """The surface tension kappa C_H, given or from thermal noise; raises where nothing fixed it."""
        return self._scale().tension.value

    @property
    def epsilon(self) -> float:
        """The interfacial scale; raises when no surface tension fixed it."""
        return self._scale().epsilon

    def force(self, u: Any) -> Any:
        """Evaluate the effective force G(u) = F'(u) / epsilon^2."""
        return self.law.force(u)

    def diffusion(self, u: Any) -> Any:
        """Evaluate q G'(u): of Cahn-Hilliard the coefficient of diffusion within a phase, all that one phase shows."""
        return self.q * self.law.slope(u)

    def primitive(self, u: Any) -> Any:
        """Evaluate H(u) = F(u) / epsilon^2, zero at the pure phases."""
        return self.law.primitive(u)

    def potential(self, u: Any) -> Any:
        """Evaluate F(u); raises when no surface tension fixed the scale."""
        return self.law.potential(u, epsilon=self._scale().epsilon)

    def mobility(self, u: Any) -> Any:
        """Evaluate q(u), the rate of each phase; q where it is the same for all."""
        m = self.dynamics.parts.rate
        return self.q * (np.ones_like(np.asarray(u, dtype=np.float64)) if m is None else m(u))

    def band(self, quantity: Quantity, u: ArrayLike, *, level: float = 0.95) -> tuple[Array, Array]:
        """Return the lower and upper edge of the pointwise band of a curve at u.

        The curves are "force" G, "primitive" H, "potential" F, "bulk_energy" f = kappa H, "diffusion" q G', and where
        it was estimated "mobility" q(u). A band holds the noise of the record, the choice of degree, the resolution,
        and for the potential the tension's standard deviation. With a constraint it is the spread of the constrained
        estimate.
        """
        return curve_band(self._posterior(), quantity, np.asarray(u, dtype=np.float64), level, self.scale, self.q)

    def interval(self, quantity: Scalar, *, level: float = 0.95) -> tuple[float, float]:
        """Return the interval of a number that follows from the law.

        "epsilon", "barrier" (of F), "width" (planar interface), "tension_integral" (C_H), "kappa" (sigma / C_H) or
        "bulk_barrier" (of f = kappa H); of asymmetric wells also "maximum", the phase value of the barrier, and "tilt",
        H(high) - H(low); of conserved fields "low" and "high", the coexisting phases, "spinodal_low" and
        "spinodal_high", and with ideal mixing "chi"; where they were estimated "q", "blur", "gain", "offset" and their
        drifts, and of an anisotropy its "ratio" and "angle".
        """
        if quantity == "q" and not self.q_estimated:
            raise InputError(f"q = {self.q:.6g} was given and not estimated, so it has no interval")
        return scalar_interval(self._posterior(), quantity, level, self.scale)

    @property
    def covariance(self) -> Array:
        """The covariance of the coefficients before the constraint, in the posterior's family."""
        return self._posterior().covariance

    @property
    def adequacy(self) -> Adequacy | None:
        """Whether the record is the fitted model plus white noise; None where that was not tested."""
        fit = self.diagnostics.likelihood
        return self.diagnostics.moments if fit is None else fit.adequacy

    def _posterior(self) -> Posterior:
        if self.posterior is None:
            use = option("method", "trajectory")
            raise InputError(f"the weak-form fit has no noise model, so it gives no intervals: use {use}")
        return self.posterior

    @property
    def _refused(self) -> Refusal | None:
        """Why the supplied surface tension or temperature could not be used, None where it was or none was given."""
        if self.scale is not None:
            return None
        if self.problem.tension is not None:
            return refusal_of(self.law, self.diagnostics.bound, self.problem.tension)
        return None if self.problem.temperature is None else self._unmeasured

    @property
    def _unmeasured(self) -> Refusal | None:
        """Why thermal noise gives no tension, None where it does."""
        return thermal_refusal(self.law, self.diagnostics, self.problem, self.posterior)

    @property
    def refusal(self) -> str | None:
        """The same in words."""
        return None if self._refused is None else f"calibration refused: {self._refused.reason}"

    def _scale(self) -> Scale:
        if self.scale is None:
            raise InputError(self.refusal or why_no_scale(self.problem.dynamics.parts.thermal))
        return self.scale

    def plot(self, curve: str | None = None, *, ax: Any = None) -> Any:
        """Draw a curve or what the fit leaves, and return the Matplotlib axes.

        `curve` is "force", "primitive", "potential" or "bulk_energy" (in physical units) with its band (None: the
        last of these that is known), "values", which the movie shows, "degrees", their weights in the average, or of
        a trajectory fit "residual" (where the variance is too large or small), "frames" (when) and "tests". `ax` are
        axes to draw in, else of a new figure.
        """
        from doublewell.report.notebook import plot_result

        return plot_result(self, curve, ax)

    def to_dict(self) -> dict[str, Any]:
        """Return facts and findings as plain values, ready for JSON."""
        from doublewell.export.tables import result_dict

        return result_dict(self)

    def to_dataframe(self) -> Any:
        """Return the facts as a pandas DataFrame: name, symbol, value, interval and unit by key."""
        from doublewell.export.tables import fact_frame

        return fact_frame(self)

    def to_xarray(self) -> Any:
        """Return an xarray Dataset: curves and their bands over u; of a trajectory fit its initial field and residual.

        The potential is in it where the scale is known, f in physical units where these are, bands where there are
        any; edges end in _low and _high.
        """
        from doublewell.export.tables import curve_dataset

        return curve_dataset(self)

    def _repr_html_(self) -> str:
        from doublewell.report.notebook import result_html

        return result_html(self)

    def __repr__(self) -> str:
        from doublewell.report.text import summary

        return summary(self)

    def __str__(self) -> str:
        from doublewell.report.text import report_text

        return report_text(self)


def thermal_refusal(
    law: Law, numbers: Diagnostics, problem: Problem, posterior: Posterior | None
) -> Refusal | None:  # fmt: skip
    """Return why thermal noise gives no scale, None where it does, or where it was not read."""
    thermal, fit = problem.dynamics.parts.thermal and posterior is not None, numbers.likelihood
    plain = refusal_of(law, numbers.bound) if thermal else None
    if posterior is None or not thermal or plain is not None:
        return plain
    seen = problem.observation
    unknown = [name for name, value in (("blur", seen.blur), ("exposure", seen.exposure)) if value in ("auto", None)]
    if problem.records and problem.records[0].origin == "camera" and unknown:
        return Refusal(NoScale.UNKNOWN_OPTICS, 0.0, (
            f"{' and '.join(unknown)} of the pictures {'are' if len(unknown) > 1 else 'is'} not known, and half a "
            "pixel or half a frame interval takes a quarter or more of the thermal noise away: pass "
            f"{option('blur')} as a length and {option('exposure')} as a time, 0 for sharp and short ones"
        ))  # fmt: skip
    low, high = scalar_interval(posterior, "theta", 0.9, None)
    if low < _UNSEEN * high:
        return Refusal(NoScale.UNSEEN_NOISE, high, (
            f"thermal noise cannot be told from none: theta is below {high:.3g} (95 %), so that the tension is above "
            f"{law.tension_integral / high:.3g} kT"
        ))  # fmt: skip
    if fit is not None and not fit.status.converged:
        return Refusal(NoScale.NOT_CONVERGED, fit.status.size, (
            f"the fit of thermal noise did not converge ({fit.status.text}): give a lower degree, known phases or more "
            "frames"
        ))  # fmt: skip
    tests = () if fit is None or fit.adequacy is None else fit.adequacy.significant
    wrong = [test for test in tests if test.name in UNBALANCED]
    if wrong:
        return Refusal(NoScale.UNBALANCED, wrong[0].statistic, (
            f"fluctuation and dissipation do not belong together ({', '.join(test.name for test in wrong)}): q, the "
            "optics or the equation are wrong, or the noise is not thermal"
        ))  # fmt: skip
    return None
