"""The weak-form fit by JAX: the same evidence as the compiled kernel, here on whatever device JAX has."""

from __future__ import annotations

import numpy as np
import pytest

from doublewell import runtime as devices
from doublewell.errors import InputError
from doublewell.law import Bernstein, Wells
from doublewell.record import Record
from doublewell.runtime import Processor, choose_processor
from doublewell.weak import gpu as readers
from doublewell.weak.assembly import weak_evidence
from doublewell.weak.weights import split_folds

GPU = Processor("gpu")


def movie(shape, *, times=None, mask=None):
    axes = np.meshgrid(*[(np.arange(n) + 0.5) / shape[-1] for n in shape[1:]], indexing="ij")
    radius = np.sqrt(sum((a - 0.5) ** 2 for a in axes))
    u = np.stack([np.tanh((0.3 - 0.005 * k - radius) / 0.05) for k in range(shape[0])])
    u += 0.02 * np.random.default_rng(3).standard_normal(shape)
    options = {"dt": 1e-4} if times is None else {"times": times}
    return Record(u, dx=1 / shape[-1], q=1.0, mask=mask, **options)


def assert_same(found, expected, tolerance=1e-12):
    """R of both says the same of every direction: R_found R_expected^-1 is the unit matrix."""
    assert [block.key for block in found.blocks] == [block.key for block in expected.blocks]
    for one, two in zip(found.blocks, expected.blocks, strict=True):
        assert one.rows == two.rows > 0
        gap = np.linalg.solve(two.triangle.T, one.triangle.T) - np.eye(len(one.triangle))
        assert np.abs(gap).max() < tolerance


@pytest.mark.parametrize(
    ("shape", "supports"),
    [
        ((23, 200), [(4, 1 / 16)]),
        ((25, 41, 40), [(4, 1 / 8), (6, 1 / 6)]),
        ((17, 16, 18, 20), [(3, 1 / 5)]),
        ((3, 41, 40), [(1, 1 / 8), (1, 1 / 6)]),
        ((9, 64), [(1, 1 / 8)]),
    ],
)
def test_same_evidence_as_on_a_cpu(shape, supports):
    record = movie(shape)
    expected = weak_evidence(record, Bernstein(4), supports)
    assert_same(weak_evidence(record, Bernstein(4), supports, processor=GPU), expected)


def test_wide_supports_are_matrix_products():
    record = movie((19, 300))
    supports = [(4, 1 / 7)]
    assert_same(weak_evidence(record, Wells(2), supports, processor=GPU), weak_evidence(record, Wells(2), supports))


def test_mask_folds_and_uneven_times(monkeypatch):
    monkeypatch.setattr(readers, "_FRAMES", 5)  # several calls, one of them on fewer frames
    mask = np.random.default_rng(0).random((33, 28, 28)) > 5e-4
    times = 1e-4 * (np.arange(33) + 0.2 * np.random.default_rng(1).random(33))
    record = movie((33, 28, 28), times=times, mask=mask)
    options = {"folds": split_folds(33, 4), "derivative": "analytic"}
    supports = [(3, 1 / 8)]
    expected = weak_evidence(record, Bernstein(2), supports, **options)
    assert_same(weak_evidence(record, Bernstein(2), supports, processor=GPU, **options), expected)


def test_little_memory_cuts_frames_into_tiles(monkeypatch):
    monkeypatch.setattr(readers, "device_memory", lambda: 12_000_000)
    record = movie((25, 60, 40))
    supports = [(4, 1 / 8)]
    found = weak_evidence(record, Bernstein(4), supports, processor=GPU)
    assert_same(found, weak_evidence(record, Bernstein(4), supports))


def test_single_precision_keeps_six_digits_of_the_well_known_directions():
    record = movie((25, 41, 40))
    supports = [(4, 1 / 8)]
    expected = weak_evidence(record, Bernstein(4), supports)
    found = weak_evidence(record, Bernstein(4), supports, processor=Processor("gpu", "single"))
    assert abs(found.rows - expected.rows) <= 2  # a centre at the very cut may fall on the other side
    for one, two in zip(found.blocks, expected.blocks, strict=True):
        gap = np.abs(one.triangle - two.triangle).max() / np.abs(two.triangle).max()
        assert 1e-12 < gap < 3e-5


def test_a_record_without_interface_has_no_rows():
    record = Record(np.ones((17, 24, 24)), dx=0.1, dt=0.1, q=1.0)
    found = weak_evidence(record, Bernstein(2), [(3, 0.4)], processor=GPU)
    assert found.rows == 0
    assert not found.blocks[0].triangle.any()


def test_single_precision_is_for_a_gpu():
    with pytest.raises(InputError, match="precision='single' is for a GPU"):
        choose_processor("cpu", "single", 10)


def test_a_gpu_that_is_not_there_is_said(monkeypatch):
    monkeypatch.setattr("doublewell.runtime.on_gpu", lambda: False)
    with pytest.raises(InputError, match="JAX sees only a CPU here: install JAX for the GPU"):
        choose_processor("gpu", "double", 10)


@pytest.mark.parametrize(("values", "device"), [(10**6, "cpu"), (10**8, "gpu")])
def test_a_gpu_that_is_found_reads_large_records(monkeypatch, values, device):
    monkeypatch.setattr("doublewell.runtime.gpu_found", lambda: True)
    assert choose_processor(None, "double", values).device == device


def test_no_plugin_no_gpu(monkeypatch):
    monkeypatch.setattr(devices, "find_spec", lambda name: None)
    assert not devices.gpu_found()
