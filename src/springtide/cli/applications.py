"""`springtide applications`."""

from __future__ import annotations

from typing import Annotated

import typer


def applications(as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False) -> None:
    """List the applications that come with Springtide, with their options; `springtide run NAME` runs one."""
    from springtide.applications import registry
    from springtide.cli.listing import show_registered

    show_registered({"applications": [registry.kind(name) for name in registry.names()]}, as_json=as_json, settings="options")
