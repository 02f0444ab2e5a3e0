"""Figure 4: response time, replicas, reconfigurations and availability, with everything accepted and under the token bucket."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from springtide.experiments.edf import paper
from springtide.experiments.edf.cases import CAUTIOUS, EAGER, FIGURE_4, OF_PAPER
from springtide.experiments.edf.policies import ACCEPT_ALL, STATIC_FEW, STATIC_MANY, TIDE
from springtide.experiments.edf.results import Figures, Results, milliseconds, number, percent
from springtide.experiments.edf.world import STOP_S
from springtide.experiments.study import Claim, PageTable, Picture, Section

_LEVEL_POINTS = 0.02  # of availability: as near as a rebuilt setting can be asked to come
_FIRST_PEAK_OVER_S, _SECOND_PEAK_S = 2000.0, 3800.0  # the text's peak "at around 4000 s" begins to rise before

COLUMNS = (
    "policy",
    "availability",
    "stops",
    "reconfigurations",
    "replicas, mean (most)",
    "hosts, mean",
    "response time, median",
    "response time, p99",
    "rows beyond 200 ms",
)


def row(name: str, found: Figures) -> tuple[str, ...]:
    """A policy's row of a table with `COLUMNS`."""
    return (
        name,
        percent(found.availability),
        number(found.stops),
        number(found.reconfigurations),
        f"{found.mean_replicas:.1f} ({number(found.most_replicas)})",
        f"{found.mean_hosts:.1f}",
        milliseconds(found.response_p50_s),
        milliseconds(found.response_p99_s),
        percent(found.late_share, 2),
    )


def section(results: Results) -> Section:
    found = {name: results.of(name) for name in FIGURE_4}
    rows = (
        ("paper: accept all", percent(paper.ACCEPT_ALL_AVAILABILITY), *["not told"] * 2, "down to 8", "5", *["not told"] * 3),
        ("paper: beta 0.75", percent(paper.CAUTIOUS_AVAILABILITY), "not told", "5 named", "10", "5", *["not told"] * 3),
        *(row(name, figures) for name, figures in found.items()),
    )
    return Section(
        title="Figure 4: accepting everything, and the token bucket with beta 0.5 and 0.75",
        text=_text(found),
        tables=(PageTable(columns=COLUMNS, rows=rows),),
        pictures=(
            Picture(
                name="figure-4",
                shows="Input rate, replicas, and the response time under each policy, over the 75 minutes",
                draw=lambda path: _draw(found, path),
            ),
        ),
        claims=tuple(_claims(found)),
    )


def _text(found: dict[str, Figures]) -> str:
    everything, few, many = found[ACCEPT_ALL], found[STATIC_FEW], found[STATIC_MANY]
    runs = "Figures are of one run." if everything.seeds == 1 else f"Figures are means of {everything.seeds} runs."
    return f"""
Every change of a number of replicas stops the whole application for {STOP_S:g} s, whoever asks for it, `tide` too. Changes that
are granted in the same interval stop it once: that is a stop. A reconfiguration is one operator's change, which takes a token.
The response time in the picture is of the rows that leave within 30 s, and its 99th percentile is what the token bucket looks
at; percentiles in the table are of all rows. {runs} The rates are of the trace `{everything.trace}`.

* A stop brings the next token: the rows that have waited for it are beyond 200 ms, and so above any beta. Whoever asks next is
  granted a minute later. The bucket spaces scale-outs, and denies those scale-ins that are asked for while all is calm.
* `tide` has its defaults. For how long a change stops the application it learns from the first one. Hosts may be between 1 and
  5 for everybody.
* `tide` counts hosts, not replicas: replicas share the cores of the hosts in use, about two to a core. The paper's policy
  counts replicas and has no reason to use fewer hosts, so neither number is a fair measure of the other one. Part of what
  `tide` gains in the median is that on one or two hosts rows make fewer hops.
* The static rows change nothing. With one replica for each operator {percent(few.late_share)} of the rows are late. With the
  {number(many.most_replicas)} that the local policy asks for at 300 rows/s, from the start, it is
  {percent(many.late_share, 2)}: nobody who reconfigures comes near that, `tide` neither, as each stop makes rows late. What
  accepting everything gets for its stops is {everything.mean_replicas:.1f} replicas on average instead of
  {many.mean_replicas:.0f}.
"""


def _claims(found: dict[str, Figures]) -> list[Claim]:
    everything, eager, cautious = (found[name] for name in (ACCEPT_ALL, EAGER, CAUTIOUS))
    return [
        _levels(everything, cautious),
        _fewer_reconfigurations(everything, cautious),
        _less_downtime(everything, cautious),
        _not_much_fewer(everything, eager, cautious),
        _never_back_to_eight(everything, eager),
        _spikes(everything),
        _better_response(everything, cautious),
        _more_replicas(everything, cautious),
        _stable_between_peaks(cautious),
        _tide_ahead(cautious, found[TIDE]),
    ]


def _levels(everything: Figures, cautious: Figures) -> Claim:
    off = max(
        abs(everything.availability - paper.ACCEPT_ALL_AVAILABILITY), abs(cautious.availability - paper.CAUTIOUS_AVAILABILITY)
    )
    implied = (1 - paper.ACCEPT_ALL_AVAILABILITY) / (1 - paper.CAUTIOUS_AVAILABILITY) * paper.CAUTIOUS_RECONFIGURATIONS
    one_by_one = 1 - everything.reconfigurations * STOP_S / everything.duration_s
    return Claim(
        says="The application is available 93.7 % of the time when everything is accepted, and 98.3 % with beta 0.75 "
        "(here: within 2 points of both)",
        paper="93.7 %, 98.3 %",
        here=f"{percent(everything.availability)}, {percent(cautious.availability)}",
        holds=off <= _LEVEL_POINTS,
        why=f"with everything accepted there are {number(everything.reconfigurations)} reconfigurations, and the paper's "
        f"downtime is that of about {implied:.0f}; but here those of one interval share a stop, which makes "
        f"{number(everything.stops)} stops. One after the other they would leave {percent(one_by_one)}",
    )


def _fewer_reconfigurations(everything: Figures, cautious: Figures) -> Claim:
    return Claim(
        says="With beta 0.75 there are significantly fewer reconfigurations than with everything accepted",
        paper="no number for accepting all; five are named for beta 0.75",
        here=f"{number(everything.reconfigurations)} with everything accepted, {number(cautious.reconfigurations)} with 0.75",
        holds=cautious.reconfigurations < everything.reconfigurations,
        why="the response time is above 150 ms so often here that tokens do not run out",
    )


def _less_downtime(everything: Figures, cautious: Figures) -> Claim:
    return Claim(
        says="With beta 0.75 there is less downtime than with everything accepted",
        paper=f"{percent(1 - paper.CAUTIOUS_AVAILABILITY)} against {percent(1 - paper.ACCEPT_ALL_AVAILABILITY)}",
        here=f"{percent(cautious.downtime_share)} against {percent(everything.downtime_share)}",
        holds=cautious.downtime_share < everything.downtime_share,
        why="several changes are granted at once when everything is accepted, and stop the application only once",
    )


def _not_much_fewer(everything: Figures, eager: Figures, cautious: Figures) -> Claim:
    near = abs(everything.reconfigurations - eager.reconfigurations)
    far = abs(eager.reconfigurations - cautious.reconfigurations)
    return Claim(
        says="With beta 0.5 the reconfigurations are not significantly fewer than with everything accepted "
        "(here: nearer to accepting everything than to beta 0.75)",
        paper="no numbers",
        here=f"{number(everything.reconfigurations)} with everything accepted, {number(eager.reconfigurations)} with 0.5, "
        f"{number(cautious.reconfigurations)} with 0.75",
        holds=near < far,
        why=f"after its last stop the response time is above 100 ms in only {percent(_slow_share(eager), 0)} of the intervals, "
        "so few tokens come",
    )


def _never_back_to_eight(everything: Figures, eager: Figures) -> Claim:
    least = paper.FEWEST_REPLICAS
    return Claim(
        says="With beta 0.5 the replicas never come down to 8, as they do when everything is accepted",
        paper="8 when everything is accepted, more with 0.5",
        here=f"{everything.fewest_after_most} when everything is accepted, {eager.fewest_after_most} with 0.5",
        holds=everything.fewest_after_most <= least < eager.fewest_after_most,
        why="tokens come with every stop, as rows that waited for it are slow, and are then there for a scale-in",
    )


def _spikes(everything: Figures) -> Claim:
    late = [
        time_s
        for time_s, response_s in zip(everything.series["time_s"], everything.series["response_p99_s"], strict=True)
        if response_s > paper.R_MAX_S
    ]
    # A stop falls into the interval that begins with the decision; what has waited may need the one after as well.
    after_stop = [t for t in late if any(0 < t - stop_s <= 2 * paper.INTERVAL_S + 1e-6 for stop_s in everything.stops_s)]
    return Claim(
        says="With everything accepted the response time has many spikes, caused by rows that wait during reconfigurations",
        paper="shown in Figure 4a",
        here=f"{len(late)} intervals of 30 s are above 200 ms, {len(after_stop)} of them in the minute after a stop",
        holds=bool(late) and len(after_stop) > len(late) / 2,
        why="most of the late intervals are those in which the load rises faster than replicas are added",
    )


def _better_response(everything: Figures, cautious: Figures) -> Claim:
    return Claim(
        says="Less downtime is beneficial for the response time: beta 0.75 has fewer late rows than accepting everything",
        paper="no numbers",
        here=f"{percent(cautious.late_share, 2)} of the rows beyond 200 ms, against {percent(everything.late_share, 2)}",
        holds=cautious.late_share < everything.late_share,
        why="what is saved in stops is lost by waiting for a token while a replica is overloaded",
    )


def _more_replicas(everything: Figures, cautious: Figures) -> Claim:
    return Claim(
        says="Beta 0.75 may lead to higher cost, having more active replicas",
        paper="no numbers",
        here=f"{cautious.mean_replicas:.2f} replicas on average, against {everything.mean_replicas:.2f}",
        holds=cautious.mean_replicas > everything.mean_replicas,
        why="scale-outs are refused here as scale-ins are",
    )


def _stable_between_peaks(cautious: Figures) -> Claim:
    between = [s for s in cautious.stops_s if _FIRST_PEAK_OVER_S < s < _SECOND_PEAK_S]
    after = [s for s in cautious.stops_s if s >= _SECOND_PEAK_S]
    return Claim(
        says="With beta 0.75 the replicas grow to 10 in the initial part, up to 300 rows/s; then the application is stable "
        "until a new peak at around 4000 s, when a scale-in and a scale-out are accepted",
        paper="10 replicas; stable; two changes at around 4000 s",
        here=f"{number(cautious.most_replicas)} replicas; {len(between)} stops between the peaks; {len(after)} at the second",
        holds=round(cautious.most_replicas) == paper.CAUTIOUS_MOST_REPLICAS and not between and bool(after),
        why=_why_not_stable(cautious, between, after),
    )


def _why_not_stable(cautious: Figures, between: Sequence[float], after: Sequence[float]) -> str:
    parts = []
    if round(cautious.most_replicas) != paper.CAUTIOUS_MOST_REPLICAS:
        parts.append("each stop at the first peak brings the token for the next, until all operators have what they ask for")
    if between:
        parts.append(f"tokens come at {', '.join(f'{s:.0f} s' for s in between)} as well")
    if not after:
        rates = cautious.series["offered_per_s"]
        parts.append(
            f"those replicas carry the second peak of {max(rates[len(rates) // 2 :]):.0f} rows/s too, so nobody asks for more, "
            "and no token comes for a scale-in"
        )
    return "; ".join(parts)


def _slow_share(found: Figures) -> float:
    """In how many of the intervals after the last stop and its backlog the response time is above beta R_max, with beta 0.5."""
    last_s = max(found.stops_s, default=0.0) + 2 * paper.INTERVAL_S
    times_s, responses_s = found.series["time_s"], found.series["response_p99_s"]
    calm: list[float] = [response_s for time_s, response_s in zip(times_s, responses_s, strict=True) if time_s > last_s]
    return sum(response_s > min(paper.BETAS) * paper.R_MAX_S for response_s in calm) / max(1, len(calm))


def _tide_ahead(cautious: Figures, tide: Figures) -> Claim:
    return Claim(
        says="`tide`, with its defaults, is available for longer than beta 0.75, and no more rows are late",
        paper=f"{percent(paper.CAUTIOUS_AVAILABILITY)} with beta 0.75",
        here=_against(tide, cautious),
        holds=_ahead(tide, cautious),
        why=f"it stops the application {number(tide.stops)} times, and beta 0.75 does {number(cautious.stops)} times: what a "
        "stop costs it has to learn from one",
        ours=True,
    )


def _ahead(tide: Figures, cautious: Figures) -> bool:
    return tide.availability > cautious.availability and tide.late_share <= cautious.late_share


def _against(tide: Figures, other: Figures) -> str:
    return (
        f"{percent(tide.availability)} against {percent(other.availability)}; {percent(tide.late_share, 2)} of the rows beyond "
        f"200 ms against {percent(other.late_share, 2)}"
    )


def _draw(found: dict[str, Figures], path: Path) -> None:
    from springtide.experiments.drawing import Line, Lines, draw  # noqa: PLC0415 - matplotlib takes a second

    names = (*OF_PAPER, TIDE)
    series = {name: found[name].series for name in names}
    first = series[ACCEPT_ALL]
    panels = [
        Lines(
            title="input",
            x_label="time in s",
            y_label="rows/s",
            lines=[Line(name="input", x=first["time_s"], y=first["offered_per_s"])],
        ),
        Lines(
            title="replicas",
            x_label="time in s",
            y_label="replicas",
            lines=[Line(name=name, x=one["time_s"], y=one["replicas"], steps=True) for name, one in series.items()],
        ),
    ]
    panels += [
        Lines(
            title=f"{name}: response time",
            x_label="time in s",
            y_label="ms, of 30 s",
            log_y=True,
            lines=[
                Line(name="p99", x=one["time_s"], y=[1000 * s for s in one["response_p99_s"]]),
                Line(name="median", x=one["time_s"], y=[1000 * s for s in one["response_p50_s"]]),
                Line(name="R_max", x=[0.0, one["time_s"][-1]], y=[1000 * paper.R_MAX_S] * 2, of_paper=True),
            ],
        )
        for name, one in series.items()
    ]
    draw(panels, path)
