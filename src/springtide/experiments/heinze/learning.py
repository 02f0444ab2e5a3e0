"""Figure 9 (section V.C): how much and for how long reinforcement learning learns."""

from __future__ import annotations

import math
from collections.abc import Mapping

from springtide.experiments.heinze.cases import LOCAL, SARSA, TIDE, Case, Figures, Results
from springtide.experiments.heinze.configurations import HASTY, learning_why, what_is_learned
from springtide.experiments.heinze.paper import (
    DEFAULT_LEARNING,
    INTENSIVE_LEARNING,
    LEARNING_LATENCY_MS,
    LEARNING_LOAD_MEAN,
    LEARNINGS,
    LONGER_LEARNING,
    NO_LEARNING,
)
from springtide.experiments.heinze.showing import Bundle, Shown, drawing, load, ms, table
from springtide.experiments.study import Claim, Picture, Section

CASES = (*(Case(technique=SARSA, learning=learning) for learning in LEARNINGS), HASTY)


def sections(results: Results) -> list[Section]:
    of = {one.name: results.mean(Case(technique=SARSA, learning=one)) for one in LEARNINGS}
    shown = [
        Shown(
            names=(SARSA, name),
            figures=figures,
            paper_load=LEARNING_LOAD_MEAN.get(name, math.nan),
            paper_p90_ms=LEARNING_LATENCY_MS.get(name, math.nan),
        )
        for name, figures in of.items()
    ]
    beside = [
        Shown(names=(LOCAL, "none, n = 3"), figures=results.mean(Case(technique=LOCAL))),
        Shown(names=(LOCAL, "none, n = 1"), figures=results.mean(HASTY)),
        Shown(names=(TIDE, ""), figures=results.mean(Case(technique=TIDE))),
    ]
    return [
        Section(
            title="Figure 9: learning, default configuration, Day1",
            text=(
                "imp is the impact of what is learned, dur for how long it is learned. The paper gives latencies here "
                "without saying which they are; they stand in the column of the 90th percentile. Beside it local "
                "thresholds, also with n = 1: they act on a single measurement, as reinforcement learning does, and learn "
                "nothing."
            ),
            tables=(table(("technique", "learning"), [*shown, *beside]),),
            pictures=(
                Picture(
                    name="figure-9",
                    shows="loads and latencies by how reinforcement learning learns",
                    draw=drawing([Bundle(title=SARSA, shown=shown)]),
                ),
            ),
            claims=tuple(_claims(results, of)),
        )
    ]


def _claims(results: Results, of: Mapping[str, Figures]) -> list[Claim]:
    local = results.mean(Case(technique=LOCAL))
    none, default = of[NO_LEARNING.name], of[DEFAULT_LEARNING.name]
    intensive, longer = of[INTENSIVE_LEARNING.name], of[LONGER_LEARNING.name]
    return [
        Claim(
            says="Default learning has higher utilisation and lower latency than none",
            paper="load 0.58 and 0.55, 1700 ms and 2100 ms",
            here=_beside(default, none),
            holds=default.load_mean > none.load_mean and default.latency_p90_ms < none.latency_p90_ms,
            why=f"learning changes little here: {what_is_learned(default)}",
        ),
        Claim(
            says="More intensive learning has lower utilisation and higher latency than the default",
            paper="both worse",
            here=_beside(intensive, default),
            holds=intensive.load_mean < default.load_mean and intensive.latency_p90_ms > default.latency_p90_ms,
            why=_intensive_why(intensive, default),
        ),
        Claim(
            says="Longer learning has lower utilisation and higher latency than the default",
            paper="both worse",
            here=_beside(longer, default),
            holds=longer.load_mean < default.load_mean and longer.latency_p90_ms > default.latency_p90_ms,
            why=(
                "alpha = imp dur / (dur + visits) is nearly the same for dur 80 and 160 while an entry has few visits, "
                f"and a table lasts for {default.host_life_points:.0f} measurements on average"
            ),
        ),
        Claim(
            says="All ways to learn have higher utilisation than local thresholds, at no higher p90",
            paper="all better",
            here=f"load {load(min(f.load_mean for f in of.values()))} to {load(max(f.load_mean for f in of.values()))}, "
            f"local thresholds {load(local.load_mean)}",
            holds=all(f.load_mean > local.load_mean and f.latency_p90_ms <= local.latency_p90_ms for f in of.values()),
            why=learning_why(results),
        ),
    ]


def _intensive_why(intensive: Figures, default: Figures) -> str:
    if intensive.load_mean < default.load_mean:
        return "the utilisation is lower, as in the paper, and so is the latency: less busy hosts are overloaded less often"
    return f"learning changes little here: {what_is_learned(default)}"


def _beside(one: Figures, other: Figures) -> str:
    return f"load {one.load_mean:.3f} and {other.load_mean:.3f}, p90 {ms(one.latency_p90_ms)} and {ms(other.latency_p90_ms)}"
