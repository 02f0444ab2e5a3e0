"""`springtide doctor`: can this machine, and this Spark, do what Springtide needs?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from springtide.doctor.finding import Finding

FAILED = 1


def doctor(
    folder: Annotated[
        str, typer.Option("--folder", metavar="PATH", help="Where state and edges would be kept (see `springtide run`).")
    ] = ".",
    hosts: Annotated[str, typer.Option("--hosts", metavar="MIN:MAX", help="Fewest and most executors.")] = "1:4",
    cores: Annotated[int, typer.Option("--cores", min=1, help="Cores of an executor.")] = 1,
    memory: Annotated[int, typer.Option("--memory", metavar="MB", min=1, help="Memory of an executor.")] = 600,
    quick: Annotated[bool, typer.Option("--quick", help="Do not start Spark to try its internals.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of lines.")] = False,
) -> None:
    """Look for what would keep Springtide from working here: one line for each check, and what to do.

    Without --quick it also starts two executors and tries everything that it needs of Spark's internals, in about a minute. The
    exit code is 1 if there is a problem, and 0 if there are only warnings.
    """
    from springtide.doctor.examination import examined
    from springtide.doctor.finding import has_problem, line, verdict
    from springtide.doctor.machine import Executors

    executors = Executors(most=_most(hosts), cores=cores, memory_mb=memory)
    findings: list[Finding] = []

    def say(found: list[Finding]) -> None:
        findings.extend(found)
        for finding in () if as_json else found:
            typer.echo(line(finding))

    say(examined(folder, executors))
    if not quick:
        say(_spark_tried(findings, memory))
    if as_json:
        import msgspec

        report = {"findings": findings, "problem": has_problem(findings)}
        typer.echo(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        typer.echo(verdict(findings))
    if has_problem(findings):
        raise typer.Exit(FAILED)


def _most(hosts: str) -> int:
    """
    >>> _most("1:4"), _most("3")
    (4, 3)
    """
    from springtide.errors import SpringtideError

    most = hosts.rpartition(":")[2]
    if not most.isdecimal() or int(most) < 1:
        raise SpringtideError(f"--hosts {hosts!r}: write it as MIN:MAX, for example --hosts 1:4")
    return int(most)


def _spark_tried(findings: list[Finding], memory_mb: int) -> list[Finding]:
    """What Spark's internals do, unless it is known that Spark cannot be started."""
    from springtide.doctor.finding import has_problem, warning

    if has_problem([f for f in findings if f.check in ("Java", "PySpark", "pandas", "ports")]):
        return [warning("Spark", "not tried", "solve the problems above first")]
    from springtide.doctor.internals import tried

    typer.echo("Trying Spark's internals on two executors of this machine ...", err=True)
    return tried(memory_mb)
