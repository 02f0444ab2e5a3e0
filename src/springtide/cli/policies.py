"""`springtide policies` and `springtide cite`."""

from __future__ import annotations

from typing import Annotated

import typer


def policies(as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False) -> None:
    """List all policies and guards with their parameters."""
    from springtide.cli.listing import show_registered
    from springtide.plan import registry

    show_registered(
        {"policies": list(registry.policies().values()), "guards": list(registry.guards().values())}, as_json=as_json
    )


def cite(name: Annotated[str, typer.Argument(metavar="NAME", help="A policy's name.")]) -> None:
    """Print the paper or system that a policy is taken from."""
    from springtide.plan import registry

    typer.echo(registry.cite(name))
