"""Tables IV, V and VI: PSPS's time interval, time-out and queue size, one varied at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from springtide.experiments.psps import paper
from springtide.experiments.psps.telling import (
    Against,
    Results,
    Row,
    Side,
    degradation,
    higher,
    latency,
    lower,
    processed,
    saved,
    table,
    tide_claims,
)
from springtide.experiments.psps.world import PSPS, Setting, tide_instead
from springtide.experiments.study import PageTable, Section

BASE = Setting(application="tweets", policy=PSPS)
INTERVALS = {f"td = {s} s": replace(BASE, interval_s=float(s)) for s in paper.TIME_INTERVAL_S}
TIMEOUTS = {f"t_out = {s} s": replace(BASE, timeout_s=float(s)) for s in paper.TIMEOUT_S}
QUEUES = {f"q_size = {rows:,}": replace(BASE, queue_rows=float(rows)) for rows in paper.QUEUE_ROWS}


def time_interval(results: Results) -> Section:
    sides = _ends(INTERVALS, paper.TIME_INTERVAL_S)
    return Section(
        title="Table IV: the time interval td",
        text=f"{results.origin} PSPS decides once in every time interval, with t_out = 30 s and q_size = 100,000. The "
        "throughput degradation is the mean over intervals of the length that is varied, so a long one hides what happens "
        "within it. Latency and degradation grow with td as in the paper. What does not agree is the processed share: here a "
        "longer interval loses rows, because more of them wait for longer than t_out; the paper reports that 99.8 % are "
        "processed at mean latencies of 17 s and 22 s.",
        tables=(_table("Time interval", results, INTERVALS, paper.TIME_INTERVAL_S),),
        claims=(
            lower(results, "A shorter time interval gives a lower latency", latency, sides),
            lower(results, "A shorter time interval degrades the throughput less", degradation, sides),
            *tide_claims(results, "Table IV (time interval)", _against(INTERVALS)),
        ),
    )


def timeout(results: Results) -> Section:
    sides = _ends(TIMEOUTS, paper.TIMEOUT_S)
    return Section(
        title="Table V: the time-out t_out",
        text="Rows older than t_out are dropped, with td = 30 s and q_size = 100,000. tide's objective is half of t_out where "
        "that is less than 2 s. The directions are the paper's; more rows are lost here, as in Table IV.",
        tables=(_table("Time-out", results, TIMEOUTS, paper.TIMEOUT_S),),
        claims=(
            lower(results, "A short time-out lowers the latency", latency, sides),
            lower(results, "A short time-out loses rows", processed, sides),
            higher(results, "A short time-out saves resources", saved, sides),
            *tide_claims(results, "Table V (time-out)", _against(TIMEOUTS)),
        ),
    )


def queue_size(results: Results) -> Section:
    sides = _ends(QUEUES, paper.QUEUE_ROWS)
    return Section(
        title="Table VI: the queue size q_size",
        text="Rows that find the queue of an operator full are dropped, with td = 30 s and t_out = 30 s.",
        tables=(_table("Queue size", results, QUEUES, paper.QUEUE_ROWS),),
        claims=(
            lower(results, "A small queue lowers the latency", latency, sides),
            lower(results, "A small queue loses rows", processed, sides),
            higher(results, "A small queue saves resources", saved, sides),
            *tide_claims(results, "Table VI (queue size)", _against(QUEUES)),
        ),
    )


def _table(caption: str, results: Results, settings: Mapping[str, Setting], printed: Mapping[int, paper.Printed]) -> PageTable:
    rows = [
        row
        for (name, setting), figures in zip(settings.items(), printed.values(), strict=True)
        for row in (Row(f"{name}, PSPS", setting, figures), Row(f"{name}, tide", tide_instead(setting)))
    ]
    return table(caption, results, rows)


def _ends(settings: Mapping[str, Setting], printed: Mapping[int, paper.Printed]) -> tuple[Side, Side]:
    """The smallest and the largest value."""
    sides = [Side(name, setting, figures) for (name, setting), figures in zip(settings.items(), printed.values(), strict=True)]
    return sides[0], sides[-1]


def _against(settings: Mapping[str, Setting]) -> list[Against]:
    return [Against(name, setting, tide_instead(setting)) for name, setting in settings.items()]
