"""Which runs there are: every policy in the paper's setting, other betas, no stops, and other guesses at what is not told."""

from __future__ import annotations

from collections.abc import Mapping

from springtide.experiments.edf import paper
from springtide.experiments.edf.policies import ACCEPT_ALL, STATIC_FEW, STATIC_MANY, TIDE, under_tokens
from springtide.experiments.study import Values

OF_PAPER = (ACCEPT_ALL, *(under_tokens(beta) for beta in paper.BETAS))
CAUTIOUS = under_tokens(max(paper.BETAS))
EAGER = under_tokens(min(paper.BETAS))
FIGURE_4 = (*OF_PAPER, TIDE, STATIC_FEW, STATIC_MANY)

QUICK_BETAS = (0.25, 1.0)
FULL_BETAS = (0.0, 0.25, 0.375, 0.625, 0.875, 1.0)

COMPARED = (*OF_PAPER, TIDE)
WITHOUT_STOPS = {"restarts": False}
GUESSES: tuple[Mapping[str, float | str], ...] = (
    {"stop_s": 5.0},
    {"stop_s": 20.0},
    {"hop_s": 0.005},
    {"hop_s": 0.01},
    {"bottleneck_s": 0.003},
    {"bottleneck_s": 0.006},
    {"replay_s": 9000.0},
    {"first_day": "2015-01-01"},
)
QUICK_GUESSES = GUESSES[1:3]

QUICK_SEEDS, FULL_SEEDS = 1, 5
_FEW_SEEDS = 2  # for other betas and for changes that stop nothing; other guesses have one


def runs(quick: bool) -> list[tuple[Values, int]]:
    """The parameters and the seed of each run."""
    seeds, few = (QUICK_SEEDS, QUICK_SEEDS) if quick else (FULL_SEEDS, _FEW_SEEDS)
    found: list[tuple[Values, int]] = [({"policy": name}, seed) for name in FIGURE_4 for seed in range(seeds)]
    betas = QUICK_BETAS if quick else FULL_BETAS
    found += [({"policy": under_tokens(beta)}, seed) for beta in betas for seed in range(few)]
    found += [({"policy": name, **WITHOUT_STOPS}, seed) for name in COMPARED for seed in range(few)]
    guesses = QUICK_GUESSES if quick else GUESSES
    found += [({"policy": name, **guess}, 0) for guess in guesses for name in COMPARED]
    return found
