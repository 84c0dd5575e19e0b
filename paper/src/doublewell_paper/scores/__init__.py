"""Scores: each is a function of a sample and an outcome; a new one is a function and one line here."""

from collections.abc import Callable

from doublewell_paper.outcome import Outcome
from doublewell_paper.sample import Sample
from doublewell_paper.scores.constitutive import force_error, weighted_force_error
from doublewell_paper.scores.field import field_error
from doublewell_paper.scores.scale import epsilon_error, potential_error
from doublewell_paper.scores.structure import inside_cone, violation

__all__ = ["SCORES"]

Score = Callable[[Sample, Outcome], float | None]
SCORES: dict[str, Score] = {
    "e_G": force_error,
    "e_G_seen": weighted_force_error,
    "e_F": potential_error,
    "e_eps": epsilon_error,
    "e_u": field_error,
    "violation": violation,
    "in_cone": inside_cone,
}
