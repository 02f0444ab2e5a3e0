"""Figures 6 and 7: throughput and latency as keys are shuffled 0 to 16 times a minute, and throughput from second to second."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from springtide.experiments.elasticutor import paper, world
from springtide.experiments.elasticutor.trial import Trial, run_trial
from springtide.experiments.elasticutor.wording import (
    NOT_LOOKED_INTO,
    matching,
    mean_of,
    milliseconds,
    thousands,
    unexplained,
    values_of,
)
from springtide.experiments.elasticutor.world import ALL_CORES, ELASTIC, MOST_CORES, RESOURCE_CENTRIC, STATIC, TIDE
from springtide.experiments.study import Claim, Experiment, Finding, PageTable, Picture, Section, Values

POLICIES = (STATIC, RESOURCE_CENTRIC, ELASTIC, TIDE)
_QUICK = (0, 2, 16)
_SEEN = 2  # shuffles a minute, in Figure 7
_RECOVERED = 0.9  # of what a policy gets through once it has adapted
AS_MUCH = 0.9999  # of another's throughput: less is not rounding any more


def runs(quick: bool) -> list[tuple[Values, int]]:
    return [
        ({"policy": policy, "shuffles_per_minute": omega, "load": load, "duration_s": 70.0 if quick else 130.0}, seed)
        for seed in range(1 if quick else 2)
        for policy in POLICIES
        for omega in (_QUICK if quick else paper.SHUFFLES_PER_MINUTE)
        for load in (ALL_CORES, MOST_CORES)
    ]


def run(parameters: Values, seed: int) -> tuple[Values, Values]:
    workload = world.Workload(shuffles_per_minute=parameters["shuffles_per_minute"])
    return run_trial(
        Trial(
            policy=str(parameters["policy"]),
            application=world.micro_benchmark(workload),
            pool=world.cluster(),
            executors=workload.executors,
            load=float(parameters["load"]),
            duration_s=float(parameters["duration_s"]),
            seed=seed,
        )
    )


class Results:
    """Throughput under full load and latency at 60 % of it, by policy and shuffles a minute."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = findings
        self.omegas = values_of(findings, "shuffles_per_minute")
        self.dynamic = [omega for omega in self.omegas if omega > 0]

    def throughput(self, policy: str, omega: float) -> float:
        return mean_of(self.findings, "throughput_per_s", policy=policy, shuffles_per_minute=omega, load=ALL_CORES)

    def latency_ms(self, policy: str, omega: float) -> float:
        return mean_of(self.findings, "latency_ms", policy=policy, shuffles_per_minute=omega, load=MOST_CORES)

    def ratios(self, policy: str, other: str) -> list[float]:
        """Throughput over that of another policy, under every number of shuffles above 0."""
        return [self.throughput(policy, omega) / self.throughput(other, omega) for omega in self.dynamic]

    def seconds(self, policy: str) -> list[float]:
        """The throughput of every second under full load, of the first run with two shuffles a minute."""
        first = matching(self.findings, policy=policy, shuffles_per_minute=_SEEN, load=ALL_CORES)[0]
        return [float(rate) for rate in first.found["processed_per_s"]]

    def transients_s(self, policy: str) -> list[float]:
        """For how many seconds after each shuffle a policy gets less through than 90 % of what it does at its best."""
        rates = self.seconds(policy)
        every = round(60 / _SEEN)
        enough = _RECOVERED * float(np.quantile(rates, 0.9))
        periods = [rates[at : at + every] for at in range(every, len(rates) - every // 3 + 1, every)]
        return [float(sum(rate < enough for rate in period)) for period in periods]


def sections(findings: Sequence[Finding]) -> list[Section]:
    results = Results(findings)
    return [_figure_6(results), _figure_7(results)]


def _figure_6(results: Results) -> Section:
    columns = ("shuffles a minute", *POLICIES)
    return Section(
        title="Figure 6: throughput and latency against shuffles a minute",
        text=(
            "Throughput is measured with a generator that makes 5 % more than all 256 cores could do (256,000 rows/s), latency "
            "with one that makes 60 % of what they could do. The paper's figure has no numbers in the text. One core does "
            f"1,000 rows/s, and the most frequent of 10,000 keys has {world.hottest_key_share():.2%} of all rows: whoever "
            f"keeps a key on one core lets through {thousands(world.hottest_key_limit_per_s())} thousand rows/s at most, "
            "however good the balance; whoever keeps a shard on one core, "
            f"{thousands(world.hottest_shard_limit_per_s())} thousand on average."
        ),
        tables=(
            PageTable(
                caption="Throughput, thousand rows/s",
                columns=columns,
                rows=tuple(
                    (f"{omega:g}", *(thousands(results.throughput(policy, omega)) for policy in POLICIES))
                    for omega in results.omegas
                ),
            ),
            PageTable(
                caption="Mean latency, ms",
                columns=columns,
                rows=tuple(
                    (f"{omega:g}", *(milliseconds(results.latency_ms(policy, omega)) for policy in POLICIES))
                    for omega in results.omegas
                ),
            ),
        ),
        pictures=(
            Picture(
                name="figure-6",
                shows="Figure 6: throughput and latency against shuffles a minute",
                draw=lambda path: _draw_figure_6(results, path),
            ),
        ),
        claims=(*_throughput_claims(results), *_latency_claims(results), *_tide_claims(results)),
    )


def _throughput_claims(results: Results) -> list[Claim]:
    over_static, over_rc = results.ratios(ELASTIC, STATIC), results.ratios(ELASTIC, RESOURCE_CENTRIC)
    most = max(results.omegas)
    calm, wild = results.throughput(ELASTIC, 0), results.throughput(ELASTIC, most)
    rc_calm, rc_wild = results.throughput(RESOURCE_CENTRIC, 0), results.throughput(RESOURCE_CENTRIC, most)
    static = [results.throughput(STATIC, omega) for omega in results.omegas]
    lowest = min(results.dynamic)
    rc_gain = results.throughput(RESOURCE_CENTRIC, lowest) / results.throughput(STATIC, lowest)
    ahead = {"more than static": min(over_static) > 1, "more than resource-centric": min(over_rc) > 1}
    marginal = {
        "resource-centric below static": rc_wild < results.throughput(STATIC, most),
        "three quarters left to elastic executors": wild / calm > 0.75,
        "twice what is left to resource-centric": wild / calm > 2 * rc_wild / rc_calm,
    }
    return [
        Claim(
            says="Elastic executors let more through than static and resource-centric whenever keys are shuffled",
            paper="in all cases (Figure 6)",
            here=f"{_range(over_static)} times static, {_range(over_rc)} times resource-centric",
            holds=all(ahead.values()),
            why=unexplained(ahead),
        ),
        Claim(
            says="Elastic executors have at least twice the throughput of static under shuffles",
            paper="2 times with the exchange (abstract, section 5.4); no number for this benchmark",
            here=f"{_range(over_static)} times",
            holds=min(over_static) >= 2,
            why=_why_not_twice(results),
        ),
        Claim(
            says="Resource-centric beats static considerably with few shuffles",
            paper="yes (Figure 6)",
            here=f"{rc_gain:.2f} times static with {lowest:g} a minute",
            holds=rc_gain >= 1.2,
            why=NOT_LOOKED_INTO,
        ),
        Claim(
            says=f"Resource-centric is useless at {most:g} shuffles a minute, elastic executors lose little",
            paper="yes (Figure 6)",
            here=f"of the throughput without shuffles, {rc_wild / rc_calm:.0%} and {wild / calm:.0%} are left",
            holds=all(marginal.values()),
            why=unexplained(marginal),
        ),
        Claim(
            says="Static is poor, but the same however often keys are shuffled",
            paper="relatively stable (Figure 6)",
            here=f"{thousands(min(static))} to {thousands(max(static))} thousand rows/s",
            holds=max(static) / min(static) < 1.25,
            why=NOT_LOOKED_INTO,
        ),
    ]


def _why_not_twice(results: Results) -> str:
    """What anybody could gain over static, if that is less than twice: the most that shards and keys let through."""
    static = [results.throughput(STATIC, omega) for omega in results.dynamic]
    by_key, by_shard = world.hottest_key_limit_per_s(), world.hottest_shard_limit_per_s()
    if by_key >= 2 * max(static):
        return NOT_LOOKED_INTO
    return (
        f"static lets {thousands(min(static))} to {thousands(max(static))} thousand rows/s through. With 10,000 keys of Zipf "
        f"0.5 and 1 ms a row, the most frequent key fills its core at {thousands(by_key)} thousand; on average over shuffles "
        f"its shard, which has other keys as well, does at {thousands(by_shard)} thousand. So {by_shard / max(static):.2f} to "
        f"{by_shard / min(static):.2f} times static is all there is to gain for whoever keeps a shard on one core, however "
        "fast it adapts; the rest goes to the second after each shuffle in which the new keys are measured"
    )


def _latency_claims(results: Results) -> list[Claim]:
    most = max(results.omegas)
    elastic, rc = results.latency_ms(ELASTIC, most), results.latency_ms(RESOURCE_CENTRIC, most)
    return [
        Claim(
            says=f"Elastic executors' latency is one to two orders of magnitude below resource-centric's at {most:g} shuffles",
            paper="1 to 2 orders (abstract: up to 2)",
            here=f"{milliseconds(elastic)} ms against {milliseconds(rc)} ms: {rc / elastic:.0f} times",
            holds=rc / elastic >= 10,
            why=NOT_LOOKED_INTO,
        ),
    ]


def _tide_claims(results: Results) -> list[Claim]:
    ratios = [results.throughput(TIDE, omega) / results.throughput(ELASTIC, omega) for omega in results.omegas]
    latency = [results.latency_ms(TIDE, omega) / results.latency_ms(ELASTIC, omega) for omega in results.dynamic]
    return [
        Claim(
            says="tide has a lower latency than elastic executors whenever keys are shuffled",
            paper="-",
            here=f"{_range(latency)} times",
            holds=max(latency) < 1,
            why=NOT_LOOKED_INTO,
            ours=True,
        ),
        Claim(
            says="tide lets more through than elastic executors, or as much",
            paper="-",
            here=f"{_range(ratios, digits=3)} times",
            holds=min(ratios) > AS_MUCH,
            why=NOT_LOOKED_INTO,
            ours=True,
        ),
    ]


def _figure_7(results: Results) -> Section:
    policies = (RESOURCE_CENTRIC, ELASTIC, TIDE)
    transients = {policy: results.transients_s(policy) for policy in policies}
    rows = tuple((policy, _told(paper.TRANSIENT_S.get(policy)), _range(transients[policy], digits=0)) for policy in policies)
    elastic, rc = (float(np.mean(transients[policy])) for policy in (ELASTIC, RESOURCE_CENTRIC))
    shorter = {"longer than elastic executors": rc > elastic, "3 s at most for those": elastic <= 3}
    return Section(
        title="Figure 7: throughput from second to second, two shuffles a minute",
        text=(
            "The generator makes 5 % more than all cores could do. A transient is the time after a shuffle in which less than "
            "90 % of what a policy gets through at its best is processed. Policies decide once a second, so they learn of a "
            "shuffle one second late; static does not adapt at all."
        ),
        tables=(PageTable(columns=("policy", "transient in the paper, s", "here, s"), rows=rows),),
        pictures=(
            Picture(
                name="figure-7",
                shows="Figure 7: throughput from second to second, two shuffles a minute",
                draw=lambda path: _draw_figure_7(results, path),
            ),
        ),
        claims=(
            Claim(
                says="After a shuffle resource-centric is held up for longer than elastic executors",
                paper="10 to 20 s against 1 to 3 s",
                here=f"{rc:.1f} s against {elastic:.1f} s",
                holds=all(shorter.values()),
                why=unexplained(shorter),
            ),
            Claim(
                says="Resource-centric's transient lasts 10 to 20 s",
                paper="10 to 20 s",
                here=f"{rc:.1f} s",
                holds=rc >= 10,
                why=(
                    "a repartitioning takes 3 s here, whatever the number of shards: the text says several seconds. "
                    "All shards move at once, and one repartitioning is enough, since shares are measured exactly"
                ),
            ),
        ),
    )


def _range(values: Sequence[float], digits: int = 2) -> str:
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return low if low == high else f"{low} to {high}"


def _told(transient_s: tuple[float, float] | None) -> str:
    return "-" if transient_s is None else _range(transient_s, digits=0)


def _draw_figure_6(results: Results, path: Path) -> None:
    from springtide.experiments.drawing import Line, Lines, draw  # noqa: PLC0415 - matplotlib is slow

    x = results.omegas
    throughput = [Line(name=p, x=x, y=[results.throughput(p, omega) / 1000 for omega in x]) for p in POLICIES]
    latency = [Line(name=p, x=x, y=[results.latency_ms(p, omega) for omega in x]) for p in POLICIES]
    draw(
        [
            Lines(title="throughput", x_label="shuffles a minute", y_label="thousand rows/s", lines=throughput),
            Lines(title="mean latency", x_label="shuffles a minute", y_label="ms", lines=latency, log_y=True),
        ],
        path,
    )


def _draw_figure_7(results: Results, path: Path) -> None:
    from springtide.experiments.drawing import Line, Lines, draw  # noqa: PLC0415 - matplotlib is slow

    lines = []
    for policy in POLICIES:
        rates = results.seconds(policy)
        lines.append(Line(name=policy, x=list(range(1, len(rates) + 1)), y=[rate / 1000 for rate in rates]))
    draw([Lines(title="throughput, shuffles every 30 s", x_label="s", y_label="thousand rows/s", lines=lines)], path)


EXPERIMENT = Experiment(name="shuffles", runs=runs, run=run, sections=sections)
