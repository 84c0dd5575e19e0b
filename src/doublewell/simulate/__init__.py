"""Artificial records: a law and an initial field in, a record out."""

from doublewell.simulate.energy import energy
from doublewell.simulate.geometry import GEOMETRIES, initial_field
from doublewell.simulate.noise import add_noise
from doublewell.simulate.rollout import simulate

__all__ = ["GEOMETRIES", "add_noise", "energy", "initial_field", "simulate"]
