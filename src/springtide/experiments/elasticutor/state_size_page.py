"""What the page says of Figure 12: one executor by the size of state, as keys are shuffled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from springtide.experiments.elasticutor import paper
from springtide.experiments.elasticutor import paper_single as single
from springtide.experiments.elasticutor.curves import (
    AS_GOOD,
    EFFICIENT,
    Curve,
    cores_text,
    curves,
    efficiency,
    thousands_cell,
    told,
)
from springtide.experiments.elasticutor.paper_single import bytes_text
from springtide.experiments.elasticutor.single_executor import SHARDS, SHUFFLES_PER_MINUTE
from springtide.experiments.elasticutor.wording import NOT_LOOKED_INTO, unexplained
from springtide.experiments.elasticutor.world import ELASTIC, TIDE
from springtide.experiments.study import Claim, Finding, PageTable, Picture, Section, Values

_LONG_S = 30.0  # between two shuffles: then transfers are over before the next


@dataclass(frozen=True, slots=True)
class _Change:
    """A setting of Figure 12."""

    approach: str
    shuffles_per_minute: float
    state_bytes: int

    def __str__(self) -> str:
        return f"{self.shuffles_per_minute:g} shuffles a minute, {bytes_text(self.state_bytes)}"


def _change_of(parameters: Values) -> _Change:
    return _Change(parameters["approach"], parameters["shuffles_per_minute"], parameters["state_bytes"])


def section(findings: Sequence[Finding]) -> Section:
    throughput, moved = curves(findings, _change_of, "rows_per_s"), curves(findings, _change_of, "shards_moved")
    cores = sorted({count for curve in throughput.values() for count in curve})
    return Section(
        title="Figure 12: one executor, by the size of state and by shuffles",
        text=_TEXT_12,
        tables=(
            PageTable(
                columns=("workload", "approach", *map(cores_text, cores), "shards moved a minute"),
                rows=tuple(
                    (
                        str(of),
                        of.approach,
                        *(thousands_cell(curve.get(count)) for count in cores),
                        f"{moved[of][max(curve)]:,.0f}",
                    )
                    for of, curve in throughput.items()
                ),
                caption="Throughput, thousand rows/s; shards that went to another node, with the most cores",
            ),
        ),
        pictures=(
            Picture(
                name="single-executor-state",
                shows="Throughput of one executor by cores, for several sizes of state",
                draw=lambda path: _draw_12(throughput, path),
            ),
        ),
        claims=_claims_12(throughput),
    )


_TEXT_12 = f"""
The same executor with tuples of 1 ms and 128 bytes, and keys that are shuffled; measured over one minute. Of the sizes of
state the text names 32 MB only. A shard that moves to another node stands still until its state has come, a link carries
one state at a time, and once the queue before a core is full the whole executor waits. Transfers and rows do not slow each
other down. A pause shorter than half a step costs nothing, so the 2 ms of a synchronisation are not seen here (they are in
Figure 8). With {SHARDS:,} shards of 32 MB the executor has {SHARDS * 32 / 1024:.0f} GB of state, more than the memory of 8
nodes; the simulator counts memory but does not run out of it. What is said above of tide
with fewer cores than the whole cluster goes for this table too.
"""


def _claims_12(throughput: Mapping[_Change, Curve]) -> tuple[Claim, ...]:
    cluster = max(count for curve in throughput.values() for count in curve)
    used = {of: efficiency(curve, paper.SERVICE_TIME_S)[cluster] for of, curve in throughput.items()}
    large = {
        of.shuffles_per_minute: part
        for of, part in used.items()
        if of.approach == ELASTIC and of.state_bytes == single.LARGE_STATE_BYTES
    }
    few, many = min(large), max(large)
    return (
        *(_claim_by_size(used, shuffles, cluster) for shuffles in sorted(large)),
        Claim(
            says=f"With 32 MB of state it scales considerably less with {many} shuffles a minute than with {few}",
            paper="considerably",
            here=f"{large[many]:.0%} of what could be done, and {large[few]:.0%}",
            holds=large[many] < 0.8 * large[few],
            why=NOT_LOOKED_INTO,
        ),
        _tide_claim_12(used),
    )


def _claim_by_size(used: Mapping[_Change, float], shuffles: float, cluster: int) -> Claim:
    by_size = {
        of.state_bytes: part for of, part in used.items() if of.approach == ELASTIC and of.shuffles_per_minute == shuffles
    }
    large = by_size[single.LARGE_STATE_BYTES]
    smaller = [part for size, part in by_size.items() if size != single.LARGE_STATE_BYTES]
    pause_s = 60 / shuffles
    return Claim(
        says=f"With {shuffles:g} shuffles a minute an executor scales efficiently under all sizes of state but 32 MB",
        paper="all but 32 MB",
        here=f"of what {cluster} cores could do: " + told({bytes_text(size): p for size, p in by_size.items()}, "{:.0%}"),
        holds=min(smaller) >= EFFICIENT > large,
        why=_why_large_state_is_no_hindrance(1 - large / max(smaller), pause_s) if pause_s >= _LONG_S else NOT_LOOKED_INTO,
    )


def _why_large_state_is_no_hindrance(cost: float, pause_s: float) -> str:
    return (
        f"32 MB costs {cost:.0%} of the throughput: shares of shards are measured exactly, so one decision, a second after "
        f"each shuffle, is enough, and its transfers are over well before the next shuffle, {pause_s:g} s later"
    )


def _tide_claim_12(used: Mapping[_Change, float]) -> Claim:
    pairs = [(of, _Change(TIDE, of.shuffles_per_minute, of.state_bytes)) for of in used if of.approach == ELASTIC]
    gains = {of: used[tide] / used[of] for of, tide in pairs}
    small = [gain for of, gain in gains.items() if of.state_bytes != single.LARGE_STATE_BYTES]
    large = [gain for of, gain in gains.items() if of.state_bytes == single.LARGE_STATE_BYTES]
    parts = {"as good with small state": min(small) >= AS_GOOD, "better with 32 MB": min(large) > 1}
    return Claim(
        says="On the whole cluster tide is as good as the executor with small state (to within 2 %), better with 32 MB",
        paper="-",
        here=f"{min(small):.2f} to {max(small):.2f} times its throughput, and "
        f"{min(large):.2f} to {max(large):.2f} times with 32 MB",
        holds=all(parts.values()),
        why=unexplained(parts),
        ours=True,
    )


def _draw_12(throughput: Mapping[_Change, Curve], path: Path) -> None:
    from springtide.experiments.drawing import Line, Lines, draw  # noqa: PLC0415 - matplotlib is slow

    panels = [
        Lines(
            title=f"Throughput, {shuffles} shuffles a minute",
            x_label="cores",
            y_label="thousand rows/s",
            lines=[
                Line(
                    name=f"{of.approach}, {bytes_text(of.state_bytes)}",
                    x=list(curve),
                    y=[rows_per_s / 1e3 for rows_per_s in curve.values()],
                )
                for of, curve in throughput.items()
                if of.shuffles_per_minute == shuffles
            ],
        )
        for shuffles in SHUFFLES_PER_MINUTE
    ]
    draw(panels, path)
