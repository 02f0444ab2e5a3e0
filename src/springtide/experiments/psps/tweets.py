"""The application that classifies tweets, in every configuration of Tables IV to X. Several tables share configurations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

from springtide.experiments.psps import comparing, tuning
from springtide.experiments.psps.runs import STRETCHES, run
from springtide.experiments.psps.telling import Results
from springtide.experiments.psps.world import RESTART_S, Setting, tide_instead
from springtide.experiments.study import Experiment, Finding, PageTable, Section, Values

_SECTIONS = (
    tuning.time_interval,
    tuning.timeout,
    tuning.queue_size,
    comparing.grouping,
    comparing.storm,
    comparing.raw_stream,
    comparing.dabs,
)

_OTHER_STRETCHES = """
All tables above show stretch 0, which is like the paper's: it goes up and down, and its mean rate is about 0.4 of its peak.
Claims are judged by it, and say on how many stretches they are so. Of the recorded stretches, 1 is quiet and jumps at its end,
and 2 and 3 waver around three quarters of their peak. There PSPS changes replicas in four intervals of five, and every change
costs it latency by the way Algorithm 1 treats new replicas; what changes less often, DABS or PSPS with a longer time interval,
does better there than on stretch 0. The 16 replicas of r = 4 are too few for these, so PSPS cannot save as much.
"""


def configurations() -> list[Setting]:
    """Each once, though several tables have it."""
    psps = [
        *tuning.INTERVALS.values(),
        *tuning.TIMEOUTS.values(),
        *tuning.QUEUES.values(),
        comparing.SHUFFLE,
        comparing.RAW,
    ]
    others = [
        comparing.ONE_QUEUE,
        comparing.AS_PRINTED,
        comparing.TIDE_BALANCED,
        *comparing.FIXED.values(),
        comparing.RAW_FIXED,
        *comparing.RESTARTS.values(),
    ]
    return list(dict.fromkeys([*psps, *map(tide_instead, psps), *others]))


def _runs(quick: bool) -> list[tuple[Values, int]]:
    return [
        (asdict(replace(one, stretch=stretch)), stretch)
        for stretch in range(1 if quick else STRETCHES)
        for one in configurations()
    ]


def _sections(findings: Sequence[Finding]) -> list[Section]:
    results = Results(findings)
    return [section(results) for section in _SECTIONS] + _other_stretches(results)


def _other_stretches(results: Results) -> list[Section]:
    """What the tables do not show, if there is any."""
    shown = {
        "PSPS": tuning.BASE,
        "PSPS, shuffle": comparing.SHUFFLE,
        "r = 4": comparing.FIXED[4],
        "DABS": comparing.RESTARTS[RESTART_S],
        "tide": comparing.TIDE_BASE,
    }
    stretches = len(results.each(tuning.BASE))
    if stretches == 1:
        return []
    rows = tuple(
        (
            f"{stretch}, {name}",
            f"{here.mean_to_peak:.2f}",
            f"{here.saved_resources:.4f}",
            f"{here.throughput_degradation:.4f}",
            f"{here.processed_share:.4f}",
            f"{here.latency_ms:,.0f}",
            f"{here.mean_cores:.1f}",
        )
        for stretch in range(stretches)
        for name, here in ((name, results.each(setting)[stretch]) for name, setting in shown.items())
    )
    columns = (
        "stretch and system",
        "mean rate over peak",
        "saved resources",
        "throughput degradation",
        "processed share",
        "latency in ms",
        "mean cores",
    )
    return [
        Section(
            title="Other stretches of the stream",
            text=_OTHER_STRETCHES,
            tables=(PageTable(columns=columns, rows=rows, caption="td = 30 s, t_out = 30 s, q_size = 100,000"),),
        )
    ]


TWEETS = Experiment(name="tweets", runs=_runs, run=run, sections=_sections)
