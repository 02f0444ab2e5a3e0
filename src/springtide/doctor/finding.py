"""What a check found."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from springtide.errors import require


class Level(Enum):
    """How bad it is: a warning lets runs go on, a problem will stop one."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One check: what was looked at, what was found, and what to do about it.

    `needed_for` says what would not work without it.
    """

    check: str
    level: Level
    found: str
    advice: str = ""
    needed_for: str = ""

    def __post_init__(self) -> None:
        require(self.level is Level.OK or self.advice != "", f"{self.check}: a {self.level.value} needs advice")


def ok(check: str, found: str, *, needed_for: str = "") -> Finding:
    return Finding(check=check, level=Level.OK, found=found, needed_for=needed_for)


def warning(check: str, found: str, advice: str, *, needed_for: str = "") -> Finding:
    return Finding(check=check, level=Level.WARNING, found=found, advice=advice, needed_for=needed_for)


def problem(check: str, found: str, advice: str, *, needed_for: str = "") -> Finding:
    return Finding(check=check, level=Level.PROBLEM, found=found, advice=advice, needed_for=needed_for)


def line(finding: Finding) -> str:
    """
    >>> print(line(warning("cores", "1 core", "expect rows to wait")))
    warning  cores: 1 core; expect rows to wait
    >>> print(line(ok("releasing", "none of 4 tasks ran there", needed_for="draining a host")))
    ok       releasing: none of 4 tasks ran there (needed for draining a host)
    """
    advice = f"; {finding.advice}" if finding.advice else ""
    needed_for = f" (needed for {finding.needed_for})" if finding.needed_for else ""
    return f"{finding.level.value:8} {finding.check}: {finding.found}{advice}{needed_for}"


def verdict(findings: Sequence[Finding]) -> str:
    """
    >>> verdict([ok("cores", "8"), problem("java", "none", "install one")])
    '2 checks: 1 problem, 0 warnings'
    """
    problems, warnings = (sum(f.level is level for f in findings) for level in (Level.PROBLEM, Level.WARNING))
    return f"{_many(len(findings), 'check')}: {_many(problems, 'problem')}, {_many(warnings, 'warning')}"


def has_problem(findings: Sequence[Finding]) -> bool:
    return any(f.level is Level.PROBLEM for f in findings)


def first_line(error: BaseException) -> str:
    """What an error says, in a line that can be read; what Java says, if the error only tells that Java raised one."""
    raised = getattr(error, "java_exception", None)
    lines = str(error if raised is None else raised.toString()).strip().splitlines()
    return textwrap.shorten(f"{type(error).__name__}: {lines[0] if lines else '(it says nothing)'}", 200, placeholder=" ...")


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
