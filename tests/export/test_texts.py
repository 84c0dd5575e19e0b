import ast
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from grouping import changed

from doublewell.dynamics import AllenCahn, Anisotropy, Driving, Mobility
from doublewell.errors import InputError
from doublewell.export import FORMATS, export
from doublewell.law import Law, Mixture
from doublewell.problem import RecordInfo
from doublewell.record import Record

LAW = Law.bernstein([90.0, 60.0, 160.0, 120.0])

U = np.linspace(-1.4, 1.4, 281)
INSIDE = np.linspace(-1.0, 1.0, 201)


def run(text):
    names = {"__name__": "law"}
    exec(compile(text, "law.py", "exec"), names)
    return names


@pytest.mark.parametrize("name", FORMATS)
def test_every_text_says_units_meaning_scale_and_errors(name, banded, plain):
    text = " ".join(export(banded, name).replace("%", " ").replace("#", " ").split())
    for words in ("u_t = q (Laplacian u - G(u))", "lengths in the unit of the record's dx", "L = q/kappa"):
        assert words in text
    assert "surface tension 0.3 +- 0.01" in text
    assert "band of G: +- " in text
    bare = " ".join(export(plain, name).split())
    assert "kappa = 1 is a choice" in bare
    assert "weak-form fit gives no error band" in bare


@pytest.mark.parametrize("name", ["py-pde", "fipy", "sympy", "python"])
def test_nothing_in_a_note_can_end_the_docstring(name, plain):
    hostile = changed(plain, version='""" + exec("1/0") + """ \\ "')
    tree = ast.parse(export(hostile, name))
    assert isinstance(tree.body[0].value, ast.Constant)
    assert "exec" in ast.get_docstring(tree)
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "exec"]


def test_python_is_the_law(banded):
    law = run(export(banded, "python"))
    assert np.allclose(law["force"](U), banded.force(U), rtol=1e-13, atol=1e-11)
    assert np.allclose(law["primitive"](U), banded.primitive(U), rtol=1e-13, atol=1e-11)
    assert np.allclose(law["potential"](U), banded.potential(U), rtol=1e-12, atol=1e-12)
    assert law["KAPPA"] * law["MOBILITY"] == pytest.approx(law["Q"], rel=1e-15)
    assert law["EPSILON"] == banded.epsilon
    assert law["bulk_energy"](0.0) == pytest.approx(banded.potential(0.0) / banded.epsilon, rel=1e-13)


def test_python_without_a_tension_has_no_potential(plain):
    law = run(export(plain, "python"))
    assert law["KAPPA"] == 1.0
    assert "potential" not in law
    assert "EPSILON" not in law


def test_python_prints_a_table_when_run(plain, capsys):
    exec(compile(export(plain, "python"), "law.py", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.count("u = ") == 25


def test_sympy_is_the_law(banded):
    sympy = pytest.importorskip("sympy")
    law = run(export(banded, "sympy"))
    u = law["u"]
    inside = {name: sympy.lambdify(u, law[name])(INSIDE) for name in ("G", "H", "F", "f")}
    assert np.allclose(inside["G"], banded.force(INSIDE), rtol=1e-13, atol=1e-11)
    assert np.allclose(inside["H"], banded.primitive(INSIDE), rtol=1e-13, atol=1e-11)
    assert np.allclose(inside["F"], banded.potential(INSIDE), rtol=1e-12, atol=1e-12)
    assert np.allclose(inside["f"], banded.potential(INSIDE) / banded.epsilon, rtol=1e-12, atol=1e-11)
    assert np.allclose(sympy.lambdify(u, law["G_everywhere"])(U), banded.force(U), rtol=1e-12, atol=1e-11)
    assert np.allclose(sympy.lambdify(u, law["H_everywhere"])(U), banded.primitive(U), rtol=1e-12, atol=1e-11)
    assert sympy.expand(sympy.diff(law["H"], u) - law["G"]).subs(u, sympy.Rational(1, 3)) == pytest.approx(0, abs=1e-10)


def test_sympy_prints_when_run(plain, capsys):
    pytest.importorskip("sympy")
    exec(compile(export(plain, "sympy"), "law.py", "exec"), {"__name__": "__main__"})
    assert "G(u) = " in capsys.readouterr().out


def test_json_holds_the_law_and_a_table_with_bands(banded):
    law = json.loads(export(banded, "json"), parse_constant=pytest.fail)
    assert law["format"] == "doublewell law"
    table = {name: np.array(values) for name, values in law["table"].items()}
    w = 1 - table["u"] ** 2
    assert np.allclose(-table["u"] * w * np.polynomial.polynomial.polyval(w, law["powers"]["values"]), table["force"])
    assert np.array_equal(table["force"], banded.force(table["u"]))
    inner = slice(1, -1)
    assert np.all(table["primitive_low"][inner] < table["primitive"][inner])
    assert np.all(table["primitive"][inner] < table["primitive_high"][inner])
    assert law["kappa"] * law["mobility"] == pytest.approx(law["q"])
    assert law["facts"]["epsilon"]["value"] == banded.epsilon
    assert law["family"]["g"] == banded.coefficients.tolist()


def test_json_without_bands_and_scale(plain):
    law = json.loads(export(plain, "json"))
    assert "epsilon" not in law["facts"]
    assert set(law["table"]) == {"u", "force", "primitive"}


def latex_force(text):
    """The force that a reader of the page would compute, and the rounding that the page admits."""
    (bracket,) = re.findall(r"\\left\[(.*)\\right\]", text)
    plain = re.sub(r"\\times 10\^\{(-?\d+)\}", r"e\1", bracket)
    terms = re.findall(r"([+-]?) ?([\d.]+(?:e-?\d+)?)(?:\\,u\^\{(\d+)\})?", plain)
    values = sum(float(f"{sign}{number}") * INSIDE ** int(power or 0) for sign, number, power in terms)
    (lost,) = re.findall(r"changes \$G\$ by at most ([\d.e-]+)\\,\\%", text)
    return -INSIDE * (1 - INSIDE**2) * values, float(lost) / 100


def test_latex_numbers_are_the_law_within_the_rounding_it_states(banded, plain, make):
    for result in (banded, plain, make(Law.bernstein([3.2e-7, 1.1e-6])), make(Law.bernstein([4.5e8]))):
        said, lost = latex_force(export(result, "latex"))
        force = result.force(INSIDE)
        assert lost <= 1.001e-3
        assert np.max(np.abs(said - force)) <= (1.05 * lost + 1e-12) * np.max(np.abs(force))


def test_latex_is_balanced(banded, plain):
    for result in (banded, plain):
        text = export(result, "latex")
        body = re.sub(r"(?<!\\)%.*", "", text).replace(r"\{", "").replace(r"\}", "")
        depth = 0
        for sign in body:
            depth += {"{": 1, "}": -1}.get(sign, 0)
            assert depth >= 0
        assert depth == 0
        assert body.count("$") % 2 == 0
        opened = []
        for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", body):
            if kind == "begin":
                opened.append(name)
            else:
                assert opened.pop() == name
        assert not opened
        assert body.count(r"\left") == body.count(r"\right")
        assert not re.search(r"[^\x00-\x7f]", text)
        columns = re.search(r"\\begin\{tabular\}\{(r+)\}", body)[1]
        assert all(row.count("&") == len(columns) - 1 for row in body.splitlines() if row.endswith(r"\\"))


def test_latex_shows_epsilon_with_its_interval(banded):
    text = export(banded, "latex")
    value, low, high = re.search(r"\\varepsilon\$ = \$([\d.]+)\$: \$([\d.]+)\$ to \$([\d.]+)\$", text).groups()
    ends = banded.interval("epsilon")
    assert float(low) == pytest.approx(ends[0], abs=0.06 * (ends[1] - ends[0]))
    assert float(high) == pytest.approx(ends[1], abs=0.06 * (ends[1] - ends[0]))
    assert float(value) == pytest.approx(banded.epsilon, abs=0.06 * (ends[1] - ends[0]))


def test_latex_states_physical_numbers_with_their_units(banded):
    tension = replace(banded.scale.tension, unit="J/m^2", sd=None)
    known = changed(banded, length_unit="um", time_unit="s", tension=tension)
    text = export(replace(known, scale=replace(banded.scale, tension=tension)), "latex")
    lines = [line for line in text.splitlines() if line.startswith(r"95\,\% interval")]
    units = (r"\mathrm{J/m}", r"\mathrm{J/m^{3}}", r"\mathrm{m^{3}/(J\,s)}")
    names = (r"coefficient $\kappa$ = $", r"barrier $f(0)$ of $f = \kappa H$ = $", r"mobility $L = q/\kappa$ = $")
    for line, name, unit in zip(lines, names, units, strict=False):
        assert name in line
        assert line.endswith(rf"\ {unit}$.")
        assert line.count("$") % 2 == 0
    assert [r"\varepsilon" in line for line in lines].index(True) > 2
    assert r"\mathrm{J" not in export(banded, "latex")


def test_both_normalisations_give_one_physical_model(make):
    from doublewell.calibrate import SurfaceTension

    for name in ("E", "eE"):
        result = make(tension=SurfaceTension(0.3, normalisation=name))
        law = json.loads(export(result, "json"))
        kappa = result.epsilon if name == "E" else result.epsilon**2
        assert law["kappa"] == pytest.approx(kappa, rel=1e-14)
        assert law["kappa"] * result.law.tension_integral == pytest.approx(0.3, rel=1e-14)


def test_wrong_use_is_refused(plain, make):
    with pytest.raises(InputError, match=r"format is 'comsol': expected one of moose, py-pde, fipy, sympy"):
        export(plain, "comsol")
    with pytest.raises(InputError, match=r"result is a Law: expected a Result; pass what identify or load_result"):
        export(plain.law, "python")
    with pytest.raises(InputError, match=r"zero everywhere: there is no law to export"):
        export(make(Law.bernstein([0.0, 0.0])), "python")


@pytest.mark.parametrize("name", FORMATS)
def test_units_are_named_where_they_are_known(make, name):
    pytest.importorskip("pint")
    from doublewell.calibrate import SurfaceTension

    result = make(tension=SurfaceTension(0.3, unit="J/m^2"), length_unit="um", time_unit="s")
    text = " ".join(export(result, name).replace("%", " ").replace("#", " ").split())
    assert "lengths in um, times in s" in text
    assert "surface tension 0.3 J/m^2" in text
    assert "unit of energy here is (J/m^2) um^2 = 1e-12 J" in text
    film = make(tension=SurfaceTension(0.3, unit="J/m"), length_unit="nm", time_unit="s")
    assert "(J/m) nm = 1e-09 J" in " ".join(export(film, name).replace("%", " ").replace("#", " ").split())


OTHERS = {
    "asymmetric": Law.wells([-40.0, -20.0, 30.0, 60.0]),
    "asymmetric, other phases": Law.wells([-40.0, -20.0, 30.0, 60.0], phases=(0.2, 1.0)),
    "symmetric, other phases": LAW.placed((0.0, 1.0)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_every_law_is_written_as_it_is(make, name):
    """Wells that differ, and phases other than -1 and +1: all programs compute the force and the primitive."""
    law = OTHERS[name]
    result = make(law)
    low, high = law.phases
    u = np.linspace(low - 0.3, high + 0.3, 241)
    size, height = np.max(np.abs(law.force(u))), np.max(np.abs(law.primitive(u)))
    module = run(export(result, "python"))
    assert np.allclose(module["force"](u), law.force(u), rtol=0, atol=1e-12 * size)
    assert np.allclose(module["primitive"](u), law.primitive(u), rtol=0, atol=1e-12 * height)
    for text in (export(result, "py-pde"), export(result, "fipy")):
        names = {"np": np}
        exec(text[text.index("def force") : text.index("def make_")].rpartition("\n\n")[0], names)
        assert np.allclose(names["force"](u), law.force(u), rtol=0, atol=1e-12 * size)
    sympy = pytest.importorskip("sympy")
    symbols = run(export(result, "sympy"))
    assert np.allclose(
        sympy.lambdify(symbols["u"], symbols["G_everywhere"])(u), law.force(u), rtol=0, atol=1e-11 * size
    )
    found = sympy.lambdify(symbols["u"], symbols["H_everywhere"])(u)
    assert np.allclose(found, law.primitive(u), rtol=0, atol=1e-11 * height)
    free = re.search(r"expression = '(if.*)'", export(result, "moose"))[1]
    words = free.replace("^", "**").replace("if(", "choose(")
    choose = np.vectorize(lambda test, yes, no: yes if test else no)
    assert np.allclose(eval(words, {"choose": choose, "u": u, "k": 1.0}), law.primitive(u), rtol=0, atol=1e-11 * height)
    assert json.loads(export(result, "json"))["phases"] == [low, high]
    assert f"\\int_{{{low:g}}}^{{u}}G" in export(result, "latex")


FLOWS = {
    "cahn-hilliard": ("u_t = M Laplacian dE/du with M = q/kappa", "q is length^4/time"),
    "mass-conserving": ("u_t = -L (dE/du - its mean) with L = q/kappa", "q is length^2/time"),
}


@pytest.mark.parametrize("dynamics", FLOWS)
def test_texts_of_a_conserved_field_say_what_moves_it_and_where_the_law_holds(conserved, mixture, dynamics):
    result = conserved(dynamics)
    for name in FORMATS:
        if (name, dynamics) == ("moose", "mass-conserving"):
            continue
        text = " ".join(re.sub(r"[%#]", " ", export(result, name)).split())
        for words in (*FLOWS[dynamics], "coexisting phases at u = -0.845388 and u = 0.749526", "u from -1.15 to 0.95"):
            assert words in text
        assert "between the pure phases" not in text
    page = export(result, "latex")
    assert r"The coexisting phases lie at $u=-0.845388$ and $u=0.749526$; $G$ holds for $-1.15\le u\le0.95$" in page
    assert {"cahn-hilliard": r"q \nabla^2 (G(u)", "mass-conserving": r"\operatorname{mean} G(u)"}[dynamics] in page
    law = json.loads(export(result, "json"))
    assert law["phases"] == list(mixture.phases)
    assert law["reach"] == pytest.approx([-1.15, 0.95])
    t = (np.array(law["table"]["u"]) - mixture.phases[0]) / (2 * mixture.half)
    force = -4 * mixture.half * t * (1 - t) * np.polynomial.polynomial.polyval(t, law["powers"]["values"])
    assert np.allclose(force, law["table"]["force"], rtol=0, atol=1e-12)


def test_every_text_has_the_parts_of_the_equation(make):
    """Also those that were estimated: the equation is the settled one."""
    found = AllenCahn(Anisotropy(1.8, 30.0), Mobility((0.4, -0.1), (-1.0, 1.0)), Driving((0.0, 1.0), (2.0, 3.0)))
    asked = found.changed(anisotropy="estimated", mobility="estimated")
    result = make(dynamics=asked, settled=found, shape=(21, 12, 12), dx=(0.1, 0.1), dt=0.05, boundary="periodic")
    for name in FORMATS:
        text = " ".join(re.sub(r"[%#]", " ", export(result, name)).split())
        energy, tensor = (
            "kappa/2 grad u . A grad u + f(u)",
            "gradient energy, has the rows (0.894427, 0.258199), (0.258",
        )
        for words in (found.equation, energy, tensor, "q(u) = q m(u) with log m =", "h(t) is a known force"):
            assert words in text, name
        assert "u_t = -L dE/du" not in text
    page = export(result, "latex")
    assert r"\partial_t u = q(u) (\nabla\cdot(A \nabla u) - G(u) + h(t))" in page
    assert r"$A=\begin{pmatrix}0.894427 & 0.258199 \\ 0.258199 & 1.19257\end{pmatrix}$" in page
    assert json.loads(export(result, "json"))["parts"] == {
        "anisotropy": {"tensor": [list(row) for row in found.anisotropy.tensor]},
        "mobility": {"coefficients": [0.4, -0.1], "phases": [-1.0, 1.0]},
        "driving": {"times": [0.0, 1.0], "values": [2.0, 3.0]},
    }
    module = run(export(result, "python"))
    assert np.allclose(module["mobility"](U), found.mobility(U))
    assert found.anisotropy.tensor == module["A"]
    assert module["driving"](0.525) == pytest.approx(2.525)
    with pytest.raises(ValueError, match="h is known from 0 to 1"):
        module["driving"](1.1)


def test_a_result_knows_when_its_record_begins():
    """A driving force has the clock of the record."""
    even = [Record(np.zeros((3, 8, 8)), dx=0.1, times=start + np.arange(3.0), q=1.0) for start in (0.0, 2.0)]
    assert [RecordInfo.of(record).times for record in even] == [None, (2.0, 3.0, 4.0)]


def shapes(result):
    """Force and primitive of a result as the Python and the SymPy text compute them."""
    module = run(export(result, "python"))
    yield module["force"], module["primitive"]
    sympy = pytest.importorskip("sympy")
    symbols = run(export(result, "sympy"))
    yield tuple(sympy.lambdify(symbols["u"], symbols[f"{name}_everywhere"]) for name in "GH")


def test_the_law_of_a_conserved_field_holds_beyond_its_phases_and_is_linear_beyond_the_record(conserved, mixture):
    ends = np.array([-1.15, 0.95])
    u, step = np.linspace(*ends, 301), 1e-6
    size, height = (np.max(np.abs(curve(u))) for curve in (mixture.force, mixture.primitive))
    assert np.min(np.abs(mixture.force(ends))) > 0.1 * size  # neither phase is an end
    for force, primitive in shapes(conserved()):
        assert np.allclose(force(u), mixture.force(u), rtol=0, atol=1e-9 * size)
        assert np.allclose(primitive(u), mixture.primitive(u), rtol=0, atol=1e-9 * height)
        for end, side in zip(ends, (-1.0, 1.0), strict=True):
            far = end + side * np.linspace(0.0, 1.0, 11)
            assert np.allclose(np.diff(force(far), 2), 0.0, atol=1e-12)
            assert np.allclose(np.diff(primitive(far), 3), 0.0, atol=1e-12)
            for curve in (force, primitive):  # values and slopes are continuous
                left, here, right = curve(end + step * np.array([-1.0, 0.0, 1.0]))
                assert here - left == pytest.approx(right - here, abs=1e-10)
        slope = (primitive(u + step) - primitive(u - step)) / (2 * step)
        assert np.allclose(slope, force(u), rtol=0, atol=1e-8)


def test_phases_beyond_the_record_are_the_ends(conserved):
    """Coexisting phases that the record does not reach, on one side or on both: the powers hold up to these."""
    for shift, inside in ((0.0, (False, False)), (0.4, (True, False))):
        family = Mixture(0, (-1.6 - shift, 1.6 - shift))
        law = Law(family, family.fitted(lambda u: u**3 - u))
        assert law.phases == pytest.approx((-1.0, 1.0))
        low, high = (family.middle + side * 0.5 * family.half for side in (-1, 1))
        assert (low < -1.0, high > 1.0) == inside
        u = np.linspace(min(low, -1.0), max(high, 1.0), 201)
        for force, primitive in shapes(conserved(law=law)):
            assert np.allclose(force(u), law.force(u), rtol=0, atol=1e-9)
            assert np.allclose(primitive(u), law.primitive(u), rtol=0, atol=1e-9)
            assert force(u[-1] + 0.5) == pytest.approx(force(u[-1]) + 0.5 * (3 * u[-1] ** 2 - 1))


@pytest.mark.parametrize("name", FORMATS)
def test_a_law_without_coexisting_phases_is_refused(conserved, name):
    family = Mixture(0, (-2.0, 2.0))
    for force, why in ((lambda u: u + u**3, "rises everywhere: one phase"), (lambda u: -u, "no straight line touches")):
        with pytest.raises(InputError, match=rf"no coexisting phases \(.*{why}.*\): expected two.*use a record"):
            export(conserved(law=Law(family, family.fitted(force))), name)


def test_the_entropy_of_mixing_is_written_with_logarithms(conserved, ideal):
    """Between the ends all texts have the force of the law to round-off, beyond these its straight lines."""
    result = conserved(law=ideal)
    low, high = json.loads(export(result, "json"))["reach"]
    assert 0.0 < low < 0.08 < ideal.phases[0] < ideal.phases[1] < 0.86 < high < 1.0
    u = np.linspace(low, high, 301)
    truth = 0.9 * np.log(u) - 1.3 * np.log(1 - u) - 5.2 * u + 0.4 * u**2
    assert np.ptp(ideal.force(u) - truth) < 1e-12
    wide = np.linspace(-0.3, 1.3, 401)
    for force, primitive in shapes(result):
        with np.errstate(divide="ignore", invalid="ignore"):  # SymPy's functions evaluate all branches
            assert np.allclose(force(wide), ideal.force(wide), rtol=0, atol=1e-12)
            assert np.allclose(primitive(wide), ideal.primitive(wide), rtol=0, atol=1e-12)
    free = re.search(r"expression = '(if.*)'", export(result, "moose"))[1]
    words = free.replace("^", "**").replace("if(", "choose(")
    choose = np.vectorize(lambda test, yes, no: yes if test else no)
    found = eval(words, {"choose": choose, "u": u, "k": 1.0, "log": np.log})
    assert np.allclose(found, ideal.primitive(u), rtol=0, atol=1e-12)


def test_the_entropy_of_mixing_comes_back_from_json_and_is_rounded_in_latex(conserved, ideal):
    result = conserved(law=ideal)
    law = json.loads(export(result, "json"))
    terms, u = law["ideal_mixing"], np.array(law["table"]["u"])
    assert terms["a"] == pytest.approx([0.9, 1.3])
    assert terms["pure"] == pytest.approx([0.0, 1.0], abs=1e-15)
    v = (2 * u - sum(terms["pure"])) / np.subtract(*terms["pure"][::-1])
    force = terms["a"][0] * np.log((1 + v) / 2) - terms["a"][1] * np.log((1 - v) / 2)
    force += np.polynomial.polynomial.polyval(v, terms["powers"])
    assert np.allclose(force, law["table"]["force"], rtol=0, atol=1e-12)
    page = export(result, "latex")
    assert r"G(u) = 0.9\,\ln\tfrac{1+v}{2} - 1.3\,\ln\tfrac{1-v}{2}" in page
    assert r"v = (u - 0.5)/0.5." in page
