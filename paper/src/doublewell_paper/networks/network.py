"""Networks: a tanh network for the force, the movie it is trained on, Adam over several initialisations, and the fit.

A network is a list of weights, made in NumPy, trained in plain JAX in float32, evaluated in either.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import atanh, ceil
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from doublewell_paper.core import (
    Array,
    Baseline,
    BaselineFit,
    Grid,
    InputError,
    Record,
    complete,
    device_names,
    keep_compiled,
    measured,
    namespace,
    on_gpu,
    survey,
)

Layers = list[tuple[Any, Any]]
Single = NDArray[np.float32]
_LEVEL = 0.9  # the phase values between which the survey measures the width
_MULTIPLE = 16  # cells come in multiples of this, so that records of one kind share compiled code
_SMOOTHING = 0.1  # standard deviation of the smoothing for the weights, in widths
_REST = 0.02  # weight of a pure phase over that of the interface
Loss = Callable[[Any, Any, Any], Any]  # of weights, a random key and the data
_BETAS = (0.9, 0.999)
_TINY = 1e-8
_WARM = 0.05  # fraction of the steps over which the rate grows
_CHUNK = 50  # steps that are compiled into one call
_PROBES = 2  # calls after the first one that time a step


def initial(sizes: Sequence[int], seed: int, *, gain: float = 4.0) -> Layers:
    """Return Glorot weights in float32 for layers of the given sizes.

    The first layer is `gain` times as steep, with biases spread over as much: with one input this places bends over
    the phase range. With a gain of 1 a curve with three zeros takes thousands of steps.

    >>> [w.shape for w, _ in initial((1, 8, 1), 0)]
    [(1, 8), (8, 1)]
    """
    rng = np.random.default_rng(seed)
    layers = []
    for k, (before, after) in enumerate(pairwise(sizes)):
        weights = rng.standard_normal((before, after)) * np.sqrt(2.0 / (before + after))
        biases = rng.uniform(-gain, gain, after) if k == 0 else np.zeros(after)
        layers.append(((weights * gain if k == 0 else weights).astype(np.float32), biases.astype(np.float32)))
    return layers


def apply(layers: Layers, inputs: Any) -> Any:
    """Return the network's outputs for inputs[..., feature]; NumPy, or JAX where either is."""
    for weights, biases in layers[:-1]:
        sums = inputs @ weights + biases
        inputs = namespace(sums).tanh(sums)
    weights, biases = layers[-1]
    return inputs @ weights + biases


def curve(layers: Layers, u: Any) -> Any:
    """Return a network of one input and one output at values of any shape."""
    return apply(layers, u[..., None])[..., 0]


def stacked(seeds: Sequence[int], sizes: Sequence[int], *, gain: float = 4.0) -> Layers:
    """Return the initial weights for several seeds, stacked along a first axis."""
    each = [initial(sizes, seed, gain=gain) for seed in seeds]
    return [
        (np.stack([layers[k][0] for layers in each]), np.stack([layers[k][1] for layers in each]))
        for k in range(len(sizes) - 1)
    ]


def force_of(layers: Layers, size: float) -> Any:
    """Return u -> size * network(u) in float64 NumPy, for trained weights of one seed."""
    kept = [(np.asarray(w, np.float64), np.asarray(b, np.float64)) for w, b in layers]

    def force(u: Array) -> Array:
        return np.asarray(size * curve(kept, np.asarray(u, np.float64)))

    return force


@dataclass(frozen=True, eq=False)
class Movie:
    """Frames u[t, (z, y,) x] on a periodic grid, with q, the frame interval and the width of the interface.

    `size` is what the output of a network is multiplied by, so that it is near 1: 2 a^2 for an interface tanh(a x), or
    how fast the field changes, where that is more.
    `width` is the distance from u = -0.9 to 0.9. `weights` are for the squared misfits, of mean 1: the pure phases fill
    most of a frame and hold little about the force.
    """

    values: Single
    weights: Single
    grid: Grid
    dt: float
    q: float
    width: float

    @property
    def size(self) -> float:
        """The size of the force of that width; on a record far from rest, that of the change from first to last."""
        moved = float(np.std(self.values[-1] - self.values[0])) / (self.q * self.dt * (self.frames - 1))
        return max(2.0 * (2.0 * atanh(_LEVEL) / self.width) ** 2, moved)

    @property
    def frames(self) -> int:
        """Number of frames."""
        return int(self.values.shape[0])


def movie_of(record: Record, *, resolution: float | None, method: str, least: int = 3) -> Movie:
    """Return the frames of a record, low-passed to `resolution` cells across an interface (None: as they are).

    With ten cells from u = -0.9 to 0.9 and more, only noise is dropped. A Neumann record is mirrored: its even
    continuation is periodic on twice the cells. A record that no network here can be trained on is refused.
    """
    q = complete(record, method)
    if record.boundary not in ("periodic", "neumann"):
        raise InputError(
            f"{method} needs a periodic or a Neumann boundary: the record's is {record.boundary or 'not declared'}; "
            "declare it with boundary="
        )
    if record.frames < least:
        raise InputError(f"{method} needs at least {least} frames: the record has {record.frames}")
    width = survey(record).interface_width
    if width is None:
        raise InputError("the record shows no interface: expected phase values from -0.9 to 0.9; record another part")
    values = np.asarray(record.slab())
    if record.boundary == "neumann":
        for axis in range(1, values.ndim):
            values = np.concatenate([values, np.flip(values, axis)], axis)
    extent = tuple(h * n for h, n in zip(record.dx, values.shape[1:], strict=True))
    if resolution is not None:
        values = _band_limited(values, [resolution * length / width for length in extent])
    spacing = [length / n for length, n in zip(extent, values.shape[1:], strict=True)]
    grid = Grid(values.shape[1:], spacing, "periodic")
    weights = _weights(values, grid, width)
    return Movie(values.astype(np.float32), weights, grid, record.dt, q, float(width))


def _band_limited(values: Any, wanted: Sequence[float]) -> Any:
    """Return the values on at least the wanted numbers of cells, where the mesh has more; the highest modes go."""
    from scipy.signal import resample

    for axis, number in enumerate(wanted, start=1):
        cells = _MULTIPLE * ceil(number / _MULTIPLE)
        if cells < values.shape[axis]:
            values = resample(values, cells, axis=axis)
    return values


def _weights(values: Any, grid: Grid, width: float) -> Single:
    """Return weights that fall from |u| = 0.9 on to a small rest at the pure phases, of mean 1.

    They are read from a smoothed field, so that they do not pick values by their noise.
    """
    axes = tuple(range(1, values.ndim))
    damping = np.exp(0.5 * (_SMOOTHING * width) ** 2 * grid.laplacian)
    smooth = np.fft.irfftn(np.fft.rfftn(values, axes=axes) * damping, s=grid.cells, axes=axes)
    raw = np.clip((1.0 - smooth**2) / (1.0 - _LEVEL**2), _REST, 1.0)
    return np.asarray(raw / raw.mean(), np.float32)


@dataclass(frozen=True)
class Schedule:
    """How long and how fast: `steps` of Adam, or as many as fit into `seconds` (with compilation) where they are given.

    The rate grows over the first twentieth to `rate` and falls along a cosine to `last` times that.
    """

    steps: int
    rate: float
    last: float = 0.01
    seconds: float | None = None


@dataclass(frozen=True)
class Trained:
    """The terminal weights, stacked over seeds; steps taken; the loss of the last chunk for each seed."""

    weights: Any
    steps: int
    loss: tuple[float, ...]


def train(loss: Loss, weights: Any, data: Any, *, schedule: Schedule, seeds: Sequence[int]) -> Trained:
    """Return the weights after the last step of the schedule.

    `weights` are stacked over the seeds along a first axis; all are trained in one compiled loop on the same data.
    Steps are a multiple of 50.
    """
    import jax

    began = time.perf_counter()
    keep_compiled()
    advance = _compiled(loss, schedule.rate, schedule.last)
    empty = jax.tree.map(np.zeros_like, weights)
    state, data = jax.device_put(((weights, empty, empty), data))
    keys = jax.numpy.stack([jax.random.key(seed) for seed in seeds])
    values: Any = np.zeros(len(seeds))
    with jax.default_matmul_precision("highest"):  # a GPU would take 10 bits of each factor
        total = schedule.steps if schedule.seconds is None else _fitting(advance, state, keys, data, schedule, began)
        total = _CHUNK * max(1, round(total / _CHUNK))
        for first in range(0, total, _CHUNK):
            state, values = advance(state, keys, data, np.int32(first), np.int32(total))
    return Trained(jax.tree.map(np.asarray, state[0]), total, tuple(float(v) for v in np.asarray(values)))


def _fitting(advance: Any, state: Any, keys: Any, data: Any, schedule: Schedule, began: float) -> int:
    """Return how many steps fit into the seconds that are left after compiling and timing."""
    import jax

    def call() -> None:
        jax.block_until_ready(advance(state, keys, data, np.int32(0), np.int32(_CHUNK)))

    call()
    start = time.perf_counter()
    for _ in range(_PROBES):
        call()
    now = time.perf_counter()
    left = float(schedule.seconds or 0.0) - (now - began)
    return int(left / (now - start) * _PROBES * _CHUNK)


@lru_cache(maxsize=8)
def _compiled(loss: Loss, peak: float, last: float) -> Any:
    """Return the function that takes all seeds' weights and moments through 50 steps; one compilation per mesh."""
    import jax
    import jax.numpy as jnp

    gradient = jax.value_and_grad(loss)

    def chunk(state: Any, key: Any, data: Any, first: Any, total: Any) -> tuple[Any, Any]:
        def step(state: Any, number: Any) -> tuple[Any, Any]:
            value, slope = gradient(state[0], jax.random.fold_in(key, number), data)
            done = number / total
            cosine = 0.5 * (1.0 + jnp.cos(jnp.pi * done))
            rate = peak * (jnp.minimum(1.0, (done + 1.0 / total) / _WARM) * (last + (1.0 - last) * cosine))
            return _adam(state, slope, number + 1, rate), value

        state, values = jax.lax.scan(step, state, first + jnp.arange(_CHUNK))
        return state, values.mean()

    return jax.jit(jax.vmap(chunk, in_axes=(0, 0, None, None, None)))


def _adam(state: Any, slope: Any, number: Any, rate: Any) -> Any:
    """Return weights and moments after one step of Adam (Kingma and Ba 2015)."""
    import jax

    weights, mean, square = state
    first, second = _BETAS
    mean = jax.tree.map(lambda m, g: first * m + (1 - first) * g, mean, slope)
    square = jax.tree.map(lambda s, g: second * s + (1 - second) * g * g, square, slope)
    down, up = 1 - first**number, 1 - second**number
    weights = jax.tree.map(
        lambda w, m, s: w - rate * (m / down) / (jax.numpy.sqrt(s / up) + _TINY), weights, mean, square
    )
    return weights, mean, square


class Problem(NamedTuple):
    """What is trained: a loss, weights stacked over the seeds, and the data."""

    loss: Loss
    start: Any
    data: Any


class Network(Baseline):
    """Common to all networks: a record becomes a movie, the movie a problem, and trained weights become fits."""

    resolution: float | None
    schedule: Schedule
    needs: ClassVar[tuple[str, ...]] = ("jax",)
    slow: ClassVar[bool] = True
    least_frames: ClassVar[int] = 3

    @abstractmethod
    def problem(self, movie: Movie, seeds: Sequence[int]) -> Problem:
        """Return what is trained on a movie; refuse one that does not fit."""

    def force_layers(self, weights: Any) -> Layers:
        """Return those of the trained weights that are the force."""
        layers: Layers = weights
        return layers

    def fit(self, record: Record, *, seed: int = 0) -> BaselineFit:
        """Estimate the force of a record with known q."""
        return self.fit_many(record, seeds=(seed,))[0]

    def fit_many(self, record: Record, *, seeds: Sequence[int]) -> tuple[BaselineFit, ...]:
        """Estimate with several initialisations, trained together; `seconds` of each are those of all."""
        with measured() as cost:
            movie = movie_of(record, resolution=self.resolution, method=self.name, least=self.least_frames)
            trained = train(*self.problem(movie, seeds), schedule=self.schedule, seeds=seeds)
        layers = self.force_layers(trained.weights)
        together = f"{len(seeds)} initialisations trained together in the seconds given"
        fits = []
        for k, loss in enumerate(trained.loss):
            note = f"float32, {trained.steps} steps of Adam, last loss {loss:.4g}, terminal weights"
            fits.append(
                BaselineFit(
                    name=self.name,
                    force=force_of([(w[k], b[k]) for w, b in layers], movie.size),
                    seconds=cost.seconds,
                    memory=None if on_gpu() else cost.memory,
                    device=device_names()[0],
                    notes=(note,) if len(seeds) == 1 else (note, together),
                )
            )
        return tuple(fits)
