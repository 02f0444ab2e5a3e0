"""Figures as the page writes them, findings by the parameters of their runs, and what is said where nothing is known.

A claim that holds has no reason not to: nobody has looked for one. If it stops holding, the page says that nobody has
(`NOT_LOOKED_INTO`, `unexplained`), and never what somebody once expected the reason to be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from springtide.errors import require
from springtide.experiments.study import Finding, Values

NOT_LOOKED_INTO = "not looked into yet: it held whenever this was looked at"


def unexplained(parts: Mapping[str, bool]) -> str:
    """The same for a claim of several parts: which of them fail.

    >>> unexplained({"lower latency": True, "more throughput": False})
    'not looked into yet: it held whenever this was looked at; what fails: more throughput'
    """
    failing = [part for part, holds in parts.items() if not holds]
    return f"{NOT_LOOKED_INTO}; what fails: {', '.join(failing)}" if failing else NOT_LOOKED_INTO


def thousands(rows_per_s: float) -> str:
    """
    >>> thousands(218_600.0)
    '218.6'
    """
    return f"{rows_per_s / 1000:.1f}"


def milliseconds(latency_ms: float) -> str:
    """
    >>> milliseconds(1234.5), milliseconds(12.34), milliseconds(1.234)
    ('1,234', '12.3', '1.23')
    """
    return f"{latency_ms:,.0f}" if latency_ms >= 100 else f"{latency_ms:.1f}" if latency_ms >= 10 else f"{latency_ms:.2f}"


def mean_of(findings: Sequence[Finding], what: str, **parameters: object) -> float:
    """The mean, over all seeds, of what was found or measured with these parameters."""
    mine = matching(findings, **parameters)
    return float(np.mean([{**finding.found, **finding.measured}[what] for finding in mine]))


def matching(findings: Sequence[Finding], **parameters: object) -> list[Finding]:
    found = [f for f in findings if all(f.run.parameters.get(name) == value for name, value in parameters.items())]
    require(bool(found), f"nothing was found with {parameters}")
    return found


def values_of(findings: Sequence[Finding], name: str) -> list[float]:
    """The values of a parameter, in ascending order."""
    return sorted({_number(finding.run.parameters, name) for finding in findings if name in finding.run.parameters})


def _number(parameters: Values, name: str) -> float:
    value = parameters[name]
    return int(value) if float(value).is_integer() else float(value)
