"""Files: records and results on disk."""

from doublewell.io.open import open_record
from doublewell.io.result_file import load_result
from doublewell.io.save import save

__all__ = ["load_result", "open_record", "save"]
