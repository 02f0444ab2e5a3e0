"""The forward pass without JAX: the same as the trainer's, for any sizes, many series at once and whatever was measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from springtide.errors import InvalidValue
from springtide.forecast.recurrent import training
from springtide.forecast.recurrent.network import Network, continuing
from springtide.forecast.recurrent.settings import Settings

DIRECTIONS = {"lstm": 1, "gru": 1, "bilstm": 2, "bigru": 2}
PAST = 40

Reference = Callable[[Network, str, np.ndarray], np.ndarray]


def drawn(chance: np.random.Generator, kind: str, **sizes: int) -> Network:
    """A network with random weights, of sizes that are random where they are not given."""
    size = {
        "hidden": int(chance.integers(1, 20)),
        "inputs": int(chance.integers(1, 6)),
        "recurrent_steps": int(chance.integers(1, 5)),
        "future": int(chance.integers(1, 12)),
    } | sizes
    directions, gates = DIRECTIONS[kind], (4 if kind.endswith("lstm") else 3) * size["hidden"]

    def some(*shape: int) -> Any:
        return chance.uniform(-0.7, 0.7, shape).astype(np.float32)

    return Network(
        recurrent_steps=size["recurrent_steps"],
        pool=2,
        deviation=0.25,
        from_input=some(directions, size["inputs"], gates),
        from_state=some(directions, size["hidden"], gates),
        input_bias=some(directions, gates),
        state_bias=some(directions, gates),
        dense=some(directions * size["hidden"], size["future"]),
        bias=some(size["future"]),
    )


def seen(network: Network, past: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The level of each row, and the pooled rates in deviations from it: (rows, recurrent steps, inputs)."""
    read = past[:, past.shape[1] - network.read_rates :]
    level = read.mean(axis=1, keepdims=True)
    pooled = read.reshape(len(past), network.recurrent_steps, -1, network.pool).mean(axis=3)
    return level, (pooled - level[:, :, None]) / network.deviation


def by_trainer(network: Network, kind: str, past: np.ndarray) -> np.ndarray:
    """The forward pass whose error the training makes small."""
    arrays = (getattr(network, name) for name in training.Weights._fields)
    weights = training.Weights(*map(jnp.asarray, arrays))
    level, read = seen(network, past)
    states = training.last_states(weights, kind.removeprefix("bi"), jnp.asarray(read, jnp.float32))
    return np.asarray(level + network.deviation * np.asarray(training.answer(weights, states)))


def by_textbook(network: Network, kind: str, past: np.ndarray) -> np.ndarray:
    """The same in double precision, one series, one direction and one step after the other.

    LSTM: S. Hochreiter, J. Schmidhuber (1997) with forget gates of F. Gers et al. (2000). GRU: K. Cho et al. (2014), with the
    reset gate behind the matrix, as in cuDNN.
    """

    def sigmoid(x: np.ndarray) -> np.ndarray:
        return 1.0 / (1.0 + np.exp(-x))

    level, read = seen(network, past)
    found = []
    for row in read:
        states = []
        for direction in range(len(network.from_input)):
            state = kept = np.zeros(network.from_state.shape[1])
            for x in row[::-1] if direction else row:
                of_input = x @ network.from_input[direction].astype(float) + network.input_bias[direction]
                of_state = state @ network.from_state[direction].astype(float) + network.state_bias[direction]
                if kind.endswith("lstm"):
                    enter, keep, new, leave = np.split(of_input + of_state, 4)
                    kept = sigmoid(keep) * kept + sigmoid(enter) * np.tanh(new)
                    state = sigmoid(leave) * np.tanh(kept)
                else:
                    (r, z, n), (r_state, z_state, n_state) = np.split(of_input, 3), np.split(of_state, 3)
                    update = sigmoid(z + z_state)
                    state = (1.0 - update) * np.tanh(n + sigmoid(r + r_state) * n_state) + update * state
            states.append(state)
        found.append(np.concatenate(states) @ network.dense + network.bias)
    return np.asarray(level + network.deviation * np.array(found))


@pytest.mark.parametrize("reference", [by_trainer, by_textbook])
@pytest.mark.parametrize("kind", DIRECTIONS)
def test_it_predicts_what_the_trainer_and_the_textbook_predict(kind: str, reference: Reference) -> None:
    chance = np.random.default_rng(11)
    for _ in range(4):
        network = drawn(chance, kind)
        past = chance.random((int(chance.integers(1, 6)), PAST))
        expected = reference(network, kind, past)
        assert network.continued(past, network.future) == pytest.approx(expected, abs=1e-5)
        assert network.continued(past[:1], network.future) == pytest.approx(expected[:1], abs=1e-5)


def test_fewer_steps_are_the_first_of_more() -> None:
    chance = np.random.default_rng(12)
    network, past = drawn(chance, "bigru", future=9), chance.random((3, PAST))
    assert network.continued(past, 4) == pytest.approx(network.continued(past, 9)[:, :4], abs=1e-9)


def test_beyond_what_it_was_taught_it_goes_on_from_what_it_foresaw() -> None:
    chance = np.random.default_rng(13)
    network, past = drawn(chance, "gru", future=5), chance.random((2, PAST))
    once = network.continued(past, 5)
    again = network.continued(np.hstack([past, once]), 5)
    assert network.continued(past, 8) == pytest.approx(np.hstack([once, again[:, :3]]), abs=1e-9)


def test_a_longer_past_says_no_more_than_its_newest_part() -> None:
    chance = np.random.default_rng(14)
    network, past = drawn(chance, "lstm"), chance.random((2, 3 * PAST))
    assert network.continued(past, 3) == pytest.approx(network.continued(past[:, -PAST:], 3))


def test_a_level_shift_of_all_rates_shifts_all_that_is_foreseen() -> None:
    chance = np.random.default_rng(15)
    network, past = drawn(chance, "bilstm"), chance.random((2, PAST))
    assert network.continued(past + 3.0, 4) == pytest.approx(network.continued(past, 4) + 3.0, abs=1e-5)


@pytest.mark.parametrize("kind", DIRECTIONS)
@pytest.mark.parametrize("rates", [0.0, 1.0, 100.0, -100.0, 1e30], ids=str)
def test_wild_rates_give_finite_forecasts(kind: str, rates: float) -> None:
    chance = np.random.default_rng(16)
    network = drawn(chance, kind)
    flat = np.full((1, PAST), rates)
    noisy = rates * chance.standard_normal((3, PAST))
    assert np.isfinite(network.continued(np.vstack([flat, noisy]), network.future)).all()


@pytest.mark.parametrize("kind", DIRECTIONS)
def test_many_series_together_are_each_as_alone(kind: str) -> None:
    """Some networks are of the same sizes, one differs only in how far ahead it was taught, and some in all sizes."""
    chance = np.random.default_rng(17)
    networks = [drawn(chance, kind, hidden=8, inputs=2, recurrent_steps=3, future=6) for _ in range(5)]
    longer = drawn(chance, kind, hidden=8, inputs=2, recurrent_steps=3, future=9)
    networks[2:2] = [drawn(chance, kind), longer, drawn(chance, kind)]
    pasts = chance.random((len(networks), PAST))
    found = continuing(networks)(pasts, 7)
    for i, network in enumerate(networks):
        assert found[i] == pytest.approx(network.continued(pasts[i : i + 1], 7)[0], abs=1e-6)


def test_what_cannot_be_predicted_from_is_refused() -> None:
    with pytest.raises(InvalidValue, match="learnt nothing yet"):
        Network().continued(np.zeros((1, 9)), 1)
    network = drawn(np.random.default_rng(18), "gru", recurrent_steps=4, inputs=4)
    with pytest.raises(InvalidValue, match=r"9 past rates are too few for a network that reads 32"):
        network.continued(np.zeros((1, 9)), 1)


@pytest.mark.parametrize("past", [1, 2, 12, 13, 14, 29, 100, 144, 1008, 2016, 10_080])
def test_any_past_is_read_nearly_whole_and_in_few_steps(past: int) -> None:
    settings = Settings()
    reading = settings.reading(past)
    assert past * 0.5 < reading.rates <= past
    assert reading.inputs <= settings.inputs
    assert reading.recurrent_steps < 2 * settings.recurrent_steps
