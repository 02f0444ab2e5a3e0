"""Figure 16, live: the exchange's transactor, with the executor-centric approach without its scheduler's optimisations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from springtide.experiments.elasticutor.wording import milliseconds
from springtide.experiments.elasticutor_live import world
from springtide.experiments.elasticutor_live.orders import STOCKS, Orders
from springtide.experiments.elasticutor_live.trial import BIN_S, Trial, run_trial, told
from springtide.experiments.elasticutor_live.wording import NOISE, Results, exact
from springtide.experiments.elasticutor_live.world import ELASTIC, NAIVE, RESOURCE_CENTRIC, STATIC, TIDE
from springtide.experiments.study import Claim, Experiment, Finding, PageTable, Picture, Section, Values

POLICIES = (STATIC, RESOURCE_CENTRIC, NAIVE, ELASTIC, TIDE)
_COUNTED_S = {True: 26.0, False: 50.0}
_ABOUT_TWICE = 1.8


def runs(quick: bool) -> list[tuple[Values, int]]:
    return [({"policy": policy, "stocks": STOCKS, "counted_s": _COUNTED_S[quick]}, 7) for policy in POLICIES]


def run(parameters: Values, seed: int) -> tuple[Values, Values]:
    policy, counted_s = str(parameters["policy"]), float(parameters["counted_s"])
    trial = Trial(
        name=f"transactor-{policy}-{seed}",
        workload=Orders(counted_s=counted_s, seed=seed),
        policy=world.made_policy(policy),
        counted_s=counted_s,
        repartitions=policy == RESOURCE_CENTRIC,
    )
    return told(run_trial(trial))


def sections(findings: Sequence[Finding]) -> list[Section]:
    results = Results(findings, "stocks")
    rows = tuple(
        (
            policy,
            results.text(policy, STOCKS, "throughput_per_s", "{:.0f}"),
            results.text(policy, STOCKS, "latency_ms", "{:.1f}", 1 / 1000),
            results.text(policy, STOCKS, "latency_p99_ms", "{:.1f}", 1 / 1000),
            results.text(policy, STOCKS, "changes", "{:.0f}"),
            results.text(policy, STOCKS, "shards_moved", "{:.0f}"),
        )
        for policy in POLICIES
    )
    columns = ("policy", "orders/s", "mean latency, s", "p99 latency, s", "changes", "shards to another host")
    return [
        Section(
            title="Figure 16: the exchange",
            text=(
                f"The transactor alone, which matches orders of {STOCKS} stocks ({findings[0].found['data']}); the eleven "
                "operators behind it would be eleven more queries on this machine. Orders come in the order of the tape at "
                f"{world.rows_per_s():g}/s, and each waits {world.ROW_S * 1000:g} ms. Stocks begin to trade one after the "
                "other, and that is what changes. Resource-centric's restarts are not among its shards to another host: it "
                "loads all shards anew each time. The paper's figure has no numbers in the text."
            ),
            tables=(PageTable(columns=columns, rows=rows),),
            pictures=(Picture(name="figure-16", shows="Figure 16: the exchange", draw=lambda path: _draw(results, path)),),
            claims=(*_claims(results), exact(findings)),
        )
    ]


def _claims(results: Results) -> list[Claim]:
    throughput = {policy: results.one(policy, STOCKS, "throughput_per_s") for policy in POLICIES}
    latency = {policy: results.one(policy, STOCKS, "latency_ms") for policy in POLICIES}
    worse = min(throughput[NAIVE], throughput[ELASTIC])
    slower = max(latency[NAIVE], latency[ELASTIC])
    limit = world.rows_per_s()
    found = []
    for other in (STATIC, RESOURCE_CENTRIC):
        found.append(
            Claim(
                says=f"Both executor-centric approaches about double the throughput of {other}",
                paper="about 2 times",
                here=f"{worse / throughput[other]:.2f} times",
                holds=worse / throughput[other] >= _ABOUT_TWICE,
                why=(
                    f"the generator makes {limit:g} orders/s, so that {limit / throughput[other]:.2f} times is the most there "
                    "could be; what micro-batches cost besides their orders is the same for all"
                ),
            )
        )
        found.append(
            Claim(
                says=f"Both have a latency one to two orders of magnitude below {other}'s",
                paper="1 to 2 orders",
                here=(
                    f"{milliseconds(slower)} against {milliseconds(latency[other])} ms: "
                    f"{latency[other] / slower:.1f} times lower"
                ),
                holds=latency[other] / slower >= 10,
                why=(
                    "an order leaves with its batch, seconds after it came, and waits no longer than the run lasts: two orders "
                    "of magnitude do not lie between the two"
                ),
            )
        )
    return [*found, *_comparisons(throughput, latency)]


def _comparisons(throughput: dict[str, float], latency: dict[str, float]) -> list[Claim]:
    optimised = throughput[ELASTIC] / throughput[NAIVE]
    ours, quicker = throughput[TIDE] / throughput[ELASTIC], latency[TIDE] / latency[ELASTIC]
    return [
        Claim(
            says="Elasticutor's scheduler is better than naive-EC, by little",
            paper="recognizable, but small",
            here=f"{optimised:.2f} times the throughput, {latency[ELASTIC] / latency[NAIVE]:.2f} times the latency",
            holds=1 <= optimised < 1.3,
            why=(
                f"with {world.HOSTS} hosts there is little to choose among, and single runs differ by about {NOISE:.0%}: the "
                "two cannot be told apart at this scale"
            ),
        ),
        Claim(
            says=f"tide lets as many orders through as Elasticutor, or more, to within the {NOISE:.0%} by which runs differ",
            paper="-",
            here=f"{ours:.2f} times the throughput, {quicker:.2f} times the latency",
            holds=ours >= 1 - NOISE,
            why="not looked into: these are single runs, and tide has no reason to be behind",
            ours=True,
        ),
    ]


def _draw(results: Results, path: Path) -> None:
    from springtide.experiments.drawing import Line, Lines, draw  # noqa: PLC0415 - matplotlib is slow

    panels = []
    for title, unit, what, factor in (
        ("throughput", "orders/s", "processed_per_s", 1.0),
        ("mean latency", "s", "latency_over_time_ms", 1 / 1000),
    ):
        lines = []
        for policy in POLICIES:
            y = [value * factor for value in results.lists(policy, STOCKS, what)]
            lines.append(Line(name=policy, x=[BIN_S * (n + 1) for n in range(len(y))], y=y))
        panels.append(Lines(title=title, x_label="s", y_label=unit, lines=lines))
    draw(panels, path)


EXPERIMENT = Experiment(name="exchange", runs=runs, run=run, sections=sections)
