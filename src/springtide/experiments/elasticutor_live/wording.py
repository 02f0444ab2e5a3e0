"""Live findings by policy and setting, and figures as the page writes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from springtide.experiments.elasticutor.wording import values_of
from springtide.experiments.study import Claim, Finding

NOISE = 0.1  # by about so much do two runs of the same setting differ on a machine with few cores


class Results:
    """What was measured, by policy and one more parameter, whose values are `values`."""

    def __init__(self, findings: Sequence[Finding], parameter: str) -> None:
        self.findings = findings
        self.values = values_of(findings, parameter)
        self._parameter = parameter

    def has(self, policy: str, value: float) -> bool:
        return bool(self._matching(policy, value))

    def one(self, policy: str, value: float, what: str) -> float:
        """The mean over all runs of the setting."""
        return fmean(float(finding.measured[what]) for finding in self._matching(policy, value))

    def shown(self, policy: str, value: float, what: str) -> float:
        """The same for a picture: nothing where nothing was run."""
        return self.one(policy, value, what) if self.has(policy, value) else math.nan

    def text(self, policy: str, value: float, what: str, form: str, factor: float = 1.0) -> str:
        return form.format(self.one(policy, value, what) * factor) if self.has(policy, value) else "-"

    def ratio(self, what: str, policy: str, other: str, value: float) -> float:
        return self.one(policy, value, what) / self.one(other, value, what)

    def lists(self, policy: str, value: float, what: str) -> list[Any]:
        """A list that the first run of the setting measured."""
        matching = self._matching(policy, value)
        return list(matching[0].measured[what]) if matching else []

    def _matching(self, policy: str, value: float) -> list[Finding]:
        wanted = {"policy": policy, self._parameter: value}
        return [f for f in self.findings if all(f.run.parameters.get(name) == what for name, what in wanted.items())]


def span(values: Sequence[float], digits: int = 2) -> str:
    """
    >>> span([1.234, 2.0]), span([1.0, 1.001]), span([])
    ('1.23 to 2.00', '1.00', '-')
    """
    if not values:
        return "-"
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return low if low == high else f"{low} to {high}"


def exact(findings: Sequence[Finding]) -> Claim:
    wrong = sum(int(finding.found["wrong"]) for finding in findings)
    return Claim(
        says="Every row is counted once, and in its order, whatever moved meanwhile",
        paper="-",
        here=f"{wrong} wrong answers in {len(findings)} runs, each checked with a computation of its own",
        holds=wrong == 0,
        why="answers differ from those of the same rows computed at once: see `checked` in the results",
        ours=True,
    )
