"""Which items must leave so that what leaves is just enough: the smallest sum that reaches an amount.

S. Martello, P. Toth, "Knapsack Problems: Algorithms and Computer Implementations", Wiley, 1990, chapter 4 (the subset-sum
problem). What stays is their problem: the largest sum that does not exceed the capacity. What leaves is the rest.

* Up to `EXACT_ITEMS` items the answer is exact. All sums of each half of the items are listed, sorted, and matched
  (E. Horowitz, S. Sahni, "Computing Partitions with Applications to the Knapsack Problem", JACM 21(2), 1974).
* More items are first taken greedily, the largest first, while they do not exceed the amount (the book's section 4.2);
  then `EXACT_ITEMS` of them around the point where the greedy choice stopped are chosen again, exactly. The answer exceeds
  the amount by less than the smallest item that the greedy choice left out, and the time is that of a sort.

Loads are counted in whole millionths of a core, so that equal sums are equal whatever the order they are added in. Among
equal sums the one of the fewest items is taken, and among those the choice is always the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

EXACT_ITEMS = 24
RESOLUTION = 1e-6  # cores: far below what can be measured, and small enough for the sum of a thousand rounded loads


def smallest_sum_reaching(loads: Sequence[float], amount: float) -> tuple[int, ...]:
    """The items, by index, whose loads have the smallest sum that is at least `amount`; every item if all are too little.

    >>> smallest_sum_reaching([0.5, 0.3, 0.2, 0.4], 0.6)
    (2, 3)
    """
    weights = np.rint(np.asarray(loads, dtype=np.float64) / RESOLUTION).astype(np.int64)
    wanted = round(amount / RESOLUTION)
    items = np.flatnonzero(weights > 0)
    if wanted <= 0:
        return ()
    if weights[items].sum() <= wanted:
        return tuple(items.tolist())
    largest_first = items[np.argsort(-weights[items], kind="stable")]
    fixed, core = _split(weights, largest_first, wanted)
    chosen = core[_exact(weights[core], wanted - int(weights[fixed].sum()))]
    return tuple(sorted([*fixed.tolist(), *chosen.tolist()]))


def _split(weights: Integers, largest_first: Integers, wanted: int) -> tuple[Integers, Integers]:
    """Items that surely leave, and the few from which the rest is chosen exactly.

    The core holds the smallest items that the greedy choice took and the smallest that it left: they are the ones with
    which a small difference can be made up. One item left out suffices to reach what is wanted.
    """
    if len(largest_first) <= EXACT_ITEMS:
        return largest_first[:0], largest_first
    taken = _greedy(weights[largest_first], wanted)
    inside, outside = largest_first[taken], largest_first[~taken]
    from_inside = min(len(inside), max(EXACT_ITEMS // 2, EXACT_ITEMS - len(outside)))
    from_outside = EXACT_ITEMS - from_inside
    start = len(inside) - from_inside
    return inside[:start], np.concatenate([inside[start:], outside[-from_outside:]])


def _greedy(largest_first_weights: Integers, wanted: int) -> NDArray[np.bool_]:
    taken = np.zeros(len(largest_first_weights), dtype=np.bool_)
    for i, weight in enumerate(largest_first_weights.tolist()):
        if weight <= wanted:
            taken[i] = True
            wanted -= weight
    return taken


def _exact(weights: Integers, wanted: int) -> list[int]:
    """The positions of the smallest sum that is at least `wanted`, which all of them together reach."""
    half = len(weights) // 2
    left_sums, left_counts = _all_sums(weights[:half])
    right_sums, right_counts = _all_sums(weights[half:])
    order = np.lexsort((right_counts, right_sums))  # of equal sums, the one of the fewest items comes first
    partner = np.searchsorted(right_sums[order], wanted - left_sums)
    reaches = np.flatnonzero(partner < len(order))
    right = order[partner[reaches]]
    sums = left_sums[reaches] + right_sums[right]
    counts = left_counts[reaches] + right_counts[right]
    best = np.lexsort((counts, sums))[0]
    subset = int(reaches[best]) | int(right[best]) << half
    return [i for i in range(len(weights)) if subset >> i & 1]


def _all_sums(weights: Integers) -> tuple[Integers, Integers]:
    """The sum and the size of every subset; bit i of a subset's position says whether item i is in it."""
    sums = np.zeros(1, dtype=np.int64)
    counts = np.zeros(1, dtype=np.int64)
    for weight in weights:
        sums = np.concatenate([sums, sums + weight])
        counts = np.concatenate([counts, counts + 1])
    return sums, counts
