"""What each action is worth to one host at each utilisation.

T. Heinze, V. Pappalardo, Z. Jerzak, C. Fetzer, "Auto-scaling Techniques for Elastic Data Stream Processing", ICDE Workshops
2014, pp. 296-302, section IV.C: a row of the table is a utilisation, its three entries are the rewards expected of scaling
in, of doing nothing and of scaling out. The action with the highest reward is chosen, always.

| symbol | here | unit |
|---|---|---|
| s, a state | a row's number | utilisation, in steps |
| Q(s) | `rewards[s][action]` | |
| visits(s) | `visits[s]` | learning steps |

A table is a value: learning returns a new one.

Departures from the paper:

* Of the first rewards the paper gives the rows from 0.7 to 1.0 (Table Ia), and which action is the best elsewhere. Here an
  action's reward depends on how far the utilisation is beyond the threshold of that action, and is read off Table Ia at the
  paper's default thresholds, 0.3 and 0.8; scaling in mirrors scaling out, the row just below the lower threshold the one just
  above the upper. With these thresholds the rows are Table Ia's.
* A utilisation has the row of the step it lies in: 0.8 is the row of everything from 0.80 to 0.85. So a host that has learned
  nothing scales in below the lower threshold, out from the upper one on, and does nothing between them, as the text has it;
  with the nearest row it would scale out from 0.775 on, which is between the thresholds.
* Of equal rewards, doing nothing is preferred.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

import numpy as np

Row = tuple[float, float, float]

# Table Ia: reward of scaling out (and, far from its threshold, of scaling in) by how far utilisation is beyond the threshold.
_BEYOND = (-0.75, -0.65, -0.55, -0.45, -0.1, 0.0, 0.1, 0.2)
_SCALING = (0.32, 0.35, 0.38, 0.4, 0.8, 0.85, 0.9, 1.0)
# Table Ia: reward of doing nothing, between the thresholds, and beyond the nearer one by 0, 0.1 and 0.2.
_NOTHING_BETWEEN = 0.85
_NOTHING_BEYOND = (0.7, 0.5, 0.4)
_ROUNDING = 1e-9  # of a step: 0.7 is in the row of 0.70, though 0.7 / 0.05 is a little less than 14


class HostAction(IntEnum):
    """What can be done about a host, in the order of the utilisation it is done at."""

    SCALE_IN = 0
    NO_ACTION = 1
    SCALE_OUT = 2

    def __str__(self) -> str:
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One host's lookup table; row i is the utilisation from `i * step` up to, not including, that of the next row."""

    step: float
    rewards: tuple[Row, ...]
    visits: tuple[int, ...]

    def state(self, utilisation: float) -> int:
        """The row of a utilisation; the last for more than a host can have."""
        return max(0, min(math.floor(utilisation / self.step + _ROUNDING), len(self.rewards) - 1))

    def best(self, state: int) -> HostAction:
        row = self.rewards[state]
        return max(HostAction, key=lambda action: (row[action], action is HostAction.NO_ACTION))

    def reward(self, utilisation: float, action: HostAction) -> float:
        return self.rewards[self.state(utilisation)][action]


@lru_cache(maxsize=64)
def first_table(lower: float, upper: float, step: float) -> Table:
    """The table of a host that has learned nothing: it acts as the thresholds would."""
    rows = tuple(_first_row(i * step, (i + 1) * step, lower, upper) for i in range(round(1 / step) + 1))
    return Table(step=step, rewards=rows, visits=(0,) * len(rows))


def _first_row(low: float, high: float, lower: float, upper: float) -> Row:
    """The row of the utilisations from `low` to `high`, which is beyond a threshold if all of them are."""
    below, above = round(lower - high, 9), round(low - upper, 9)
    return _scaling(below), _nothing(max(below, above)), _scaling(above)


def _scaling(beyond: float) -> float:
    return float(np.interp(beyond, _BEYOND, _SCALING))


def _nothing(beyond: float) -> float:
    return _NOTHING_BETWEEN if beyond < 0 else float(np.interp(beyond, (0.0, 0.1, 0.2), _NOTHING_BEYOND))
