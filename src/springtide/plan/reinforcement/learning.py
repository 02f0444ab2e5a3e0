"""How a host's table learns from what came of an action: Sarsa(0).

T. Heinze, V. Pappalardo, Z. Jerzak, C. Fetzer, "Auto-scaling Techniques for Elastic Data Stream Processing", ICDE Workshops
2014, pp. 296-302, section IV.C. The paper's equations have no numbers; they are named here by what they define.

| symbol | here | unit |
|---|---|---|
| s_{i-1}, the previous state | `Taken.utilisation` | share of the cores |
| s_i, the current state | `utilisation` | share of the cores |
| target utilisation | `Learning.target` | share of the cores |
| r, immediate reward | `immediate_reward(...)` | |
| alpha, learning rate | `Learning.rate(...)` | |
| imp, impact of the learning | `Learning.impact` | |
| dur, how long it lasts | `Learning.duration_visits` | learning steps |
| beta, influence of the future reward | `Learning.discount` | |

Departures from the paper:

* Sarsa takes the future reward from the action that comes next. The paper's example takes it from the action that was taken:
  0.5 for no action at 0.9, where scaling out, at 0.9, comes next. So does this.
* The penalty's size is not given there: the reward of an action that could not be carried out is `-penalty`.
* How monotonicity is enforced is not given either. Here the row that was learned is right, and the others follow: a row of a
  higher utilisation whose best action is a lower one (in the order of `HostAction`), or the other way round, exchanges the
  rewards of its best action and of the learned row's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from springtide.plan.reinforcement.table import HostAction, Row, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """An action taken at a utilisation, from which nothing was learned yet.

    `cancelled` when the placement could not carry it out; `confirmed` once it was seen to be carried out.
    """

    utilisation: float
    action: HostAction
    cancelled: bool = False
    confirmed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """How much is learned from one lesson."""

    target: float
    impact: float = 0.2
    duration_visits: float = 80.0
    discount: float = 0.1
    penalty: float = 1.0

    def rate(self, visits: int) -> float:
        """alpha(s_i) = imp * dur / (dur + visits(s_i))"""
        return self.impact * (self.duration_visits / (self.duration_visits + visits))

    def learned(self, table: Table, taken: Taken, utilisation: float) -> Table:
        """The table after the utilisation that an action led to."""
        before = table.state(taken.utilisation)
        immediate = -self.penalty if taken.cancelled else immediate_reward(taken.utilisation, utilisation, self.target)
        entry = updated(
            table.rewards[before][taken.action],
            rate=self.rate(table.visits[before]),
            reward=immediate + self.discount * table.reward(utilisation, taken.action),
        )
        return monotone(_with_entry(table, before, taken.action, entry), before)


def _with_entry(table: Table, state: int, action: HostAction, entry: float) -> Table:
    row, visits = list(table.rewards[state]), list(table.visits)
    row[action] = entry
    visits[state] += 1
    rewards = (*table.rewards[:state], (row[0], row[1], row[2]), *table.rewards[state + 1 :])
    return replace(table, rewards=rewards, visits=tuple(visits))


def immediate_reward(before: float, after: float, target: float) -> float:
    """r: above 1 where the utilisation has come nearer to the target, below 1 where it has gone away from it.

    >>> round(immediate_reward(0.7, 0.9, 0.6), 3)  # the paper has 0.66, with 0.16 for 1/6
    0.667
    """
    return 1.0 + (_error(before, target) - _error(after, target))


def _error(utilisation: float, target: float) -> float:
    return abs((target - utilisation) / target)


def updated(entry: float, *, rate: float, reward: float) -> float:
    """Q(s_{i-1}) = (1 - alpha) Q(s_{i-1}) + alpha (r + beta Q(s_i)); `reward` is the immediate and the future one.

    >>> round(updated(0.85, rate=0.2, reward=0.66 + 0.1 * 0.5), 3)  # the example below Table I
    0.822
    """
    return (1 - rate) * entry + rate * reward


def monotone(table: Table, learned: int) -> Table:
    """The table in which no higher utilisation leads to a lower action than the learned row, and no lower to a higher."""
    action = table.best(learned)
    rows = list(table.rewards)
    for state, row in enumerate(rows):
        best = table.best(state)
        if (best < action and state > learned) or (best > action and state < learned):
            rows[state] = _exchanged(row, best, action)
    return replace(table, rewards=tuple(rows))


def _exchanged(row: Row, best: HostAction, better: HostAction) -> Row:
    rewards = list(row)
    rewards[best] = row[better]
    rewards[better] = math.nextafter(row[best], math.inf)  # also where the two were equal
    return rewards[0], rewards[1], rewards[2]
