"""Files: records and results on disk."""

from doublewell.files.open_record import open_record
from doublewell.files.result_json import load_result
from doublewell.files.save import save

__all__ = ["load_result", "open_record", "save"]
