"""Which shards change replica so that no replica of a host has much more to do than the others.

L. Wang, T. Z. J. Fu, R. T. B. Ma, M. Winslett, Z. Zhang, "Elasticutor: Rapid Elasticity for Realtime Stateful Stream
Processing", SIGMOD 2019, pp. 573-588, section 3.1 (intra-executor load balancing).

| symbol | here | meaning |
|---|---|---|
| task | replica | what serves a group of shards |
| delta | `imbalance(...)` | the highest load of a task over the mean of all tasks |
| theta | `theta` | the imbalance that is tolerated: 1.2 |

Each round reassigns one shard from the most to the least loaded task, the one that helps most, until delta is at most
theta or no reassignment helps. A round is one move, and the greatest gain one move can bring, which keeps the moves few.

Departures from the paper:

* While two tasks share the highest load, no single reassignment lowers delta, and the paper's rule would stop there. What
  is lowered here is the higher load of the two tasks involved; where delta can fall, that picks the shard the paper picks.
* Delta may stay at theta; the paper says below.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from springtide.model.observation import FloatArray

THETA = 1.2  # the paper's
_LEAST_GAIN = 1e-9  # of the highest load; less is the rounding of floating-point sums, not a gain


def balance(
    loads: FloatArray | Sequence[float], shard_replicas: Sequence[int], replicas: int, theta: float = THETA
) -> tuple[int, ...]:
    """The replica of each shard once the replicas' loads are even enough; `loads[s]` is the load of shard s.

    >>> balance([4.0, 3.0, 2.0, 1.0], [0, 0, 0, 1], 2)
    (1, 0, 0, 1)
    """
    shard_loads = np.asarray(loads, dtype=np.float64)
    routes = np.array(shard_replicas, dtype=np.intp)
    totals: FloatArray = np.bincount(routes, weights=shard_loads, minlength=replicas).astype(np.float64)
    while imbalance(totals) > theta:
        busiest, idlest = int(totals.argmax()), int(totals.argmin())
        shards = np.flatnonzero(routes == busiest)
        higher = np.maximum(totals[busiest] - shard_loads[shards], totals[idlest] + shard_loads[shards])
        best = int(higher.argmin())
        if higher[best] >= totals[busiest] * (1 - _LEAST_GAIN):
            break
        moved = shards[best]
        routes[moved] = idlest
        totals[busiest] -= shard_loads[moved]
        totals[idlest] += shard_loads[moved]
    return tuple(routes.tolist())


def imbalance(replica_loads: FloatArray) -> float:
    """Elasticutor's delta: the highest load over the mean, and 1 when there is no load at all."""
    mean = float(replica_loads.mean())
    return float(replica_loads.max()) / mean if mean > 0 else 1.0
