"""Intensity: from the grey values of a camera to phase values, with what is known of their scale."""

from doublewell.intensity.phase import Phase, phase_from_intensity

__all__ = ["Phase", "phase_from_intensity"]
