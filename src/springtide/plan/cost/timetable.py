"""When to start and to stop instances: the Cost-Balance-Algorithm (CBA), step by step.

W. Mu, Z. Jin, J. Wang, W. Zhu, W. Wang, "BGElasor: Elastic-Scaling Framework for Distributed Streaming Processing with Deep
Neural Network", NPC 2019, pp. 120-131, section 3.3, Algorithm 1.

A timetable is how many instances an operator has in each interval: `numbers[0]` is the present number, and `numbers[t]` is in
force in the t-th interval from now. An act is a change between two of them. Each step returns a timetable that has no fewer
instances anywhere than the one it was given, so that what was enough remains enough, and that costs no more (equation 5).
More is not promised: at the paper's prices no timetable above that of step 1 is cheaper, but at others there may be one, and
it may be to do nothing, because a stop is never given up for its own price and step 3 counts two re-routings as one.

Departures from the paper, whose pseudo-code is read so that this holds:

* Step 1 compares with `cur < act[cur-1].max`. Instances are started when the input is *above* the capability: `>`.
* Step 2 moves a start to `cur-1`, a stop to `cur+1`. Moving it to an interval without an act saves no re-routing, so
  the neighbour is the nearest act of the same kind, and t is how many intervals away it is.
* Step 2 writes `upNum * t` where step 3 writes `p * min_num * t`. Both are instances times intervals times their price here.
* Step 2 moves a stop when what its instances cost is *above* the price of a re-routing. A stop is moved, like a start, when
  it is below.
* Step 1 stops instances one interval after the input has fallen, as the pseudo-code does: the number is enough for the
  interval before, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from springtide.plan.cost.model import Prices


@dataclass(frozen=True, slots=True)
class Act:
    """A change of the number of instances between the intervals `at` and `at` + 1: more if `change` is above 0."""

    at: int
    change: int


def balanced(present: int, needs: Sequence[int], prices: Prices) -> tuple[int, ...]:
    """CBA: the timetable of all three steps. `needs[0]` is what the interval just measured needed, the others are to come.

    >>> balanced(3, (3, 1, 1, 3, 3), Prices())  # the input is low for two intervals, the instances would be for one
    (3, 3, 3, 3, 3)
    >>> balanced(3, (3, 1, 1, 1, 3), Prices())
    (3, 3, 1, 1, 3)
    """
    numbers = (present, *enough(needs))
    if len(acts(numbers)) < 2:
        return numbers  # one act has no other to be moved to, or to be cancelled with
    return with_few_restarts(with_few_reroutes(numbers, prices), prices)


def enough(needs: Sequence[int]) -> tuple[int, ...]:
    """Step 1: in each interval to come, what it and the interval before it need.

    >>> enough((2, 3, 5, 1, 1))
    (3, 5, 5, 1)
    """
    return tuple(max(before, after) for before, after in pairwise(needs))


def with_few_reroutes(numbers: Sequence[int], prices: Prices) -> tuple[int, ...]:
    """Step 2: starts happen with an earlier start, stops with a later stop, where a re-routing costs more than that.

    >>> with_few_reroutes((1, 2, 3, 2, 1), Prices(instance=80.0, reroute=100.0))
    (1, 3, 3, 3, 1)
    """
    table = list(numbers)
    neighbours = list(pairwise(acts(table)))
    # Starts from the last, stops from the first: what was moved to another moves on with it.
    for earlier, start in reversed(neighbours):
        if earlier.change > 0 and start.change > 0:
            _merge(table, earlier.at, start.at, table[start.at + 1] - table[start.at], prices)
    for stop, later in neighbours:
        if stop.change < 0 and later.change < 0:
            _merge(table, stop.at, later.at, table[stop.at] - table[stop.at + 1], prices)
    return tuple(table)


def _merge(table: list[int], first: int, last: int, instances: int, prices: Prices) -> None:
    """Have these instances all the time between two acts, if that costs less than the re-routing of one of the acts."""
    if prices.reroute > prices.instance * instances * (last - first):
        _raise(table, first, last, instances)


def with_few_restarts(numbers: Sequence[int], prices: Prices) -> tuple[int, ...]:
    """Step 3: instances that would be stopped and soon started again are kept, where that costs less."""
    table = list(numbers)
    has_changed = True
    while has_changed:
        has_changed = False
        for down, up in pairwise(acts(table)):
            count = min(-down.change, up.change)
            if count <= 0 or not restart_is_dearer(count, up.at - down.at, prices):
                continue
            _raise(table, down.at, up.at, count)
            has_changed = True
            break
    return tuple(table)


def restart_is_dearer(instances: int, intervals: int, prices: Prices) -> bool:
    """Is it dearer to stop instances and start them again, so many intervals later, than to keep them?"""
    restarting = (prices.shutdown + prices.startup) * instances + prices.reroute
    return restarting > prices.instance * instances * intervals


def acts(numbers: Sequence[int]) -> list[Act]:
    """
    >>> acts((2, 2, 5, 4))
    [Act(at=1, change=3), Act(at=2, change=-1)]
    """
    return [Act(i, after - before) for i, (before, after) in enumerate(pairwise(numbers)) if after != before]


def _raise(table: list[int], first: int, last: int, count: int) -> None:
    for i in range(first + 1, last + 1):
        table[i] += count
