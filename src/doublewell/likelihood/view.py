"""View: how a record is seen. Optics, the noise's shape, and what is estimated along with the law."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from doublewell.checks import shown
from doublewell.errors import InputError
from doublewell.hints import Array

__all__ = ["PLAIN", "Free", "Optics", "View", "Whitening"]

Free = Literal["q", "blur"]


@dataclass(frozen=True)
class Optics:
    """What lies between the phase field and its image.

    Parameters
    ----------
    blur
        Standard deviation of a Gaussian point-spread function, in the unit of dx; "estimated" when it is not known.
    pixel
        Whether a pixel is the mean over its area; without it, the value at its centre.
    exposure
        Time over which a frame is averaged, in the unit of the times, centred at the time of the frame.
    refine
        How many times finer the model's mesh is than the record's: for records coarser than their interface. With a
        no-flux wall it must be odd.

    >>> Optics(blur=0.01, pixel=True)
    Optics(blur=0.01, pixel=True, exposure=0.0, refine=1)
    """

    blur: float | Literal["estimated"] = 0.0
    pixel: bool = False
    exposure: float = 0.0
    refine: int = 1

    def __post_init__(self) -> None:
        if not (self.blur == "estimated" or _length(self.blur)):
            raise InputError(f"blur is {shown(self.blur)}: expected a length of at least 0, or 'estimated'")
        if not _length(self.exposure):
            raise InputError(f"exposure is {shown(self.exposure)}: expected a time of at least 0")
        if not (isinstance(self.refine, int) and not isinstance(self.refine, bool) and 1 <= self.refine <= 8):
            raise InputError(f"refine is {shown(self.refine)}: expected an integer from 1 to 8")

    @property
    def transfers(self) -> bool:
        """Whether an image differs from the field."""
        return self.blur != 0.0 or self.pixel


def _length(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value < np.inf


@dataclass(frozen=True, eq=False)
class Whitening:
    """The shape of the noise, its level aside.

    ``root`` is what each value counts, shape (frames, ...) or one that broadcasts; ``colour`` the factor of each
    cosine mode of a frame, one over the root of the noise's spectrum, None for white noise; ``memory`` the correlation
    of consecutive frames. ``level`` is the noise where these are one; None: it is what the fit leaves.
    """

    root: Array | None = None
    colour: Array | None = None
    memory: float = 0.0
    level: float | None = None


@dataclass(frozen=True, eq=False)
class View:
    """Optics and noise of a record, and which of q and blur are estimated along with the law.

    An entry of theta for q is its ratio to the record's q; one for the blur is its variance in units of dx^2 of the
    last axis.
    """

    optics: Optics = Optics()
    whitening: Whitening = Whitening()
    q_free: bool = False

    @property
    def free(self) -> tuple[Free, ...]:
        """Names of the entries of theta that come before the coefficients."""
        q: tuple[Free, ...] = ("q",) if self.q_free else ()
        return (*q, "blur") if self.optics.blur == "estimated" else q

    @property
    def plain(self) -> bool:
        """Whether fields are seen as they are, with white noise and known q."""
        noise = self.whitening
        return self.optics == Optics() and not self.q_free and noise.root is noise.colour is None and not noise.memory


PLAIN = View()
