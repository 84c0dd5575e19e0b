"""What the tests of records share: a small movie, an array on disk, and what an error says."""

import numpy as np
import pytest

from doublewell.errors import InputError
from doublewell.record import Record

MOVIE = np.linspace(-1, 1, 5 * 4 * 6).reshape(5, 4, 6)


class Stored:
    """An array on disk: counts the frames that are read."""

    def __init__(self, values):
        self._values, self.shape, self.ndim = values, values.shape, values.ndim
        self.dtype = values.dtype
        self.read = []

    def __getitem__(self, frames):
        self.read.append((frames.start, frames.stop))
        return self._values[frames]

    def __array__(self, *args, **kwargs):
        raise AssertionError("the whole array was read")


def record(u=MOVIE, **metadata):
    return Record(u, **{"dx": 0.1, "dt": 0.5} | metadata)


def message(call):
    with pytest.raises(InputError) as error:
        call()
    return str(error.value)
