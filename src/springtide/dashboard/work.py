"""What a row from a source costs in core-seconds, and so what the running cores can take: measured, and smoothed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from springtide.dashboard.parts import ApplicationPart, OperatorLoad

_KEPT = 0.9  # of what was counted before, with each interval: operators with windows send on in bursts


class Work:
    """Follows what operators send on for each row they process and how long each row takes them, the older counting less.

    The work of one source row is then the sum, down the DAG, of the rows that come of it times what each takes. Unlike busy
    cores this does not depend on which operator is behind today.
    """

    def __init__(self, application: ApplicationPart) -> None:
        self._operators = [o.name for o in application.operators]
        self._inputs: dict[str, list[tuple[str, float]]] = {name: [] for name in self._operators}
        self._said: dict[str, float] = {}
        for edge in application.edges:
            self._inputs[edge.downstream].append((edge.upstream, edge.selectivity))
            self._said[edge.upstream] = self._said.get(edge.upstream, 0.0) + edge.selectivity
        self._service_s = {o.name: o.service_time_s for o in application.operators}
        self._processed = dict.fromkeys(self._operators, 0.0)
        self._emitted = dict.fromkeys(self._operators, 0.0)
        self._busy_s = dict.fromkeys(self._operators, 0.0)
        self.core_s_per_row = math.nan  # until rows have been processed: what is declared of a live operator is a guess

    def then(self, operators: Iterable[OperatorLoad], source_rows: Mapping[str, float]) -> None:
        """One more interval. One in which an operator stood still tells nothing of it."""
        for seen in operators:
            processed, name = seen.processed_rows or 0.0, seen.name
            if processed > 0 and name in self._processed:
                self._processed[name] = _KEPT * self._processed[name] + processed
                self._emitted[name] = _KEPT * self._emitted[name] + (seen.emitted_rows or 0.0)
                self._busy_s[name] = _KEPT * self._busy_s[name] + processed * (seen.service_time_s or self._service_s[name])
        rows = sum(source_rows.values())
        if rows > 0 and any(self._processed.values()):
            demand = self.demand(source_rows)
            self.core_s_per_row = sum(demand[name] * self.service_time_s(name) for name in self._operators) / rows

    def service_time_s(self, operator: str) -> float:
        processed = self._processed[operator]
        return self._busy_s[operator] / processed if processed > 0 else self._service_s[operator]

    def demand(self, source_rows: Mapping[str, float]) -> dict[str, float]:
        """Rows that each operator gets of what the sources send, once everybody has kept up."""
        sent = dict(source_rows)
        demand: dict[str, float] = {}
        for name in self._operators:
            offered = sum(sent.get(upstream, 0.0) * selectivity for upstream, selectivity in self._inputs[name])
            demand[name] = offered
            said, processed = self._said.get(name, 0.0), self._processed[name]
            sent[name] = offered * self._emitted[name] / processed / said if said > 0 and processed > 0 else offered
        return demand
