"""Quality: how well grey values became phase values, as numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GreyQuality:
    """Numbers of a conversion from grey values to phase values.

    ``limits`` are the lowest and the highest value and ``saturated`` the fractions of values at them, where they are
    limits of the camera or of the file; ``steps`` is the number of grey values between the plateaus; ``deficit`` how
    far the bulk of either may be from the pure phase, in u; ``fade_gap`` by how much the two plateaus fade differently,
    in u, and ``bleaching`` whether each frame has a factor of its own; ``dark`` the camera's value without light;
    ``moved`` by how many pixels frames were moved back, None where they were not.
    """

    limits: tuple[float, float]
    saturated: tuple[float, float]
    steps: float
    deficit: tuple[float, float]
    fade_gap: float
    bleaching: bool
    dark: float
    moved: float | None
