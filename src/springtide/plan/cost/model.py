"""The cost of an operator's instances over time: running them, starting and stopping them, and re-routing rows.

W. Mu, Z. Jin, J. Wang, W. Zhu, W. Wang, "BGElasor: Elastic-Scaling Framework for Distributed Streaming Processing with Deep
Neural Network", NPC 2019, pp. 120-131, section 3.3 (equations 5 to 9); prices as in section 4.3 (Figure 4).

| symbol | here | unit |
|---|---|---|
| n_t | `instances`, `numbers[t]` | instances of one operator in interval t |
| n_base | `least_instances(...)` | instances |
| in_o | `demand_rows_per_s` | rows/s |
| lambda_o, capability of one instance | `capacity_rows_per_s` | rows/s |
| p_o | `Prices.instance` | cost of one instance for one interval |
| p_o^u, p_o^d | `Prices.startup`, `Prices.shutdown` | cost of starting, of stopping one instance |
| p_o^r | `Prices.reroute` | cost of one change of the number, whatever its size |
| C^u, C^d, C^r | `startups`, `shutdowns`, `reroutes` | times |
| W, Delta W | `total_cost`, `extra_cost` | cost |

Departures from the paper:

* p_o stands for the price of an instance and, in the constraint p_o >= in_o, for the capability of an operator. They have
  two names here.
* The constraint, no interval with less capability than input, is a price too: `Prices.shortfall` for each row per second that
  is beyond the capability, infinite as in the paper unless said otherwise. Equation 9 says Delta n > 0; the text and
  the constraint that it comes from say >= 0, and so it is here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from springtide.errors import require

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What an operator's instances cost, in any one currency. The defaults are the paper's."""

    instance: float = 8000.0
    startup: float = 5000.0
    shutdown: float = 5000.0
    reroute: float = 100.0
    shortfall: float = math.inf

    def __post_init__(self) -> None:
        for what in ("instance", "startup", "shutdown", "reroute"):
            value = getattr(self, what)
            require(math.isfinite(value) and value >= 0, f"prices: {what} must be 0 or more, not {value}")
        require(self.shortfall >= 0, f"prices: shortfall must be 0 or more, not {self.shortfall}")


def least_instances(demand_rows_per_s: float, capacity_rows_per_s: float) -> int:
    """n_base: the fewest instances whose capability is not less than the input; one at least.

    >>> least_instances(250.0, 100.0), least_instances(300.0, 100.0), least_instances(0.0, 100.0)
    (3, 3, 1)
    """
    return max(1, math.ceil(demand_rows_per_s / capacity_rows_per_s - _ROUNDING))


def startups(before: int, after: int) -> int:
    return max(0, after - before)  # Eq. (6)


def shutdowns(before: int, after: int) -> int:
    return abs(min(0, after - before))  # Eq. (7)


def reroutes(before: int, after: int) -> int:
    return int(after != before)  # Eq. (8)


def transition_cost(before: int, after: int, prices: Prices) -> float:
    """What it costs to get from one number of instances to another: one summand of the second sum of equation 5.

    >>> transition_cost(2, 5, Prices()), transition_cost(5, 4, Prices()), transition_cost(4, 4, Prices())
    (15100.0, 5100.0, 0.0)
    """
    return (
        prices.startup * startups(before, after)
        + prices.shutdown * shutdowns(before, after)
        + prices.reroute * reroutes(before, after)
    )


def interval_cost(instances: int, *, demand_rows_per_s: float, capacity_rows_per_s: float, prices: Prices) -> float:
    """What one interval with so many instances costs: running them, and what is beyond their capability.

    >>> interval_cost(2, demand_rows_per_s=150.0, capacity_rows_per_s=100.0, prices=Prices())
    16000.0
    >>> interval_cost(1, demand_rows_per_s=150.0, capacity_rows_per_s=100.0, prices=Prices())
    inf
    """
    beyond = demand_rows_per_s - instances * capacity_rows_per_s
    if beyond <= _ROUNDING * demand_rows_per_s:
        return prices.instance * instances
    return prices.instance * instances + prices.shortfall * beyond


def total_cost(numbers: Sequence[int], prices: Prices) -> float:
    """W: what these numbers of instances cost, one interval after another, if they are enough.

    >>> total_cost((1, 2, 2, 1), Prices())
    58200.0
    """
    running = prices.instance * sum(numbers)
    return running + sum(transition_cost(before, after, prices) for before, after in pairwise(numbers))  # Eq. (5)


def extra_cost(numbers: Sequence[int], least: Sequence[int], prices: Prices) -> float:
    """Delta W: what the numbers cost beyond the fewest instances that are enough in each interval, without their changes.

    >>> extra_cost((2, 2, 2), (2, 1, 2), Prices())
    8000.0
    """
    return total_cost(numbers, prices) - prices.instance * sum(least)  # Eq. (9)
