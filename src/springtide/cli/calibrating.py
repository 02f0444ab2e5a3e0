"""What `springtide calibrate` does: take the last costs of every operator from journals, and write them down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path

from springtide.backends.simulator.calibration import combine_costs
from springtide.journal.reading import read_journal
from springtide.journal.records import BatchCostsRecord, ObservationRecord
from springtide.model.batch import BatchCosts, Estimate


def calibrate(journals: Sequence[Path]) -> str:
    """The table [simulator] of an application file, with the operators that it comes from."""
    found = {f"{path.name}: {name}": costs for path in journals for name, costs in _last_costs(path)}
    micro_batch = combine_costs(list(found.values()))
    lines = [f"# {where}: {costs.batches:.0f} batches, {_describe(costs)}" for where, costs in found.items()]
    lines += ["[simulator]", 'service = "micro_batch"', "[simulator.micro_batch]"]
    for field in ("overhead_s", "stage_overhead_s", "stages", "task_overhead_s", "shard_overhead_s"):
        value = getattr(micro_batch, field)
        lines.append(f"{field} = {value:.4f}" if isinstance(value, float) else f"{field} = {value}")
    return "\n".join(lines) + "\n"


def _last_costs(path: Path) -> Iterator[tuple[str, BatchCosts]]:
    last: dict[str, BatchCostsRecord] = {}
    for record in read_journal(path):
        if isinstance(record, ObservationRecord):
            last |= {operator.name: operator.costs for operator in record.operators if operator.costs is not None}
    for name, costs in last.items():
        yield name, _costs(costs)


def _costs(record: BatchCostsRecord) -> BatchCosts:
    estimates = {f.name: getattr(record, f.name) for f in fields(BatchCosts) if f.name != "batches"}
    known = {
        name: Estimate(value=e.value or 0.0, error=float("inf") if e.error is None else e.error)
        for name, e in estimates.items()
    }
    return BatchCosts(batches=record.batches or 0.0, **known)


def _describe(costs: BatchCosts) -> str:
    parts = {"driver": costs.driver_s, "batch": costs.batch_s, "task": costs.task_s, "shard": costs.shard_s}
    return ", ".join(f"{name} {e.value * 1e3:.0f} +- {e.error * 1e3:.0f} ms" for name, e in parts.items())
