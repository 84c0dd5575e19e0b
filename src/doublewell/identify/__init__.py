"""Identify: from records to calibrated laws, in one call; and again, to see that they hold."""

from doublewell.identify.again import Repetition, repeat
from doublewell.identify.identify import identify
from doublewell.identify.many import identify_many

__all__ = ["Repetition", "identify", "identify_many", "repeat"]
