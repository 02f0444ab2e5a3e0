"""The forward pass of recurrent networks, compiled.

Series come one after the other, so that the weights of one stay near the processor while they are used.

Everything is in single precision but the level of a series. What is read is drawn to within a million deviations of that level:
then no product overflows, whatever was measured.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from springtide.model.observation import FloatArray

Float32Array = NDArray[np.float32]

GRU_GATES = 3
_FURTHEST = 1e6

_compiled = njit(cache=True, fastmath=True, error_model="numpy")


class Stack(NamedTuple):
    """The weights of networks of the same sizes, one behind the other: as in `Network`, with the network as first axis."""

    deviation: FloatArray
    from_input: Float32Array
    from_state: Float32Array
    input_bias: Float32Array
    state_bias: Float32Array
    dense: Float32Array
    bias: Float32Array


@_compiled
def _tanh(x: Any) -> Any:
    """A ratio of polynomials, exact to single precision, which the compiler can compute for many at once (as in Eigen)."""
    x = min(max(x, np.float32(-7.905311)), np.float32(7.905311))
    s = x * x
    over = np.float32(-2.76076847742355e-16)
    over = over * s + np.float32(2.00018790482477e-13)
    over = over * s + np.float32(-8.60467152213735e-11)
    over = over * s + np.float32(5.12229709037114e-08)
    over = over * s + np.float32(1.48572235717979e-05)
    over = over * s + np.float32(6.37261928875436e-04)
    over = over * s + np.float32(4.89352455891786e-03)
    under = np.float32(1.19825839466702e-06)
    under = under * s + np.float32(1.18534705686654e-04)
    under = under * s + np.float32(2.26843463243900e-03)
    under = under * s + np.float32(4.89352518554385e-03)
    return x * over / under


@_compiled
def _sigmoid(x: Any) -> Any:
    return np.float32(0.5) + np.float32(0.5) * _tanh(np.float32(0.5) * x)


@_compiled
def _copy(source: Any, out: Any) -> None:
    """As a loop: an assignment to a slice takes the compiler seconds."""
    for k in range(len(out)):
        out[k] = source[k]


@_compiled
def _add_product(x: Any, weights: Any, out: Any) -> None:
    """out += x @ weights. Four rows at once: `out` is then read and written a quarter as often."""
    rows, columns = len(x), len(out)
    whole = rows - rows % 4
    for j in range(0, whole, 4):
        a, b, c, d = x[j], x[j + 1], x[j + 2], x[j + 3]
        for k in range(columns):
            out[k] += a * weights[j, k] + b * weights[j + 1, k] + c * weights[j + 2, k] + d * weights[j + 3, k]
    for j in range(whole, rows):
        for k in range(columns):
            out[k] += x[j] * weights[j, k]


@_compiled
def _gru(gates: Any, from_state: Any, state_bias: Any, backward: Any, state: Any) -> None:
    hidden = len(state)
    of_state = np.empty_like(state_bias)
    for k in range(len(gates)):
        of_input = gates[len(gates) - 1 - k if backward else k]
        _copy(state_bias, of_state)
        _add_product(state, from_state, of_state)
        for u in range(hidden):
            reset = _sigmoid(of_input[u] + of_state[u])
            update = _sigmoid(of_input[hidden + u] + of_state[hidden + u])
            new = _tanh(of_input[2 * hidden + u] + reset * of_state[2 * hidden + u])
            state[u] = new + update * (state[u] - new)


@_compiled
def _lstm(gates: Any, from_state: Any, state_bias: Any, backward: Any, state: Any) -> None:
    hidden = len(state)
    of_state = np.empty_like(state_bias)
    kept = np.zeros_like(state)
    for k in range(len(gates)):
        of_input = gates[len(gates) - 1 - k if backward else k]
        _copy(state_bias, of_state)
        _add_product(state, from_state, of_state)
        for u in range(hidden):
            enter = _sigmoid(of_input[u] + of_state[u])
            keep = _sigmoid(of_input[hidden + u] + of_state[hidden + u])
            new = _tanh(of_input[2 * hidden + u] + of_state[2 * hidden + u])
            leave = _sigmoid(of_input[3 * hidden + u] + of_state[3 * hidden + u])
            kept[u] = keep * kept[u] + enter * new
            state[u] = leave * _tanh(kept[u])


@_compiled
def _deviations(rate: Any, level: Any, per_deviation: Any) -> Any:
    return np.float32(min(max((rate - level) * per_deviation, -_FURTHEST), _FURTHEST))


@_compiled
def _pool(rates: Any, pooled: Any) -> Any:
    """Means of as many rates as come to each input, oldest first; and their mean."""
    pool = len(rates) // len(pooled)
    level = 0.0
    for j in range(len(pooled)):
        total = 0.0
        for k in range(j * pool, (j + 1) * pool):
            total += rates[k]
        pooled[j] = total / pool
        level += pooled[j]
    return level / len(pooled)


@_compiled
def _recur(stack: Any, w: Any, read: Any, gates: Any, states: Any) -> None:
    """The last state of each direction."""
    for direction in range(len(states)):
        state = states[direction]
        for u in range(len(state)):
            state[u] = 0.0
        for t in range(len(read)):
            _copy(stack.input_bias[w, direction], gates[t])
            _add_product(read[t], stack.from_input[w, direction], gates[t])
        weights, bias = stack.from_state[w, direction], stack.state_bias[w, direction]
        if gates.shape[1] == GRU_GATES * states.shape[1]:
            _gru(gates, weights, bias, direction == 1, state)
        else:
            _lstm(gates, weights, bias, direction == 1, state)


@_compiled
def _answer(stack: Any, w: Any, states: Any, ahead: Any) -> None:
    """The dense layer, for as many steps ahead as are asked for."""
    _copy(stack.bias[w], ahead)
    _add_product(states.ravel(), stack.dense[w, :, : len(ahead)], ahead)


@_compiled
def continued(stack: Any, past: Any, recurrent_steps: Any, steps: Any) -> Any:
    """The next `steps` rates after each row: each by its own network, or all of them by the only one.

    A row holds just the rates that its network reads.
    """
    _, directions, inputs, width = stack.from_input.shape
    pooled = np.empty(recurrent_steps * inputs)
    read = np.empty((recurrent_steps, inputs), np.float32)
    gates = np.empty((recurrent_steps, width), np.float32)
    states = np.empty((directions, stack.from_state.shape[2]), np.float32)
    ahead = np.empty(steps, np.float32)
    found = np.empty((len(past), steps))
    for i in range(len(past)):
        w = i if len(stack.deviation) > 1 else 0
        level, deviation = _pool(past[i], pooled), stack.deviation[w]
        for k in range(len(pooled)):
            read[k // inputs, k % inputs] = _deviations(pooled[k], level, 1.0 / deviation)
        _recur(stack, w, read, gates, states)
        _answer(stack, w, states, ahead)
        for h in range(steps):
            found[i, h] = level + deviation * ahead[h]
    return found
