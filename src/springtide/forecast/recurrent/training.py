"""Train recurrent networks: the only module that imports JAX, itself imported only when a network learns.

JAX differentiates and compiles; optax updates the weights. A network is six arrays and one function of them, so a library of
layers (equinox, flax) would add a dependency and nothing else.

Rules: training runs on one thread, because the pipeline trains one network on each core. All random numbers come from one numpy
generator, so the same windows and seed give the same weights, whatever else the process does. Missing rates are never learnt.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from springtide.errors import require
from springtide.forecast.recurrent.kernel import Float32Array
from springtide.forecast.recurrent.network import Network
from springtide.forecast.recurrent.settings import Reading, Settings
from springtide.model.observation import FloatArray
from springtide.model.windows import Windows

_ONE_THREAD = {"xla_cpu_multi_thread_eigen": False}

GATES = {"lstm": 4, "gru": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Which cells the hidden layer has, and whether a second one reads backwards."""

    cell: str
    bidirectional: bool


class _Samples(NamedTuple):
    """Windows as a network sees them: in deviations from the level of the newest rates that it reads.

    A future rate that is missing is 0 and not `known`.
    """

    read: jax.Array
    future: jax.Array
    known: jax.Array

    def some(self, rows: jax.Array) -> _Samples:
        return _Samples(self.read[rows], self.future[rows], self.known[rows])


class Weights(NamedTuple):
    """The arrays of `Network`, while it learns."""

    from_input: jax.Array
    from_state: jax.Array
    input_bias: jax.Array
    state_bias: jax.Array
    dense: jax.Array
    bias: jax.Array


class _Progress(NamedTuple):
    weights: Weights
    adam: optax.OptState


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """What a network sees of a window."""

    reading: Reading
    deviation: float

    def samples(self, windows: Windows) -> _Samples:
        read = windows.past[:, windows.past.shape[1] - self.reading.rates :]
        level = read.mean(axis=1, keepdims=True)
        pooled = read.reshape(len(read), self.reading.recurrent_steps, self.reading.inputs, self.reading.pool).mean(axis=3)
        known = ~np.isnan(windows.future)

        def seen(rates: FloatArray) -> jax.Array:
            shift = level.reshape((-1,) + (1,) * (rates.ndim - 1))
            return jnp.asarray((rates - shift) / self.deviation, jnp.float32)

        return _Samples(seen(pooled), seen(np.where(known, windows.future, level)), jnp.asarray(known))


def taught(kind: Kind, settings: Settings, windows: tuple[Windows, Windows], seed: int) -> Network:
    """Train on the first windows; of all checked networks, the one that errs least on the second, those for validation."""
    train, validation = _thinned(windows[0], settings.most_windows), _thinned(windows[1], settings.most_validation_windows)
    _check(train, validation)
    view = _View(reading=settings.reading(train.past.shape[1]), deviation=float(train.past.std()) or 1.0)
    chance = np.random.default_rng(seed)
    weights = _drawn(kind, (view.reading.inputs, settings.hidden, train.steps), chance)
    best = _best(weights, kind.cell, settings, (view.samples(train), view.samples(validation)), chance)
    return _network(best, view)


def _thinned(windows: Windows, most: int) -> Windows:
    return windows.every(max(1, -(-len(windows) // most)))


def _check(train: Windows, validation: Windows) -> None:
    for part, windows in (("training", train), ("validation", validation)):
        known = int((~np.isnan(windows.future)).sum())
        require(known > 0, f"{part}: {len(windows):,} windows with {known:,} known future rates, and at least one is needed")
    require(
        validation.steps == train.steps and validation.past.shape[1] == train.past.shape[1],
        f"training windows of {train.past.shape[1]:,} past and {train.steps:,} future rates, "
        f"validation windows of {validation.past.shape[1]:,} and {validation.steps:,}: they must be alike",
    )


def _drawn(kind: Kind, sizes: tuple[int, int, int], chance: np.random.Generator) -> Weights:
    """First weights. `sizes` are those of one step's inputs, of one direction's state, and of the future."""
    inputs, hidden, future = sizes
    directions, width = 2 if kind.bidirectional else 1, GATES[kind.cell] * hidden
    bound = hidden**-0.5

    def uniform(*shape: int) -> jax.Array:
        return jnp.asarray(chance.uniform(-bound, bound, shape), jnp.float32)

    return Weights(
        from_input=uniform(directions, inputs, width),
        from_state=uniform(directions, hidden, width),
        input_bias=uniform(directions, width),
        state_bias=uniform(directions, width),
        dense=jnp.zeros((directions * hidden, future)),
        bias=jnp.zeros(future),
    )


def _best(
    weights: Weights, cell: str, settings: Settings, parts: tuple[_Samples, _Samples], chance: np.random.Generator
) -> Weights:
    """The weights at the check where they err least.

    All updates are made, as the learning rate falls towards the last of them: errors fall late, after they have risen.
    """
    train, validation = parts
    progress = _Progress(weights, _optimiser(_Hyperparameters()).init(weights))
    best, least = weights, np.inf
    between = -(-settings.updates // settings.checks)
    batches = _batches(len(train.read), settings.batch, chance)
    for update, hyperparameters in enumerate(_cycle(settings), start=1):
        rows = next(batches)
        kept = chance.random((len(rows), len(weights.dense)), np.float32) >= settings.dropout
        progress = _learn(cell, progress, hyperparameters, train, (rows, kept))
        if update % between and update != settings.updates:
            continue
        error = float(_judge(cell, progress.weights, validation))
        if error < least:
            best, least = progress.weights, error
    return best


class _Hyperparameters(NamedTuple):
    """Numbers of one update. They are inputs of the compiled code, so that one compilation serves all settings."""

    rate: float = 0.0
    moment: float = 0.9
    longest_gradient: float = 1.0
    dropout: float = 0.0


def _cycle(settings: Settings) -> Iterator[_Hyperparameters]:
    """One cycle (L. N. Smith, 2018): the learning rate rises and falls, the decay of Adam's first moment falls and rises."""
    top = 0.3 * settings.updates
    for update in range(settings.updates):
        rising = update < top
        share = update / top if rising else (update - top) / (settings.updates - top)
        yield _Hyperparameters(
            rate=settings.learning_rate * (_cosine(1 / 25, 1.0, share) if rising else _cosine(1.0, 1e-4 / 25, share)),
            moment=_cosine(0.95, 0.85, share) if rising else _cosine(0.85, 0.95, share),
            longest_gradient=settings.longest_gradient,
            dropout=settings.dropout,
        )


def _cosine(begin: float, end: float, share: float) -> float:
    return end + (begin - end) * (1.0 + math.cos(math.pi * share)) / 2.0


def _optimiser(numbers: _Hyperparameters) -> optax.GradientTransformation:
    return optax.chain(
        optax.clip_by_global_norm(numbers.longest_gradient), optax.scale_by_adam(b1=numbers.moment), optax.scale(-numbers.rate)
    )


@partial(jax.jit, static_argnums=0, compiler_options=_ONE_THREAD)
def _learn(
    cell: str, progress: _Progress, numbers: _Hyperparameters, train: _Samples, batch: tuple[jax.Array, jax.Array]
) -> _Progress:
    """One update. `batch` holds the rows of the windows and, for each, which parts of the state dropout keeps."""
    rows, kept = batch
    samples = train.some(rows)

    def error(weights: Weights) -> jax.Array:
        states = last_states(weights, cell, samples.read) * kept / (1.0 - numbers.dropout)
        return _error(answer(weights, states), samples)

    change, adam = _optimiser(numbers).update(jax.grad(error)(progress.weights), progress.adam)
    return _Progress(optax.apply_updates(progress.weights, change), adam)


@partial(jax.jit, static_argnums=0, compiler_options=_ONE_THREAD)
def _judge(cell: str, weights: Weights, samples: _Samples) -> jax.Array:
    return _error(answer(weights, last_states(weights, cell, samples.read)), samples)


def _error(answers: jax.Array, samples: _Samples) -> jax.Array:
    """The paper's equation (4), over the future rates that are known."""
    squares = (answers - samples.future) ** 2 * samples.known
    return squares.sum() / jnp.maximum(samples.known.sum(), 1)


def last_states(weights: Weights, cell: str, read: jax.Array) -> jax.Array:
    """The last state of each direction, side by side: Eq. (1) and (2)."""
    step = _lstm if cell == "lstm" else _gru
    found = []
    for direction in range(len(weights.from_input)):
        from_state, state_bias = weights.from_state[direction], weights.state_bias[direction]
        gates = jnp.swapaxes(read @ weights.from_input[direction] + weights.input_bias[direction], 0, 1)

        def turn(
            carry: tuple[jax.Array, jax.Array],
            of_input: jax.Array,
            from_state: jax.Array = from_state,
            bias: jax.Array = state_bias,
        ) -> tuple[tuple[jax.Array, jax.Array], None]:
            return step(carry, of_input, carry[0] @ from_state + bias), None

        nothing = jnp.zeros((len(read), len(from_state)))
        (last, _), _ = jax.lax.scan(turn, (nothing, nothing), gates, reverse=direction == 1)
        found.append(last)
    return jnp.concatenate(found, axis=1)


def answer(weights: Weights, states: jax.Array) -> jax.Array:
    """The future in deviations: Eq. (3), without its activation."""
    return states @ weights.dense + weights.bias


def _gru(carry: tuple[jax.Array, jax.Array], of_input: jax.Array, of_state: jax.Array) -> tuple[jax.Array, jax.Array]:
    state, unused = carry
    reset_in, update_in, new_in = jnp.split(of_input, 3, axis=1)
    reset_state, update_state, new_state = jnp.split(of_state, 3, axis=1)
    new = jnp.tanh(new_in + jax.nn.sigmoid(reset_in + reset_state) * new_state)
    return new + jax.nn.sigmoid(update_in + update_state) * (state - new), unused


def _lstm(carry: tuple[jax.Array, jax.Array], of_input: jax.Array, of_state: jax.Array) -> tuple[jax.Array, jax.Array]:
    enter, keep, new, leave = jnp.split(of_input + of_state, 4, axis=1)
    kept = jax.nn.sigmoid(keep) * carry[1] + jax.nn.sigmoid(enter) * jnp.tanh(new)
    return jax.nn.sigmoid(leave) * jnp.tanh(kept), kept


def _batches(windows: int, size: int, chance: np.random.Generator) -> Iterator[np.ndarray]:
    """Rows of the windows, all of them in another order each time round, for ever; every batch has the same size."""
    rows = np.zeros(0, np.int64)
    while True:
        while len(rows) < min(size, windows):
            rows = np.concatenate([rows, chance.permutation(windows)])
        batch, rows = np.split(rows, [min(size, windows)])
        yield batch


def _network(weights: Weights, view: _View) -> Network:
    arrays: dict[str, Float32Array] = {name: np.array(array, np.float32) for name, array in weights._asdict().items()}
    return Network(recurrent_steps=view.reading.recurrent_steps, pool=view.reading.pool, deviation=view.deviation, **arrays)
