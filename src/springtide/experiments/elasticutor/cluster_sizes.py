"""Table 3: the exchange's throughput, and what a decision takes, on 8, 16 and 32 nodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from springtide.experiments.elasticutor import paper, world
from springtide.experiments.elasticutor.trial import Trial, run_trial
from springtide.experiments.elasticutor.wording import NOT_LOOKED_INTO, mean_of, thousands, values_of
from springtide.experiments.elasticutor.world import ALL_CORES, ELASTIC, TIDE
from springtide.experiments.study import Claim, Experiment, Finding, PageTable, Picture, Section, Values

POLICIES = (ELASTIC, TIDE)


def runs(quick: bool) -> list[tuple[Values, int]]:
    return [
        ({"policy": policy, "nodes": nodes, "duration_s": 40.0 if quick else 130.0}, 0)
        for policy in POLICIES
        for nodes in paper.THROUGHPUT_PER_S
    ]


def run(parameters: Values, seed: int) -> tuple[Values, Values]:
    nodes = int(parameters["nodes"])
    return run_trial(
        Trial(
            policy=str(parameters["policy"]),
            application=world.exchange_application(paper.DEFAULT_SHUFFLES),
            pool=world.cluster(nodes),
            executors=world.exchange_executors(nodes),
            load=ALL_CORES,
            duration_s=float(parameters["duration_s"]),
            seed=seed,
        )
    )


def sections(findings: Sequence[Finding]) -> list[Section]:
    nodes = [int(n) for n in values_of(findings, "nodes")]

    def of(policy: str, what: str) -> dict[int, float]:
        return {n: mean_of(findings, what, policy=policy, nodes=n) for n in nodes}

    throughput = {policy: of(policy, "throughput_per_s") for policy in POLICIES}
    scheduling = {policy: of(policy, "scheduling_ms") for policy in POLICIES}
    rows = tuple(
        (
            f"{n}",
            thousands(paper.THROUGHPUT_PER_S[n]),
            *(thousands(throughput[policy][n]) for policy in POLICIES),
            f"{paper.SCHEDULING_MS[n]:g}",
            *(f"{scheduling[policy][n]:.0f}" for policy in POLICIES),
        )
        for n in nodes
    )
    columns = (
        "nodes",
        "throughput in the paper, thousand orders/s",
        *(f"{policy} here" for policy in POLICIES),
        "scheduling in the paper, ms",
        *(f"{policy} here, ms" for policy in POLICIES),
    )
    return [
        Section(
            title="Table 3: throughput and scheduling time by cluster size",
            text=(
                "The exchange under full load, two shuffles a minute. Service times were chosen so that 256 cores "
                "could do 300,000 orders/s, "
                "so the level of "
                "the throughput is chosen; how it grows is not. Executors per operator are half as many as nodes. "
                "Scheduling time is "
                "the wall-clock time of one decision in Python, on the machine that made this page: it differs "
                "between reruns."
            ),
            tables=(PageTable(columns=columns, rows=rows),),
            pictures=(
                Picture(
                    name="table-3",
                    shows="Table 3: throughput and scheduling time by cluster size",
                    draw=lambda path: _draw(throughput, scheduling, path),
                ),
            ),
            claims=tuple(_claims(nodes, throughput, scheduling[ELASTIC])),
        )
    ]


def _claims(nodes: Sequence[int], throughput: dict[str, dict[int, float]], scheduling_ms: dict[int, float]) -> list[Claim]:
    fewest, most = min(nodes), max(nodes)
    told = paper.THROUGHPUT_PER_S[most] / paper.THROUGHPUT_PER_S[fewest]
    grown = throughput[ELASTIC][most] / throughput[ELASTIC][fewest]
    slower = scheduling_ms[most] / scheduling_ms[fewest]
    ahead = [throughput[TIDE][n] / throughput[ELASTIC][n] for n in nodes]
    return [
        Claim(
            says=f"Throughput grows almost linearly from {fewest} to {most} nodes",
            paper=f"{told:.2f} times with {most // fewest} times the nodes",
            here=f"{grown:.2f} times",
            holds=grown >= 0.75 * most / fewest,
            why=NOT_LOOKED_INTO,
        ),
        Claim(
            says="Scheduling takes a few milliseconds and grows slightly with the nodes",
            paper=f"{paper.SCHEDULING_MS[fewest]:g} to {paper.SCHEDULING_MS[most]:g} ms",
            here=f"{scheduling_ms[fewest]:.0f} to {scheduling_ms[most]:.0f} ms",
            holds=scheduling_ms[most] < 10 and slower < 2,
            why=(
                f"it grows {slower:.1f} times, and is measured with all that a decision is here: reading "
                f"{world.EXCHANGE_SHARDS:,} shards "
                "of each of 12 operators, the queueing model, the assignment, and the new route of every shard, in Python; "
                "the paper's time is that of a new assignment, in Java"
            ),
        ),
        Claim(
            says="tide lets more through than Elasticutor on every cluster",
            paper="-",
            here=", ".join(f"{n} nodes: {ratio:.2f} times" for n, ratio in zip(nodes, ahead, strict=True)),
            holds=min(ahead) >= 1,
            why=NOT_LOOKED_INTO,
            ours=True,
        ),
    ]


def _draw(throughput: dict[str, dict[int, float]], scheduling: dict[str, dict[int, float]], path: Path) -> None:
    from springtide.experiments.drawing import Line, Lines, draw  # noqa: PLC0415 - matplotlib is slow

    def lines(of: dict[str, dict[int, float]], told: dict[int, float], unit: float) -> list[Line]:
        mine = [Line(name=policy, x=list(values), y=[v / unit for v in values.values()]) for policy, values in of.items()]
        paper_line = Line(name=f"{ELASTIC} (paper)", x=list(told), y=[v / unit for v in told.values()], of_paper=True)
        return [*mine, paper_line]

    draw(
        [
            Lines(
                title="throughput",
                x_label="nodes",
                y_label="thousand orders/s",
                lines=lines(throughput, paper.THROUGHPUT_PER_S, 1000),
            ),
            Lines(
                title="scheduling time",
                x_label="nodes",
                y_label="ms",
                lines=lines(scheduling, paper.SCHEDULING_MS, 1),
                log_y=True,
            ),
        ],
        path,
    )


EXPERIMENT = Experiment(name="cluster-sizes", runs=runs, run=run, sections=sections)
