"""The paper's Figures 8 to 11 and 14: replicas and throughput over time. The text has no numbers of their curves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from springtide.experiments.psps.telling import Results
from springtide.experiments.psps.world import Setting
from springtide.experiments.study import Picture


def over_time(name: str, shows: str, results: Results, settings: Mapping[str, Setting]) -> Picture:
    """What each configuration used and let through on the first stretch."""

    def draw(path: Path) -> None:
        from springtide.experiments import drawing  # noqa: PLC0415

        curves = {label: results.first(setting)["curves"] for label, setting in settings.items()}
        one = next(iter(curves.values()))
        used = [drawing.Line(name=label, x=c["start_s"], y=c["cores"], steps=True) for label, c in curves.items()]
        through = [drawing.Line(name=label, x=c["start_s"], y=c["delivered_rows_per_s"]) for label, c in curves.items()]
        offered = drawing.Line(name="input", x=one["start_s"], y=one["offered_rows_per_s"], of_paper=True)
        drawing.draw(
            [
                drawing.Lines(
                    title="Active replicas (of tide: cores)",
                    x_label="start of the interval in s",
                    y_label="replicas",
                    lines=used,
                ),
                drawing.Lines(
                    title="Throughput", x_label="start of the interval in s", y_label="rows/s", lines=[*through, offered]
                ),
            ],
            path,
        )

    return Picture(name=name, shows=shows, draw=draw)
