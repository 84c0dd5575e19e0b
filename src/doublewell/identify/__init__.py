"""Identify: the whole road from records to calibrated laws, in one call; and once more, to see that it holds."""

from doublewell.identify.identify import identify
from doublewell.identify.levels import add_level_errors
from doublewell.identify.many import identify_many
from doublewell.identify.repeat import Repetition, repeat

__all__ = ["Repetition", "add_level_errors", "identify", "identify_many", "repeat"]
