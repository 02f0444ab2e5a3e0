"""Tables XI and XII: the complex application, and DNS traffic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

from springtide.experiments.psps import paper
from springtide.experiments.psps.figures import over_time
from springtide.experiments.psps.runs import STRETCHES, run
from springtide.experiments.psps.telling import (
    Against,
    Results,
    Row,
    Side,
    degradation,
    higher,
    latency,
    lower,
    processed,
    saved,
    table,
    tide_claims,
)
from springtide.experiments.psps.world import PSPS, STORM, Setting, tide_instead
from springtide.experiments.study import Experiment, Finding, Section, Values
from springtide.model.application import Grouping

COMPLEX = Setting(application="complex", policy=PSPS)
COMPLEX_SHUFFLE = replace(COMPLEX, grouping=Grouping.SHUFFLE.value)
COMPLEX_FIXED = replace(COMPLEX_SHUFFLE, policy=STORM, replicas=5)
DNS = Setting(application="dns", policy=PSPS)
DNS_FIXED = replace(DNS, policy=STORM, replicas=1, grouping=Grouping.SHUFFLE.value)

CONFIGURATIONS = (COMPLEX, COMPLEX_SHUFFLE, COMPLEX_FIXED, tide_instead(COMPLEX), DNS, DNS_FIXED, tide_instead(DNS))


def _runs(quick: bool) -> list[tuple[Values, int]]:
    return [
        (asdict(replace(one, stretch=stretch)), stretch)
        for stretch in range(1 if quick else STRETCHES)
        for one in CONFIGURATIONS
    ]


def _sections(findings: Sequence[Finding]) -> list[Section]:
    of = {
        name: Results([finding for finding in findings if finding.run.parameters["application"] == name])
        for name in ("complex", "dns")
    }
    return [_complex(of["complex"]), _dns(of["dns"])]


def _complex(results: Results) -> Section:
    psps, fixed = Side("PSPS", COMPLEX, paper.COMPLEX_PSPS), Side("r = 5", COMPLEX_FIXED, paper.COMPLEX_STORM)
    return Section(
        title="Table XI: the complex application",
        text="Eight operators, of which one (`content`) needs five replicas at the peak and the others one. The paper's graph "
        "is in a figure only: tweets are parsed, classified by content and author, split into news (40 %) and opinions, and "
        "brought together again to be counted and stored. PSPS with shuffle grouping is added, because here one replica may "
        "become several at once, which is what load balancing is good at (see Table VII).",
        tables=(
            table(
                "Complex application",
                results,
                [
                    Row("PSPS", COMPLEX, paper.COMPLEX_PSPS),
                    Row("PSPS, shuffle", COMPLEX_SHUFFLE),
                    Row("r = 5", COMPLEX_FIXED, paper.COMPLEX_STORM),
                    Row("tide", tide_instead(COMPLEX)),
                ],
            ),
        ),
        claims=(
            higher(results, "Complex application: PSPS saves resources against r = 5", saved, (psps, fixed)),
            lower(results, "Complex application: r = 5 has a lower latency than PSPS", latency, (fixed, psps)),
            lower(
                results,
                "Complex application: load-balancing grouping cuts the latency",
                latency,
                (Side("load balancing", COMPLEX), Side("shuffle", COMPLEX_SHUFFLE)),
                why="it does where one replica of `content` becomes three, or two become five, and not where four become five: "
                "see Table VII",
            ),
            *tide_claims(results, "Table XI (complex application)", [Against("", COMPLEX, tide_instead(COMPLEX))]),
        ),
    )


def _dns(results: Results) -> Section:
    psps, fixed = Side("PSPS", DNS, paper.DNS_PSPS), Side("r = 1", DNS_FIXED, paper.DNS_STORM)
    return Section(
        title="Table XII, Figure 14: DNS traffic",
        text="The paper's data set of DNS traffic could not be had. Instead of it there are the rates of requests to a web "
        "server, by the second and replayed ten times as fast, not smoothed, as in the DNS application that Springtide ships. "
        f"{results.origin} "
        "r_over = 12, three replicas of each operator, is made for the busiest second.",
        tables=(
            table(
                "DNS traffic",
                results,
                [
                    Row("r = 1", DNS_FIXED, paper.DNS_STORM),
                    Row("PSPS", DNS, paper.DNS_PSPS),
                    Row("tide", tide_instead(DNS)),
                ],
            ),
        ),
        pictures=(
            over_time(
                "dns",
                "Replicas and throughput over time of PSPS, Storm without replication, and tide with DNS traffic",
                results,
                {"PSPS": DNS, "r = 1": DNS_FIXED, "tide": tide_instead(DNS)},
            ),
        ),
        claims=(
            higher(
                results,
                "DNS: PSPS processes more rows than r = 1",
                processed,
                (psps, fixed),
                why="on this stream r = 1 catches up after every burst, and without a time-out it loses nothing: all rows that "
                "are not processed are those still on their way at the end",
            ),
            lower(results, "DNS: PSPS has a lower latency than r = 1", latency, (psps, fixed)),
            lower(results, "DNS: PSPS degrades the throughput less than r = 1", degradation, (psps, fixed)),
            *tide_claims(results, "Table XII (DNS)", [Against("", DNS, tide_instead(DNS))]),
        ),
    )


APPLICATIONS = Experiment(name="applications", runs=_runs, run=run, sections=_sections)
