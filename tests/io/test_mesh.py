"""Meshes: all nodes of a lattice, those of a lattice among others, and nodes anywhere in a box."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from doublewell.errors import InputError
from doublewell.findings import findings
from doublewell.identify import identify
from doublewell.io import load_result, save
from doublewell.io.mesh import GridNodes, ScatteredNodes, mesh_of
from doublewell.options import Weak
from doublewell.record import Note

LINE = np.linspace(0, 1, 17)
RNG = np.random.default_rng(0)


def grid(*lines):
    return np.stack([axis.ravel() for axis in np.meshgrid(*lines, indexing="ij")][::-1], axis=1)


def field(points):
    return np.tanh((points[:, 0] - 0.5 + 0.1 * np.sin(4 * points[:, 1])) / 0.2)


def moved(points, size):
    inner = np.all((points > 0) & (points < 1), axis=1)
    return points + size * inner[:, None] * np.random.default_rng(1).uniform(-1, 1, points.shape)


NODES, MIDDLES = grid(LINE, LINE), grid(*[(LINE[1:] + LINE[:-1]) / 2] * 2)


@pytest.mark.parametrize(
    ("others", "mesh"),
    [
        (MIDDLES, (17, 17)),  # crossed triangles
        (RNG.uniform(0.01, 0.99, (60, 2)), (17, 17)),  # a few nodes between those of a lattice
        (np.concatenate([grid(LINE[1:] - 1 / 32, LINE), grid(LINE, LINE[1:] - 1 / 32)]), (17, 33)),  # edges too
    ],
)
def test_a_lattice_among_other_nodes(others, mesh) -> None:
    points = RNG.permutation(np.concatenate([NODES, others]))
    found = mesh_of(points)
    assert isinstance(found, GridNodes)
    assert sorted(found.mesh) == sorted(mesh)
    places = grid(*[np.linspace(0, 1, n) for n in found.mesh])
    np.testing.assert_array_equal(found(field(points)[None])[0].ravel(), field(places))
    assert [note.code for note in found.notes(field(points)[None])] == ["lattice-used"]


def test_several_nodes_at_one_place() -> None:
    points = np.concatenate([NODES, NODES[5:8]])
    found, values = mesh_of(points), np.arange(float(len(points)))
    np.testing.assert_array_equal(found(values[None]).ravel(), np.arange(289.0))  # the first of them
    (note,) = found.notes(values[None])
    assert (note.code, note.matters) == ("nodes-disagree", True)
    assert note.sentence.startswith("3 places have several nodes with different values, up to 2.8e+02 apart")
    assert found.notes(field(points)[None]) == []


def test_nodes_anywhere_in_a_box() -> None:
    points = moved(NODES, 0.02)
    found = pickle.loads(pickle.dumps(mesh_of(points)))
    assert isinstance(found, ScatteredNodes)
    places = grid(*[np.linspace(0, 1, n) for n in found.mesh])
    off = np.abs(found(np.stack([field(points), -field(points)])) - np.array([1, -1])[:, None, None]
                 * field(places).reshape(found.mesh))  # fmt: skip
    (note,) = found.notes(field(points)[None])
    said = float(note.sentence.split("at most ")[1].split(" %")[0]) / 100 * np.ptp(field(points))
    assert np.max(off) < 1.5 * said < 0.1
    assert note.matters


def test_the_error_falls_with_the_mesh() -> None:
    errors = []
    for n in (9, 17, 33):
        points = moved(grid(*[np.linspace(0, 1, n)] * 2), 0.3 / n)
        found = mesh_of(points)
        places = grid(*[np.linspace(0, 1, m) for m in found.mesh])
        errors.append(np.sqrt(np.mean((found(field(points)[None]).ravel() - field(places)) ** 2)))
    assert errors[1] < errors[0] / 3
    assert errors[2] < errors[1] / 3


def test_a_line_and_a_volume() -> None:
    line = np.sort(np.append(RNG.random(40), [0, 1]))[:, None]
    found = mesh_of(line)
    assert isinstance(found, ScatteredNodes)
    assert np.max(np.abs(found(np.sin(3 * line.T))[0] - np.sin(3 * np.linspace(0, 1, found.mesh[0])))) < 1e-2
    points = moved(grid(*[np.linspace(0, 1, 6)] * 3), 0.03)
    found = mesh_of(points)
    assert len(found.mesh) == 3
    places = grid(*[np.linspace(0, 1, n) for n in found.mesh])
    np.testing.assert_allclose(found((points @ [1, 2, 3])[None]).ravel(), places @ [1, 2, 3], atol=1e-6)


def test_middles_of_triangles() -> None:
    shift = np.array([1 / 96, -1 / 96])
    points = np.concatenate([MIDDLES + shift, MIDDLES - shift])
    found = mesh_of(points, centres=True)
    assert np.all(np.isfinite(found(field(points)[None])))
    x = found.axes[-1].step * np.arange(found.mesh[-1])
    assert 0 < 1 - x[-1] < 0.2  # places near the border are left out


@pytest.mark.parametrize(
    ("points", "words"),
    [
        (moved(NODES, 0.02)[np.hypot(*(NODES - 0.5).T) > 0.25], "leave a hole, or a part with far fewer, around y = "),
        (moved(NODES, 0.02)[np.hypot(*(NODES - 0.5).T) < 0.5], "do not fill a box"),
        (NODES[::40], "too few to interpolate between them"),
        (NODES * [1e200, 1e-200], "not regular"),
        (NODES * np.nan, "not finite"),
    ],
)
def test_nodes_that_are_refused(points, words) -> None:
    with pytest.raises(InputError, match=words):
        mesh_of(points)


def test_what_matters_is_a_finding_of_the_result(movie, tmp_path) -> None:
    notes = (Note("field-chosen", "the field is 'u'"), Note("interpolated", "values are interpolated", matters=True))
    result = identify(movie.replace(notes=notes), method=Weak(supports=[(5, 0.15)]))
    assert [str(item) for item in findings(result) if item.code == "interpolated"] == ["values are interpolated"]
    save(result, tmp_path / "result.json")
    assert load_result(tmp_path / "result.json").notes == notes
