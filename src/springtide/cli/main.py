"""The command `springtide`.

Rules: a mistake of the user is one line on standard error and exit code 2, with a traceback only after --debug; Ctrl-C
is exit code 130. Results go to standard output, progress and warnings to standard error. Commands import what they need
when they run, so that `springtide --help` is instant.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, NoReturn

import typer

from springtide import __version__
from springtide.cli import (
    applications,
    bench,
    calibrate,
    compare,
    control,
    demo,
    doctor,
    explain,
    forecast,
    policies,
    reproduce,
    simulate,
    validate,
)
from springtide.cli import run as live
from springtide.cli.dashboard import dashboard
from springtide.cli.dashboard_process import with_port
from springtide.errors import SpringtideError

INTERRUPTED = 130

app = typer.Typer(
    name="springtide",
    help="Elastic Spark Structured Streaming: what a policy would do with your load, and why.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("simulate")(simulate.simulate)
app.command("compare")(compare.compare)
app.command("calibrate")(calibrate.calibrate)
app.command("reproduce")(reproduce.reproduce)
app.command("validate")(validate.validate)
app.command("run")(live.run)
app.command("reshard")(live.reshard)
app.command("applications")(applications.applications)
app.command("explain")(explain.explain)
app.command("control")(control.control)
app.command("dashboard")(dashboard)
app.command("doctor")(doctor.doctor)
app.command("policies")(policies.policies)
app.command("cite")(policies.cite)
app.command("demo")(demo.demo)
app.add_typer(forecast.app, name="forecast")
app.add_typer(bench.app, name="bench")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"springtide {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - typer calls `_show_version` with it
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Elastic Spark Structured Streaming: what a policy would do with your load, and why."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run() -> None:
    """Entry point: everything that leaves here is either a result or one line that says what to do."""
    debug = "--debug" in sys.argv
    arguments = with_port([a for a in sys.argv[1:] if a != "--debug"])
    try:
        code = app(arguments, standalone_mode=False)
    except SpringtideError as error:
        if debug:
            raise
        _stop(str(error), 2)
    except typer.TyperException as error:
        _stop(error.format_message() if hasattr(error, "format_message") else str(error), 2)
    except BrokenPipeError:
        # Whoever read our output has had enough (`springtide ... | head`); say nothing more, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    if code == INTERRUPTED:
        _stop("interrupted", code)
    sys.exit(code if isinstance(code, int) else 0)


def _stop(message: str, code: int) -> NoReturn:
    typer.echo(f"springtide: {' '.join(message.split())}", err=True)
    sys.exit(code)
