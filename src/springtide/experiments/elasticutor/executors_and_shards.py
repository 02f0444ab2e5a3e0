"""Figure 13: the throughput of elastic executors by how many there are, and how many shards each of them has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from springtide.experiments.elasticutor import paper, shuffles, world
from springtide.experiments.elasticutor.trial import Trial, run_trial
from springtide.experiments.elasticutor.wording import NOT_LOOKED_INTO, matching, mean_of, thousands, unexplained, values_of
from springtide.experiments.elasticutor.world import ALL_CORES, ELASTIC, RESOURCE_CENTRIC, STATIC, TIDE
from springtide.experiments.study import Claim, Experiment, Finding, PageTable, Picture, Section, Values

DEFAULT, INTENSIVE, DYNAMIC = "default", "data-intensive", "highly dynamic"
WORKLOADS = {
    DEFAULT: (paper.ROW_BYTES, paper.DEFAULT_SHUFFLES),
    INTENSIVE: (paper.DATA_INTENSIVE_ROW_BYTES, paper.DEFAULT_SHUFFLES),
    DYNAMIC: (paper.ROW_BYTES, paper.FREQUENT_SHUFFLES),
}
OTHERS = (STATIC, RESOURCE_CENTRIC, TIDE)

# Shards per executor, by executors per operator. The text names 256 only; a single executor needs more of them, to have several
# for each of 256 cores.
_SHARDS = {1: (4, 16, 64, 256, 1024, 8192), 8: (4, 16, 64, 256, 1024), 32: (4, 16, 64, 256), 256: (4, 16, 64)}
_QUICK_SHARDS = {1: (256, 8192), 32: (16, 256), 256: (16,)}
_MUCH_GREATER = 1.5  # times: what counts as a much greater loss


def runs(quick: bool) -> list[tuple[Values, int]]:
    duration_s = 40.0 if quick else 70.0
    shards = _QUICK_SHARDS if quick else _SHARDS
    cells = [(ELASTIC, y, z) for y, zs in shards.items() for z in zs]
    cells += [(policy, paper.EXECUTORS, paper.SHARDS_PER_EXECUTOR) for policy in OTHERS]
    return [
        ({"policy": policy, "workload": workload, "executors": y, "shards": z, "duration_s": duration_s}, 0)
        for workload in WORKLOADS
        for policy, y, z in cells
    ]


def run(parameters: Values, seed: int) -> tuple[Values, Values]:
    row_bytes, shuffles = WORKLOADS[str(parameters["workload"])]
    workload = world.Workload(
        shuffles_per_minute=shuffles,
        row_bytes=row_bytes,
        executors=int(parameters["executors"]),
        shards_per_executor=int(parameters["shards"]),
    )
    return run_trial(
        Trial(
            policy=str(parameters["policy"]),
            application=world.micro_benchmark(workload),
            pool=world.cluster(),
            executors=workload.executors,
            load=ALL_CORES,
            duration_s=float(parameters["duration_s"]),
            seed=seed,
        )
    )


class _Results:
    """Throughput by workload, executors per operator and shards per executor."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = findings
        elastic = matching(findings, policy=ELASTIC)
        self.shards = [int(z) for z in values_of(elastic, "shards")]
        self.cells = {
            int(y): [int(z) for z in values_of(matching(elastic, executors=y), "shards")]
            for y in values_of(elastic, "executors")
        }

    def elastic(self, workload: str, executors: int, shards: int) -> float:
        cell = {"workload": workload, "executors": executors, "shards": shards}
        return mean_of(self.findings, "throughput_per_s", policy=ELASTIC, **cell)

    def other(self, policy: str, workload: str) -> float:
        return mean_of(self.findings, "throughput_per_s", policy=policy, workload=workload)

    def most(self, workload: str, executors: int) -> float:
        """With the most shards per executor."""
        return self.elastic(workload, executors, max(self.cells[executors]))

    def best(self, workload: str) -> float:
        return max(self.elastic(workload, y, z) for y, shards in self.cells.items() for z in shards)


def sections(findings: Sequence[Finding]) -> list[Section]:
    results = _Results(findings)
    return [
        Section(
            title="Figure 13: executors per operator and shards per executor",
            text=(
                "Throughput in thousand rows/s, with a generator that makes 5 % more than all cores could do. The "
                "default workload has "
                "rows of 128 B and two shuffles a minute; the data-intensive one rows of 8 KB; the highly dynamic one 16 "
                "shuffles a minute. Static, resource-centric and tide have 8,192 shards, as many as 32 executors with "
                "256 each. The paper's figure has no "
                "numbers in "
                "the text. An executor's rows all enter on one node here, as in the paper, and have to pass its link "
                "of 125 MB/s."
            ),
            tables=tuple(_table(results, workload) for workload in WORKLOADS),
            pictures=(
                Picture(
                    name="figure-13",
                    shows="Figure 13: throughput by executors per operator and shards per executor",
                    draw=lambda path: _draw(results, path),
                ),
            ),
            claims=tuple(_claims(results)),
        )
    ]


def _table(results: _Results, workload: str) -> PageTable:
    grid = tuple(
        (
            _executors(y),
            *(thousands(results.elastic(workload, y, z)) if z in results.cells[y] else "" for z in results.shards),
        )
        for y in results.cells
    )
    others = tuple(
        (
            policy,
            *(thousands(results.other(policy, workload)) if z == paper.SHARDS_PER_EXECUTOR else "" for z in results.shards),
        )
        for policy in OTHERS
    )
    return PageTable(
        caption=f"{workload.capitalize()} workload, thousand rows/s",
        columns=("elastic executors, and others", *(f"{z:,} shards each" for z in results.shards)),
        rows=(*grid, *others),
    )


def _claims(results: _Results) -> list[Claim]:
    each = paper.EXECUTORS
    few, many = min(results.cells[each]), max(results.cells[each])
    coarse, fine = results.elastic(DEFAULT, each, few), results.elastic(DEFAULT, each, many)
    one, one_intensive, one_dynamic = (results.most(workload, 1) for workload in (DEFAULT, INTENSIVE, DYNAMIC))
    normal, normal_intensive, normal_dynamic = (results.most(workload, each) for workload in (DEFAULT, INTENSIVE, DYNAMIC))
    rigid, static = results.most(DEFAULT, max(results.cells)), results.other(STATIC, DEFAULT)
    ahead = {workload: results.other(TIDE, workload) / results.best(workload) for workload in WORKLOADS}
    severely = {
        "less than half of it with one": one_intensive / one < 0.5,
        "most of it with 32": normal_intensive / normal > 0.85,
    }
    return [
        Claim(
            says="More shards per executor mean more throughput",
            paper="yes, with diminishing returns",
            here=f"{thousands(coarse)} with {few}, {thousands(fine)} thousand rows/s with {many}",
            holds=fine > coarse,
            why=NOT_LOOKED_INTO,
        ),
        Claim(
            says="With as many executors as cores, elastic executors are like static",
            paper="yes (256 executors)",
            here=f"{thousands(rigid)} against {thousands(static)} thousand rows/s",
            holds=abs(rigid / static - 1) < 0.15,
            why=NOT_LOOKED_INTO,
        ),
        Claim(
            says="A single executor loses much with rows of 8 KB, 32 do not",
            paper="drops severely; not much",
            here=f"{one_intensive / one:.0%} and {normal_intensive / normal:.0%} of the default workload's throughput",
            holds=all(severely.values()),
            why=unexplained(severely),
        ),
        Claim(
            says="Frequent shuffles cost a single executor more than they cost 32",
            paper="the reduction is much greater with 1 or 8 executors",
            here=f"{one_dynamic / one:.0%} and {normal_dynamic / normal:.0%} of the default workload's throughput",
            holds=1 - one_dynamic / one > _MUCH_GREATER * (1 - normal_dynamic / normal),
            why=(
                "a single executor with 8,192 shards balances over all cores at once, and a shard that it has to move "
                "to another node "
                "(32 KB) takes less than a millisecond on a link of 125 MB/s, all links at the same time: see Figure "
                "12 for larger state"
            ),
        ),
        Claim(
            says="tide lets more through than elastic executors with any number of executors and shards, or as much",
            paper="-",
            here=", ".join(f"{workload}: {ratio:.3f} times the best" for workload, ratio in ahead.items()),
            holds=min(ahead.values()) >= shuffles.AS_MUCH,
            why=NOT_LOOKED_INTO,
            ours=True,
        ),
    ]


def _executors(count: int) -> str:
    return f"{count} executor{'s' * (count > 1)}"


def _draw(results: _Results, path: Path) -> None:
    from springtide.experiments.drawing import Line, Lines, draw  # noqa: PLC0415 - matplotlib is slow

    panels = []
    for workload in WORKLOADS:
        ends = [min(results.shards), max(results.shards)]
        lines = [
            Line(name=_executors(y), x=shards, y=[results.elastic(workload, y, z) / 1000 for z in shards])
            for y, shards in results.cells.items()
        ]
        lines += [Line(name=policy, x=ends, y=[results.other(policy, workload) / 1000] * 2) for policy in OTHERS]
        title = f"{workload} workload"
        panels.append(Lines(title=title, x_label="shards per executor", y_label="thousand rows/s", lines=lines, log_x=True))
    draw(panels, path, columns=3)


EXPERIMENT = Experiment(name="executors-and-shards", runs=runs, run=run, sections=sections)
