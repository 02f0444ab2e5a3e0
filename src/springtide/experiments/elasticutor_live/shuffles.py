"""Figures 6 and 7, live: throughput and latency as keys are shuffled, and throughput over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean

from springtide.experiments.elasticutor import paper
from springtide.experiments.elasticutor.wording import milliseconds
from springtide.experiments.elasticutor_live import world
from springtide.experiments.elasticutor_live.trial import BIN_S, Trial, run_trial, told
from springtide.experiments.elasticutor_live.tuples import ZIPF, Tuples
from springtide.experiments.elasticutor_live.wording import NOISE, Results, exact, span
from springtide.experiments.elasticutor_live.world import ELASTIC, RESOURCE_CENTRIC, STATIC, TIDE
from springtide.experiments.study import Claim, Experiment, Finding, PageTable, Picture, Section, Values

POLICIES = (STATIC, RESOURCE_CENTRIC, ELASTIC, TIDE)
_OMEGAS = (0, 2, 8, 16)
_QUICK = 4
_COUNTED_S = {True: 26.0, False: 50.0}


def runs(quick: bool) -> list[tuple[Values, int]]:
    """The quick variant knows the calm of those only of whom the paper says that shuffles cost them something."""
    calm = [(policy, 0) for policy in (RESOURCE_CENTRIC, ELASTIC)]
    chosen = [*calm, *((policy, _QUICK) for policy in POLICIES)] if quick else [(p, o) for o in _OMEGAS for p in POLICIES]
    return [({"policy": policy, "shuffles_per_minute": omega, "counted_s": _COUNTED_S[quick]}, 0) for policy, omega in chosen]


def run(parameters: Values, seed: int) -> tuple[Values, Values]:
    policy, omega, counted_s = str(parameters["policy"]), parameters["shuffles_per_minute"], parameters["counted_s"]
    trial = Trial(
        name=f"shuffles-{policy}-{omega:g}-{seed}",
        workload=Tuples(shuffles_per_minute=omega, counted_s=counted_s, seed=seed),
        policy=world.made_policy(policy),
        counted_s=counted_s,
        repartitions=policy == RESOURCE_CENTRIC,
    )
    return told(run_trial(trial))


def hottest_limit_per_s() -> float:
    """The most rows per second if the most frequent key stays in one slot and a batch cost nothing else."""
    share = 1.0 / math.fsum(math.pow(rank, -ZIPF) for rank in range(1, paper.KEYS + 1))
    return 1.0 / (share * world.ROW_S)


def sections(findings: Sequence[Finding]) -> list[Section]:
    results = Results(findings, "shuffles_per_minute")
    return [_figure_6(results), _figure_7(results)]


def _figure_6(results: Results) -> Section:
    omegas = results.values
    columns = ("shuffles a minute", *POLICIES)

    def table(caption: str, cell: Callable[[str, float], str]) -> PageTable:
        rows = tuple((f"{omega:g}", *(cell(policy, omega) for policy in POLICIES)) for omega in omegas)
        return PageTable(caption=caption, columns=columns, rows=rows)

    return Section(
        title="Figure 6: throughput and latency against shuffles a minute",
        text=(
            f"The generator makes {world.rows_per_s():g} rows/s, {world.LOAD:.0%} of what {world.SLOTS} slots could do; the "
            f"most frequent key alone limits everyone to {hottest_limit_per_s():.0f} rows/s, before what a batch costs. Rows "
            "that wait keep their keys, so that whoever is behind meets a shuffle later: shuffles are a little rarer for those "
            "who get less through. Latency is that of rows which left after the warm-up; of whoever does not keep up it grows "
            "as long as the run lasts, and so it tells that he does not, not by how much."
        ),
        tables=(
            table("Throughput, rows/s", lambda p, o: results.text(p, o, "throughput_per_s", "{:.0f}")),
            table("Mean latency, s", lambda p, o: results.text(p, o, "latency_ms", "{:.1f}", 1 / 1000)),
        ),
        pictures=(
            Picture(
                name="figure-6",
                shows="Figure 6: throughput and latency against shuffles a minute",
                draw=lambda path: _draw_figure_6(results, path),
            ),
        ),
        claims=(*_throughput_claims(results), _latency_claim(results), _tide_claim(results), exact(results.findings)),
    )


def _throughput_claims(results: Results) -> list[Claim]:
    dynamic = [omega for omega in results.values if omega > 0]
    most = max(dynamic)
    over_static = [results.ratio("throughput_per_s", ELASTIC, STATIC, omega) for omega in dynamic]
    over_rc = [results.ratio("throughput_per_s", ELASTIC, RESOURCE_CENTRIC, omega) for omega in dynamic]
    static = [results.one(STATIC, omega, "throughput_per_s") for omega in results.values if results.has(STATIC, omega)]
    ceiling = min(world.rows_per_s(), hottest_limit_per_s())
    left = {p: results.one(p, most, "throughput_per_s") / results.one(p, 0, "throughput_per_s") for p in _LEFT}
    below_static = results.ratio("throughput_per_s", RESOURCE_CENTRIC, STATIC, most)
    found = [
        Claim(
            says="Elastic executors let more through than static and resource-centric whenever keys are shuffled",
            paper="in all cases (Figure 6)",
            here=f"{span(over_static)} times static, {span(over_rc)} times resource-centric",
            holds=min(over_static) > 1 and min(over_rc) > 1,
            why=(
                "a policy sees a shuffle once a batch of seconds with the new keys is over, and decides every "
                f"{world.INTERVAL_S:g} s: with many shuffles a minute what it decides on is over when it takes effect; single "
                f"runs differ by about {NOISE:.0%}"
            ),
        ),
        Claim(
            says="Elastic executors have at least twice the throughput of static under shuffles",
            paper="2 times (abstract, and section 5.4)",
            here=f"{span(over_static)} times",
            holds=min(over_static) >= 2,
            why=(
                f"static lets {span(static, 0)} rows/s through, and nobody can get beyond {ceiling:.0f}: "
                f"{ceiling / min(static):.2f} times is the most there could be if a batch cost nothing but its rows"
            ),
        ),
        Claim(
            says=f"Resource-centric is useless at {most:g} shuffles a minute, elastic executors lose little",
            paper="yes, at 16 (Figure 6)",
            here=(
                f"of the throughput without shuffles, {left[RESOURCE_CENTRIC]:.0%} and {left[ELASTIC]:.0%} are left; "
                f"resource-centric has {below_static:.2f} times static's"
            ),
            holds=below_static < 1 and left[ELASTIC] > 0.75 and left[ELASTIC] > left[RESOURCE_CENTRIC],
            why=(
                "a restart takes seconds, but so does a batch here, and after a shuffle elastic executors too need one or two "
                "of them until they follow; the paper's react within a second"
            ),
        ),
    ]
    if len(static) > 1:
        found.append(
            Claim(
                says="Static is poor, but the same however often keys are shuffled",
                paper="relatively stable (Figure 6)",
                here=f"{span(static, 0)} rows/s",
                holds=max(static) / min(static) < 1.25,
                why="which slot has the most frequent keys is chance, and with few shuffles it is drawn a few times only",
            )
        )
    return found


_LEFT = (RESOURCE_CENTRIC, ELASTIC)


def _latency_claim(results: Results) -> Claim:
    most = max(results.values)
    elastic, rc = (results.one(policy, most, "latency_ms") for policy in (ELASTIC, RESOURCE_CENTRIC))
    counted_s = max(float(finding.run.parameters["counted_s"]) for finding in results.findings)
    return Claim(
        says=f"Elastic executors' latency is one to two orders of magnitude below resource-centric's at {most:g} shuffles",
        paper="1 to 2 orders, at 16 (abstract: up to 2)",
        here=f"{milliseconds(elastic)} ms against {milliseconds(rc)} ms: {rc / elastic:.1f} times",
        holds=rc / elastic >= 10,
        why=(
            f"a row is served once its batch of one to several seconds is over, and waits for no longer than the run of "
            f"{world.WARM_UP_S + counted_s:g} s lasts: {(world.WARM_UP_S + counted_s) * 1000 / elastic:.0f} times elastic "
            "executors' latency is more than anyone could have"
        ),
    )


def _tide_claim(results: Results) -> Claim:
    both = [omega for omega in results.values if omega > 0 and results.has(TIDE, omega) and results.has(ELASTIC, omega)]
    ratios = [results.ratio("throughput_per_s", TIDE, ELASTIC, omega) for omega in both]
    latency = [results.ratio("latency_ms", TIDE, ELASTIC, omega) for omega in both]
    return Claim(
        says=f"tide lets as much through as elastic executors, or more, to within the {NOISE:.0%} by which runs differ",
        paper="-",
        here=f"{span(ratios)} times, with {span(latency)} times the latency",
        holds=min(ratios) >= 1 - NOISE,
        why="not looked into: these are single runs, with one or two shuffles each, and tide has no reason to be behind",
        ours=True,
    )


def _figure_7(results: Results) -> Section:
    omega = min(value for value in results.values if value > 0)
    shown = (RESOURCE_CENTRIC, ELASTIC, TIDE)
    transients = {policy: results.lists(policy, omega, "transients_s") for policy in shown}
    rows = tuple(
        (policy, span(paper.TRANSIENT_S[policy], 0) if policy in paper.TRANSIENT_S else "-", span(transients[policy], 1))
        for policy in shown
    )
    means = {policy: fmean(times) if times else 0.0 for policy, times in transients.items()}
    return Section(
        title=f"Figure 7: throughput over time, {omega:g} shuffles a minute",
        text=(
            "A transient is the time, from one shuffle to the next, of batches that let less through than 90 % of what a "
            "policy does at its best. The paper has 2 shuffles a minute; the first batch with new keys is part of every "
            "transient."
        ),
        tables=(PageTable(columns=("policy", "transient in the paper, s", "here, s"), rows=rows),),
        pictures=(
            Picture(
                name="figure-7",
                shows=f"Figure 7: throughput over time, {omega:g} shuffles a minute",
                draw=lambda path: _draw_figure_7(results, omega, path),
            ),
        ),
        claims=(
            Claim(
                says="After a shuffle resource-centric is held up for longer than elastic executors",
                paper="10 to 20 s against 1 to 3 s",
                here=f"{means[RESOURCE_CENTRIC]:.1f} s against {means[ELASTIC]:.1f} s",
                holds=means[RESOURCE_CENTRIC] > means[ELASTIC],
                why=(
                    "each is held up by its own measure: resource-centric's best is lower where it stands still often, and "
                    "both need a batch to see the new keys; few shuffles lie within a run"
                ),
            ),
        ),
    )


def _draw_figure_6(results: Results, path: Path) -> None:
    from springtide.experiments.drawing import Bars, draw  # noqa: PLC0415 - matplotlib is slow

    groups = [f"{omega:g} shuffles" for omega in results.values]

    def bars(title: str, unit: str, what: str, factor: float) -> Bars:
        series = [(p, [results.shown(p, omega, what) * factor for omega in results.values]) for p in POLICIES]
        return Bars(title=title, y_label=unit, groups=groups, series=series)

    draw(
        [
            bars("throughput", "rows/s", "throughput_per_s", 1.0),
            bars("mean latency", "s", "latency_ms", 1 / 1000),
        ],
        path,
    )


def _draw_figure_7(results: Results, omega: float, path: Path) -> None:
    from springtide.experiments.drawing import Line, Lines, draw  # noqa: PLC0415 - matplotlib is slow

    panels = []
    for title, unit, what, factor in (
        ("throughput", "rows/s", "processed_per_s", 1.0),
        ("mean latency", "s", "latency_over_time_ms", 1 / 1000),
    ):
        lines = []
        for policy in POLICIES:
            y = [value * factor for value in results.lists(policy, omega, what)]
            lines.append(Line(name=policy, x=[BIN_S * (n + 1) for n in range(len(y))], y=y))
        panels.append(Lines(title=f"{title}, {omega:g} shuffles a minute", x_label="s", y_label=unit, lines=lines))
    draw(panels, path)


EXPERIMENT = Experiment(name="shuffles", runs=runs, run=run, sections=sections)
