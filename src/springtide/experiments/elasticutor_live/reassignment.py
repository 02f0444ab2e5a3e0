"""Figure 8, live: what it costs to reassign one shard, within a host and to another, split into synchronisation and migration.

One shard after the other is moved, by a script, while rows come slowly enough that batches are short. Both parts are seen from
outside, in the times of batches: see `measuring.Reassigned`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from springtide.errors import SpringtideError
from springtide.experiments.elasticutor_live import world
from springtide.experiments.elasticutor_live.measuring import reassignments, usual
from springtide.experiments.elasticutor_live.trial import Ran, Trial, run_trial
from springtide.experiments.elasticutor_live.tuples import Tuples
from springtide.experiments.elasticutor_live.wording import exact
from springtide.experiments.elasticutor_live.world import ELASTIC, RESOURCE_CENTRIC
from springtide.experiments.study import Claim, Experiment, Finding, PageTable, Picture, Section, Values
from springtide.model.allocation import OperatorAllocation
from springtide.model.decision import Decision
from springtide.model.protocols import View

APPROACHES = (ELASTIC, RESOURCE_CENTRIC)
WAYS = ("intra-node", "inter-node")
_ROW_S = 0.001
_EVERY_S = {ELASTIC: 5.0, RESOURCE_CENTRIC: 10.0}
_COUNTED_S = {True: 32.0, False: 90.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardByShard:
    """A policy that moves one shard every so often: to the other slot of its host, then one to another host, and so on.

    Its memory is how many it has moved.
    """

    every_s: float

    def start(self) -> int:
        return 0

    def decide(self, view: View, memory: int) -> tuple[Decision, int]:
        now = view.requested
        if view.now_s < world.WARM_UP_S + memory * self.every_s:
            return Decision(planned=now, reason="the next shard is not due yet"), memory
        ((name, placed),) = now.operators.items()
        shard = memory // len(WAYS) % len(placed.shard_replicas)
        after = moved(placed, shard, between_hosts=memory % len(WAYS) == 1)
        return Decision(planned=now.with_operator(name, after), reason=f"move shard {shard}"), memory + 1


def moved(placed: OperatorAllocation, shard: int, *, between_hosts: bool) -> OperatorAllocation:
    """The shard with the next replica of its host, or of another host."""
    here, count = placed.shard_replicas[shard], placed.replicas
    others = [(here + step) % count for step in range(1, count)]
    fits = [r for r in others if (placed.replica_hosts[r] != placed.replica_hosts[here]) == between_hosts]
    routes = list(placed.shard_replicas)
    routes[shard] = fits[0]
    return OperatorAllocation(placed.replica_hosts, tuple(routes))


def runs(quick: bool) -> list[tuple[Values, int]]:
    return [({"approach": approach, "counted_s": _COUNTED_S[quick]}, 0) for approach in APPROACHES]


def run(parameters: Values, seed: int) -> tuple[Values, Values]:
    approach, counted_s = str(parameters["approach"]), float(parameters["counted_s"])
    ran = run_trial(
        Trial(
            name=f"reassignment-{approach}-{seed}",
            workload=Tuples(shuffles_per_minute=0, counted_s=counted_s, row_s=_ROW_S, seed=seed),
            policy=ShardByShard(every_s=_EVERY_S[approach]),
            counted_s=counted_s,
            repartitions=approach == RESOURCE_CENTRIC,
        )
    )
    return {"wrong": ran.checked.wrong, "data": ran.trial.workload.data}, _measured(ran)


def _measured(ran: Ran) -> Values:
    batches = [batch for batch in ran.record.batches if batch.ended_s >= ran.from_s]
    ways = dict(zip((False, True), WAYS, strict=True))
    changes = reassignments(batches)
    by_way = {name: [one for one in changes if one.between_hosts is way] for way, name in ways.items()}
    few = next((name for name, each in by_way.items() if not each), None)
    if few is not None:
        raise SpringtideError(f"no {few} reassignment was carried out in time: the machine is too busy for a live run")
    usually = usual(batches)
    return {
        **{f"{name} synchronisation_s": [_ms(one.synchronisation_s) for one in each] for name, each in by_way.items()},
        **{f"{name} migration_s": [_ms(one.migration_s) for one in each] for name, each in by_way.items()},
        "usual_batch_s": usually.taken_s,
        "usual_gap_s": usually.gap_s,
        "noise_s": usually.noise_s,
        "checked": str(ran.checked),
        "load_before": ran.load,
    }


def _ms(time_s: float) -> float:
    return round(time_s, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    synchronisation_s: float
    migration_s: float

    @property
    def total_s(self) -> float:
        return self.synchronisation_s + self.migration_s


class _Results:
    """Medians, by approach and way."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = findings
        self._by = {str(finding.run.parameters["approach"]): finding.measured for finding in findings}

    def parts(self, approach: str, way: str) -> _Parts:
        measured = self._by[approach]
        return _Parts(
            synchronisation_s=median(measured[f"{way} synchronisation_s"]), migration_s=median(measured[f"{way} migration_s"])
        )

    def count(self, approach: str, way: str) -> int:
        return len(self._by[approach][f"{way} migration_s"])

    def of(self, approach: str, what: str) -> float:
        return float(self._by[approach][what])


def sections(findings: Sequence[Finding]) -> list[Section]:
    results = _Results(findings)
    rows = tuple(
        (
            approach,
            way,
            str(results.count(approach, way)),
            f"{parts.synchronisation_s:.2f}",
            f"{parts.migration_s:.2f}",
            f"{results.of(approach, 'usual_batch_s'):.2f}",
            f"{results.of(approach, 'noise_s'):.2f}",
        )
        for approach in APPROACHES
        for way in WAYS
        for parts in (results.parts(approach, way),)
    )
    columns = ("approach", "way", "reassignments", "synchronisation, s", "migration, s", "a usual batch, s", "noise, s")
    return [
        Section(
            title="Figure 8: what reassigning a shard takes",
            text=(
                "One shard of 32 KB of state at a time, medians. Synchronisation is how much longer than usual no batch runs "
                "before the first one that follows the change; migration is how much longer that batch and the next take than "
                "usual. Noise is the median deviation of undisturbed batches from a usual one: what is smaller than that, or "
                "below 0, cannot be told from nothing. An elastic change waits for the batch that runs, but rows are processed "
                "meanwhile, so that this wait is no part of it. tide's changes are carried out as elastic executors' are."
            ),
            tables=(PageTable(columns=columns, rows=rows),),
            pictures=(
                Picture(
                    name="figure-8",
                    shows="Figure 8: what reassigning a shard takes",
                    draw=lambda path: _draw(results, path),
                ),
            ),
            claims=(*_claims(results), exact(findings)),
        )
    ]


def _claims(results: _Results) -> list[Claim]:
    elastic, rc = (results.parts(approach, WAYS[1]) for approach in APPROACHES)
    noise_s = max(results.of(approach, "noise_s") for approach in APPROACHES)
    gap = (rc.synchronisation_s - elastic.synchronisation_s, rc.migration_s - elastic.migration_s)
    times = rc.total_s / max(elastic.total_s, noise_s)
    return [
        Claim(
            says="A reassignment takes much longer in resource-centric, mainly by its synchronisation",
            paper="no times in the text",
            here=(
                f"inter-node {elastic.total_s:.2f} s elastic, {rc.total_s:.2f} s resource-centric, at least {times:.1f} times, "
                f"of it {rc.synchronisation_s:.2f} s synchronisation"
            ),
            holds=times >= 2 and gap[0] > gap[1],
            why=(
                "the first batch of a query that was started again loads the state of all shards, and starts what Spark starts "
                "with a query: that is counted as migration here"
            ),
        ),
        Claim(
            says="Elastic takes less time for the migration too",
            paper="no times in the text",
            here=f"{elastic.migration_s:.2f} s elastic, {rc.migration_s:.2f} s resource-centric, noise {noise_s:.2f} s",
            holds=gap[1] > 0,
            why="both load a shard's state from the same checkpoint, and the difference is within the noise",
        ),
        Claim(
            says="The migration within a host is negligible",
            paper="negligible (Figure 9)",
            here=f"{results.parts(ELASTIC, WAYS[0]).migration_s:.2f} s elastic, noise {noise_s:.2f} s",
            holds=results.parts(ELASTIC, WAYS[0]).migration_s <= 2 * noise_s,
            why="the other tasks of an executor have to open the shard's state as well, though it is on the same host",
        ),
    ]


def _draw(results: _Results, path: Path) -> None:
    from springtide.experiments.drawing import Bars, draw  # noqa: PLC0415 - matplotlib is slow

    groups = [f"{approach}, {way}" for approach in APPROACHES for way in WAYS]
    parts = [results.parts(approach, way) for approach in APPROACHES for way in WAYS]
    series = [
        ("synchronisation", [part.synchronisation_s for part in parts]),
        ("migration", [part.migration_s for part in parts]),
    ]
    draw([Bars(title="reassigning one shard", y_label="s", groups=groups, series=series)], path)


EXPERIMENT = Experiment(name="reassignment", runs=runs, run=run, sections=sections)
