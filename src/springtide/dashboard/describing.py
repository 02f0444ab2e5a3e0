"""What a run is, for the API: application, policy, pool, status and what was said by hand."""

from __future__ import annotations

from typing import Any

import msgspec

from springtide.dashboard.controls import why_unavailable
from springtide.dashboard.parts import ApplicationPart, RunPart
from springtide.dashboard.watching import Watched


def listed(run: Watched) -> dict[str, Any]:
    """A run in the list of runs."""
    described = run.journal.index.run
    return {
        "id": run.number,
        "file": run.journal.path.name,
        "application": None if described is None else described.application.name,
        "policy": None if described is None else described.policy.name,
    }


def described(run: Watched, *, controls_allowed: bool) -> dict[str, Any]:
    """All that is known of a run, but for its intervals."""
    index, status = run.journal.index, run.status()
    why = why_unavailable(index, allowed=controls_allowed, failed=run.journal.failure is not None)
    return {
        "id": run.number,
        "file": run.journal.path.name,
        **_run(index.run),
        "intervals": len(index),
        "first_s": float(index.rows["start_s"][0]) if len(index) else None,
        "last_s": float(index.rows["time_s"][-1]) if len(index) else None,
        "status": status.state,
        "status_text": status.text,
        "steering": {
            "paused": index.steering.paused,
            "pins": dict(index.steering.pins),
            "draining": sorted(index.steering.draining),
        },
        "controls": {"available": not why, "why": why},
        "summary": None if index.end is None else index.end.summary,
    }


def _run(run: RunPart | None) -> dict[str, Any]:
    if run is None:
        return dict.fromkeys(("application", "policy", "interval_s", "pool", "created_at"))
    pool = run.pool
    return {
        "application": _application(run.application),
        "policy": msgspec.to_builtins(run.policy),
        "interval_s": run.interval_s,
        "pool": None if pool is None else {"min_hosts": pool.min_hosts, "max_hosts": pool.max_hosts, "cores": pool.cores},
        "created_at": run.created_at,
    }


def _application(application: ApplicationPart) -> dict[str, Any]:
    return {
        "name": application.name,
        "sources": [source.name for source in application.sources],
        "operators": [{"name": o.name, "shards": o.shards, "max_replicas": o.max_replicas} for o in application.operators],
        "edges": [msgspec.to_builtins(edge) for edge in application.edges],
        "slo": msgspec.to_builtins(application.slo),
    }
