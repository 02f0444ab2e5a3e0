"""What the paper leaves open: the grace period, for which what was changed rests, varied for two of its techniques."""

from __future__ import annotations

from springtide.experiments.heinze.cases import DEFAULT_GRACE_S, LOCAL, SARSA, TIDE, Case, Results
from springtide.experiments.heinze.configurations import learning_why
from springtide.experiments.heinze.showing import Shown, table
from springtide.experiments.study import Claim, Section

GRACES_S = (15.0, 30.0, DEFAULT_GRACE_S, 120.0)
CASES = tuple(Case(technique=technique, grace_s=grace_s) for grace_s in GRACES_S for technique in (LOCAL, SARSA))


def sections(results: Results) -> list[Section]:
    """Nothing of the quick variant, which has one grace period only."""
    if not all(map(results.has, CASES)):
        return []
    shown = [Shown(names=(case.technique, f"{case.grace_s:.0f} s"), figures=results.mean(case)) for case in CASES]
    shown.append(Shown(names=(TIDE, ""), figures=results.mean(Case(technique=TIDE))))
    gains = {
        grace_s: results.mean(Case(technique=SARSA, grace_s=grace_s)).load_mean
        - results.mean(Case(technique=LOCAL, grace_s=grace_s)).load_mean
        for grace_s in GRACES_S
    }
    return [
        Section(
            title="The grace period, which the text does not give: default configuration, Day1",
            text=(
                "How long a host that gave a query away, or is new, is left alone: 60 s in all other sections. `tide` has no "
                "such time."
            ),
            tables=(table(("technique", "grace period"), shown),),
            claims=(
                Claim(
                    says="With any grace period reinforcement learning has higher utilisation than local thresholds",
                    paper="not varied",
                    here=", ".join(f"{gain:+.3f} with {grace_s:.0f} s" for grace_s, gain in gains.items()),
                    holds=min(gains.values()) > 0,
                    why=learning_why(results),
                ),
            ),
        )
    ]
