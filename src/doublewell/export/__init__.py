"""Export: an identified law as a text that another program runs or a person reads."""

from doublewell.export.export import FORMATS, FormatName, export

__all__ = ["FORMATS", "FormatName", "export"]
