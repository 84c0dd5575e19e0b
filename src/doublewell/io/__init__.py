"""Files: records and results on disk."""

from doublewell.io.open import open_record, save
from doublewell.io.result_file import load_result

__all__ = ["load_result", "open_record", "save"]
