"""`springtide dashboard`: runs in the browser, live or recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def dashboard(
    journals: Annotated[
        list[Path],
        typer.Argument(metavar="JOURNAL [JOURNAL2]", help="Journals written by --journal; two are shown side by side."),
    ],
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 for any that is free.")] = 8765,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", metavar="FILE", help="File with the token that is asked for; or set SPRINGTIDE_TOKEN."),
    ] = None,
    no_controls: Annotated[bool, typer.Option("--no-controls", help="Show runs, and let nobody steer them.")] = False,
) -> None:
    """Show a run in the browser, live or recorded."""
    from springtide.dashboard.serving import Wishes, serve, token_from

    serve(
        Wishes(journals=journals, host=host, port=port, token=token_from(token_file), controls=not no_controls),
        lambda line: typer.echo(line, err=True),
    )
