"""Artificial records: a law and an initial field in, a record out."""

from doublewell.simulate.geometry import GEOMETRIES, initial_field
from doublewell.simulate.rollout import add_noise, energy, simulate

__all__ = ["GEOMETRIES", "add_noise", "energy", "initial_field", "simulate"]
