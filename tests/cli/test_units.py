import pytest

pytest.importorskip("pint")

WORDS = ("--method", "weak", "--dx", "0.1", "--dt", "2", "--length-unit", "um", "--time-unit", "s")


def test_physical_numbers_from_the_shell(run, run_json, movie_file):
    tension = ("--surface-tension", "0.3 J/m^2 +- 5 %")
    found = run_json("identify", movie_file, *WORDS, "--q", "0.001", *tension)
    kappa = found["facts"]["physical_kappa"]
    assert kappa["unit"] == "J/m"
    assert kappa["sd"] == pytest.approx(0.05 * kappa["value"])
    other = run_json("identify", movie_file, *WORDS, "--q", "1e-15 m^2/s", *tension)
    assert other["facts"]["physical_kappa"]["value"] == pytest.approx(kappa["value"], rel=1e-9)
    assert other["result"]["problem"]["records"][0]["q"] == pytest.approx(0.001)
    assert other["result"]["problem"]["records"][0]["length_unit"] == "um"
    code, out, _ = run("identify", movie_file, *WORDS, "--q", "0.001", *tension)
    assert code == 0
    assert "Physical units" in out
    assert f"kappa = {kappa['value']:.5g} J/m" in out


def test_plain_numbers_have_no_physical_part(run_json, movie_file):
    found = run_json("identify", movie_file, "--method", "weak", "--surface-tension", "0.3", "--tension-sd", "0.01")
    assert "physical_kappa" not in found["facts"]
    assert found["result"]["scale"]["tension"] == {"value": 0.3, "sd": 0.01, "normalisation": "E", "unit": None}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--surface-tension", "0.3 J/m^2"], "the record's lengths have no unit: pass "),
        ([*WORDS, "--surface-tension", "0.3 Pa"], "--surface-tension: the surface tension is in Pa"),
        ([*WORDS, "--surface-tension", "0.3 +- 1 %", "--tension-sd", "0.1"], "both state an error: give one of them"),
        (["--length-unit", "s"], "--length-unit is in s, which is a time: expected a length"),
        (["--time-unit", "um"], "--time-unit is in um, which is a length: expected a time"),
        (["--q", "1 m^2/s"], "--q is in m^2/s: pass --length-unit and --time-unit too, or --q as a plain number"),
        ([*WORDS, "--q", "1 m/s"], "--q is in m/s"),
        ([*WORDS, "--q", "fast"], "--q is 'fast': expected a number"),
    ],
)
def test_wrong_units_are_one_line(refused, movie_file, words, message):
    assert message in refused("identify", movie_file, *words)
