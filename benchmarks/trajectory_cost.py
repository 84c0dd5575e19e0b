"""What a trajectory fit costs: time in units of a forward trajectory, peak memory, and the compiled program's reuse.

Run: python benchmarks/trajectory_cost.py [--large]
     python benchmarks/trajectory_cost.py --equations        # results/trajectory_cost_equations.json
     python benchmarks/trajectory_cost.py --thermal          # results/trajectory_cost_thermal.json
     python benchmarks/trajectory_cost.py --runs             # results/trajectory_cost_runs.json
     python benchmarks/trajectory_cost.py --clean [AC.mat]   # results/trajectory_cost_clean.json
     python benchmarks/trajectory_cost.py --ideas            # results/trajectory_cost_ideas.json
One core. Each line is a process of its own: the first compiles, the second finds the compiled programs. A forward
trajectory is one prediction of all frames by the compiled reader; everything is timed after compilation, in the
same process, so that the ratio does not depend on the machine's mood. --large adds 101 frames of 256 x 256.

--equations compares Allen-Cahn with Cahn-Hilliard: the default fit of a drop with lobes and of a pattern, without tests
of the model, in units of a forward trajectory of the same equation with the steps of the fit (processor time). Frame
intervals are 0.1 growth times of the fastest wave of either.

--thermal compares a movie with thermal noise, theta = 1e-3, with the same one without it: `identify` with all tests,
camera noise 0.03, one process, processor time of a second call.

--runs says where the cost of `identify` goes: the processor time of every compiled operation of a second call, over
that of a forward trajectory in the same process, with their number and that of the iterations of conjugate gradients.

--clean compares records without noise, or with hardly any, with the same ones at noise 0.03: processor time of a second
call of `identify` with all tests. AC.mat, the public record, has 201 frames of 512 points; every second one is taken.

--ideas leaves out what makes a fit cheap, one idea at a time: processor time of a second call of `identify`, over that
with all of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import print_table, save_results, sized

ONE_CORE = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "OMP_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
}
CASES = sized([(96, 61, "5", "reader")] * 2 + [(96, 61, "auto", "identify")] * 2, tiny=[(32, 25, "5", "reader")])


def measure(cells: int, frames: int, degree: str, what: str) -> dict:
    import resource

    import numpy as np

    from doublewell.runtime import double_precision
    from doublewell.likelihood import Batch
    from doublewell.likelihood.programs import compiled
    from doublewell.likelihood import record_model
    from doublewell.identify import identify
    from doublewell.law import Bernstein, named_law
    from doublewell.simulate import add_noise, initial_field, simulate

    epsilon = 0.03 * 96 / cells
    dt = 5e-5 * (96 / cells) ** 2
    start = initial_field("nonconvex", (cells, cells), 1 / cells, epsilon=epsilon)
    clean = simulate(named_law("sixth"), start, dx=1 / cells, dt=dt, frames=frames, epsilon=epsilon)
    record = add_noise(clean, 0.03, seed=77)
    weak = identify(record, law=2, method="weak").coefficients

    def run() -> float:
        began = time.perf_counter()
        if what == "reader":
            Batch([record]).fit(weak[None], family=Bernstein(int(degree)))
        else:
            identify(record, law=degree)
        return time.perf_counter() - began

    first, again = run(), run()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    model, constants = record_model(record, Bernstein(5), 1)
    with double_precision():
        arguments = (model, record.slab(0, 1), np.full((1, 6), 1.0 / epsilon**2), constants)
        compiled().predict(*arguments).block_until_ready()
        times = []
        for _ in range(7):
            began = time.perf_counter()
            compiled().predict(*arguments).block_until_ready()
            times.append(time.perf_counter() - began)
    forward = float(np.median(times))
    return {"first": first, "again": again, "forward": forward, "peak": peak}


def row(cells: int, frames: int, degree: str, what: str, folder: str) -> dict:
    code = f"import json; from trajectory_cost import measure; print(json.dumps(measure{cells, frames, degree, what}))"
    environment = os.environ | sized(ONE_CORE | {"DOUBLEWELL_CACHE": folder}, tiny={})
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True,
        cwd=Path(__file__).parent,
    )  # fmt: skip
    seen = json.loads(done.stdout.splitlines()[-1])
    return {
        "record": f"{frames} x {cells} x {cells}",
        "what": what,
        "degree": degree,
        "first run, s": round(seen["first"], 1),
        "again, s": round(seen["again"], 1),
        "forward, ms": round(1e3 * seen["forward"], 1),
        "forward trajectories": round(seen["again"] / seen["forward"]),
        "peak memory, GB": round(seen["peak"], 2),
    }


def compare(name: str, stage: str) -> dict:
    """Return what a fit of an equation costs, in forward trajectories of its own."""
    import numpy as np
    from conserved import TRUTHS, start

    import doublewell as dw
    from doublewell.dynamics import Cnab2, Grid, dynamics_of
    from doublewell.law import Bernstein, Mixture
    from doublewell.likelihood import record_model
    from doublewell.likelihood.programs import compiled
    from doublewell.runtime import double_precision

    dynamics, truth, (cells, frames) = dynamics_of(name), TRUTHS["sixth"], sized((48, 21), tiny=(32, 15))
    slope = -float(np.min(np.gradient(truth.force(truth.points), truth.points)))
    dt = 0.1 / (slope**2 / 4.0 if dynamics.order == 4 else slope)
    u = start(stage, truth, np.random.default_rng(7), cells)
    movie = np.stack([u, *Cnab2(Grid((cells, cells), 1.0), dt, 1.0, 400, dynamics).run(truth, u, intervals=frames - 1)])
    record = dw.Record(movie, dx=1.0, dt=dt, q=1.0, boundary="periodic", origin="simulation")
    noisy = dw.add_noise(record, 0.02, seed=3)
    for _ in range(2):  # the first compiles
        began = time.process_time()
        result = dw.identify(noisy, dynamics=dynamics, check=False)
        spent = time.process_time() - began
    fit, family = result.diagnostics.likelihood, result.law.family
    family = Mixture(2, (-2.0, 2.0)) if family.found else Bernstein(2)
    theta = np.linalg.lstsq(family.features(truth.points).T, truth.force(truth.points))[0]
    model, constants = record_model(record, family, fit.substeps, dynamics=dynamics)
    times = []
    with double_precision():
        for _ in range(11):
            began = time.process_time()
            compiled().predict(model, record.slab(0, 1), theta[None], constants).block_until_ready()
            times.append(time.process_time() - began)
    steps = sum(step.iterations for step in fit.steps)
    return {
        "substeps": fit.substeps,
        "iterations": int(steps),
        "seconds": spent,
        "forward": float(np.median(times[1:])),
    }


def equations() -> list[dict]:
    rows = []
    for stage in sized(("drop", "spinodal"), tiny=("drop",)):
        for name in ("allen-cahn", "cahn-hilliard"):
            code = f"import json; from trajectory_cost import compare; print(json.dumps(compare{name, stage}))"
            done = subprocess.run(
                [sys.executable, "-c", code], env=os.environ | ONE_CORE, capture_output=True, text=True, check=True,
                cwd=Path(__file__).parent,
            )  # fmt: skip
            seen = json.loads(done.stdout.splitlines()[-1])
            rows.append(
                {
                    "equation": name,
                    "record": stage,
                    "steps per frame": seen["substeps"],
                    "iterations": seen["iterations"],
                    "fit, s": round(seen["seconds"], 1),
                    "forward, ms": round(1e3 * seen["forward"], 1),
                    "forward trajectories": round(seen["seconds"] / seen["forward"]),
                }
            )
            print_table("Cost of a fit in forward trajectories of its equation", rows)
    return rows


def thermal() -> list[dict]:
    import doublewell as dw
    from doublewell.likelihood import record_model
    from doublewell.likelihood.programs import compiled
    from doublewell.runtime import double_precision

    cells, frames = sized((96, 61), tiny=(24, 9))
    law, first = dw.named_law("sixth"), dw.initial_field("nonconvex", (cells, cells), 1.0, epsilon=3.0)
    options: dict = {"dx": 1.0, "dt": 1.0, "frames": frames, "epsilon": 3.0, "substeps": 20}
    rows, first_spent = [], 0.0
    for theta in (0.0, 1e-3):
        movie = dw.simulate(law, first, **options, theta=theta, seed=5 if theta else None)
        record = dw.add_noise(movie, 0.03, seed=77)
        for _ in range(2):  # the first compiles
            began = time.process_time()
            result = dw.identify(record, temperature=1.0 if theta else None)
            spent = time.process_time() - began
        fit, family = result.diagnostics.likelihood, dw.Bernstein(5)
        model, constants = record_model(record, family, fit.substeps)
        points = family.at(1).elevation(family) @ (law.effective(3.0).coefficients)
        with double_precision():
            for _ in range(6):
                began = time.process_time()
                compiled().predict(model, record.slab(0, 1), points[None], constants).block_until_ready()
                forward = time.process_time() - began
        first_spent = spent if not rows else first_spent
        rows.append({"theta": theta, "fit, s": round(spent, 1), "forward, ms": round(1e3 * forward, 1)})
        rows[-1]["forward trajectories"] = round(spent / forward)
        rows[-1]["over no noise"] = round(spent / first_spent, 1)
        rows[-1]["verdict"] = str(result.adequacy.verdict)
    print_table("Cost of a fit with all its tests", rows)
    return rows


def profile(check: bool, noise: float, cells: int, frames: int) -> dict:
    """Return what the operations of one `identify` cost, in forward trajectories."""
    import jax
    import numpy as np

    import doublewell as dw
    from doublewell.law import Bernstein
    from doublewell.likelihood import record_model
    from doublewell.likelihood.programs import compiled
    from doublewell.runtime import double_precision

    start = dw.initial_field("nonconvex", (cells, cells), 1 / cells, epsilon=2.88 / cells)
    options: dict = {"dx": 1 / cells, "dt": 0.4608 / cells**2, "frames": frames, "epsilon": 2.88 / cells}
    record = dw.add_noise(dw.simulate(dw.named_law("sixth"), start, **options), noise, seed=77)
    code, calls = compiled(), []

    def timed(name: str, function):
        def call(*arguments):
            began = time.process_time()
            answer = jax.block_until_ready(function(*arguments))
            calls.append((name, time.process_time() - began, answer))
            return answer

        return call

    predict = code.predict
    for name, function in list(vars(code).items()):
        if callable(function):
            setattr(code, name, timed(name, function))
    for _ in range(2):  # the first compiles
        calls.clear()
        began = time.process_time()
        result = dw.identify(record, check=check)
        spent = time.process_time() - began
    model, constants = record_model(record, Bernstein(5), result.diagnostics.likelihood.substeps)
    times = []
    with double_precision():
        for _ in range(16):
            began = time.process_time()
            predict(model, record.slab(0, 1), np.full((1, 6), (cells / 2.88) ** 2), constants).block_until_ready()
            times.append(time.process_time() - began)
    forward = float(np.median(times[1:]))
    cost: dict[str, float] = {}
    for name, each, _ in calls:
        cost[name] = cost.get(name, 0.0) + each / forward
    solved = [int(np.sum(answer.iterations)) for name, _, answer in calls if name == "solve_all"]
    return {
        "record": f"{frames} x {cells} x {cells}",
        "noise": noise,
        "check": check,
        "forward, ms": round(1e3 * forward, 1),
        "iterations of solves": solved,
        **{name: round(each, 1) for name, each in sorted(cost.items(), key=lambda item: -item[1]) if each >= 0.5},
        "all operations": round(sum(cost.values())),
        "with all else": round(spent / forward),
        "coefficients": [round(float(g), 3) for g in result.law.coefficients],
        "verdict": str(result.adequacy.verdict) if check else "",
    }


def runs() -> list[dict]:
    rows = []
    cases = [(check, 0.03, cells, 61) for cells in (96, 256) for check in (False, True)]
    for case in sized(cases, tiny=[(True, 0.03, 32, 9)]):
        code = f"import json; from trajectory_cost import profile; print(json.dumps(profile{case}))"
        done = subprocess.run(
            [sys.executable, "-c", code], env=os.environ | ONE_CORE, capture_output=True, text=True, check=True,
            cwd=Path(__file__).parent,
        )  # fmt: skip
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        print(json.dumps(rows[-1], indent=1))
    return rows


def clean_times(name: str, file: str) -> list[dict]:
    """Return the processor time of a record with less and less noise."""
    import numpy as np
    from conserved import TRUTHS, start

    import doublewell as dw
    from doublewell.dynamics import Cnab2, Grid, dynamics_of

    options: dict = {}
    if name == "public record":
        movie = dw.open_record(file, q=1e-4, boundary="periodic")
        movie = movie.replace(movie.slab()[:, ::2], dx=4 / 512)
    elif name == "Allen-Cahn":
        cells, frames = sized((96, 61), tiny=(32, 9))
        first = dw.initial_field("nonconvex", (cells, cells), 1 / cells, epsilon=2.88 / cells)
        about: dict = {"dx": 1 / cells, "dt": 0.4608 / cells**2, "frames": frames, "epsilon": 2.88 / cells}
        movie = dw.simulate(dw.named_law("sixth"), first, **about, substeps=40)
    else:
        dynamics, truth, (cells, frames) = dynamics_of("cahn-hilliard"), TRUTHS["sixth"], sized((48, 21), tiny=(32, 9))
        slope = -float(np.min(np.gradient(truth.force(truth.points), truth.points)))
        u, dt = start("drop", truth, np.random.default_rng(7), cells), 0.4 / slope**2
        steps = Cnab2(Grid((cells, cells), 1.0), dt, 1.0, 2000, dynamics).run(truth, u, intervals=frames - 1)
        movie, options = (
            dw.Record(np.stack([u, *steps]), dx=1.0, dt=dt, q=1.0, boundary="periodic"),
            {"dynamics": dynamics},
        )
    rows: list[dict] = []
    for noise in (0.03, 1e-6, 0.0):
        record = dw.add_noise(movie, noise, seed=3) if noise else movie
        record = record.replace(origin=None)
        for _ in range(2):  # the first compiles
            began = time.process_time()
            result = dw.identify(record, **options, observation=dw.Observation(contrast="exact"))
            spent = time.process_time() - began
        fit = result.diagnostics.likelihood
        rows.append({"record": name, "noise": noise, "CPU, s": round(spent, 2), "steps per frame": fit.substeps})
        rows[-1]["over noise 0.03"] = round(spent / rows[0]["CPU, s"], 2)
        rows[-1] |= {"fit": fit.status.code.name.lower(), "verdict": str(result.adequacy.verdict)}
    return rows


def clean(words: list[str]) -> list[dict]:
    rows = []
    names = ["public record"] * bool(words) + sized(["Allen-Cahn", "Cahn-Hilliard"], tiny=["Allen-Cahn"])
    for name in names:
        call = f"clean_times({name!r}, {str(Path(words[0]).resolve()) if words else ''!r})"
        code = f"import json; from trajectory_cost import clean_times; print(json.dumps({call}))"
        done = subprocess.run(
            [sys.executable, "-c", code], env=os.environ | ONE_CORE, capture_output=True, text=True, check=True,
            cwd=Path(__file__).parent,
        )  # fmt: skip
        rows += json.loads(done.stdout.splitlines()[-1])
        print_table("Records without noise", rows)
    return rows


def left_out(idea: str) -> None:
    """Leave out an idea, before anything is compiled."""
    import numpy as np

    from doublewell.adequacy import check
    from doublewell.likelihood import Batch, coarse, gauss_newton, programs
    from doublewell.likelihood.model import RecordModel

    def householder(rows):
        turned, triangle = np.linalg.qr(rows.T)
        return gauss_newton.Basis(turned.T.copy(), triangle)

    def split_alone(_normal, split, _dot, right):
        return split(right)

    actions = {
        "": lambda: None,
        "single precision inside": lambda: setattr(RecordModel, "rounds", False),
        "a solve on a coarse mesh as preconditioner": lambda: setattr(coarse, "_solve", split_alone),
        "QR by three Cholesky factorisations": lambda: setattr(gauss_newton, "orthonormal", householder),
        "no solve for tests that are plainly nothing": lambda: setattr(check, "_PLAIN", 0.0),
        "loose solves of steps": lambda: setattr(programs, "STEP_TOLERANCE", 1e-3),
        "shorter steps keep the linearisation": lambda: setattr(Batch, "_serves", lambda *_: False),
    }
    actions[idea]()


def without(idea: str, noise: float) -> dict:
    """Return the processor time of a fit without an idea."""
    import doublewell as dw

    left_out(idea)
    cells, frames = sized((96, 61), tiny=(32, 9))
    start = dw.initial_field("nonconvex", (cells, cells), 1 / cells, epsilon=2.88 / cells)
    options: dict = {"dx": 1 / cells, "dt": 0.4608 / cells**2, "frames": frames, "epsilon": 2.88 / cells}
    movie = dw.simulate(dw.named_law("sixth"), start, **options, substeps=40)
    record = dw.add_noise(movie, noise, seed=77).replace(origin=None)
    spent = []
    for check in (False, False, True, True):  # the first of each compiles
        began = time.process_time()
        dw.identify(record, check=check, observation=dw.Observation(contrast="exact"))
        spent.append(time.process_time() - began)
    return {"fit": spent[1], "check": spent[3]}


def ideas() -> list[dict]:
    noisy = ["", "single precision inside", "a solve on a coarse mesh as preconditioner"]
    noisy += [
        "QR by three Cholesky factorisations",
        "no solve for tests that are plainly nothing",
        "loose solves of steps",
    ]
    cases = [(idea, 0.03) for idea in noisy] + [("", 1e-6), ("shorter steps keep the linearisation", 1e-6)]
    rows, usual = [], {}
    for idea, noise in sized(cases, tiny=cases[:2]):
        code = f"import json; from trajectory_cost import without; print(json.dumps(without({idea!r}, {noise})))"
        done = subprocess.run(
            [sys.executable, "-c", code], env=os.environ | ONE_CORE, capture_output=True, text=True, check=True,
            cwd=Path(__file__).parent,
        )  # fmt: skip
        seen = json.loads(done.stdout.splitlines()[-1])
        usual = seen if not idea else usual
        rows.append({"without": idea or "(nothing left out)", "noise": noise, "fit, CPU s": round(seen["fit"], 2)})
        rows[-1] |= {"with the check, CPU s": round(seen["check"], 2)}
        rows[-1] |= {f"{name} over all ideas": round(seen[name] / usual[name], 2) for name in ("fit", "check")}
        print_table("A fit of 61 x 96 x 96 values without one idea", rows)
    return rows


def main() -> None:
    if "--ideas" in sys.argv:
        save_results("trajectory_cost_ideas", ideas())
        return
    if "--clean" in sys.argv:
        save_results("trajectory_cost_clean", clean(sys.argv[sys.argv.index("--clean") + 1 :]))
        return
    if "--runs" in sys.argv:
        save_results("trajectory_cost_runs", runs())
        return
    if "--thermal" in sys.argv:
        save_results("trajectory_cost_thermal", thermal())
        return
    if "--equations" in sys.argv:
        save_results("trajectory_cost_equations", equations())
        return
    large, rows = [(256, 101, "auto", "identify")] if "--large" in sys.argv else [], []
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES + large:
            rows.append(row(*case, folder))
            print_table("Cost of a trajectory fit on one core; a second process finds compiled programs", rows)
    save_results("trajectory_cost", rows)


if __name__ == "__main__":
    main()
