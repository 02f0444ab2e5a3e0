"""A recurrent network as arrays: what training leaves, what is stored, and all that predicting needs.

Rates are read as distances from their mean level, in deviations; what comes out is such distances too. So a network keeps up
when the level of a series shifts, and a scale of its own never has to be passed along.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from springtide.errors import require
from springtide.forecast.recurrent.kernel import Float32Array, Stack, continued
from springtide.model.observation import FloatArray

Continue = Callable[[FloatArray, int], FloatArray]


def _nothing(axes: int) -> Float32Array:
    return np.zeros((0,) * axes, np.float32)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Network:
    """One hidden layer of one or two directions (D), and the dense layer behind it.

    | field | shape | meaning |
    |---|---|---|
    | from_input, input_bias | (D, inputs, gates * H), (D, gates * H) | W_F, W_B and b_F, b_B of the paper's Eq. (1) and (2) |
    | from_state, state_bias | (D, H, gates * H), (D, gates * H) | U_F, U_B |
    | dense, bias | (D * H, future), (future,) | V_F, V_B and b_o of its Eq. (3), for all future steps at once |

    A GRU has 3 gates (reset, update, new), an LSTM 4 (enter, keep, new, leave), in this order. `recurrent_steps` are made over
    the newest rates; each input is the mean of `pool` of them.
    """

    recurrent_steps: int = 0
    pool: int = 1
    deviation: float = 1.0
    from_input: Float32Array = field(default_factory=lambda: _nothing(3))
    from_state: Float32Array = field(default_factory=lambda: _nothing(3))
    input_bias: Float32Array = field(default_factory=lambda: _nothing(2))
    state_bias: Float32Array = field(default_factory=lambda: _nothing(2))
    dense: Float32Array = field(default_factory=lambda: _nothing(2))
    bias: Float32Array = field(default_factory=lambda: _nothing(1))

    @property
    def future(self) -> int:
        """How many steps ahead it was taught."""
        return len(self.bias)

    @property
    def read_rates(self) -> int:
        """How many of the newest rates it reads, and so needs."""
        return self.recurrent_steps * self.pool * int(self.from_input.shape[1])

    @property
    def sizes(self) -> tuple[int, ...]:
        """Networks of equal sizes can be stacked."""
        return (self.recurrent_steps, self.pool, *self.from_input.shape, *self.dense.shape)

    def continued(self, past: FloatArray, steps: int) -> FloatArray:
        """The next rates after each row of past ones."""
        return _continuing([self])(past, steps)


def continuing(networks: Sequence[Network]) -> Continue:
    """What continues the i-th row of past rates by the i-th network. Networks of other sizes may be among them."""
    alike: dict[tuple[int, ...], list[int]] = {}
    for i, network in enumerate(networks):
        alike.setdefault(network.sizes, []).append(i)
    groups = [(rows, _continuing([networks[i] for i in rows])) for rows in alike.values()]
    if len(groups) == 1:
        return groups[0][1]

    def continue_all(pasts: FloatArray, steps: int) -> FloatArray:
        found = np.empty((len(pasts), steps))
        for rows, continue_group in groups:
            found[rows] = continue_group(pasts[rows], steps)
        return found

    return continue_all


def _continuing(networks: Sequence[Network]) -> Continue:
    stack, first = _stacked(networks), networks[0]
    needed = first.read_rates
    require(first.future > 0, "this network has learnt nothing yet: fit it first")

    def continue_rows(past: FloatArray, steps: int) -> FloatArray:
        require(past.shape[1] >= needed, f"{past.shape[1]:,} past rates are too few for a network that reads {needed:,}")
        rows = np.ascontiguousarray(past[:, past.shape[1] - needed :], np.float64)
        found: FloatArray = continued(stack, rows, first.recurrent_steps, min(steps, first.future))
        if steps <= first.future:
            return found
        # Further than it was taught, a network goes on from what it has foreseen.
        beyond = continue_rows(np.hstack([rows, found]), steps - first.future)
        return np.hstack([found, beyond])

    return continue_rows


def _stacked(networks: Sequence[Network]) -> Stack:
    return Stack(
        deviation=np.array([network.deviation for network in networks]),
        from_input=np.stack([network.from_input for network in networks]),
        from_state=np.stack([network.from_state for network in networks]),
        input_bias=np.stack([network.input_bias for network in networks]),
        state_bias=np.stack([network.state_bias for network in networks]),
        dense=np.stack([network.dense for network in networks]),
        bias=np.stack([network.bias for network in networks]),
    )
