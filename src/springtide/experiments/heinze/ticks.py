"""Figure 3: the ticks of the three days."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from springtide.experiments.heinze.world import DAYS, RUN_S, day
from springtide.experiments.study import Experiment, Finding, PageTable, Picture, Section, Values


def runs(quick: bool) -> list[tuple[Values, int]]:  # noqa: ARG001 - nothing is simulated, so nothing is left out
    return [({"day": name}, 0) for name in DAYS]


def run(parameters: Values, seed: int) -> Values:  # noqa: ARG001 - days are recorded, or made from seeds of their own
    """A day's rates in the replay, in ticks per second, minute by minute of the day."""
    chosen = day(parameters["day"])
    counts = chosen.ticks.sum(axis=0)
    shares = chosen.ticks.sum(axis=1) / counts.sum()
    return {
        "origin": chosen.origin,
        "minutes": chosen.minutes,
        "ticks": float(counts.sum()),
        "ticks_per_s": (counts / chosen.minute_s).round(3).tolist(),
        "largest_sector": float(shares.max()),
        "smallest_sector": float(shares.min()),
    }


def sections(findings: Sequence[Finding]) -> list[Section]:
    columns = (
        "day",
        "ticks",
        "minutes",
        "mean, ticks/s",
        "busiest minute, ticks/s",
        "minute to minute",
        "a sector's share",
        "from",
    )
    return [
        Section(
            title="Figure 3: the workload",
            text=(
                'Ticks of a day, replayed in an hour. "Minute to minute" is by how much the rate of a minute differs '
                "from that of the one before, on average, as a share of the mean rate. A minute of the day lasts about 7 "
                "s here. A made day has the opening and the bursts of the recorded ones and is calmer between them. The "
                "paper's figure has no numbers in its text."
            ),
            tables=(PageTable(columns=columns, rows=tuple(_row(finding) for finding in findings)),),
            pictures=(Picture(name="figure-3", shows="ticks per second of the three days", draw=_draw(findings)),),
        )
    ]


def _row(finding: Finding) -> tuple[str, ...]:
    found = finding.found
    rates = np.array(found["ticks_per_s"])
    return (
        finding.run.parameters["day"],
        f"{found['ticks']:,.0f}",
        f"{found['minutes']}",
        f"{rates.mean():.0f}",
        f"{rates.max():.0f}",
        f"{np.abs(np.diff(rates)).mean() / rates.mean():.0%}",
        f"{found['smallest_sector']:.0%} to {found['largest_sector']:.0%}",
        found["origin"],
    )


def _draw(findings: Sequence[Finding]) -> Callable[[Path], None]:
    def draw_all(path: Path) -> None:
        from springtide.experiments.drawing import Line, Lines, draw  # noqa: PLC0415 - matplotlib is slow

        panels = [
            Lines(
                title=f"{finding.run.parameters['day']} ({finding.found['origin']})",
                x_label="minutes of the replay",
                y_label="ticks/s",
                lines=[Line(name="ticks", x=_minutes(finding), y=finding.found["ticks_per_s"], steps=True)],
            )
            for finding in findings
        ]
        draw(panels, path, columns=3)

    return draw_all


def _minutes(finding: Finding) -> list[float]:
    count = len(finding.found["ticks_per_s"])
    return [RUN_S / 60 * i / count for i in range(count)]


EXPERIMENT = Experiment(name="ticks", runs=runs, run=run, sections=sections)
