"""Whatever is recorded reads back as it was, but for what is not finite, which reads back as None."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import factories
from springtide.journal.from_model import decision_record, end_record, observation_record, outcome_record, policy_record
from springtide.journal.reading import read_journal
from springtide.journal.records import Record
from springtide.journal.writing import JournalWriter
from springtide.model.allocation import Allocation
from springtide.model.decision import Decision, Expectation, Outcome, WhyNot
from springtide.model.observation import HostState, Observation

APPLICATION = factories.application()

words = st.text(min_size=1).filter(str.strip)
measures = st.floats() | st.floats(0, 1)
counts = st.floats(0, 1e12)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
expectations = st.builds(
    Expectation, utilisation=st.none() | measures, processed_rows_per_s=st.none() | measures, latency_s=st.none() | measures
)


@st.composite
def allocations(draw: st.DrawFn) -> Allocation:
    hosts = draw(st.lists(st.text(), min_size=1, max_size=4, unique=True))
    replicas = {o.name: draw(st.integers(1, 8)) for o in APPLICATION.operators}
    return factories.allocation(APPLICATION, hosts=hosts, replicas=replicas)


@st.composite
def observations(draw: st.DrawFn) -> Observation:
    observed = draw(allocations())
    usual = factories.observation(
        index=draw(st.integers(0, 10**9)),
        interval_s=1.0,
        application=APPLICATION,
        allocation=observed,
        requested=draw(st.just(observed) | allocations()),
        rows=draw(counts),
        utilisation=draw(measures),
        backlog_rows=draw(counts),
        latency_s=draw(measures),
        events=draw(st.lists(st.text(), max_size=2)),
        reconfigurations=draw(st.dictionaries(st.text(), st.integers(0, 9), max_size=2)),
        downtime_s=draw(measures),
        core_s=draw(measures),
    )
    state, memory_bytes = draw(st.sampled_from(HostState)), draw(measures)
    hosts = {name: replace(host, state=state, memory_bytes=memory_bytes) for name, host in usual.hosts.items()}
    return Observation(**{f.name: getattr(usual, f.name) for f in fields(usual)} | {"hosts": hosts})


@st.composite
def decisions(draw: st.DrawFn) -> Decision:
    why_not = draw(st.lists(st.builds(WhyNot, words, words, words), max_size=2))
    return factories.decision(draw(allocations()), reason=draw(words), expected=draw(expectations), why_not=why_not)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("round_trip")


@settings(deadline=None)
@given(
    intervals=st.lists(st.tuples(observations(), decisions(), expectations), max_size=4),
    summary=st.dictionaries(st.text(), json_values, max_size=3),
    parameters=st.dictionaries(st.text(), json_values, max_size=3),
    with_shards=st.booleans(),
)
def test_a_run_reads_back_as_it_was_recorded(
    folder: Path,
    intervals: list[tuple[Observation, Decision, Expectation]],
    summary: dict[str, object],
    parameters: dict[str, object],
    with_shards: bool,
) -> None:
    path = folder / "run.jsonl"
    path.unlink(missing_ok=True)
    run = factories.run(policy=policy_record("any", parameters))
    recorded: list[Record] = []
    with JournalWriter(path, run, detail="shards" if with_shards else "operators") as journal:
        for seen, made, measured in intervals:
            outcome = Outcome(interval=seen.index, expected=made.expected, measured=measured, verdict=made.reason)
            journal.observation(seen)
            journal.decision(seen, made, [])
            journal.outcome(outcome, seen.end_s)
            recorded.append(observation_record(seen, with_shards=with_shards))
            recorded.append(decision_record(seen, made, []))
            recorded.append(outcome_record(outcome, seen.end_s))
        journal.end(0.0, summary)
        recorded.append(end_record(0.0, summary))

    read = read_journal(path)
    assert (read.run, list(read), read.torn) == (run, recorded, None)


@settings(deadline=None)
@given(seen=observations())
def test_a_record_holds_the_numbers_of_the_observation(seen: Observation) -> None:
    record = observation_record(seen, with_shards=True)
    for operator, kept in zip(seen.operators.values(), record.operators, strict=True):
        for name in ("offered_rows", "backlog_rows", "backlog_s", "utilisation", "latency_s"):
            assert getattr(kept, name) == _finite(getattr(operator, name))
        assert list(kept.shards.busy_s) == [_finite(value) for value in operator.shards.busy_s]
    assert [h.utilisation for h in record.hosts] == [_finite(h.utilisation) for h in seen.hosts.values()]
    assert sum(h.replicas for h in record.hosts) == seen.observed.replicas


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
