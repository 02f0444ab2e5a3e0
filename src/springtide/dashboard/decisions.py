"""The list of what was decided, and of what was said by hand, the newest first."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from springtide.dashboard.following import FollowedJournal
from springtide.dashboard.parts import ControlPart

MOST_DECISIONS = 500


def decisions(
    journal: FollowedJournal, *, before: int | None = None, limit: int = 50, changes_only: bool = False
) -> list[dict[str, Any]]:
    """Entries of intervals before a given one. An interval is never cut in two: a next page begins where one ends."""
    entries = journal.index.entries
    intervals = entries["interval"]
    wanted = np.ones(len(entries), dtype=bool) if before is None else intervals < before
    if changes_only:
        wanted &= entries["shown"] == 1
    found = np.flatnonzero(wanted)[::-1]
    count = max(1, min(limit, MOST_DECISIONS))
    while 0 < count < len(found) and intervals[found[count]] == intervals[found[count - 1]]:
        count += 1
    return [_entry(journal, int(entry)) for entry in found[:count]]


def control_entry(control: ControlPart) -> dict[str, Any]:
    """A control as the list and the events show it."""
    said = msgspec.to_builtins(control)
    return {
        "interval": control.interval,
        "time_s": control.time_s,
        "control": {name: said[name] for name in ("do", "operator", "host", "replicas", "who", "said_at", "note")},
    }


def _entry(journal: FollowedJournal, entry: int) -> dict[str, Any]:
    control = int(journal.index.entries["control"][entry])
    if control >= 0:
        return control_entry(journal.index.controls[control])
    made, outcome = journal.decision(entry)
    return {
        "interval": made.interval,
        "time_s": made.time_s,
        "change": made.change,
        "reason": made.reason,
        "expected": msgspec.to_builtins(made.expected),
        "why_not": [msgspec.to_builtins(veto) for veto in made.why_not],
        "actions": list(made.actions),
        "verdict": None if outcome is None else outcome.verdict,
        "measured": None if outcome is None else msgspec.to_builtins(outcome.measured),
    }
