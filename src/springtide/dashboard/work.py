"""What a row from a source costs in core-seconds, and so what the running cores can take: measured, and smoothed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from springtide.dashboard.parts import ApplicationPart, OperatorLoad

_KEPT = 0.9  # of what was counted before, with each interval: operators with windows send on in bursts


@dataclass(slots=True)
class _Operator:
    """What is known of one: rows that come of a row of each upstream; rows processed and sent on, and time taken, of late."""

    inputs: list[tuple[str, float]]
    service_s: float
    sent_for_each: float = 0.0  # row that it sends on, over all edges
    processed: float = 0.0
    emitted: float = 0.0
    busy_s: float = 0.0

    def then(self, processed: float, emitted: float, service_s: float) -> None:
        self.processed = _KEPT * self.processed + processed
        self.emitted = _KEPT * self.emitted + emitted
        self.busy_s = _KEPT * self.busy_s + processed * service_s

    @property
    def service_time_s(self) -> float:
        return self.busy_s / self.processed if self.processed > 0 else self.service_s


class Work:
    """Follows what operators send on for each row they process and how long each row takes them, the older counting less.

    The work of one source row is then the sum, down the DAG, of the rows that come of it times what each takes. Unlike busy
    cores this does not depend on which operator is behind today. A journal of a week has 20,000 intervals: `then` is quick.
    """

    def __init__(self, application: ApplicationPart) -> None:
        self._operators = {o.name: _Operator(inputs=[], service_s=o.service_time_s) for o in application.operators}
        for edge in application.edges:
            self._operators[edge.downstream].inputs.append((edge.upstream, edge.selectivity))
            if edge.upstream in self._operators:
                self._operators[edge.upstream].sent_for_each += edge.selectivity
        self._measured = False
        self.core_s_per_row = math.nan  # until rows have been processed: what is declared of a live operator is a guess

    def then(self, operators: Iterable[OperatorLoad], source_rows: Mapping[str, float]) -> None:
        """One more interval. One in which an operator stood still tells nothing of it."""
        for seen in operators:
            processed, known = seen.processed_rows, self._operators.get(seen.name)
            if processed and known is not None:
                known.then(processed, seen.emitted_rows or 0.0, seen.service_time_s or known.service_s)
                self._measured = True
        rows = sum(source_rows.values())
        if rows > 0 and self._measured:
            demand = self.demand(source_rows)
            self.core_s_per_row = sum(demand[name] * o.service_time_s for name, o in self._operators.items()) / rows

    def service_time_s(self, operator: str) -> float:
        return self._operators[operator].service_time_s

    def demand(self, source_rows: Mapping[str, float]) -> dict[str, float]:
        """Rows that each operator gets of what the sources send, once everybody has kept up."""
        sent = dict(source_rows)
        demand: dict[str, float] = {}
        for name, o in self._operators.items():
            offered = 0.0
            for upstream, selectivity in o.inputs:
                offered += sent.get(upstream, 0.0) * selectivity
            demand[name] = offered
            known = o.sent_for_each > 0 and o.processed > 0
            sent[name] = offered * o.emitted / o.processed / o.sent_for_each if known else offered
        return demand
