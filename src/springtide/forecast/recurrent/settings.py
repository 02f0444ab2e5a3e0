"""How large a recurrent network is, what it looks at, and how long it is taught.

The same settings serve every kind of network, so that kinds are compared fairly.
"""

from __future__ import annotations

from dataclasses import dataclass

from springtide.errors import require


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How the past is read: `recurrent_steps` of them, `inputs` for each, each input the mean of `pool` rates."""

    recurrent_steps: int
    inputs: int
    pool: int

    @property
    def rates(self) -> int:
        """How many of the newest rates are read."""
        return self.recurrent_steps * self.inputs * self.pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Sizes and the training.

    `hidden` is the size of one direction's state. The past is read in about `recurrent_steps`, each of at most `inputs` values.
    Weights are updated `updates` times, each time from `batch` windows, by Adam with a learning rate that rises to
    `learning_rate` and falls again. `checks` times they are tried on the validation windows, and the best are kept.
    """

    hidden: int = 32
    recurrent_steps: int = 28
    inputs: int = 36
    updates: int = 600
    batch: int = 64
    checks: int = 12
    learning_rate: float = 0.012
    dropout: float = 0.1
    longest_gradient: float = 1.0
    most_windows: int = 4_000
    most_validation_windows: int = 400

    def __post_init__(self) -> None:
        sizes = (self.hidden, self.recurrent_steps, self.inputs, self.batch)
        require(min(sizes) >= 1, f"a recurrent network needs sizes of 1 or more, not {min(sizes)}")
        require(min(self.updates, self.checks) >= 1, f"{self.updates} updates and {self.checks} checks: at least 1 each")
        require(0.0 <= self.dropout < 1.0, f"dropout is a share below 1, not {self.dropout:g}")

    def reading(self, past: int) -> Reading:
        """How so many past rates are read.

        >>> Settings().reading(2016)
        Reading(recurrent_steps=28, inputs=36, pool=2)
        >>> Settings().reading(12)
        Reading(recurrent_steps=12, inputs=1, pool=1)
        """
        rates_per_step = -(-past // self.recurrent_steps)
        pool = -(-rates_per_step // self.inputs)
        inputs = rates_per_step // pool
        return Reading(recurrent_steps=past // (inputs * pool), inputs=inputs, pool=pool)
