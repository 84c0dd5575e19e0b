"""Bands of a law with a wavy bracket: they hold where noise is strong, and cost nothing where it is not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm

from doublewell.inference import DEGREE_PRIOR, DegreePrior, mixture_mean, weigh_terms
from doublewell.inference.degrees import unseen
from doublewell.law import Bernstein, Law
from doublewell.plan import Experiment, experiment_information
from doublewell.simulate import initial_field

TOP, AT = Bernstein(8), np.linspace(0.02, 0.98, 25)
FEATURES = TOP.features(AT)
ONLY_SMOOTH = DegreePrior(DEGREE_PRIOR.ratios, DEGREE_PRIOR.sizes, DEGREE_PRIOR.odds)
NOISES, RECORDS, FALSE_ALARMS = (0.01, 0.14), 300, 1e-4


def wavy(u):
    return -u * (1 - u**2) * (1 + 0.5 * np.cos(7.0 * u**2 + 0.5))


def smooth(u):
    return -u * (1 - u**2) * np.exp(0.5 * u**2)


def bands(terms, matrix, doubt):
    """Return the 95 % band of the force in each row, by bisection of the mixture's distribution."""
    weights = np.stack([item.weights for item in terms])[:, :, None]
    lifts = [TOP.at(item.term.degree).elevation(TOP).T @ FEATURES for item in terms]
    means = np.stack([item.free @ lift for item, lift in zip(terms, lifts, strict=True)])
    pairs = zip(terms, lifts, strict=True)
    spreads = np.sqrt(np.stack([np.einsum("ia,nij,ja->na", lift, item.covariances, lift) for item, lift in pairs]))
    missing = [unseen(matrix, free, TOP, doubt) @ FEATURES for free in mixture_mean(terms, TOP)]
    spreads = np.sqrt(spreads**2 + np.sum(np.square(missing), axis=1))
    edges = []
    for share in (0.025, 0.975):
        low, high = np.min(means - 6 * spreads, axis=0), np.max(means + 6 * spreads, axis=0)
        for _ in range(40):
            middle = 0.5 * (low + high)
            below = np.sum(weights * ndtr((middle - means) / spreads), axis=0) < share
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        edges.append(low)
    return edges


@pytest.fixture(scope="module")
def scores():
    """Coverage of each record and mean width by law, noise and prior: with rough laws, and without."""
    start, found = initial_field("circle", (64, 64), 1 / 64, epsilon=0.045), {}  # as in benchmarks/hard_bands.py
    for force in (wavy, smooth):
        law = Law.from_force(force, name=force.__name__)
        planned = Experiment(law, start, dx=1 / 64, dt=1.125e-4, frames=41, noise=1.0, epsilon=0.045)
        triangle, truth = experiment_information(planned).triangle, planned.force.force(AT)
        best = np.linalg.lstsq(FEATURES.T, truth, rcond=None)[0]
        for noise in NOISES:
            rows = triangle @ best / noise + np.random.default_rng(91).standard_normal((RECORDS, 9))
            for prior in (DEGREE_PRIOR, ONLY_SMOOTH):
                low, high = bands(
                    weigh_terms(triangle / noise, rows, TOP, prior, constraint="none"), triangle / noise, prior.doubt
                )
                covered = np.mean((low < truth) & (truth < high), axis=1)
                found[law.name, noise, prior] = covered, float(np.mean(high - low))
    return found


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("law", ["wavy", "smooth"])
def test_the_band_covers(scores, law, noise) -> None:
    covered, _ = scores[law, noise, DEGREE_PRIOR]
    error = np.std(covered) / np.sqrt(RECORDS)
    assert np.mean(covered) + norm.isf(FALSE_ALARMS) * error > 0.93


@pytest.mark.parametrize(("noise", "most"), [(0.01, 1.05), (0.14, 1.4)])
def test_the_cost_in_mean_width_is_bounded(scores, noise, most) -> None:
    """Mean width over mean width, as benchmarks/hard_bands.py has it: a smooth law alone pays more."""
    with_doubt, without = (
        [scores[law, noise, prior][1] for law in ("wavy", "smooth")] for prior in (DEGREE_PRIOR, ONLY_SMOOTH)
    )
    assert np.mean(with_doubt) / np.mean(without) < most
