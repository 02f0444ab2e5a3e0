"""`springtide explain`: what was decided when, why, and why not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def explain(
    journal: Annotated[Path, typer.Argument(metavar="JOURNAL", help="A journal written by --journal.")],
    since: Annotated[float, typer.Option("--since", metavar="SECONDS", help="Leave out what came before.")] = 0.0,
    until: Annotated[float | None, typer.Option("--until", metavar="SECONDS", help="Leave out what came after.")] = None,
    operator: Annotated[str | None, typer.Option("--operator", help="Only decisions that concern this operator.")] = None,
    changes: Annotated[bool, typer.Option("--changes", help="Only decisions that changed something.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a timeline.")] = False,
) -> None:
    """Tell what was decided when, why, why not, and what came of it."""
    from springtide.journal.reading import read_journal
    from springtide.report import explain as report

    kept = read_journal(journal)
    filters = report.Filters(
        since_s=since, until_s=float("inf") if until is None else until, operator=operator, changes_only=changes
    )
    explanation = report.explain(kept.run, kept, filters)
    if kept.torn is not None:
        typer.echo(str(kept.torn), err=True)
    if as_json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(explanation), indent=2).decode())
        return
    from rich.console import Console

    Console().print(report.render(explanation))
