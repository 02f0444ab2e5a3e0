"""What the page says of Figures 8 and 9."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from springtide.experiments.elasticutor import paper, reassignment
from springtide.experiments.elasticutor import paper_single as single
from springtide.experiments.elasticutor.paper_single import bytes_text
from springtide.experiments.elasticutor.reassignment import APPROACHES, STEP_S, WAYS
from springtide.experiments.elasticutor.wording import NOT_LOOKED_INTO, thousands, unexplained
from springtide.experiments.elasticutor.world import ELASTIC, RESOURCE_CENTRIC, TIDE
from springtide.experiments.study import Claim, Experiment, Finding, PageTable, Picture, Section

_NEGLIGIBLE_S = STEP_S


def sections(findings: Sequence[Finding]) -> list[Section]:
    of = {figure: [f for f in findings if f.run.parameters["figure"] == figure] for figure in ("8", "9a", "9b")}
    return [_figure_8(of["8"]), _figure_9(of["9a"], of["9b"])]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """Shards that were reassigned in one way, over all runs of an approach."""

    shards: float  # per shuffle
    synchronisation_s: float
    migration_s: float

    @property
    def total_s(self) -> float:
        return self.synchronisation_s + self.migration_s


def _ways(findings: Sequence[Finding]) -> dict[str, _Way]:
    found = {}
    for way in WAYS:
        seen = [finding.found["ways"][way] for finding in findings]
        shards = sum(one["shards"] for one in seen)
        means = [
            sum(one["shards"] * one[what] for one in seen) / shards if shards else 0.0
            for what in ("synchronisation_s", "migration_s")
        ]
        found[way] = _Way(shards=shards / len(seen), synchronisation_s=means[0], migration_s=means[1])
    return found


def _average(findings: Sequence[Finding], what: str) -> float:
    return float(np.mean([finding.found[what] for finding in findings]))


def _figure_8(findings: Sequence[Finding]) -> Section:
    by_approach = {
        approach: [f for f in findings if f.run.parameters["approach"] == approach] for approach in (*APPROACHES, TIDE)
    }
    ways = {approach: _ways(found) for approach, found in by_approach.items()}
    rows = [
        (
            approach,
            way,
            f"{of.shards:.0f}",
            *(_ms(value, of.shards) for value in (of.synchronisation_s, of.migration_s, of.total_s)),
        )
        for approach, both in ways.items()
        for way, of in both.items()
    ]
    whole = [
        (
            approach,
            f"{_average(found, 'standstill_s'):,.2f} s",
            thousands(_average(found, "rows_per_s")),
        )
        for approach, found in by_approach.items()
    ]
    return Section(
        title="Figure 8: the time of a shard reassignment",
        text=_TEXT_8,
        tables=(
            PageTable(
                columns=("approach", "way", "shards a shuffle", "synchronisation", "migration", "reassignment"),
                rows=tuple(rows),
                caption="Mean per shard, of all reassignments from one key shuffle to the next.",
            ),
            PageTable(
                columns=("approach", "standstill of all shards together", "thousand rows/s"),
                rows=tuple(whole),
                caption="From one key shuffle to the next, 30 s.",
            ),
        ),
        pictures=(
            Picture(
                name="reassignment-breakdown",
                shows="Synchronisation and migration of a reassigned shard, by approach",
                draw=lambda path: _draw_8(ways, path),
            ),
        ),
        claims=_claims_8(ways, by_approach),
    )


_TEXT_8 = f"""
The text has no times for Figure 8 but "around 2 ms" for the elastic synchronisation.

The reassignments are those of Figure 7's runs, from the first key shuffle to the second. Each is then done once more in
steps of {STEP_S * 1e3:g} ms, with the same shards, nodes and links, to see how long every shard stands still: once with
empty state, which is the synchronisation, and once with {bytes_text(paper.STATE_BYTES_PER_SHARD)} of state, which is what
the migration adds.

What a synchronisation takes is put in, not found: 2 ms for elastic executors, and for resource-centric 0.2 s and
{single.PER_UPSTREAM_S * 1e3:.0f} ms for each of {single.UPSTREAM} upstream executors; this spans the paper's "2-3 orders of
magnitude". What is found is which shards move, how many at once, and how they wait for one another, because a link carries
one state at a time. Not modelled: the time in which rows that wait at the old replica are worked off (here they go along
with the shard), and what it costs to serialise state.

A move that `tide` asks for is carried out as an elastic one, because Springtide changes routes without asking the operators
before (on Spark, between two micro-batches). What differs is which shards it moves: it gives an operator two replicas for
each core, so that the cores of a node share their work, and moves shards only if a replica is saturated while cores are
idle.
"""


def _ms(value_s: float, shards: float) -> str:
    return f"{value_s * 1e3:.2f} ms" if shards else "-"


def _claims_8(ways: Mapping[str, Mapping[str, _Way]], by_approach: Mapping[str, Sequence[Finding]]) -> tuple[Claim, ...]:
    elastic, centric = ways[ELASTIC]["inter-node"], ways[RESOURCE_CENTRIC]["inter-node"]
    synchronisation_gap_s = centric.synchronisation_s - elastic.synchronisation_s
    migration_gap_s = centric.migration_s - elastic.migration_s
    stood = {approach: _average(found, "standstill_s") for approach, found in by_approach.items()}
    rows_per_s = {approach: _average(found, "rows_per_s") for approach, found in by_approach.items()}
    moved = {approach: both["inter-node"].shards for approach, both in ways.items()}
    longer = {
        "ten times as long": centric.total_s > 10 * elastic.total_s,
        "mainly by its synchronisation": synchronisation_gap_s > migration_gap_s,
    }
    ours = {"less standstill": stood[TIDE] <= stood[ELASTIC], "no less throughput": rows_per_s[TIDE] >= rows_per_s[ELASTIC]}
    return (
        Claim(
            says="A reassignment takes much longer in resource-centric, mainly by its synchronisation",
            paper="no times in the text",
            here=f"inter-node {elastic.total_s * 1e3:.1f} ms elastic, {centric.total_s * 1e3:.0f} ms resource-centric, "
            f"of which {centric.synchronisation_s / max(centric.total_s, STEP_S):.0%} synchronisation",
            holds=all(longer.values()),
            why=unexplained(longer),
        ),
        Claim(
            says="Elastic takes less time for the migration too, but that is minor beside the synchronisation",
            paper="no times in the text",
            here=f"migration {elastic.migration_s * 1e3:.2f} ms elastic, {centric.migration_s * 1e3:.2f} ms resource-centric",
            holds=0 < migration_gap_s < 0.1 * synchronisation_gap_s,
            why=_why_migration_takes_longer(moved) if moved[ELASTIC] > moved[RESOURCE_CENTRIC] else NOT_LOOKED_INTO,
        ),
        Claim(
            says="tide's shards stand still for less time in all than those of elastic executors, at no less throughput",
            paper="-",
            here=f"{stood[TIDE]:.2f} s against {stood[ELASTIC]:.2f} s in the 30 s after a shuffle; "
            f"{thousands(rows_per_s[TIDE])} against {thousands(rows_per_s[ELASTIC])} thousand rows/s",
            holds=all(ours.values()),
            why=unexplained(ours),
            ours=True,
        ),
    )


def _why_migration_takes_longer(moved: Mapping[str, float]) -> str:
    return (
        "a state takes the same time on a link in both, so what differs is how many wait for the same link: after a shuffle "
        f"elastic executors moved {moved[ELASTIC]:.0f} shards between nodes, where cores had changed hands, and "
        f"resource-centric {moved[RESOURCE_CENTRIC]:.0f}"
    )


def _draw_8(ways: Mapping[str, Mapping[str, _Way]], path: Path) -> None:
    from springtide.experiments.drawing import Bars, draw  # noqa: PLC0415 - matplotlib is slow

    shown = [(approach, way, of) for approach, both in ways.items() for way, of in both.items() if of.shards]
    groups = [f"{approach}\n{way}" for approach, way, _ in shown]
    panels = [
        Bars(
            title="Reassignment of a shard (mean)",
            y_label="ms",
            groups=groups,
            series=[
                ("synchronisation", [of.synchronisation_s * 1e3 for _, _, of in shown]),
                ("migration", [of.migration_s * 1e3 for _, _, of in shown]),
            ],
            log_y=True,
        ),
        Bars(
            title="Shards reassigned after a key shuffle",
            y_label="shards",
            groups=list(ways),
            series=[(way, [both[way].shards for both in ways.values()]) for way in WAYS],
        ),
    ]
    draw(panels, path)


def _figure_9(by_upstream: Sequence[Finding], by_size: Sequence[Finding]) -> Section:
    synchronisation = {
        approach: {
            f.run.parameters["upstream"]: f.found["synchronisation_s"]
            for f in by_upstream
            if f.run.parameters["approach"] == approach
        }
        for approach in APPROACHES
    }
    migration = {
        (approach, way): {
            f.run.parameters["state_bytes"]: f.found["migration_s"]
            for f in by_size
            if (f.run.parameters["approach"], f.run.parameters["way"]) == (approach, way)
        }
        for approach in APPROACHES
        for way in WAYS
    }
    counts, sizes = list(synchronisation[ELASTIC]), list(migration[ELASTIC, WAYS[0]])
    return Section(
        title="Figure 9: upstream executors and the size of state",
        text=_TEXT_9,
        tables=(
            PageTable(
                columns=("synchronisation, by upstream executors", *(f"{n}" for n in counts)),
                rows=tuple((approach, *(f"{of[n] * 1e3:.1f} ms" for n in counts)) for approach, of in synchronisation.items()),
            ),
            PageTable(
                columns=("migration, by state of the shard", *(bytes_text(size) for size in sizes)),
                rows=tuple(
                    (f"{approach}, {way}", *(f"{of[size] * 1e3:.2f} ms" for size in sizes))
                    for (approach, way), of in migration.items()
                ),
            ),
        ),
        pictures=(
            Picture(
                name="reassignment-scaling",
                shows="Synchronisation by upstream executors, and migration by state size",
                draw=lambda path: _draw_9(synchronisation, migration, path),
            ),
        ),
        claims=_claims_9(synchronisation, migration),
    )


_TEXT_9 = f"""
One shard moves, alone. The text does not name the points of the axes; here there are up to as many upstream executors as
the cluster has cores, and 32 KB to 32 MB of state with {single.UPSTREAM} upstream executors. Times are exact to half a step
of {STEP_S * 1e3:g} ms. A transfer takes the state over {paper.BANDWIDTH_BYTES_PER_S / 1e6:.0f} MB/s, whoever asked for it.
There is no row for `tide`: a move that it asks for takes what an elastic one takes.
"""


def _claims_9(
    synchronisation: Mapping[str, Mapping[int, float]], migration: Mapping[tuple[str, str], Mapping[int, float]]
) -> tuple[Claim, ...]:
    elastic, centric = synchronisation[ELASTIC], synchronisation[RESOURCE_CENTRIC]
    few, many = min(elastic), max(elastic)
    ratio = {n: centric[n] / elastic[n] for n in elastic}
    small, large = min(migration[ELASTIC, WAYS[1]]), max(migration[ELASTIC, WAYS[1]])
    intra_s = max(time_s for (_, way), of in migration.items() if way == WAYS[0] for time_s in of.values())
    across = {approach: migration[approach, WAYS[1]] for approach in APPROACHES}
    return (
        Claim(
            says="The elastic synchronisation takes about 2 ms, however many upstream executors there are",
            paper="about 2 ms",
            here=f"{min(elastic.values()) * 1e3:.1f} to {max(elastic.values()) * 1e3:.1f} ms (put in)",
            holds=max(elastic.values()) - min(elastic.values()) <= STEP_S and abs(elastic[few] - 0.002) <= STEP_S,
            why=NOT_LOOKED_INTO,
        ),
        Claim(
            says="The resource-centric one takes 2-3 orders of magnitude longer, and grows with the upstream executors",
            paper="100 to 1,000 times",
            here=f"{ratio[few]:.0f} times with {few}, {ratio[many]:.0f} times with {many} (put in)",
            holds=all(50 <= times <= 2000 for times in ratio.values()) and ratio[many] > ratio[few],
            why=NOT_LOOKED_INTO,
        ),
        Claim(
            says="The migration within a node is negligible in both",
            paper="negligible",
            here=f"at most {intra_s * 1e3:.2f} ms",
            holds=intra_s <= _NEGLIGIBLE_S,
            why=NOT_LOOKED_INTO,
        ),
        Claim(
            says=f"The migration between nodes grows much as the state reaches {bytes_text(large)}, and dominates then",
            paper="no times in the text",
            here=f"{across[ELASTIC][small] * 1e3:.2f} ms with {bytes_text(small)}, {across[ELASTIC][large] * 1e3:.0f} ms with "
            f"{bytes_text(large)}, beside {elastic[few] * 1e3:.1f} ms of synchronisation",
            holds=across[ELASTIC][large] > 10 * across[ELASTIC][small] and across[ELASTIC][large] > elastic[few],
            why=NOT_LOOKED_INTO,
        ),
        Claim(
            says="With the same state, elastic migrates slightly faster than resource-centric",
            paper="slightly",
            here=f"{across[ELASTIC][large] * 1e3:.1f} ms and {across[RESOURCE_CENTRIC][large] * 1e3:.1f} ms with "
            f"{bytes_text(large)}",
            holds=across[ELASTIC][large] < across[RESOURCE_CENTRIC][large] - STEP_S,
            why="a single transfer takes the state over the link's bandwidth in the simulator, whichever approach asks for it; "
            "it knows no agreement between executors during the transfer",
        ),
    )


def _draw_9(
    synchronisation: Mapping[str, Mapping[int, float]],
    migration: Mapping[tuple[str, str], Mapping[int, float]],
    path: Path,
) -> None:
    from springtide.experiments.drawing import Line, Lines, draw  # noqa: PLC0415 - matplotlib is slow

    panels = [
        Lines(
            title="Synchronisation (9a)",
            x_label="upstream executors",
            y_label="ms",
            lines=[
                Line(name=approach, x=list(of), y=[1e3 * value for value in of.values()])
                for approach, of in synchronisation.items()
            ],
            log_x=True,
            log_y=True,
        ),
        Lines(
            title="State migration (9b)",
            x_label="state of the shard, MB",
            y_label="ms",
            lines=[
                Line(name=f"{approach}, {way}", x=[size / single.MB for size in of], y=[1e3 * value for value in of.values()])
                for (approach, way), of in migration.items()
            ],
        ),
    ]
    draw(panels, path)


EXPERIMENT = Experiment(name="reassignment", runs=reassignment.runs, run=reassignment.run, sections=sections)
