"""What the page says of Figures 10 to 12: one executor by the cost and the size of a tuple; by the size of state, see there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from springtide.experiments.elasticutor import paper, single_executor, state_size_page, world
from springtide.experiments.elasticutor import paper_single as single
from springtide.experiments.elasticutor.curves import (
    AS_GOOD,
    EFFICIENT,
    Curve,
    cores_text,
    could_do_per_s,
    curves,
    efficiency,
    milliseconds_cell,
    most_efficient_cores,
    thousands_cell,
    told,
)
from springtide.experiments.elasticutor.paper_single import bytes_text
from springtide.experiments.elasticutor.single_executor import CORES, SHARDS
from springtide.experiments.elasticutor.wording import NOT_LOOKED_INTO, milliseconds, thousands, unexplained
from springtide.experiments.elasticutor.world import ELASTIC, TIDE
from springtide.experiments.study import Claim, Experiment, Finding, PageTable, Picture, Section, Values


@dataclass(frozen=True, slots=True)
class _Data:
    """A setting of Figures 10 and 11: what a tuple costs and weighs."""

    approach: str
    tuple_ms: float
    row_bytes: int

    def __str__(self) -> str:
        return f"{self.tuple_ms:g} ms, {bytes_text(self.row_bytes)}"

    @property
    def intensive(self) -> bool:
        """What the paper calls data-intensive."""
        return self.tuple_ms <= 0.1 or self.row_bytes >= 2048


def sections(findings: Sequence[Finding]) -> list[Section]:
    data = [f for f in findings if f.run.parameters["figure"] == "10" and f.run.parameters["shards"] == SHARDS]
    few_shards = [f for f in findings if f.run.parameters["figure"] == "10" and f.run.parameters["shards"] != SHARDS]
    change = [f for f in findings if f.run.parameters["figure"] == "12"]
    return [_figures_10_and_11(data, few_shards), state_size_page.section(change)]


def _data_of(parameters: Values) -> _Data:
    return _Data(parameters["approach"], parameters["tuple_ms"], parameters["row_bytes"])


def _figures_10_and_11(findings: Sequence[Finding], few_shards: Sequence[Finding]) -> Section:
    throughput, p99_s = curves(findings, _data_of, "rows_per_s"), curves(findings, _data_of, "p99_s")
    cores = sorted({count for curve in throughput.values() for count in curve})
    return Section(
        title="Figures 10 and 11: one executor, by the cost and the size of a tuple",
        text=_text_10(few_shards),
        tables=(
            PageTable(
                columns=("tuple", "approach", *map(cores_text, cores)),
                rows=tuple(
                    (str(of), of.approach, *(thousands_cell(curve.get(count)) for count in cores))
                    for of, curve in throughput.items()
                ),
                caption="Throughput, thousand rows/s",
            ),
            PageTable(
                columns=("tuple", "approach", *map(cores_text, cores)),
                rows=tuple(
                    (str(of), of.approach, *(milliseconds_cell(curve.get(count)) for count in cores))
                    for of, curve in p99_s.items()
                ),
                caption=f"p99 latency, ms, when the source makes {world.MOST_CORES:.0%} of what the cores could do",
            ),
        ),
        pictures=(
            Picture(
                name="single-executor-data",
                shows="Throughput and p99 latency of one executor by cores, for tuples of several costs and sizes",
                draw=lambda path: _draw_10(throughput, p99_s, path),
            ),
        ),
        claims=_claims_10(throughput, p99_s),
    )


def _text_10(few_shards: Sequence[Finding]) -> str:
    few = " ".join(
        f"With {f.run.parameters['shards']} of them, as one executor of 32 has, {f.run.parameters['cores']} cores do "
        f"{thousands(f.found['rows_per_s'])} thousand rows/s of 1 ms: there is about one shard for each core, and the hottest "
        "one holds all others back."
        for f in few_shards
    )
    return f"""
The calculator is one executor with all cores of a run: the first {paper.CORES_PER_NODE} on its own node, the others on
further nodes. Rows come in at its node, and those for other nodes leave by the same link, with
{paper.BANDWIDTH_BYTES_PER_S / 1e6:.0f} MB/s each way. Shards are balanced once a second (`elastic-executors` with one
executor, theta {single.THETA}); keys are not shuffled. The source makes {world.ALL_CORES - 1:.0%} more than all cores could
do, and is held back when a core has {world.QUEUE_S:g} s of work before it, or the link is full. For Figure 11 it makes
{world.MOST_CORES:.0%} of what they could do; up to {world.BUFFER_S:g} s of its rows wait for the executor, and this wait is
in the latency (p99 of each second, mean of the seconds, and the mean wait at the source).

The text is silent on the tuples between those it names (1 ms and 128 bytes by default; 0.1 and 0.01 ms, 2 and 8 KB), and on
the shards. Here the executor has all {SHARDS:,} that an operator has by default. {few} At {max(CORES)} cores the most
frequent key ({world.hottest_key_share():.2%} of all rows) fills its core at
{could_do_per_s(max(CORES), paper.SERVICE_TIME_S) / 1e3:.0f} thousand rows/s of 1 ms. What could be done is that, or what
the cores could do if it is less; an executor is called efficient from {EFFICIENT:.0%} of it on.

Not modelled: core time of the receiver, the emitter and the network's software; results that go back through the emitter
(the calculator is taken to be the last operator); the delay on the way from the entrance to a remote core; and queueing by
chance. Below saturation a row takes its service time, so latency is flat there by construction.

`tide` is a policy for operators and has no executors: rows go straight to the node of their shard, as Spark's tasks fetch
their own partitions. It runs with its defaults on the same nodes, all of which it has to keep, and begins with two replicas
for each core, as many as it wants.
"""


def _claims_10(throughput: Mapping[_Data, Curve], p99_s: Mapping[_Data, Curve]) -> tuple[Claim, ...]:
    elastic = {of: curve for of, curve in throughput.items() if of.approach == ELASTIC}
    default = elastic[_Data(ELASTIC, paper.SERVICE_TIME_S * 1e3, paper.ROW_BYTES)]
    cluster = max(default)
    used = efficiency(default, paper.SERVICE_TIME_S)[cluster]
    reach = {of: most_efficient_cores(curve, of.tuple_ms / 1e3) for of, curve in elastic.items()}
    extreme = {str(of): most for of, most in reach.items() if of.tuple_ms == 0.01 or of.row_bytes == 8192}
    growth = {of: p99_s[of][cluster] / p99_s[of][min(p99_s[of])] for of in elastic}
    calm = {str(of): times for of, times in growth.items() if not of.intensive}
    intensive = [times for of, times in growth.items() if of.intensive]
    at_last = {str(of): milliseconds(1e3 * p99_s[of][cluster]) for of in elastic if of.intensive}
    return (
        Claim(
            says="One executor scales out to the whole cluster with default tuples",
            paper="256 cores",
            here=f"{cluster} cores do {thousands(default[cluster])} thousand rows/s, {used:.0%} of what could be done",
            holds=used >= EFFICIENT,
            why=NOT_LOOKED_INTO,
        ),
        Claim(
            says="It cannot use more than 16 cores efficiently with tuples of 8 KB, or of 0.01 ms",
            paper="16 cores",
            here="; ".join(f"{name}: {most} cores" for name, most in extreme.items()),
            holds=all(most <= 16 for most in extreme.values()),
            why=NOT_LOOKED_INTO,
        ),
        Claim(
            says="In most settings latency does not grow noticeably as it scales out",
            paper="no figures in the text",
            here=f"p99 with {cluster} cores over p99 with one: " + told(calm, "{:.1f}"),
            holds=all(times < 2 for times in calm.values()),
            why=NOT_LOOKED_INTO,
        ),
        Claim(
            says="With tuples of 0.1 ms or less, or of 2 KB or more, latency grows greatly once the link is full",
            paper="no figures in the text",
            here=f"p99 with {cluster} cores, ms: "
            + told(at_last, "{}")
            + f"; {min(intensive):,.0f} times that of one core, or more",
            holds=min(intensive) >= 10,
            why=NOT_LOOKED_INTO,
        ),
        _tide_claim_10(throughput, p99_s, cluster),
        _tide_with_fewer_cores([(throughput[of], throughput[tide]) for of, tide in _with_tide(throughput) if not of.intensive]),
    )


def _with_tide(throughput: Mapping[_Data, Curve]) -> list[tuple[_Data, _Data]]:
    return [(of, _Data(TIDE, of.tuple_ms, of.row_bytes)) for of in throughput if of.approach == ELASTIC]


def _tide_with_fewer_cores(curves: Sequence[tuple[Curve, Curve]]) -> Claim:
    """Of an executor's curves and tide's beside them, what is below the whole cluster."""
    cluster = max(cores for elastic, _ in curves for cores in elastic)
    gains = [rows / elastic[cores] for elastic, tide in curves for cores, rows in tide.items() if cores != cluster]
    return Claim(
        says="tide is as good as the executor with fewer cores too (to within 2 %), where no link is full",
        paper="-",
        here=f"{min(gains):.2f} to {max(gains):.2f} times its throughput",
        holds=min(gains) >= AS_GOOD,
        why="here whole nodes are the limit, not one key. Tide's two replicas for each core share a node's cores by what they "
        "wanted a step before, and a source that is held back lets rows in every other step: the two swing against each other, "
        "and cores are idle meanwhile. This comes largely of the simulator's steps, not of what tide decides",
        ours=True,
    )


def _tide_claim_10(throughput: Mapping[_Data, Curve], p99_s: Mapping[_Data, Curve], cluster: int) -> Claim:
    pairs = _with_tide(throughput)
    gains = {of: throughput[tide][cluster] / throughput[of][cluster] for of, tide in pairs}
    later = [str(of) for of, tide in pairs if p99_s[tide][cluster] > p99_s[of][cluster] / AS_GOOD]
    calm = [gain for of, gain in gains.items() if not of.intensive]
    full = [gain for of, gain in gains.items() if of.intensive]
    parts = {
        "as good where no link is full": min(calm) >= AS_GOOD,
        "better where a link is full": min(full) > 1,
        "p99 no worse": not later,
    }
    return Claim(
        says="On the whole cluster tide is as good as the executor (to within 2 %), better where a link is full; p99 no worse",
        paper="-",
        here=f"with {cluster} cores {min(calm):.2f} to {max(calm):.2f} times its throughput, and {min(full):.1f} to "
        f"{max(full):.1f} times where its link is full; p99 worse with {', '.join(later) or 'none'}",
        holds=all(parts.values()),
        why=unexplained(parts),
        ours=True,
    )


def _draw_10(throughput: Mapping[_Data, Curve], p99_s: Mapping[_Data, Curve], path: Path) -> None:
    from springtide.experiments.drawing import Line, Lines, draw  # noqa: PLC0415 - matplotlib is slow

    def panel(title: str, y_label: str, curves: Mapping[_Data, Curve], factor: float) -> Lines:
        return Lines(
            title=title,
            x_label="cores",
            y_label=y_label,
            lines=[
                Line(name=str(of), x=list(curve), y=[factor * value for value in curve.values()])
                for of, curve in curves.items()
            ],
            log_x=True,
            log_y=True,
        )

    def chosen(curves: Mapping[_Data, Curve], by_cost: bool) -> dict[_Data, Curve]:
        return {
            of: curve
            for of, curve in curves.items()
            if of.approach == ELASTIC and (of.row_bytes == paper.ROW_BYTES if by_cost else of.tuple_ms == 1.0)
        }

    panels = [
        panel("Throughput, by tuple cost", "thousand rows/s", chosen(throughput, True), 1e-3),
        panel("Throughput, by tuple size", "thousand rows/s", chosen(throughput, False), 1e-3),
        panel("p99 latency, by tuple cost", "ms", chosen(p99_s, True), 1e3),
        panel("p99 latency, by tuple size", "ms", chosen(p99_s, False), 1e3),
    ]
    draw(panels, path)


EXPERIMENT = Experiment(name="single-executor", runs=single_executor.runs, run=single_executor.run, sections=sections)
