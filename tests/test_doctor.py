"""Doctor: what is found on a machine, whole or with parts missing."""

import json
from dataclasses import replace

import pytest

from doublewell import doctor
from doublewell.doctor import Extra, Timing, examine


@pytest.fixture(scope="module")
def found():
    return examine(fit=False)


def test_packages_extras_devices_and_cache(found):
    packages = dict(found.packages)
    assert {"numpy", "scipy", "jax", "zarr", "cyclopts"} <= set(packages)
    assert all(packages.values())
    assert found.missing == ()
    assert {"xarray", "dask"} <= {extra.name for extra in found.extras}
    assert not {"all", "dev", ""} & {extra.name for extra in found.extras}
    assert found.devices[0].startswith("cpu: ")
    assert found.cores >= 1
    text = str(found)
    assert f"  numpy {packages['numpy']}" in text
    assert "Compiled programs are kept in: " in text


def test_what_is_missing_is_named_with_its_remedy(found):
    poor = replace(
        found, packages=(("numba", None),), extras=(Extra("tiff", (("tifffile", None),)),), devices=(), cache=None
    )
    assert poor.missing == ("numba",)
    text = str(poor)
    assert "numba MISSING: run pip install --upgrade doublewell" in text
    assert "tiff: not installed; pip install 'doublewell[tiff]'" in text
    assert "none: JAX is missing" in text
    assert "kept in: off" in text


def test_a_machine_without_a_package_is_not_timed(monkeypatch):
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == "jax" else "1.0")
    monkeypatch.setattr(doctor, "_timings", lambda _: pytest.fail("timed"))
    found = examine()
    assert found.missing == ("jax",)
    assert (found.devices, found.timings, found.cache) == ((), (), None)


def test_both_methods_are_timed():
    said = []
    found = examine(progress=lambda *words: said.append(words[0]))
    assert [timing.name for timing in found.timings] == ["weak-form fit", "trajectory fit"]
    assert all(0.0 < timing.next < 60.0 for timing in found.timings)
    assert said == ["timing the weak-form fit", "timing the trajectory fit"]
    assert "A small trajectory fit: " in str(found)


def test_command(monkeypatch, capsys, found):
    from doublewell.cli import main

    timed = replace(found, timings=(Timing("weak-form fit", 1.0, 0.5),))
    monkeypatch.setattr(doctor, "examine", lambda **_: timed)
    assert main(["doctor", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["seconds"] == {"weak-form fit": {"first": 1.0, "next": 0.5}}
    assert answer["extras"]["xarray"]["ready"] is True
    assert answer["missing"] == []
    assert main(["doctor"]) == 0
    assert "A small weak-form fit: 1.0 s at first, then 0.50 s" in capsys.readouterr().out
    monkeypatch.setattr(doctor, "examine", lambda **_: replace(timed, packages=(("jax", None),)))
    assert main(["doctor", "--quiet", "--no-fit"]) == 1
    assert capsys.readouterr().out == ""
