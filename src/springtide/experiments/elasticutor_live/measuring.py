"""From the batches of a live run to throughput, latency and what changes cost: pure.

Times are seconds since 1970, as the driver saw them. A batch's rows count evenly from its begin to its end, so that a batch
that lies across the end of a window counts in part, and a query that stands still counts as nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np

from springtide.errors import require
from springtide.model.allocation import OperatorAllocation
from springtide.model.observation import FloatArray

_SETTLED = 2  # batches after a change until they are normal again
_RECOVERED = 0.9  # of what a policy gets through at its best
_BEST = 0.9  # the quantile that is called its best


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LiveBatch:
    """`ages_s[i]` is how old `rows_aged[i]` of the rows were when the batch ended."""

    began_s: float
    ended_s: float
    rows: float
    ages_s: FloatArray
    rows_aged: FloatArray
    followed: OperatorAllocation

    def rows_between(self, from_s: float, until_s: float) -> float:
        lasted_s = max(self.ended_s - self.began_s, 1e-3)
        return self.rows * max(0.0, min(until_s, self.ended_s) - max(from_s, self.began_s)) / lasted_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    mean_s: float
    p50_s: float
    p99_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassigned:
    """What one change of routes cost.

    `synchronisation_s` is how much longer than usual no batch ran before the first one that followed the change, and
    `migration_s` how much longer that one and the next took than usual: they load what state is not where it is needed.
    """

    between_hosts: bool
    shards: int
    synchronisation_s: float
    migration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual:
    """A batch that no change has disturbed: the gap before it, what it takes, and by how much such batches differ (medians)."""

    gap_s: float
    taken_s: float
    noise_s: float


def rows_per_s(batches: Sequence[LiveBatch], from_s: float, until_s: float) -> float:
    return sum(batch.rows_between(from_s, until_s) for batch in batches) / (until_s - from_s)


def rates(batches: Sequence[LiveBatch], from_s: float, until_s: float, bin_s: float) -> list[float]:
    """Rows per second, bin by bin."""
    starts = np.arange(from_s, until_s - bin_s / 2, bin_s).tolist()
    return [rows_per_s(batches, start, start + bin_s) for start in starts]


def mean_ages(batches: Sequence[LiveBatch], from_s: float, until_s: float, bin_s: float) -> list[float]:
    """The mean latency of the rows that left in each bin; where none did, that of the bin before."""
    found: list[float] = []
    for start in np.arange(from_s, until_s - bin_s / 2, bin_s).tolist():
        left = [batch for batch in batches if start <= batch.ended_s < start + bin_s and batch.rows > 0]
        found.append(latencies(left).mean_s if left else found[-1] if found else 0.0)
    return found


def latencies(batches: Sequence[LiveBatch]) -> Latencies:
    """Of all rows of these batches."""
    ages = np.concatenate([batch.ages_s for batch in batches]) if batches else np.zeros(0)
    weights = np.concatenate([batch.rows_aged for batch in batches]) if batches else np.zeros(0)
    require(bool(weights.sum() > 0), "no row left the application: let it run for longer")
    order = np.argsort(ages)
    cumulative = np.cumsum(weights[order]) / weights.sum()
    at = [float(ages[order][min(int(np.searchsorted(cumulative, share)), len(ages) - 1)]) for share in (0.5, 0.99)]
    return Latencies(mean_s=float((ages * weights).sum() / weights.sum()), p50_s=at[0], p99_s=at[1])


def usual(batches: Sequence[LiveBatch]) -> Usual:
    near = {at + after for at in _changed(batches) for after in range(_SETTLED + 1)}
    quiet = [at for at in range(1, len(batches)) if at not in near]
    require(bool(quiet), "every batch was disturbed by a change: let more time pass between changes")
    taken_s = median(_taken_s(batches[at]) for at in quiet)
    return Usual(
        gap_s=median(batches[at].began_s - batches[at - 1].ended_s for at in quiet),
        taken_s=taken_s,
        noise_s=median(abs(_taken_s(batches[at]) - taken_s) for at in quiet),
    )


def reassignments(batches: Sequence[LiveBatch]) -> list[Reassigned]:
    """What every change of routes cost, beside the batches that no change has disturbed."""
    usually = usual(batches)
    found = []
    for at in _changed(batches):
        before, after = _places(batches[at - 1].followed), _places(batches[at].followed)
        found.append(
            Reassigned(
                between_hosts=any(old[0] != new[0] for old, new in zip(before, after, strict=True)),
                shards=sum(old != new for old, new in zip(before, after, strict=True)),
                synchronisation_s=batches[at].began_s - batches[at - 1].ended_s - usually.gap_s,
                migration_s=sum(_taken_s(batch) - usually.taken_s for batch in batches[at : at + _SETTLED]),
            )
        )
    return found


def _changed(batches: Sequence[LiveBatch]) -> list[int]:
    """The first batch that followed each change."""
    return [at for at in range(1, len(batches)) if batches[at].followed != batches[at - 1].followed]


def transients_s(batches: Sequence[LiveBatch], rows_at_shuffles: Sequence[float]) -> list[float]:
    """For how long, from each shuffle to the next, less got through than 90 % of what does at best.

    A shuffle is at a row, and begins with the batch that has this row: whoever is behind meets it later.
    """
    read = np.cumsum([batch.rows for batch in batches])
    taken_s = [0.0, *(max(batch.ended_s - before.ended_s, 1e-3) for before, batch in pairwise(batches))]
    paces = [batch.rows / max(taken, 1e-3) for batch, taken in zip(batches, taken_s, strict=True)]
    if len(paces) < 2 or not rows_at_shuffles:
        return []
    enough = _RECOVERED * float(np.quantile(paces[1:], _BEST))
    firsts = [int(np.searchsorted(read, row, side="right")) for row in rows_at_shuffles]
    met = [at for at in firsts if 1 <= at < len(batches)]
    return [
        sum(taken_s[at] for at in range(first, after) if paces[at] < enough) for first, after in pairwise([*met, len(batches)])
    ]


def _taken_s(batch: LiveBatch) -> float:
    return batch.ended_s - batch.began_s


def _places(placed: OperatorAllocation) -> list[tuple[str, int]]:
    """Of every shard: its host, and which of this host's replicas serves it."""
    seen: dict[str, int] = {}
    numbers = []
    for host in placed.replica_hosts:
        numbers.append((host, seen.get(host, 0)))
        seen[host] = seen.get(host, 0) + 1
    return [numbers[replica] for replica in placed.shard_replicas]
