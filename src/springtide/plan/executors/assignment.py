"""Which host gives which executor how many cores, so that little state has to move.

L. Wang, T. Z. J. Fu, R. T. B. Ma, M. Winslett, Z. Zhang, "Elasticutor: Rapid Elasticity for Realtime Stateful Stream
Processing", SIGMOD 2019, pp. 573-588, section 4.2: Eq. (2), solved by the greedy Algorithm 1.

| symbol | here | meaning, unit |
|---|---|---|
| x_ij, X | `cores[j, i]` | the cores of host i that executor j has; a row for each executor |
| X_j | `cores[j].sum()` | all cores of executor j |
| c_i | `capacity[i]` | cores of host i |
| k_j | `wanted[j]` | the cores that executor j shall have at least |
| s_j | `state_bytes[j]` | bytes of state of executor j, evenly over its cores |
| I(j) | the column of the largest `cores[j, i]` | the executor's home |
| data intensity | `intensity[j]` | bytes per second and core that go into and come out of executor j |
| phi | `phi_bytes_per_s` | an executor above it is data-intensive, and gets cores at home only |
| E+, E- | X_j < k_j, X_j > k_j | executors that need cores, and that can give some away |
| C+_ij, C-_ij | `allocation_cost`, `deallocation_cost` | bytes that move when executor j gets, or gives, a core of host i |

Departures from the paper:

* Cores that nobody has can be taken before others': they cost nothing to give. In the paper every core has an owner.
* The listing says "in non-descending order" where the text says "in descending order" of data intensity. It is the text's
  order here: who can use cores at home only chooses first.
* In line 7 the text looks for a core "among all the non-data-intensive executors", the listing among E-. It is E- here.
* Of equal costs, the host with most free cores is taken, and then the first: the paper does not say.
* An executor that has no core at all (its hosts are gone) has no home, and its state moves wherever it goes. Its first core
  comes from the host with most free cores; that is its home then.
* A threshold is doubled until another set of executors is data-intensive: the same set would fail again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from springtide.errors import require
from springtide.model.observation import FloatArray
from springtide.plan.executors.measuring import IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wants:
    """What executors need and what hosts have. There must be as many cores as are wanted."""

    wanted: IntArray
    capacity: IntArray
    state_bytes: FloatArray
    intensity: FloatArray

    def __post_init__(self) -> None:
        wanted, there = int(self.wanted.sum()), int(self.capacity.sum())
        require(wanted <= there, f"{wanted} cores cannot be assigned: there are {there}")


def allocation_cost(state_bytes: float, cores: IntArray) -> FloatArray:
    """C+_ij for every host i: what executor j's state on the other hosts has to give to one more core of host i.

    >>> allocation_cost(60.0, np.array([1, 1, 0])).tolist()  # a third of the state goes to the new core
    [10.0, 10.0, 20.0]
    """
    total = int(cores.sum())
    if total == 0:
        return np.full(len(cores), state_bytes)
    return np.asarray((total - cores) * (state_bytes / (total * (total + 1))), dtype=np.float64)


def deallocation_cost(state_bytes: float, cores: IntArray) -> FloatArray:
    """C-_ij for every host i: what leaves host i when executor j gives one of its cores there. All, if it is the only one.

    >>> deallocation_cost(60.0, np.array([2, 1])).tolist()
    [10.0, 20.0]
    """
    total = int(cores.sum())
    if total <= 1:
        return np.full(len(cores), state_bytes)
    return np.asarray((total - cores) * (state_bytes / (total * (total - 1))), dtype=np.float64)


def transition_bytes(state_bytes: FloatArray, had: IntArray, before: IntArray, after: IntArray) -> float:
    """C(X | X~): the state that leaves a host, over all executors and hosts.

    Of the `had[j]` cores that executor j had, `before[j, i]` are on hosts that stay; what was on the others leaves.

    >>> round(transition_bytes(np.array([60.0]), np.array([2]), np.array([[2, 0]]), np.array([[2, 1]])), 6)
    20.0
    """
    had, has = np.maximum(1, had), np.maximum(1, after.sum(axis=1))
    leaving = np.maximum(0.0, before / had[:, None] - after / has[:, None]).sum(axis=1)
    gone = 1.0 - before.sum(axis=1) / had
    return float((state_bytes * (leaving + gone)).sum())


def assign(wants: Wants, cores: IntArray, phi_bytes_per_s: float) -> tuple[IntArray, float]:
    """The new assignment, and the threshold with which it was found: doubled as often as it took.

    `cores` is the assignment there is, and must be within the capacity of every host.
    """
    while True:
        found = assign_within(wants, cores, phi_bytes_per_s)
        if found is not None:
            return found, phi_bytes_per_s
        intensive = np.count_nonzero(wants.intensity > phi_bytes_per_s)
        while np.count_nonzero(wants.intensity > phi_bytes_per_s) == intensive:
            phi_bytes_per_s *= 2.0


def assign_within(wants: Wants, cores: IntArray, phi_bytes_per_s: float) -> IntArray | None:
    """Algorithm 1, or none where the paper says FAIL."""
    search = _Search(wants, cores)
    needy = np.flatnonzero(cores.sum(axis=1) < wants.wanted)  # E+
    for j in needy[np.argsort(-wants.intensity[needy], kind="stable")].tolist():  # lines 3 and 4
        at_home = wants.intensity[j] > phi_bytes_per_s
        while search.totals[j] < wants.wanted[j]:  # line 5
            host = search.at_home(j) if at_home else search.anywhere(j)
            if host is None:
                return None  # line 13: FAIL
            search.take(host, j)
    return search.cores


class _Search:
    """An assignment while cores change hands. `giving[d, i]` is C- of giver d at host i, infinite where it has no core."""

    def __init__(self, wants: Wants, cores: IntArray) -> None:
        self.wants = wants
        self.cores = cores.copy()
        self.totals = cores.sum(axis=1)
        self.free = wants.capacity - cores.sum(axis=0)
        self.givers = np.flatnonzero(self.totals > wants.wanted)  # E-
        self.giving = np.array([self._costs(j) for j in self.givers.tolist()]).reshape(len(self.givers), len(self.free))
        self.cheapest = self._cheapest()

    def at_home(self, j: int) -> int | None:
        """Line 7: the executor's home, if a core can be had there."""
        if self.totals[j] == 0:
            return self.anywhere(j)
        home = int(self.cores[j].argmax())  # I(j)
        return home if self.cheapest[home] < np.inf else None

    def anywhere(self, j: int) -> int | None:
        """Line 9: the host whose core costs the least state, to give and to get."""
        costs = self.cheapest + allocation_cost(self.wants.state_bytes[j], self.cores[j])
        lowest = costs.min()
        if lowest == np.inf:
            return None
        equal = np.flatnonzero(costs == lowest)
        return int(equal[self.free[equal].argmax()])

    def take(self, host: int, j: int) -> None:
        """Line 11: executor j gets a core of the host, a free one or the one that costs its owner the least."""
        if self.free[host] > 0:
            self.free[host] -= 1
            if self.free[host] == 0:
                self.cheapest[host] = self.giving[:, host].min(initial=np.inf)
        else:
            d = int(self.giving[:, host].argmin())
            giver = int(self.givers[d])
            self.cores[giver, host] -= 1
            self.totals[giver] -= 1
            self.giving[d] = self._costs(giver)
            self.cheapest = self._cheapest()
        self.cores[j, host] += 1
        self.totals[j] += 1

    def _costs(self, j: int) -> FloatArray:
        if self.totals[j] <= self.wants.wanted[j]:
            return np.full(len(self.free), np.inf)
        costs: FloatArray = np.where(self.cores[j] > 0, deallocation_cost(self.wants.state_bytes[j], self.cores[j]), np.inf)
        return costs

    def _cheapest(self) -> FloatArray:
        """What the cheapest core of each host costs its owner; nothing if nobody owns it."""
        cheapest: FloatArray = np.where(self.free > 0, 0.0, self.giving.min(axis=0, initial=np.inf))
        return cheapest
