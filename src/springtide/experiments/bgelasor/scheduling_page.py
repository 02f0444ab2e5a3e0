"""What the page says of Figures 4 and 5."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from springtide.experiments.bgelasor import world
from springtide.experiments.bgelasor.loads import MADE_UP
from springtide.experiments.bgelasor.scheduling import ALGORITHMS, OPTIMUM, RESERVED, TIDE, knowing, waiting
from springtide.experiments.study import Claim, Finding, PageTable, Picture, Section, Values
from springtide.plan.cost.model import transition_cost

Told = Mapping[str, Any]
Algorithms = Mapping[str, Told]

_MILLION = 1e6
_ALLOWED = 0.1
_LATENCIES = ("latency_mean_s", "late_share")
_DRAWN = (*ALGORITHMS, TIDE, OPTIMUM)
_THOUSANDS = world.CAPABILITY_ROWS_PER_S / 1000

_DEAR_TO_KEEP = (
    "at the paper's prices, to keep an instance through an epoch in which it is not needed costs 8,000 and saves 10,100 at "
    "most, so it pays only if four of five kept ones are needed again at once"
)
_NOT_LOOKED_INTO = "it does with the paper's recordings, so the reason has not been looked into"

_COST_TEXT = """
An epoch is an interval of the recording. Cost is the paper's (equation 5) at the paper's prices: 8,000 for an instance and
epoch, 5,000 for starting one, 5,000 for stopping one, 100 for each re-routing. The paper shows some epochs as curves without
figures; here all epochs of the test days count, and the pictures show 48 of them around the steepest rise.

* `optimum` is the timetable that costs least of all that are enough in every epoch, found exactly by dynamic programming over
  rates that it knows. Nothing that keeps the paper's constraint costs less; what lets rows wait can.
* "Rates known" is an algorithm that is told the rates to come. So the paper seems to have made Figure 4: from "the data
  prediction result", as if it were what came. The other rows are runs in which the forecast errs.
* "All rows wait" is the same without discarding. What waits is then added to the input that an algorithm plans for; where it is
  discarded, algorithms look at the input only, as in the paper.
* "CBA with headroom" is CBA that is shown rates {headroom} as high as they are: the least, in steps of 4 %,
  with which no more rows are late than with `tide`, to within 0.1 % of all rows.
"""

_CHANGES_TEXT = """
Changes are epochs after which the number of instances is another; instances changed are those started and stopped in all.
Latency is from a row's entry until it leaves. Late are rows that take longer than 5 s, and those discarded. The paper gives
no figures.
"""


def sections(findings: Sequence[Finding]) -> list[Section]:
    loads = {finding.run.parameters["load"]: finding.found for finding in findings}
    if not loads:
        return []
    cost = Section(
        title="Figure 4: cost",
        text="\n\n".join([_COST_TEXT.strip().format(headroom=_headroom(loads)), *_notes(loads)]),
        tables=tuple(_cost_table(load, found) for load, found in loads.items()),
        pictures=tuple(_cost_picture(load, found) for load, found in loads.items()),
        claims=_settled(claim for load, found in loads.items() for claim in _cost_claims(load, found["algorithms"])),
    )
    quality = Section(
        title="Figure 5: adaptation frequency and end-to-end latency",
        text=_CHANGES_TEXT.strip(),
        tables=tuple(_quality_table(load, found) for load, found in loads.items()),
        pictures=tuple(_quality_picture(load, found) for load, found in loads.items()),
        claims=_settled(claim for load, found in loads.items() for claim in _quality_claims(load, found["algorithms"])),
    )
    return [cost, quality]


def _settled(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    """Only what does not hold has a reason."""
    return tuple(replace(claim, why="") if claim.holds else claim for claim in claims)


def _headroom(loads: Mapping[str, Values]) -> str:
    return " and ".join(f"{found['headroom']:.2f} times ({load})" for load, found in loads.items())


def _notes(loads: Mapping[str, Values]) -> list[str]:
    made_up = sorted(load for load, found in loads.items() if found["origin"] == MADE_UP)
    notes = [f"**Made up, as the recordings are not at hand: {', '.join(made_up)}.**"] if made_up else []
    if all(found["forecast"] for found in loads.values()):
        notes.append(
            "SPEA and CBA have the forecast of a BiGRU which learnt from the 50 days before, at every distance, as in the "
            "paper. `tide` listens to the same network; at any distance at which it has erred more of late, a simple model "
            "that learns as it goes takes its place."
        )
    else:
        notes.append(
            "SPEA, CBA and `tide` have the same forecast, of simple models that learn as they go: JAX, which trains "
            "the paper's BiGRU, is not installed."
        )
    return notes


def _cost_table(load: str, found: Values) -> PageTable:
    algorithms: Algorithms = found["algorithms"]
    base, best = algorithms["SPEA"]["cost"], algorithms[OPTIMUM]["cost"]
    return PageTable(
        caption=f"{_about(load, found)}. Cost in millions",
        columns=("algorithm", "mean instances", "running", "changing", "cost", "beside SPEA", "beside optimum", "epochs short"),
        rows=tuple(
            (
                name,
                f"{told['mean_instances']:.2f}",
                f"{told['running_cost'] / _MILLION:.2f}",
                f"{told['changing_cost'] / _MILLION:.2f}",
                f"{told['cost'] / _MILLION:.2f}",
                f"{told['cost'] / base - 1:+.1%}",
                f"{told['cost'] / best - 1:+.1%}",
                f"{told['short_epochs'] / found['epochs']:.1%}",
            )
            for name, told in algorithms.items()
        ),
    )


def _quality_table(load: str, found: Values) -> PageTable:
    algorithms: Algorithms = found["algorithms"]
    return PageTable(
        caption=_about(load, found),
        columns=("algorithm", "changes", "instances changed", "latency mean", "median", "p90", "p99", "late", "discarded"),
        rows=tuple(
            (
                name,
                f"{told['changes']} ({told['changes'] / found['epochs']:.0%} of epochs)",
                f"{told['instances_changed']}",
                *(_seconds(told[f"latency_{what}_s"]) for what in ("mean", "p50", "p90", "p99")),
                f"{told['late_share']:.1%}",
                f"{told['discarded_share']:.1%}",
            )
            for name, told in algorithms.items()
        ),
    )


def _about(load: str, found: Values) -> str:
    days = found["epochs"] * found["interval_s"] / 86_400
    return (
        f"{load.capitalize()} load ({found['origin']}), {days:g} days in {found['epochs']:,} epochs "
        f"of {found['interval_s'] / 60:g} min; {found['mean_need']:.1f} instances are needed on average, "
        f"{found['most_needed']} at most"
    )


def _seconds(duration_s: float) -> str:
    if duration_s < 1.0:
        return f"{1000 * duration_s:.1f} ms"
    return f"{duration_s:.1f} s" if duration_s < 100 else f"{duration_s:,.0f} s"


def _cost_claims(load: str, algorithms: Algorithms) -> list[Claim]:
    srea, spea, cba = (algorithms[name] for name in ALGORITHMS)
    known = algorithms[knowing("CBA")]["cost"] / algorithms[knowing("SPEA")]["cost"] - 1
    return [
        Claim(
            says=f"{load} load: CBA costs less than SPEA, for the rates that they planned for",
            paper="less (no figure)",
            here=f"{known:+.2%}",
            holds=known < 0,
            why=_NOT_LOOKED_INTO,
        ),
        Claim(
            says=f"{load} load: CBA costs less than SPEA in a run, where forecasts err",
            paper="-",
            here=f"{cba['cost'] / spea['cost'] - 1:+.2%}",
            holds=cba["cost"] < spea["cost"],
            why=_why_dearer(spea, cba),
        ),
        Claim(
            says=f"{load} load: SPEA and CBA cost more than SREA, as they start instances before the input rises",
            paper="more in the first epochs (no figure)",
            here=f"{spea['cost'] / srea['cost'] - 1:+.1%} and {cba['cost'] / srea['cost'] - 1:+.1%}; running alone "
            f"{spea['running_cost'] / srea['running_cost'] - 1:+.1%} and {cba['running_cost'] / srea['running_cost'] - 1:+.1%}",
            holds=min(spea["cost"], cba["cost"]) > srea["cost"],
            why=_NOT_LOOKED_INTO,
        ),
        *_tide_claims(load, algorithms),
    ]


def _why_dearer(spea: Told, cba: Told) -> str:
    money = (
        f"it saves {_millions(spea, cba, 'changing_cost')} million of changing, and runs instances for "
        f"{_millions(cba, spea, 'running_cost')} million more"
    )
    if not cba.get("kept"):
        return f"{_DEAR_TO_KEEP}; {money}"
    share = cba["kept_and_needed"] / cba["kept"]
    return f"{_DEAR_TO_KEEP}. Forecasts err: of {cba['kept']} that CBA kept for an epoch {share:.0%} were, and {money}"


def _millions(more: Told, less: Told, what: str) -> str:
    return f"{(more[what] - less[what]) / _MILLION:.2f}"


def _tide_claims(load: str, algorithms: Algorithms) -> list[Claim]:
    tide, cba, reserved = algorithms[TIDE], algorithms["CBA"], algorithms[RESERVED]
    no_worse = tide["late_share"] <= cba["late_share"] and tide["latency_mean_s"] <= cba["latency_mean_s"]
    return [
        Claim(
            says=f"{load} load: tide costs less than CBA, at no worse latency",
            paper="-",
            here=f"{tide['cost'] / cba['cost'] - 1:+.1%}; {_late(tide)} against {_late(cba)}",
            holds=tide["cost"] < cba["cost"] and no_worse,
            why=f"CBA plans for the mean of the forecast and is short of instances in {cba['short_epochs']} epochs; tide wants "
            "90 % of rows out within 5 s, plans for what may come, not only for what is likely, and is short in "
            f"{tide['short_epochs']}",
            ours=True,
        ),
        Claim(
            says=f"{load} load: tide costs less than CBA with the headroom that it needs to be late no more often",
            paper="-",
            here=f"{tide['cost'] / reserved['cost'] - 1:+.1%}; {_late(tide)} against {_late(reserved)}",
            holds=tide["cost"] < reserved["cost"],
            why=_NOT_LOOKED_INTO,
            ours=True,
        ),
        Claim(
            says=f"{load} load: tide keeps an objective (90 % of rows within 5 s) that CBA breaks",
            paper="-",
            here=f"{_late(tide)} against {_late(cba)}",
            holds=tide["late_share"] <= _ALLOWED < cba["late_share"],
            why="both keep it" if cba["late_share"] <= _ALLOWED else "more comes than the forecast holds possible",
            ours=True,
        ),
    ]


def _late(told: Told) -> str:
    return f"{told['late_share']:.1%} late"


def _quality_claims(load: str, algorithms: Algorithms) -> list[Claim]:
    srea, spea, cba = (algorithms[name] for name in ALGORITHMS)
    return [
        Claim(
            says=f"{load} load: CBA changes the number of instances less than SPEA",
            paper="less (no figure)",
            here=f"{_changes(cba)} against {_changes(spea)}",
            holds=cba["changes"] < spea["changes"] and cba["instances_changed"] < spea["instances_changed"],
            why=_NOT_LOOKED_INTO,
        ),
        Claim(
            says=f"{load} load: SREA starts and stops more instances than SPEA and CBA",
            paper="more after epoch 10 (no figure)",
            here=f"{srea['instances_changed']} against {spea['instances_changed']} and {cba['instances_changed']}",
            holds=srea["instances_changed"] > max(spea["instances_changed"], cba["instances_changed"]),
            why=_NOT_LOOKED_INTO,
        ),
        _worst_claim(load, algorithms, list(ALGORITHMS), ""),
        _worst_claim(load, algorithms, [waiting(name) for name in ALGORITHMS], " where no row is discarded"),
        Claim(
            says=f"{load} load: CBA's latency is the best of the three",
            paper="best (no figure)",
            here=_latencies(algorithms, list(ALGORITHMS)),
            holds=all(cba[what] <= min(spea[what], srea[what]) for what in _LATENCIES),
            why=_NOT_LOOKED_INTO,
        ),
    ]


def _worst_claim(load: str, algorithms: Algorithms, names: Sequence[str], where: str) -> Claim:
    srea, *others = (algorithms[name] for name in names)
    return Claim(
        says=f"{load} load: SREA's latency is the worst{where}",
        paper="worst (no figure)",
        here=_latencies(algorithms, names),
        holds=all(srea[what] > max(other[what] for other in others) for what in _LATENCIES),
        why=_NOT_LOOKED_INTO,
    )


def _changes(told: Told) -> str:
    return f"{told['changes']} changes of {told['instances_changed']} instances"


def _latencies(algorithms: Algorithms, names: Sequence[str]) -> str:
    return "; ".join(
        f"{name.partition(',')[0]} mean {_seconds(algorithms[name]['latency_mean_s'])}, {_late(algorithms[name])}"
        for name in names
    )


def _cost_picture(load: str, found: Values) -> Picture:
    algorithms: Algorithms = found["algorithms"]
    epochs = list(range(found["first_shown"], found["first_shown"] + len(found["rows_per_s"])))

    def draw(path: Path) -> None:
        from springtide.experiments import drawing  # noqa: PLC0415 - matplotlib takes a second

        per_epoch = {name: _epoch_costs(algorithms[name]["shown_instances"]) for name in _DRAWN}
        needed = [rate / 1000 for rate in found["rows_per_s"]]
        capacities = [
            drawing.Line(name=name, x=epochs, y=[n * _THOUSANDS for n in algorithms[name]["shown_instances"]], steps=True)
            for name in _DRAWN
        ]
        relative = [
            [(mine - base) / 1000 for mine, base in zip(per_epoch[name], per_epoch["SPEA"], strict=True)] for name in _DRAWN
        ]
        spea = algorithms["SPEA"]["cost"]
        panels: list[drawing.Panel] = [
            drawing.Lines(
                title=f"(a) capacity, {load} load",
                x_label="epoch",
                y_label="thousand rows/s",
                lines=[*capacities, drawing.Line(name="input", x=epochs, y=needed, steps=True)],
            ),
            drawing.Lines(
                title="(b) cost of each epoch, beside SPEA's",
                x_label="epoch",
                y_label="thousand",
                lines=[
                    drawing.Line(name=name, x=epochs, y=costs, steps=True) for name, costs in zip(_DRAWN, relative, strict=True)
                ],
            ),
            drawing.Bars(
                title="(c) total cost, beside SPEA's",
                y_label="%",
                groups=_DRAWN,
                series=[("cost", [100 * (algorithms[name]["cost"] / spea - 1) for name in _DRAWN])],
            ),
        ]
        drawing.draw(panels, path, columns=3)

    return Picture(name=f"figure-4-{load}", shows=f"Capacity and cost of each algorithm, {load} load", draw=draw)


def _epoch_costs(instances: Sequence[int]) -> list[float]:
    """What each epoch costs, and the change before it."""
    prices = world.PRICES
    changes = [0.0, *(transition_cost(before, after, prices) for before, after in pairwise(instances))]
    return [prices.instance * n + change for n, change in zip(instances, changes, strict=True)]


def _quality_picture(load: str, found: Values) -> Picture:
    algorithms: Algorithms = found["algorithms"]
    epochs = list(range(found["first_shown"], found["first_shown"] + len(found["rows_per_s"])))

    def draw(path: Path) -> None:
        from springtide.experiments import drawing  # noqa: PLC0415 - matplotlib takes a second

        panels: list[drawing.Panel] = [
            drawing.Bars(
                title=f"(a) changes of the number of instances, {load} load",
                y_label="in 100 epochs",
                groups=_DRAWN,
                series=[("changes", [100 * algorithms[name]["changes"] / found["epochs"] for name in _DRAWN])],
            ),
            drawing.Lines(
                title="(b) latency that 90 % of an epoch's rows stay within",
                x_label="epoch",
                y_label="s",
                lines=[drawing.Line(name=name, x=epochs, y=algorithms[name]["shown_latency_s"]) for name in _DRAWN],
            ),
            drawing.Bars(
                title="rows later than 5 s or discarded, all epochs",
                y_label="%",
                groups=_DRAWN,
                series=[("late", [100 * algorithms[name]["late_share"] for name in _DRAWN])],
            ),
        ]
        drawing.draw(panels, path, columns=3)

    return Picture(name=f"figure-5-{load}", shows=f"Changes of the number of instances, and latency, {load} load", draw=draw)
