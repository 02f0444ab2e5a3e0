"""The words that reasons and vetoes are made of: always the same for the same thing, with numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from springtide.model.application import Application
from springtide.plan.placement.loads import moves_by_shard
from springtide.plan.placement.packing import Unit

_NAMED_OPERATORS = 3  # a reason that lists more than these is not read


def plural(count: int, noun: str) -> str:
    """
    >>> plural(1, "host"), plural(3, "host")
    ('1 host', '3 hosts')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def described(application: Application, units: Sequence[Unit]) -> str:
    """`0.31 cores (2 shards of q7, 1 replica of map)`."""
    cores = sum(unit.cpu_cores for unit in units)
    counts = Counter(unit.operator for unit in units)
    if len(counts) > _NAMED_OPERATORS:
        return f"{cores:.2f} cores ({len(units)} shards or replicas of {len(counts)} operators)"
    parts = (f"{plural(n, _noun(application, name))} of {name}" for name, n in counts.items())
    return f"{cores:.2f} cores ({', '.join(parts)})"


def _noun(application: Application, operator: str) -> str:
    return "shard" if moves_by_shard(application.operator(operator)) else "replica"
