"""What beta does: reconfigurations, downtime, replicas and late rows, from none refused to hardly any granted."""

from __future__ import annotations

from pathlib import Path

from springtide.experiments.edf import paper
from springtide.experiments.edf.cases import FULL_BETAS
from springtide.experiments.edf.figure_4 import COLUMNS, row
from springtide.experiments.edf.policies import under_tokens
from springtide.experiments.edf.results import Figures, Results
from springtide.experiments.study import PageTable, Picture, Section


def section(results: Results) -> Section:
    betas = sorted({*FULL_BETAS, *paper.BETAS})
    found = {beta: results.of(under_tokens(beta)) for beta in betas if results.has(under_tokens(beta))}
    rows = tuple(row(under_tokens(beta), figures) for beta, figures in found.items())
    return Section(
        title="Other values of beta",
        text="The paper has two values of beta. With 0 a token comes every minute, whatever the response time is: the bucket "
        "only spaces changes. As each then needs a stop of its own, that may stop the application more often than accepting "
        "everything does. With 1 tokens come only when the response time is above 200 ms; whenever something stops, it is.",
        tables=(PageTable(columns=COLUMNS, rows=rows),),
        pictures=(
            Picture(
                name="betas",
                shows="Reconfigurations, downtime, replicas and late rows against beta",
                draw=lambda path: _draw(found, path),
            ),
        ),
    )


def _draw(found: dict[float, Figures], path: Path) -> None:
    from springtide.experiments.drawing import Line, Lines, draw  # noqa: PLC0415 - matplotlib takes a second

    betas = list(found)
    curves = {
        ("reconfigurations", "number"): [f.reconfigurations for f in found.values()],
        ("downtime", "% of the time"): [100 * f.downtime_share for f in found.values()],
        ("replicas", "mean"): [f.mean_replicas for f in found.values()],
        ("rows beyond 200 ms", "% of the rows"): [100 * f.late_share for f in found.values()],
    }
    panels = [
        Lines(title=title, x_label="beta", y_label=unit, lines=[Line(name=title, x=betas, y=values)])
        for (title, unit), values in curves.items()
    ]
    draw(panels, path)
