"""Identify: the whole road from a record to a calibrated law, in one call."""

from doublewell.identify.identify import identify

__all__ = ["identify"]
