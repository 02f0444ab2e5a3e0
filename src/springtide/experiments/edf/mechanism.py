"""The same policies with changes that stop nothing, as Springtide carries them out."""

from __future__ import annotations

from springtide.experiments.edf.cases import CAUTIOUS, COMPARED, WITHOUT_STOPS
from springtide.experiments.edf.figure_4 import COLUMNS, row
from springtide.experiments.edf.policies import ACCEPT_ALL, TIDE
from springtide.experiments.edf.results import Results, percent
from springtide.experiments.study import Claim, PageTable, Section


def section(results: Results) -> Section:
    stopped = {name: results.of(name) for name in COMPARED}
    free = {name: results.of(name, **WITHOUT_STOPS) for name in COMPARED}
    rows = [row(f"{name}; stops", figures) for name, figures in stopped.items()]
    rows += [row(f"{name}; no stops", figures) for name, figures in free.items()]
    everything, cautious, tide = free[ACCEPT_ALL], free[CAUTIOUS], free[TIDE]
    return Section(
        title="Without stops",
        text="In the paper a reconfiguration stops the application, and the token bucket is there to ration stops. Springtide "
        "changes replicas between micro-batches, without a restart. Here the same policies run with changes that stop nothing; "
        "only a shard whose state goes to another host waits for it. Where nothing stops, the column `stops` has the decisions "
        "that changed replicas.",
        tables=(PageTable(columns=COLUMNS, rows=tuple(rows)),),
        claims=(
            Claim(
                says="Without stops, accepting everything has fewer late rows than the token bucket has with them",
                paper="",
                here=f"{percent(everything.late_share, 2)} of the rows beyond 200 ms, against "
                f"{percent(stopped[CAUTIOUS].late_share, 2)}",
                holds=everything.late_share < stopped[CAUTIOUS].late_share,
                why="without stops a row is late only when replicas are overloaded until the next decision; here that is more",
                ours=True,
            ),
            Claim(
                says="Without stops, `tide` has no more late rows than the paper's policy, everything accepted or not",
                paper="",
                here=f"{percent(tide.late_share, 3)} of the rows beyond 200 ms, against {percent(everything.late_share, 3)} "
                f"with everything accepted and {percent(cautious.late_share, 3)} with beta 0.75",
                holds=tide.late_share <= min(everything.late_share, cautious.late_share),
                why="without stops a row is late only when cores or replicas are overloaded until the next decision, or when a "
                "shard changes its host, which `tide` does more often",
                ours=True,
            ),
        ),
    )
