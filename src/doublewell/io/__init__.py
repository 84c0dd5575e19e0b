"""Files: records and results on disk."""

from doublewell.io.open import open_record as open_record
from doublewell.io.open import save as save
from doublewell.io.result_file import load_result as load_result
