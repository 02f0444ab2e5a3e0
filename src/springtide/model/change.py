"""What differs between two allocations, in the words that reasons, vetoes and actions use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import ne

from springtide.model.action import Action, SetTriggerInterval
from springtide.model.allocation import Allocation, OperatorAllocation


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """From one allocation to another. `replicas` and `moved_shards` hold changed operators only.

    A shard counts as moved when its host changes: regrouping shards among replicas of one host moves no state.
    """

    hosts_added: tuple[str, ...]
    hosts_released: tuple[str, ...]
    replicas: dict[str, tuple[int, int]]
    moved_shards: dict[str, int]
    operators: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.hosts_added or self.hosts_released or self.operators)

    def __str__(self) -> str:
        parts = []
        if self.hosts_added:
            parts.append(f"add {', '.join(self.hosts_added)}")
        if self.hosts_released:
            parts.append(f"release {', '.join(self.hosts_released)}")
        parts += [f"{name} {before} -> {after} replicas" for name, (before, after) in self.replicas.items()]
        moved = sum(self.moved_shards.values())
        if moved:
            parts.append(f"move {moved} shard{'s' if moved > 1 else ''} of {', '.join(self.moved_shards)}")
        if not parts and self.operators:
            parts.append(f"regroup {', '.join(self.operators)}")
        return "; ".join(parts) or "change nothing"


NO_CHANGE = Change(hosts_added=(), hosts_released=(), replicas={}, moved_shards={}, operators=())


def change(before: Allocation, after: Allocation) -> Change:
    """Everything that differs between `before` and `after`."""
    if before is after:
        return NO_CHANGE
    differing = [
        name
        for name, placed in after.operators.items()
        if placed is not before.operators.get(name) and placed != before.operators.get(name)
    ]
    replicas: dict[str, tuple[int, int]] = {}
    moved: dict[str, int] = {}
    for name in differing:
        old, new = before.operators[name], after.operators[name]
        if old.replicas != new.replicas:
            replicas[name] = (old.replicas, new.replicas)
        count = moved_units(old, new)
        if count:
            moved[name] = count
    return Change(
        hosts_added=tuple(h for h in after.hosts if h not in before.hosts),
        hosts_released=tuple(h for h in before.hosts if h not in after.hosts),
        replicas=replicas,
        moved_shards=moved,
        operators=tuple(differing),
    )


def describe_change(changed: Change, actions: Iterable[Action]) -> str | None:
    """All that a decision changes: the allocation, and how often batches start; None if nothing."""
    parts = [str(changed)] if changed else []
    parts += [str(action) for action in actions if isinstance(action, SetTriggerInterval)]
    return "; ".join(parts) or None


def moved_units(old: OperatorAllocation, new: OperatorAllocation) -> int:
    """How many shards change host (replicas, for an operator without shards: those that stay but on another host)."""
    if new.shard_replicas:
        before = map(old.replica_hosts.__getitem__, old.shard_replicas)
        after = map(new.replica_hosts.__getitem__, new.shard_replicas)
        return sum(map(ne, before, after))
    return sum(a != b for a, b in zip(old.replica_hosts, new.replica_hosts, strict=False))
