"""Many decisions of one policy, timed one by one. Run as a module, it times the cases it is given on its standard input.

Every episode begins with all replicas there, and goes on with what the policy plans. Only `decide` is timed: the time of its
thread on the core, for it waits for nothing. It is a pure function, and what happens follows from the seed: so all decisions
are taken in several passes, and of each the fastest counts. This is about the program, not about the neighbours.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field
from statistics import fmean

import msgspec
import numpy as np

from springtide.benchmarks.policies.world import Drift, Size, World
from springtide.model.protocols import AnyPolicy
from springtide.plan.registry import make_policy

EPISODE = 50  # decisions; the first of them begins with more replicas than most policies keep
PASSES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One policy at one size; `drift` says how the load changes, `bar_ms` what 95 % of its decisions may take.

    The first `settling` decisions of an episode are taken and not timed.
    """

    name: str
    policy: str
    size: Size
    decisions: int
    drift: Drift = field(default_factory=Drift)
    settling: int = 0
    parameters: dict[str, str] = field(default_factory=dict)
    bar_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What the decisions of a case took; `changing` is the share of them that changed something.

    `hosts` and `replicas` are what there was on average when a decision was taken.
    """

    case: Case
    changing: float
    hosts: float
    replicas: float
    mean_ms: float
    median_ms: float
    p95_ms: float
    most_ms: float
    met: bool | None


@dataclass(frozen=True, slots=True)
class _Sample:
    """One decision, and what it was about."""

    took_s: float
    changed: bool
    hosts: int
    replicas: int


def run_case(case: Case) -> Result:
    """Take the decisions of one case in this process."""
    policy = make_policy(case.policy, case.parameters)
    _episode(World(case.size, case.drift, seed=0), policy, 2)  # what is done once and never again
    episodes = [min(EPISODE, case.decisions - begin) for begin in range(0, case.decisions, EPISODE)]
    passes = [
        [
            sample
            for seed, decisions in enumerate(episodes, start=1)
            for sample in _episode(World(case.size, case.drift, seed), policy, case.settling + decisions)[case.settling :]
        ]
        for _ in range(PASSES)
    ]
    samples = [min(same, key=lambda sample: sample.took_s) for same in zip(*passes, strict=True)]
    took_ms = [1000 * sample.took_s for sample in samples]
    median_ms, p95_ms = np.percentile(took_ms, [50, 95]).tolist()
    return Result(
        case=case,
        changing=fmean(sample.changed for sample in samples),
        hosts=fmean(sample.hosts for sample in samples),
        replicas=fmean(sample.replicas for sample in samples),
        mean_ms=fmean(took_ms),
        median_ms=median_ms,
        p95_ms=p95_ms,
        most_ms=max(took_ms),
        met=None if case.bar_ms is None else p95_ms <= case.bar_ms,
    )


def _episode(world: World, policy: AnyPolicy, decisions: int) -> list[_Sample]:
    found = []
    memory = policy.start()
    requested = world.start
    for _ in range(decisions):
        world.advance()
        view = world.view(requested)
        began_s = time.thread_time()
        decision, memory = policy.decide(view, memory)
        took_s = time.thread_time() - began_s
        changed = decision.planned is not requested and decision.planned != requested
        found.append(_Sample(took_s, changed, len(requested.hosts), requested.replicas))
        requested = decision.planned
    return found


if __name__ == "__main__":
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    wanted = msgspec.json.decode(sys.stdin.buffer.read(), type=list[Case])
    sys.stdout.buffer.write(msgspec.json.encode([run_case(case) for case in wanted]))
