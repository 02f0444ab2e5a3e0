"""Journals for the dashboard's tests: small ones that tell a story, and one of a week."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

import factories
from springtide.journal.from_model import decision_record, observation_record
from springtide.model.application import SLO, Grouping
from springtide.model.batch import BatchCosts, Estimate
from springtide.model.decision import Expectation, WhyNot

APP = factories.application(
    factories.operator("parse", grouping=Grouping.SHUFFLE),
    factories.operator("count", shards=4, max_replicas=4),
    name="clicks",
    slo=SLO(latency_s=5.0, percentile=0.9),
)
POOL = {"min_hosts": 1, "max_hosts": 4, "cores": 4, "start_s": 30.0, "release_s": 5.0}
INTERVAL_S = 60.0
COSTS = BatchCosts(
    driver_s=Estimate(value=0.3184, error=0.02918),
    batch_s=Estimate(value=0.08195, error=0.03681),
    task_s=Estimate(value=0.07545, error=0.07338),
    shard_s=Estimate(value=0.06848, error=0.02494),
    row_s=Estimate(value=0.00304, error=0.0005984),
    skew=Estimate(value=1.171, error=0.7115),
    batches=9.571,
)


def line(record: Any) -> bytes:
    return msgspec.json.encode(record) + b"\n"


def run_line(**fields: Any) -> bytes:
    """The first record; fields that newer journals have can be added."""
    return line({**msgspec.to_builtins(factories.run(APP)), **fields})


def placed(hosts: int = 1, replicas: int = 1) -> Any:
    return factories.allocation(APP, hosts=hosts, replicas={"count": replicas})


def observation_line(
    index: int,
    *,
    before: Any = None,
    with_shards: bool = True,
    costs: Mapping[str, BatchCosts] | None = None,
    busy_share: float | None = None,
    **fields: Any,
) -> bytes:
    """One interval; `before` is the allocation last written, which is then left out if it is the same.

    `costs` are those of the batches of some operators; `busy_share` is that of every operator and host, if it is not their
    utilisation.
    """
    seen = factories.observation(index=index, application=APP, allocation=fields.pop("allocation", placed()), **fields)
    busy = {} if busy_share is None else {"busy_share": busy_share}
    seen = replace(
        seen,
        operators={name: replace(o, costs=(costs or {}).get(name), **busy) for name, o in seen.operators.items()},
        hosts={name: replace(h, **busy) for name, h in seen.hosts.items()},
    )
    earlier = None if before is None else factories.observation(application=APP, allocation=before)
    return line(observation_record(seen, before=earlier, with_shards=with_shards))


def older(written: bytes) -> bytes:
    """An observation as versions wrote it that knew neither costs nor busy shares."""
    record = msgspec.json.decode(written)
    for load in (*record["operators"], *record["hosts"]):
        load.pop("costs", None)
        del load["busy_share"]
    return line(record)


def decision_line(
    index: int, planned: Any = None, *, forecast: Sequence[float] = (), why_not: Sequence[WhyNot] = (), reason: str = "all well"
) -> bytes:
    """A decision on interval `index`, with a forecast of the mean rate in the intervals to come."""
    seen = factories.observation(index=index, application=APP, allocation=placed())
    expected = Expectation(utilisation=0.5)
    made = factories.decision(planned or placed(), reason=reason, why_not=why_not, expected=expected)
    record = msgspec.to_builtins(decision_record(seen, made, []))
    if forecast:
        record["forecast"] = [
            {
                "source": "source",
                "model": "naive",
                "interval_s": INTERVAL_S,
                "mean": list(forecast),
                "low": [0.5 * rate for rate in forecast],
                "high": [2.0 * rate for rate in forecast],
            }
        ]
    return line(record)


def outcome_line(index: int, verdict: str = "as expected") -> bytes:
    return line(
        {
            "kind": "outcome",
            "time_s": (index + 1) * INTERVAL_S,
            "interval": index,
            "expected": {"utilisation": 0.5, "processed_rows_per_s": None, "latency_s": None},
            "measured": {"utilisation": 0.6, "processed_rows_per_s": 90.0, "latency_s": 1.0},
            "verdict": verdict,
        }
    )


def control_line(interval: int, do: str, **fields: Any) -> bytes:
    control = {"operator": None, "host": None, "replicas": None, "who": "dashboard", "said_at": "", "note": ""}
    return line({"kind": "control", "time_s": (interval + 1) * INTERVAL_S, "interval": interval, "do": do, **control, **fields})


def end_line(time_s: float = 180.0) -> bytes:
    return line({"kind": "end", "time_s": time_s, "summary": {"core_hours": 0.5}})


def small_run(**run_fields: Any) -> list[bytes]:
    """Three intervals: a second host comes with the third, on which shards of `count` then live."""
    return [
        run_line(**run_fields),
        observation_line(0, rows=6000.0),
        decision_line(0, placed(2, 2), forecast=[110.0, 120.0], reason="count is busy"),
        observation_line(1, before=placed(), rows=6600.0, requested=placed(2, 2)),
        outcome_line(1),
        decision_line(1, why_not=[WhyNot("bounds", "a third host", "two is the limit")], forecast=[130.0, 140.0, 150.0]),
        observation_line(2, allocation=placed(2, 2), before=placed(), rows=7200.0, reconfigurations={"hosts_added": 1}),
        outcome_line(2, "utilisation 0.6 instead of 0.5"),
        decision_line(2, placed(2, 2), forecast=[125.0, 120.0]),
    ]


def write(path: Path, lines: Sequence[bytes]) -> Path:
    path.write_bytes(b"".join(lines))
    return path


def append(path: Path, *lines: bytes) -> None:
    with path.open("ab") as file:
        file.write(b"".join(lines))


def write_week(path: Path, intervals: int = 20_000, shards: int = 32) -> Path:
    """A journal of a week at 30 s, of three operators with the load of every shard."""
    app = factories.application(
        *(factories.operator(name, shards=shards, max_replicas=16) for name in ("parse", "enrich", "count")), name="week"
    )
    with path.open("wb") as file:
        run = {**msgspec.to_builtins(factories.run(app)), "interval_s": 30.0, "pool": {**POOL, "max_hosts": 8}, "live": True}
        file.write(line(run))
        file.writelines(_week(app, intervals))
        file.write(end_line(intervals * 30.0))
    return path


def _week(app: Any, intervals: int) -> Iterator[bytes]:
    sizes = [factories.allocation(app, hosts=hosts, replicas=dict.fromkeys(["count"], hosts)) for hosts in range(1, 9)]
    seen = [factories.observation(application=app, allocation=size, rows=2990.7, interval_s=30.0) for size in sizes]
    templates = [msgspec.to_builtins(observation_record(one, with_shards=True)) for one in seen]
    decision = msgspec.json.decode(decision_line(0, forecast=[100.25] * 12))
    outcome = msgspec.json.decode(outcome_line(0))
    last = -1
    for i in range(intervals):
        wave = 0.5 - 0.5 * math.cos(i * 30.0 / 86400 * 2 * math.pi)
        size = min(7, int(8 * wave))
        now = {"interval": i, "start_s": i * 30.0, "end_s": (i + 1) * 30.0, "time_s": (i + 1) * 30.0}
        same = {} if size != last else {"observed": None, "requested": None}
        rows = {"sources": [{"name": "source", "rows": 2990.7 * (0.1 + wave)}]}
        yield line({**templates[size], **now, **same, **rows})
        if i:
            yield line({**outcome, "interval": i, "time_s": now["time_s"]})
        yield line({**decision, "interval": i, "time_s": now["time_s"]})
        last = size
