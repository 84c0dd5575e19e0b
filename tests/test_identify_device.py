"""The device and the precision that a reading is asked for; here JAX's default device stands for a GPU."""

from __future__ import annotations

import pytest

from doublewell.errors import InputError
from doublewell.identify import identify
from doublewell.options import Compute, Weak
from doublewell.runtime import computing_on, on_gpu


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr("doublewell.runtime.on_gpu", lambda: True)


@pytest.mark.usefixtures("gpu")
def test_the_weak_reading_on_a_gpu_gives_the_same_law(noisy):
    plain = identify(noisy, law=2, method="weak")
    found = identify(noisy, law=2, method="weak", compute=Compute(device="gpu"))
    streamed = identify(noisy, law=2, method=Weak(memory="2GB"), compute=Compute(device="gpu"))
    assert found.coefficients == pytest.approx(plain.coefficients, rel=1e-9)
    assert streamed.coefficients == pytest.approx(plain.coefficients, rel=1e-9)
    assert found.diagnostics.rows == streamed.diagnostics.rows == plain.diagnostics.rows


@pytest.mark.usefixtures("gpu")
def test_single_precision_changes_the_law_by_less_than_noise_does(noisy):
    plain = identify(noisy, law=2, method="weak")
    found = identify(noisy, law=2, method=Weak(precision="single"), compute=Compute(device="gpu"))
    assert found.coefficients == pytest.approx(plain.coefficients, rel=1e-4)


def test_the_cpu_can_be_asked_for(noisy):
    plain = identify(noisy, law=2, method="weak")
    found = identify(noisy, law=2, method="weak", compute=Compute(device="cpu"))
    assert found.coefficients.tolist() == plain.coefficients.tolist()
    with computing_on("cpu"):
        assert not on_gpu()


def test_a_missing_gpu_and_wrong_words_are_refused(noisy, monkeypatch):
    monkeypatch.setattr("doublewell.runtime.on_gpu", lambda: False)
    with pytest.raises(InputError, match="JAX sees only a CPU here"):
        identify(noisy, compute=Compute(device="gpu"))
    with pytest.raises(InputError, match="device is 'quantum'"):
        identify(noisy, compute=Compute(device="quantum"))
    with pytest.raises(InputError, match="precision is 'half'"):
        identify(noisy, method=Weak(precision="half"))
