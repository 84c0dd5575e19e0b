"""Identify: the whole road from records to calibrated laws, in one call."""

from doublewell.identify.identify import identify
from doublewell.identify.many import identify_many

__all__ = ["identify", "identify_many"]
