"""The pages keep their word: their numbers are those of the files that a command wrote."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def kept(name):
    return json.loads((ROOT / "benchmarks/results" / name).read_text())


def cells(page, marker):
    """The lines of the table below a comment that names its file."""
    text = (DOCS / page).read_text().split(f"<!-- numbers: benchmarks/results/{marker} -->\n")[1]
    lines = text.split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def table(page, marker):
    """Its rows, without the header."""
    return cells(page, marker)[2:]


def test_the_numbers_of_asymmetric_wells_are_those_of_the_file():
    rows = kept("wells.json")["rows"]
    for law, tilt, seeds, symmetric, flagged, unequal, worst, doubted in table("asymmetric.md", "wells.json"):
        group = [row for row in rows if (row["law"], f"{row['tilt']:g}") == (law, tilt)]
        assert len(group) == int(seeds)
        for name, mean in (("symmetric", symmetric), ("unequal", unequal)):
            assert f"{np.mean([row[f'{name}_error'] for row in group]):.2f}" == mean
        assert f"{max(row['unequal_error'] for row in group):.2f}" == worst
        for name, count in (("symmetric", flagged), ("unequal", doubted)):
            assert sum(row[f"{name}_verdict"] == "not adequate" for row in group) == int(count)
    assert len(rows) == sum(int(row[2]) for row in table("asymmetric.md", "wells.json"))
    wanted = [
        [f"{row['noise']:g}", f"{row['phase']:.3f}", f"{row['given']:.2f}", f"{row['estimated']:.2f}"]
        for row in kept("wells_phases.json")["rows"]
    ]
    assert table("asymmetric.md", "wells_phases.json") == wanted


@pytest.mark.parametrize(
    ("page", "name"),
    [("missing.md", "wider_missing.json"), ("noise.md", "wider_noise.json"), ("optics.md", "wider_optics.json")],
)
def test_errors_and_coverage_are_those_of_the_file(page, name):
    found = kept(name)
    said = table(page, name)
    assert [row[0] for row in said] == [key for key in found if key != "about"]
    for key, mean, covered in said:
        assert float(mean) == pytest.approx(found[key]["summary"]["mean e_G"], abs=0.005)
        assert float(covered) == pytest.approx(100 * found[key]["summary"]["coverage"], abs=0.5)


def test_errors_of_windows_are_those_of_the_file():
    found = kept("wider_window.json")
    for law, records, mean in table("windows.md", "wider_window.json"):
        rows = [row["e_G"] for row in found["rows"] if law in (row["law"], "all")]
        assert len(rows) == int(records)
        assert float(mean) == pytest.approx(np.mean(rows), abs=0.005)
    text, said = (DOCS / "windows.md").read_text().replace("\n", " "), found["summary"]
    assert f"is {said['m5 rms / bound']:.2f} times the Cramer-Rao bound" in text
    assert f"band at {100 * said['coverage']:.0f} % of the phase values" in text
    adequate, check = said["verdicts"]["adequate"], said["verdicts"]["look"]  # the name of "check" in 0.1
    assert f'Of the {said["records"]} checks of the model {adequate} are "adequate", {check} "check", and none' in text
    assert adequate + check == said["records"]


def test_what_a_blur_takes_is_that_of_the_file():
    found = kept("optics_information.json")
    for law, *said in table("optics.md", "optics_information.json"):
        ratios = found[law]["blurred over sharp"]
        assert [float(value) for value in said] == pytest.approx(
            [*ratios["unknown"][1:6], ratios["known"][3]], abs=0.006
        )


def test_wrong_boundaries_are_refused_as_the_page_says():
    text = (DOCS / "windows.md").read_text().replace("\n", " ")
    for boundary, words in (("periodic", "periodic domain"), ("neumann", "domain with walls")):
        found = kept(f"wider_{boundary}.json")["summary"]
        refused, count = found["verdicts"]["not adequate"], found["records"]
        assert f"{words}: {refused} of {count}" in text


def test_errors_of_q_are_those_of_the_file():
    found = kept("wider_q.json")["summary"]
    ((rms, cover, ratio),) = table("unknown_diffusion.md", "wider_q.json")
    assert float(rms) == pytest.approx(found["rms error of q in percent"], abs=0.005)
    assert cover == found["intervals of q that cover"]
    assert float(ratio) == pytest.approx(found["e_G over that with known q"], abs=0.005)


def test_errors_of_several_records_are_those_of_the_file():
    found = kept("wider_together.json")
    for law, sets, mean, agree in table("several.md", "wider_together.json"):
        own = [row for row in found["rows"] if row["law"] == law]
        pairs = [[int(n) for n in row["agreements"].split(" of ")] for row in own]
        assert int(sets) == len(own)
        assert float(mean) == pytest.approx(np.mean([row["e_G"] for row in own]), abs=0.005)
        assert agree == f"{sum(a for a, _ in pairs)} of {sum(b for _, b in pairs)}"
    text = (DOCS / "several.md").read_text().replace("\n", " ")
    assert f"is {found['summary']['m5 rms / bound']:.2f} times the Cramer-Rao bound" in text


def test_floors_are_those_of_the_file():
    rows = kept("floors.json")["rows"]
    said = table("degree.md", "floors.json")
    assert [(law, int(degree)) for law, degree, *_ in said] == [(row["law"], row["m"]) for row in rows]
    for (_, _, cone, exact), row in zip(said, rows, strict=True):
        assert float(cone) == pytest.approx(row["160 nodes"], abs=0.006)
        assert float(exact) == pytest.approx(row["every double well"], abs=0.006)


def test_the_zoo_is_that_of_the_file():
    text, rows = (DOCS / "diagnostics.md").read_text(), kept("zoo.json")["rows"]
    (said,) = re.findall(r"Of (\d+) such movies (\d+) were flagged, (\d+) with the right cause", text)
    assert list(map(int, said)) == [len(rows), *(sum(row[key] for row in rows) for key in ("flagged", "right"))]


def test_bands_in_hard_conditions_are_those_of_the_file():
    rows = kept("hard_bands.json")["report, linearised"]["rows"]
    said = table("degree.md", "hard_bands.json")
    for (noise, *numbers), old, new in zip(said, rows[::2], rows[1::2], strict=True):
        assert float(noise) == old["noise"] == new["noise"]
        found = [one[name] for one in (old, new) for name in ("covered, %", "worst law, %")]
        found += [new["width, before"], new["e_G, %"] / old["e_G, %"]]
        np.testing.assert_allclose([float(n) for n in numbers], found, atol=0.0051)


def test_the_mesh_error_is_that_of_the_file():
    (said,) = re.findall(r"benchmark ([\d.]+) % at 128 cells", (DOCS / "limits.md").read_text())
    (row,) = [row for row in kept("refinement.json")["rows"] if row["cells"] == 128]
    assert float(said) == pytest.approx(row["48 substeps"], abs=6e-4)


def test_errors_with_missing_values_are_those_of_the_file():
    rows = kept("missing.json")["rows"]
    said = table("missing.md", "missing.json")
    assert [row[0] for row in said] == [row["record"] for row in rows]
    for (_, missing, moments, clean, force, worst), row in zip(said, rows, strict=True):
        assert int(moments) == row["rows"]
        numbers = zip((missing, clean, force, worst), ("missing", "clean", "force", "worst"), strict=True)
        assert all(float(number) == pytest.approx(100 * row[key], abs=0.0051) for number, key in numbers)
    assert max(row["worst"] for row in rows) < 0.01


def test_errors_of_the_gallery_are_those_of_the_files():
    errors = kept("from_py_pde.json")["errors"]
    for method, force, field in table("gallery.md", "from_py_pde.json"):
        assert float(force) == pytest.approx(100 * errors[method]["force"], abs=6e-4)
        assert float(field) == pytest.approx(100 * errors[method]["field"], abs=6e-5)


def _weak_means(noise, law, key):
    rows = kept("weak_corrected.json")["rows"]
    return np.mean([e[key] for r in rows if r["noise"] == noise and law in (r["law"], "all") for e in r["errors"]])


def test_the_table_of_noise_bias_is_the_files():
    keys = [f"{method} m={m} e_G" for m in (2, 5) for method in ("weak", "weak-corrected")]
    lines = table("noise_bias.md", "weak_corrected.json")
    assert len(lines) == 15
    for noise, law, *cells in lines:
        assert cells == [f"{_weak_means(float(noise), law, key):.2f}" for key in keys]


def test_the_table_of_unknown_q_is_the_files():
    lines = table("unknown_diffusion.md", "weak_corrected.json")
    assert len(lines) == 12
    for noise, method, m, mean, _, _, known, free in lines:
        keys = [f"{method} m={m} {name}" for name in ("e_G", "e_G, q unknown")]
        assert [known, free] == [f"{_weak_means(float(noise), 'all', key):.2f}" for key in keys]
        assert mean == f"{_weak_means(float(noise), 'all', f'{method} m={m} e_q'):+.2f}"


def test_the_tables_on_other_methods_are_those_of_the_files():
    page = (DOCS / "baselines.md").read_text()
    tool = runpy.run_path(str(ROOT / "benchmarks/baselines_page.py"))
    assert tool["renewed"](page) == page
    assert re.findall(r"<!-- table: ([\w. ]+) -->", page) == list(tool["tables"]())
    for name, text in tool["tables"]().items():
        assert len(text.splitlines()) > 2, name
        assert f"<!-- table: {name} -->\n\n{text}\n\n" in page


def test_the_default_supports_are_those_that_did_well():
    *rows, means = kept("support_rules.json")["rows"]
    ratios = [row["1/4 and 1/2"] for row in rows]
    text = " ".join((DOCS / "theory.md").read_text().split())
    said = f"{means['1/4 and 1/2']:.2f} of that with the longer ones in the geometric mean, {min(ratios):.2f} at best"
    assert said in text
    assert f"{max(ratios):.2f} at worst" in text


def test_the_public_record_orders_the_methods_as_the_page_says():
    rows = kept("public_baselines.json")["rows"]
    noisy = {row["method"]: row["e_G"] for row in rows if row["noise"] == 0.03}
    weak = [noisy[name] for name in ("STAC", "analytic weak", "WSINDy test functions")]
    assert noisy["trajectory"] < min(weak)
    assert max(weak) < noisy["PFWNN"] < noisy["PINN"] < noisy["SPINN"]
    clean = {row["method"]: row["e_G"] for row in rows if row["noise"] == 0.0}
    assert max(clean["STAC"], clean["PySINDy LS"]) < 1e-3 * min(clean[name] for name in ("SPINN", "PFWNN", "PINN"))


def test_the_page_on_other_methods_keeps_its_word():
    rows = [row for row in kept("baselines.json")["rows"] if row["status"] == "fitted" and row["cells"] == 256]

    def errors(method, noise, law="sixth"):
        return [row["e_G"] for row in rows if (row["method"], row["noise"], row["law"]) == (method, noise, law)]

    assert min(errors("STAC", 0.03)) >= 1.5
    assert min(errors("direct FD4", 0.01)) > 30.0
    assert len(errors("STAC", 0.01)) == 3
    assert max(errors("STAC", 0.01)) <= 0.4
    floor = next(row for row in kept("floors.json")["rows"] if (row["law"], row["m"]) == ("bernstein3", 2))
    assert f"{floor['80 nodes']:.2f} %" in (DOCS / "baselines.md").read_text()
    assert max(errors("smoothed FD4", 0.01, "bernstein3")) < min(errors("STAC", 0.01, "bernstein3"))
    lucky = [row for row in rows if (row["method"], row["geometry"]) == ("PySINDy LS masked", "circle")]
    lucky = sorted((row["seed"], row["e_G"]) for row in lucky if (row["law"], row["noise"]) == ("sixth", 0.01))
    first, second, third, last = (f"{error:.3f}" for _, error in lucky)
    text = " ".join((DOCS / "baselines.md").read_text().split())
    assert f"four seeds have an e_G of {first}, {second}, {third} and {last}." in text
    speed = {row["geometry"]: row for row in kept("pysindy_speed.json")["rows"]}
    assert lucky[2][1] < speed["circle"]["e_G"] < np.mean([error for _, error in lucky])
    for row in speed.values():
        assert row["equal or better"]
        assert row["times faster"] >= 50.0
        assert row["times smaller"] >= 10.0
    for row in rows:
        assert row["date"]
        assert row["device"]
        assert row["seconds"] > 0.0


def test_the_cost_of_the_kernel_is_that_of_the_file():
    found = kept("bench.json")
    lines = table("scale.md", "bench.json")
    assert len(lines) == len(found["floor"])
    for (record, degree, seconds, count, rate, share, ratio, threads), row in zip(lines, found["floor"], strict=True):
        assert (record, int(degree)) == (row["record"], row["degree"])
        said = [float(cell) for cell in (seconds, count, rate, ratio, threads)]
        names = ("seconds", "Goperations", "GFLOP/s", "times the floor", "two threads over one")
        assert said == [row[name] for name in names]
        assert share == f"{100 * row['share of dgemm']:.0f} %"
    assert all(row["times the floor"] <= 2.0 for row in found["floor"] if row["degree"] == 5)
    text = (DOCS / "scale.md").read_text().replace("\n", " ")
    assert f"({found['floor'][2]['copy GB/s']:.0f} GB/s read and written)" in text
    assert found["machine"]["processor"] in text
    assert found["machine"]["caches"] in text


def test_no_width_of_a_support_asks_for_an_fft():
    rows = kept("bench.json")["fft"]
    assert all(row["transforms over direct"] > 1 for row in rows if row["mesh"] == "256 x 256")
    assert all(row["transforms over direct"] > 1 for row in rows if row["half-width in cells"] <= 64)
    assert min(row["transforms over direct"] for row in rows) > 0.8
    assert min(row["route over direct"] for row in rows) > 2.8
    assert "2.8 times as long everywhere" in " ".join((DOCS / "architecture.md").read_text().split())


def test_the_numbers_of_the_gpu_are_those_of_the_file():
    found = kept("gpu.json")
    weak = found["weak"]
    names = ["two CPU cores", "double, from host memory", "double, on the device"]
    names += ["single, from host memory", "single, on the device"]
    lines = table("scale.md", "gpu.json")
    assert [line[1] for line in lines] == [f"{weak[f'{name} ms']:.0f}" for name in names]
    ratios = [weak["two CPU cores ms"] / weak[f"{name} ms"] for name in names[1:]]
    assert [line[2] for line in lines] == ["1", *(f"{ratio:.1f}" for ratio in ratios)]
    text = " ".join((DOCS / "scale.md").read_text().split())
    assert weak["rows"] == weak["rows on the CPU"]
    assert f"R to {weak['GPU against CPU, largest change of R']:.1e} of every" in text
    assert f"single precision to {weak['single against double, largest change of R']:.1e}." in text
    assert f"move {weak['GB']:.0f} GB, which a plain copy would take {weak['memory floor ms']:.0f} ms for" in text
    assert f"at {weak['on the device over the floor']:.1f} times that floor" in text
    batches = found["trajectories"]
    said = (
        f"{batches['GPU, batches of 20, seconds a record']:.2f} s a record, {batches['ratio']:.0f} times as fast as two"
    )
    assert said in text
    assert f"The device: {found['about']['device']}." in text


def test_the_numbers_of_streaming_are_those_of_the_file():
    rows = {row["what"]: row for row in kept("scale.json")["rows"]}
    lines = table("scale.md", "scale.json")
    assert [line[0] for line in lines] == list(rows)
    for what, speed, share, ratio, peak in lines:
        row = rows[what]
        assert speed == f"{row['MB/s']:.0f}"
        if row["peak MB"]:
            assert (share, peak) == (f"{row['share of the slower']:.2f}", str(row["peak MB"]))
        assert ratio == (f"{row['over 1 worker']:.2f}" if row["over 1 worker"] else "")
    text = " ".join((DOCS / "scale.md").read_text().split())
    core = rows["Dask, 1 worker"]["MB/s"]
    assert f"| {core:.0f} MB/s a core | {1e15 / (3200 * core * 1e6) / 3600:.1f} h |" in text
    gpu = kept("gpu.json")
    rate = 8 * np.prod(gpu["about"]["record"]) / gpu["weak"]["double, from host memory ms"] / 1e6
    assert f"at {rate:.0f} GB/s each" in text
    assert f"the arithmetic in {1e15 / (400 * rate * 1e9) / 60:.0f} minutes" in text


def test_tiles_on_a_gpu_took_what_the_page_says():
    whole, tiles = kept("tiles_gpu.json")["rows"]
    text = " ".join((DOCS / "scale.md").read_text().split())
    assert whole["record"] == tiles["record"]
    first = [one["rows"][0]["seconds"] for one in (tiles, whole)]
    assert f"{whole['record']} in four tiles took {first[0]:.0f} s there" in text
    assert f"and whole {first[1]:.0f} s" in text


def test_deepxde_did_what_the_page_says():
    theirs, ours = kept("deepxde_pinn.json")["rows"]
    text = " ".join((DOCS / "baselines.md").read_text().split())
    told = [(row["e_G raw"], row["e_G projected"], row["processor seconds"]) for row in (theirs, ours)]
    (raw, projected, spent), (own_raw, own_projected, own_spent) = told
    assert f"came to {raw:.0f} % raw and {projected:.0f} % projected in {spent:.0f} s of one core" in text
    assert f"ours to {own_raw:.0f} % and {own_projected:.0f} % in {own_spent:.0f} s" in text


def test_errors_of_cameras_are_those_of_the_file():
    found = kept("camera.json")
    wanted = [
        [row["camera"], *(f"{100 * row[name]:.2f}" for name in ("force", "worst", "uncorrected"))]
        for row in found["rows"]
    ]
    assert table("intensities.md", "camera.json") == wanted
    text = " ".join((DOCS / "intensities.md").read_text().split())
    assert f"with the same noise the error is {100 * found['phase values directly']:.2f} %." in text


def test_errors_of_few_frames_are_those_of_the_file():
    lines = {(r["geometry"], r["frames"], r["apart"], r["noise"]): r for r in kept("frames.json")["table"]}
    rows = table("frames.md", "frames.json")
    assert len(rows) == 15
    for frames, apart, *cells in rows:
        own = [lines[g, int(frames), int(apart), n] for n in (0.01, 0.03) for g in ("circle", "nonconvex")]
        assert cells[:4] == [f"{line['error %']:.2f} / {line['bound %']:.2f}" for line in own]
        records = sum(line["records"] for line in own)
        assert cells[4:] == [f"{sum(r['records'] * r['covered %'] for r in own) / records:.0f}", str(records)]


def test_the_numbers_of_the_contrast_are_those_of_the_file():
    rows = kept("contrast_sweep.json")["rows"]
    shown = table("contrast.md", "contrast_sweep.json")
    assert len(shown) == len(rows)
    for row, (off, *cells) in zip(rows, shown, strict=True):
        assert float(off) == row["contrast %"]
        wanted = []
        for name in ("exact", "estimated"):
            numbers = row[f"{name} error %"], row[f"{name} covered %"]
            wanted += [f"{numbers[0]:.2f}", f"{numbers[1]:.0f}", row[f"{name} verdict"]]
        assert cells == wanted


def test_what_contrast_costs_is_that_of_the_file():
    rows = kept("contrast.json")["rows"]
    wanted = [
        [
            row["geometry"], row["boundary"], f"{row['noise']:g}", f"{row['determined']} of {row['records']}",
            f"{row['error known %']:.2f}", f"{row['error %']:.2f}", f"{row['ratio']:.2f}", f"{row['band %']:.1f}",
            f"{row['epsilon %']:.1f}",
        ]
        for row in rows
    ]  # fmt: skip
    assert table("contrast.md", "contrast.json") == wanted
    assert max(row["ratio"] for row in rows) < 1.1
    (row,), text = kept("contrast_spinodal.json")["rows"], (DOCS / "contrast.md").read_text().replace("\n", " ")
    assert f"Of {row['records']} such records" in text
    assert f'{row["records"] - row["determined"]} state "contrast not determined"' in text
    assert (
        f"the bands are {row['cost']:.1f} times as wide as with exact values, and cover {row['band %']:.0f} %" in text
    )


def test_the_camera_movie_is_that_of_the_file():
    rows = kept("camera_movie.json")["rows"]
    for movie, values, records, *said in table("intensities.md", "camera_movie.json"):
        own = [row for row in rows if (row["movie"], row["values"]) == (movie, values)]
        means = [np.sqrt(np.mean([row[key] ** 2 for row in own])) for key in ("force error %", "band %")]
        good = sum(row["verdict"] == "adequate" for row in own)
        assert [records, said[-1]] == [str(len(own)), str(good)]
        assert said[:2] == [f"{mean:.3f}" for mean in means]
        assert said[2] == f"{np.mean([row['covered %'] for row in own]):.1f}"
    cameras, text = kept("cameras.json")["rows"], (DOCS / "intensities.md").read_text()
    (said,) = re.findall(r'Of (\d+) random cameras [^.]* (\d+) are "adequate"', text)
    assert list(map(int, said)) == [len(cameras), sum(row["verdict"] == "adequate" for row in cameras)]


def test_the_movie_with_a_mobility_of_moose_is_that_of_the_file():
    rows, page = kept("moose_mobility.json")["rows"], " ".join((DOCS / "mobility.md").read_text().split())
    keys = [f"{what} {kind}, %" for what in ("force", "mobility") for kind in ("error", "inside the band")]
    wanted = [
        [row["movie"], row["boundary"], str(row["degree"]), str(row["of log q"]), *(f"{row[key]:.1f}" for key in keys),
         f"{row['errors are larger by']:.1f}"]
        for row in rows if "refused" not in row
    ]  # fmt: skip
    assert table("mobility.md", "moose_mobility.json") == wanted
    assert [row["converged"] for row in rows if row["movie"] == "the file"] == [True, True, True, False]
    assert rows[0]["solver differs by"] < 1e-12
    assert f"by {rows[0]['short steps change']:.1g}" in page
    assert f"by {rows[0]['a fine mesh changes']:.1g}" in page


def test_the_conserved_records_are_those_of_the_file():
    rows = kept("conserved.json")["rows"]
    for law, records, *said in table("conserved.md", "conserved.json"):
        own = [row for row in rows if law in (row["law"], "all")]
        assert int(records) == len(own)
        means = [np.sqrt(np.mean([value**2 for value in values])) for values in (
            [row["error"] for row in own], [row["error"] / row["bound"] for row in own]
        )]  # fmt: skip
        ends = [
            [row["inside"][key] for row in own for key in ("low", "high")],
            [row["inside"]["q"] for row in own if row["q"] == "free"],
        ]
        covered = [100 * np.mean([row["covered"] for row in own]), *(100 * np.mean(each) for each in ends)]
        assert said[:2] == [f"{means[0]:.3f}", f"{means[1]:.2f}"]
        assert said[2:5] == [f"{value:.1f}" for value in covered]
        weak = [[row[method] for row in own if method in row] for method in ("weak", "weak-corrected")]
        assert said[5:] == [f"{np.median(each):.3f}" for each in weak]


def test_errors_of_parts_are_those_of_the_file(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    lines = runpy.run_path(str(ROOT / "benchmarks/parts.py"))["summary"](kept("parts.json")["rows"])
    found = {line["kind"]: {key: f"{value:g}" for key, value in line.items() if key != "kind"} for line in lines}
    records, force, tensor = "records", "force error %", ("ratio error %", "angle error deg", "over bound")
    wanted = {
        "anisotropy.md": [[found["anisotropy"][key] for key in (records, force, *tensor, "values covered %")]],
        "driving.md": [
            [found[kind][key] for key in (records, force, "drift error cells", "values covered %")]
            for kind in ("drift", "drift, 48 cells")
        ],
        "mobility.md": [
            [name, *[found[kind][key] for key in (records, force, "mobility error %", "over bound",
                                                  "mobility covered %", "constant rejected %")]]
            for name, kind in (
                ("varies", "mobility, 48 cells"), ("constant", "constant, 48 cells"),
                ("varies", "mobility, degree 2"), ("constant", "constant, degree 2"),
            )
        ],
    }  # fmt: skip
    own = [row["converged"] for row in kept("parts.json")["rows"] if row["kind"][0] in "mc"]
    text = (DOCS / "mobility.md").read_text().replace("\n", " ")
    assert f"Of the {len(own)} fits {own.count(False)} did not converge" in text
    for page, rows in wanted.items():
        shown = [[cell if cell.isalpha() else f"{float(cell):g}" for cell in row] for row in table(page, "parts.json")]
        assert shown == rows, page


def test_what_pages_say_of_their_figures_is_in_the_file():
    found = kept("page_figures.json")
    tensor, rate, pushed, mean = (found[name] for name in ("anisotropy", "mobility", "driving", "mass_conserving"))
    (low, high), (left, right) = tensor["ratio"]["interval"], tensor["angle"]["interval"]
    wanted = {
        "anisotropy.md": [
            f"a ratio of {tensor['ratio']['estimated']:.3f} (95 %: {low:.3f} to {high:.3f})",
            f"an angle of {tensor['angle']['estimated']:.1f} degrees ({left:.1f} to {right:.1f})",
            f"off by {tensor['anisotropy estimated']['error']:.2f} %, by {tensor['ignored']['error']:.2f} % where",
        ],
        "mobility.md": [
            f"q(u) is off by {rate['q(u), degree 3']['error %']:.2f} %",
            f"with degree 2 by {rate['q(u), degree 2']['error %']:.2f} %, and inside at "
            f"{rate['q(u), degree 2']['inside %']:.0f} % of",
            f"The weak form is off by {rate['q(u), weak']['error %']:.1f} %. The force is off by "
            f"{rate['degree 3']['error']:.3f} %; with one q for all, {rate['q of one for all']:.2f}, by "
            f"{rate['one for all']['error']:.1f} %",
        ],
        "driving.md": [
            f"With h known the force is off by {pushed['driving']['h(t) known']['error']:.2f} %, with h ignored by "
            f"{pushed['driving']['ignored']['error']:.1f} %; with the drift known or estimated by "
            f"{pushed['drift']['estimated']['error']:.2f} %, with the drift ignored by "
            f"{pushed['drift']['ignored']['error']:.2f} %",
        ],
        "mass_conserving.md": [
            f"off by {mean['error %']:.2f} %",
            f"between {mean['low'][0]:.4f} and {mean['low'][1]:.4f}, and between {mean['high'][0]:.4f} and "
            f"{mean['high'][1]:.4f}",
        ],
    }
    for page, sentences in wanted.items():
        text = (DOCS / page).read_text().replace("\n", " ")
        assert all(sentence in text for sentence in sentences), page
    assert rate["q(u), degree 3"]["inside %"] == 100.0
    assert pushed["drift"]["drift known"]["error"] == pytest.approx(pushed["drift"]["estimated"]["error"], abs=0.005)


def test_two_snapshots_are_those_of_the_file():
    rows = kept("conserved_two.json")["rows"]
    lines = table("conserved.md", "conserved_two.json")
    assert sum(int(line[2]) for line in lines) == len(rows)
    for apart, noise, records, *said in lines:
        own = [row for row in rows if (row["apart"], row["noise"]) == (int(apart), float(noise))]
        assert int(records) == len(own)
        ratio = np.sqrt(np.mean([(row["error"] / row["bound"]) ** 2 for row in own]))
        error = np.sqrt(np.mean([row["error"] ** 2 for row in own]))
        inside = [100 * np.mean([row["covered"] for row in own])]
        inside.append(100 * np.mean([row["inside"][key] for row in own for key in ("low", "high")]))
        assert said == [f"{error:.2f}", f"{ratio:.2f}", *(f"{value:.0f}" for value in inside)]


def test_equations_told_apart_are_those_of_the_file():
    rows = kept("auto.json")["rows"]
    for name, *said in table("conserved.md", "auto.json"):
        own = [row for row in rows if name == ("still" if row["still"] else row["equation"])]
        counts = [sum(bool(row.get(key)) for row in own) for key in ("told", "clear", "undecided", "refused")]
        wrong = sum(row["clear"] and (not row["told"] or row["stage"] in ("stripe", "round")) for row in own)
        assert said == [str(number) for number in (len(own), *counts, wrong)]
        assert wrong == 0


def test_the_movie_of_py_pde_is_that_of_the_file():
    (row,), text = kept("py_pde_movie.json")["rows"], " ".join((DOCS / "conserved.md").read_text().split())
    assert f"the force to {row['force error %']:.2f} %, kappa = {row['kappa']:.3f} and M = {row['M']:.3f}" in text
    assert f"within {row['py-pde off %']:.2f} % (py-pde) and {row['fipy off %']:.2f} % (FiPy) of the movie" in text
    assert max(row["force error %"], 0.5 * row["py-pde off %"], 0.5 * row["fipy off %"]) < 0.5


def test_a_fit_of_cahn_hilliard_takes_as_many_forward_runs_as_the_page_says():
    rows = kept("trajectory_cost_equations.json")["rows"]
    counts = {(row["equation"], row["record"]): row["forward trajectories"] for row in rows}
    drop, pattern = (
        [counts[name, stage] for name in ("cahn-hilliard", "allen-cahn")] for stage in ("drop", "spinodal")
    )
    text = " ".join((DOCS / "conserved.md").read_text().split())
    said = f"a drop {drop[0]} against {drop[1]}, a spinodal pattern {pattern[0]} against {pattern[1]}."
    assert said in text
    assert max(drop[0] / drop[1], pattern[0] / pattern[1]) <= 1.5


@pytest.mark.parametrize("name", [f"trajectory_cost_{name}.json" for name in ("clean", "ideas", "runs")])
def test_what_a_fit_costs_is_that_of_the_file(name):
    keys, _, *rows = cells("cost.md", name)
    assert rows == [[str(row[key]) for key in keys] for row in kept(name)["rows"]]


def test_seconds_of_a_fit_beside_the_older_version_are_those_of_the_file():
    rows = {row["case"]: row for row in kept("versions.json")["rows"]}
    text = " ".join((DOCS / "cost.md").read_text().split())
    for case, words in (("trajectory", "with the tests"), ("trajectory without the check", "without")):
        row = rows[case]
        of = " of 0.1" if case == "trajectory" else ""
        assert f"{row['seconds']:.1f} s against {row['seconds of the old']:.1f} s{of} {words}" in text
        assert f"{row['first ratio']:.1f} times" in text
        assert f"{row['ratio']:.1f}" in text
