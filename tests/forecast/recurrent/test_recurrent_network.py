"""The forward pass without torch: the same as torch's, for any sizes, many series at once and whatever was measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from springtide.errors import InvalidValue
from springtide.forecast.recurrent.network import Network, continuing
from springtide.forecast.recurrent.settings import Settings

DIRECTIONS = {"lstm": 1, "gru": 1, "bilstm": 2, "bigru": 2}
PAST = 40


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


def by_torch(network: Network, kind: str, past: np.ndarray) -> np.ndarray:
    """The same by torch's own layer, and by numpy what is around it."""
    torch = pytest.importorskip("torch")
    directions, inputs, _ = network.from_input.shape
    layer = (torch.nn.LSTM if kind.endswith("lstm") else torch.nn.GRU)(
        inputs, network.from_state.shape[1], batch_first=True, bidirectional=directions == 2
    )
    for i, direction in enumerate(("", "_reverse")[:directions]):
        for name, weights in (
            ("weight_ih", network.from_input[i].T),
            ("weight_hh", network.from_state[i].T),
            ("bias_ih", network.input_bias[i]),
            ("bias_hh", network.state_bias[i]),
        ):
            getattr(layer, f"{name}_l0{direction}").data = torch.from_numpy(weights.copy())
    read = past[:, past.shape[1] - network.read_rates :]
    level = read.mean(axis=1, keepdims=True)
    pooled = read.reshape(len(past), network.recurrent_steps, inputs, network.pool).mean(axis=3)
    with torch.no_grad():
        last = layer(torch.from_numpy(((pooled - level[:, :, None]) / network.deviation).astype(np.float32)))[1]
    states = np.concatenate(list((last[0] if isinstance(last, tuple) else last).numpy()), axis=1)
    return np.asarray(level + network.deviation * (states @ network.dense + network.bias))


@pytest.mark.parametrize("kind", DIRECTIONS)
def test_it_predicts_what_torch_predicts(kind: str) -> None:
    chance = np.random.default_rng(11)
    for _ in range(15):
        network = drawn(chance, kind)
        past = chance.random((int(chance.integers(1, 6)), PAST))
        expected = by_torch(network, kind, past)
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
