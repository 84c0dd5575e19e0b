"""The command demo."""

from __future__ import annotations

from pathlib import Path

from doublewell.checks import not_negative
from doublewell.cli.output import Output
from doublewell.cli.values import Whole, parse_seed

__all__ = ["demo"]


def demo(
    *,
    out: Path = Path("demo"),
    seed: Whole = 1,
    law: str = "sixth",
    noise: float = 0.03,
    output: Output = Output(),  # noqa: B008  frozen
) -> None:
    """Simulate a noisy movie, recover its law, compare with the truth, and write figures.

    Parameters
    ----------
    out
        Folder for the record, the result and the figures.
    seed
        Seed of the noise.
    law
        quartic, sixth, bernstein3, exponential, rational or outside_cone.
    noise
        Standard deviation of the noise of one pixel.
    """
    from doublewell.cli.documents import demo_document
    from doublewell.demo import run_demo

    parse_seed(seed)
    not_negative(noise, "--noise")
    with output.bar() as bar:
        done = run_demo(out, seed=seed, law=law, noise=noise, progress=output.fitting(bar))
    output.answer(str(done), demo_document(done))
