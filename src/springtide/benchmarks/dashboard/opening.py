"""Case `opening`: from the command to all that the page draws first, for the journal of a week.

The same is measured for the journal of an hour, in turn, because much of it is the start of Python and of the server.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from springtide.benchmarks.dashboard.recorded import write_journal
from springtide.benchmarks.dashboard.served import served
from springtide.benchmarks.figures import Bar, Figure, figure
from springtide.errors import require

CASE = "opening"
OPEN_BAR = Bar(limit=2.0)

# What the page asks for before it has drawn its charts.
FIRST = (
    "/",
    "/static/app.js",
    "/api/runs",
    "/api/runs/0",
    "/api/runs/0/series",
    "/api/runs/0/frames/LAST",
    "/api/runs/0/decisions",
)
_HOUR_DAYS = 1 / 24


def measure(folder: Path, say: Callable[[str], None], *, quick: bool) -> list[Figure]:
    days, times = (0.25, 2) if quick else (7.0, 7)
    say(f"{CASE}: simulating {days:g} days, for their journal")
    long, short = write_journal(folder / "long.jsonl", days), write_journal(folder / "short.jsonl", _HOUR_DAYS)
    opened_s(short)  # Python has compiled its modules, and the files are in memory, as they are once a user has looked
    took_s: dict[Path, list[float]] = {long: [], short: []}
    for turn in range(times):
        say(f"{CASE}: {turn + 1} of {times}")
        for journal in (long, short) if turn % 2 else (short, long):
            took_s[journal].append(opened_s(journal))
    what = "a week" if days == 7 else f"{days:g} days"
    size_mb = long.stat().st_size / 1e6
    return [
        figure(CASE, f"command to first charts, {what} ({size_mb:,.0f} MB)", "s", took_s[long], OPEN_BAR),
        figure(CASE, "command to first charts, an hour", "s", took_s[short]),
        figure(CASE, f"{what} / an hour", "x", [a / b for a, b in zip(took_s[long], took_s[short], strict=True)]),
    ]


def opened_s(journal: Path) -> float:
    """Seconds until a page could have drawn its charts, and everything else that it shows first."""
    began_s = time.perf_counter()
    with served(journal) as dashboard:
        for path in FIRST:
            require(bool(dashboard.get(path)), f"{CASE}: {path} was empty")
        return time.perf_counter() - began_s
