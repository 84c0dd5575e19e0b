"""Results as JSON: equal to the last bit, and refused when anything is not as it was written."""

import json
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
from grouping import changed, grouped

from doublewell.calibrate import calibrate
from doublewell.difference import compare
from doublewell.errors import InputError
from doublewell.identify import identify
from doublewell.io import load_result, open_record, save
from doublewell.io.result_file import _checksum
from doublewell.law import Law, named_law
from doublewell.problem import Source


def refused(match):
    return pytest.raises(InputError, match=match)


def equal(a, b):
    """Whether two values have the same types and the same bits, all the way down."""
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    if is_dataclass(a):
        return type(a) is type(b) and all(equal(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, tuple):
        return type(b) is tuple and len(a) == len(b) and all(map(equal, a, b))
    return type(a) is type(b) and (a == b or a != a != b)


def round_trip(result, path):
    save(result, path)
    return load_result(path)


def test_round_trip_is_exact(result, tmp_path):
    back = round_trip(result, tmp_path / "result.json")
    assert equal(back, result)
    assert str(back) == str(result)
    assert back.epsilon == result.epsilon
    assert back.diagnostics.ridge.path == result.diagnostics.ridge.path
    assert not back.diagnostics.unconstrained.flags.writeable


@pytest.mark.parametrize(
    "options",
    [
        {"method": "weak", "degree": 0, "supports": [(5, 0.1)]},
        {"method": "weak", "degree": 8, "constraint": "none", "ridge": 1e-6},
        {"method": "weak", "degree": 5, "surface_tension": 0.94},
    ],
)
def test_other_ways_of_asking(options, movie, tmp_path):
    result = identify(movie, **grouped(**options))
    assert equal(round_trip(result, tmp_path / "result.json"), result)


@pytest.fixture(scope="module")
def trajectory(movie):
    return identify(movie.clip(0, 15), surface_tension=0.94)


def test_a_trajectory_with_its_residual_and_tests(trajectory, tmp_path):
    fit = trajectory.diagnostics.likelihood
    assert fit.residual_map.shape == (48, 48)
    assert fit.residual_frames.shape == (15,)
    back = round_trip(trajectory, tmp_path / "result.json")
    assert equal(back, trajectory)
    assert back.diagnostics.likelihood.initial.tobytes() == fit.initial.tobytes()
    assert back.adequacy == trajectory.adequacy
    assert str(back) == str(trajectory)
    unasked = replace(trajectory, diagnostics=replace(trajectory.diagnostics, likelihood=replace(fit, adequacy=None)))
    assert round_trip(unasked, tmp_path / "other.json").adequacy is None


@pytest.mark.parametrize("name", ["segments", "residual_map", "residual_frames", "adequacy"])
def test_a_trajectory_of_an_older_version_says_what_it_lacks(name, trajectory, tmp_path):
    path = tmp_path / "result.json"
    save(trajectory, path)
    with refused(rf"result\.diagnostics\.likelihood lacks {name}: .*Likelihood of this version.*run identify again"):
        load_result(edited(path, drop("diagnostics", "likelihood", name)))


def test_a_fitted_initial_field_may_be_absent_and_must_fit(trajectory, tmp_path):
    path = tmp_path / "result.json"
    save(trajectory, path)
    older = load_result(edited(path, drop("diagnostics", "likelihood", "initial")))
    assert older.diagnostics.likelihood.initial is None
    assert compare(trajectory, older).same
    numbers = replace(trajectory.diagnostics.likelihood, initial=np.zeros((3, 4), np.float32))
    save(replace(trajectory, diagnostics=replace(trajectory.diagnostics, likelihood=numbers)), path)
    with refused("do not belong together"):
        load_result(path)


def test_a_very_large_initial_field_is_left_out(trajectory, tmp_path):
    numbers = replace(trajectory.diagnostics.likelihood, initial=np.zeros(2**20 + 1, np.float32))
    large = replace(trajectory, diagnostics=replace(trajectory.diagnostics, likelihood=numbers))
    save(large, tmp_path / "result.json")
    assert load_result(tmp_path / "result.json").diagnostics.likelihood.initial is None
    assert (tmp_path / "result.json").stat().st_size < 2**20


def test_where_the_data_came_from_is_kept_and_may_be_absent(result, tmp_path):
    source = Source("a<b>.npz", (("dt", 0.5), ("n", 3), ("flat", True), ("var", "u")))
    named = changed(result, source=source)
    path = tmp_path / "result.json"
    assert equal(round_trip(named, path), named)
    for name in ("checksum", "source"):
        save(named, path)
        older = load_result(edited(path, drop("problem", "records", 0, name)))
        assert getattr(older.problem.records[0], name) is None


def test_numbers_that_json_does_not_know(result, tmp_path):
    strange = replace(result.diagnostics, condition=float("inf"), kkt=float("nan"), residual=-0.0, bound=float("-inf"))
    back = round_trip(replace(result, diagnostics=strange), tmp_path / "result.json")
    assert equal(back.diagnostics, strange)
    json.loads((tmp_path / "result.json").read_text(), parse_constant=pytest.fail)  # strict JSON


def test_numpy_scalars_become_plain_numbers(result, tmp_path):
    numbers = replace(result.diagnostics, rows=np.int64(7), kkt=np.float64(0.1), residual=np.float32(0.5))
    back = round_trip(replace(result, diagnostics=numbers), tmp_path / "result.json").diagnostics
    assert (back.rows, back.kkt, back.residual) == (7, 0.1, 0.5)
    assert (type(back.rows), type(back.kkt)) == (int, float)


def test_a_law_of_the_other_family(result, tmp_path):
    law = named_law("exponential").effective(0.04)
    size = law.coefficients.size
    numbers = replace(result.diagnostics, unconstrained=np.ones(size), supports=())
    other = replace(result, law=law, diagnostics=numbers, scale=calibrate(law, 0.9))
    back = round_trip(other, tmp_path / "result.json")
    assert back.law.family.name == "chebyshev"
    assert back.law.name == "exponential"
    assert equal(back, other)


def test_words_of_any_language(result, tmp_path):
    text = 'größe "µ"\n\u2028\\ 界'
    named = replace(result, law=replace(result.law, name=text))
    assert round_trip(named, tmp_path / "result.json").law.name == text


def test_a_file_may_be_laid_out_anew(result, tmp_path):
    path = tmp_path / "result.json"
    save(result, path)
    path.write_text(json.dumps(json.loads(path.read_text()), sort_keys=True))
    assert equal(load_result(path), result)


def test_every_changed_number_is_found(result, tmp_path):
    path = tmp_path / "result.json"
    save(result, path)
    text = path.read_text()
    path.write_text(text.replace(repr(result.scale.epsilon), repr(result.scale.epsilon * (1 + 1e-15))))
    assert path.read_text() != text
    with refused(r"result\.json was changed or damaged after it was saved .*restore the file, or run identify again"):
        load_result(path)


def edited(path, change):
    """Change a saved result and give it a valid checksum, so that the checks behind it are reached."""
    content = json.loads(path.read_text())
    change(content["result"])
    content["checksum"] = _checksum(content["result"])
    path.write_text(json.dumps(content))
    return path


def put(*place, value):
    def change(body):
        for key in place[:-1]:
            body = body[key]
        body[place[-1]] = value

    return change


def drop(*place):
    def change(body):
        for key in place[:-1]:
            body = body[key]
        del body[place[-1]]

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put("diagnostics", "rows", value=1.5), r"result\.diagnostics\.rows is 1\.5: expected an integer"),
        (put("diagnostics", "rows", value=True), "rows is True: expected an integer"),
        (put("diagnostics", "kkt", value="small"), "kkt is 'small': expected a number"),
        (put("diagnostics", "kkt", value=False), "kkt is False: expected a number"),
        (put("diagnostics", "kkt", value=10**400), "kkt is 1000.*: expected a number"),
        (put("diagnostics", "kkt", value={"float": "big"}), "expected nan, inf or -inf"),
        (put("diagnostics", "kkt", value={"float": 1}), "expected a number"),
        (put("diagnostics", "active", value="none"), "active is 'none': expected a list"),
        (put("diagnostics", "active", value=["x"]), r"active\[0\] is 'x': expected an integer"),
        (put("diagnostics", "unconstrained", value=3), "unconstrained is 3: expected a list"),
        (put("diagnostics", "unconstrained", value=[1.0, None, 2.0]), r"unconstrained\[1\] is None"),
        (put("diagnostics", "unconstrained", value=[1.0]), "do not belong together"),
        (put("diagnostics", "unconstrained", value={"shape": [3, -1], "values": [1.0]}), "a shape of 1 value"),
        (put("diagnostics", "supports", 0, "coefficients", value=[1.0]), "do not belong together"),
        (put("diagnostics", "active", value=[3]), "do not belong together"),
        (put("diagnostics", "ridge", "path", 0, value=[1.0]), r"path\[0\] is \[1.0\]: expected a list of 2"),
        (put("diagnostics", "survey", value=[]), "expected the fields of a Survey"),
        (put("problem", "records", 0, "dx", value=[0.1]), "do not belong together"),
        (put("problem", "law", "degree", value=[]), r"degree is \[\]: expected"),
        (put("resolved", "colour", value="red"), "resolved has the unknown field colour: .*of this version"),
        (drop("resolved", "q"), "resolved lacks q: expected the fields of a Resolved"),
        (put("scale", "tension", "normalisation", value="F"), "normalisation is 'F': expected 'E' or 'eE'"),
        (put("scale", "tension", "value", value=-1.0), "surface tension is -1: expected a positive number"),
        (put("law", "coefficients", value=[1.0]), r"coefficients have shape \(1,\): expected \(3,\)"),
        (put("law", "coefficients", 1, value={"float": "inf"}), "coefficients are not finite"),
        (put("law", "family", value="bernstein"), "expected one of the families bernstein, chebyshev"),
        (put("law", "family", "name", value="fourier"), "family is 'fourier': expected one of the families"),
        (put("law", "family", "degree", value=11), "degree is 11: expected an integer from 0 to 8"),
        (put("law", "family", "wells", value=2), "family has the unknown field wells"),
        (put("law", value=None), "result.law is None: expected the fields of a Law"),
        (put("law", value={"family": {"name": "chebyshev", "degree": -1}, "coefficients": []}), "degree is -1"),
    ],
)
def test_every_field_is_checked(change, words, result, tmp_path):
    path = tmp_path / "result.json"
    save(result, path)
    with refused(rf"result\.json: .*{words}.*run identify again"):
        load_result(edited(path, change))


def test_fields_with_a_default_may_be_absent(result, tmp_path):
    path = tmp_path / "result.json"
    save(replace(result, law=Law.bernstein(result.coefficients, name="mine")), path)
    assert load_result(edited(path, drop("law", "name"))).law.name == ""


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty: expected a saved result"),
        (b" \n", "is empty"),
        (b"{", "is not JSON, or is cut short"),
        (b"\xff\xfe", "is not JSON, or is cut short"),
        (b"PK\x03\x04", r"is not JSON, or is cut short .*a record is read by open_record"),
        (b'{"format": NaN}', "NaN is not JSON"),
        (b"[" * 100000, "is not JSON, or is cut short"),
        (b"9" * 5000, "is not JSON, or is cut short"),
        (b"[1, 2]", "is JSON but no doublewell result"),
        (b'{"law": 1}', "is JSON but no doublewell result"),
        (b'{"format": "doublewell result"}', "is damaged: its version is None"),
        (b'{"format": "doublewell result", "version": true}', "is damaged: its version is True"),
        (b'{"format": "doublewell result", "version": 4}', "newer doublewell .result version 4.*--upgrade"),
        (b'{"format": "doublewell result", "version": 2}', "older doublewell .result version 2.*run identify again"),
        (b'{"format": "doublewell result", "version": 3}', "was changed or damaged"),
        (b'{"format": "doublewell result", "version": 3, "checksum": "", "result": 1e999}', "was changed or damaged"),
    ],
)
def test_foreign_and_damaged_files(content, words, tmp_path):
    path = tmp_path / "result.json"
    path.write_bytes(content)
    with refused(words):
        load_result(path)


def test_truncated_at_every_place(result, tmp_path):
    path = tmp_path / "result.json"
    save(result, path)
    whole = path.read_bytes()
    for size in range(0, len(whole) - 2, 61):
        path.write_bytes(whole[:size])
        with refused("is not JSON, or is cut short|is empty"):
            load_result(path)


def test_wrong_paths(small, tmp_path):
    with refused(r"absent\.json does not exist: expected a saved result"):
        load_result(tmp_path / "absent.json")
    with refused("is a folder: expected a saved result .*open_record"):
        load_result(tmp_path)
    save(small, tmp_path / "movie.npz")
    with refused("is not JSON.*a record is read by open_record"):
        load_result(tmp_path / "movie.npz")
    with refused("path is 5: expected the name of a file"):
        load_result(5)
    with refused("a .json file is a saved result"):
        (tmp_path / "r.json").write_text("{}")
        open_record(tmp_path / "r.json")
