"""What journals hold beside the records they began with: pool, forecasts, controls; and older journals are read as before."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_journal import write_small_journal

import factories
from springtide.errors import SpringtideError
from springtide.journal.from_model import decision_record, forecast_records, pool_record
from springtide.journal.reading import read_journal
from springtide.journal.records import ControlRecord, DecisionRecord, EndRecord, ObservationRecord
from springtide.journal.writing import JournalWriter, is_being_written
from springtide.model.allocation import HostType, Pool
from springtide.model.protocols import Forecast

# As written before there were pools, forecasts and controls.
OLD = """\
{"kind":"run","time_s":0.0,"format":1,"springtide_version":"0.1.0","created_at":"2026-03-01T12:00:00Z","application":{"name":\
"words","sources":[{"name":"source","share":1.0}],"operators":[{"name":"count","service_time_s":0.001,"grouping":"key","shards":2,\
"max_replicas":64,"state_bytes_per_shard":0,"row_bytes":100,"memory_bytes":0,"queue_rows":null}],"edges":[],"slo":{"latency_s":5.0,\
"percentile":0.9},"timeout_s":null},"policy":{"name":"static","parameters":[{"name":"hosts","value":1}]},"interval_s":60.0,\
"step_s":1.0,"trace":"day","seed":7}
{"kind":"decision","time_s":60.0,"interval":0,"reason":"hold","change":null,"changed_operators":[],"expected":{"utilisation":null,\
"processed_rows_per_s":null,"latency_s":null},"why_not":[],"actions":[]}
{"kind":"end","time_s":60.0,"summary":{}}
"""


def test_an_older_journal_is_read_as_before(tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    path.write_text(OLD)
    journal = read_journal(path)

    assert (journal.run.pool, journal.run.live) == (None, False)
    decision, end = journal
    assert isinstance(decision, DecisionRecord)
    assert (decision.reason, decision.forecast) == ("hold", ())
    assert isinstance(end, EndRecord)


def forecast(**fields: object) -> Forecast:
    steps = np.arange(20.0)
    values: dict[str, object] = {
        "interval_s": 10.0,
        "model": "blend",
        "mean": {"clicks": 1000 / 3 + steps},
        "upper": {"clicks": 500.0 + steps},
    }
    return Forecast(**{**values, **fields})  # type: ignore[arg-type]


def test_a_decision_keeps_what_was_foreseen(tmp_path: Path) -> None:
    seen = factories.observation()
    made = dataclasses.replace(factories.decision(), foreseen=forecast())
    path = tmp_path / "run.jsonl"
    with JournalWriter(path, factories.run()) as journal:
        journal.observation(seen)
        journal.decision(seen, made, [])

    _, decision = read_journal(path)
    assert isinstance(decision, DecisionRecord)
    (kept,) = decision.forecast
    assert (kept.source, kept.model, kept.interval_s) == ("clicks", "blend", 10.0)
    assert kept.mean[:3] == (333.3, 334.3, 335.3)
    assert len(kept.mean) == len(kept.low) == len(kept.high) == 12
    assert kept.high[0] == 500.0
    assert kept.low == kept.mean, "nobody knows how low it may be"


def test_the_band_is_of_the_quantiles_nearest_to_a_tenth_and_nineteen_twentieths() -> None:
    levels = (0.05, 0.12, 0.5, 0.94, 0.99)
    bands = np.array([[10.0 * i + k for k in range(4)] for i in range(5)])
    (kept,) = forecast_records(forecast(mean={"a": bands[2]}, upper={"a": bands[4]}, levels=levels, quantiles={"a": bands}))

    assert kept.low == (10.0, 11.0, 12.0, 13.0)
    assert kept.high == (30.0, 31.0, 32.0, 33.0)


def test_what_is_not_finite_is_null_and_no_forecast_is_none() -> None:
    (kept,) = forecast_records(forecast(mean={"a": np.array([np.nan, 1.0])}, upper={"a": np.array([np.inf, 2.0])}))
    assert (kept.mean, kept.high) == ((None, 1.0), (None, 2.0))
    assert decision_record(factories.observation(), factories.decision(), []).forecast == ()


def test_decisions_are_the_same_whatever_was_foreseen() -> None:
    made = factories.decision()
    assert dataclasses.replace(made, foreseen=forecast()) == made


def test_the_pool_is_kept(tmp_path: Path) -> None:
    pool = Pool(host=HostType(cores=2, start_s=40.0, release_s=3.0), min_hosts=2, max_hosts=9)
    path = tmp_path / "run.jsonl"
    with JournalWriter(path, factories.run(pool=pool_record(pool), live=True)):
        pass
    kept = read_journal(path).run
    assert kept.live
    assert kept.pool is not None
    assert (kept.pool.min_hosts, kept.pool.max_hosts, kept.pool.cores) == (2, 9, 2)
    assert (kept.pool.start_s, kept.pool.release_s) == (40.0, 3.0)


words = st.none() | st.text()


@given(
    control=st.builds(
        ControlRecord,
        time_s=st.floats(0, 1e9),
        interval=st.integers(0, 10**9),
        do=st.text(),
        operator=words,
        host=words,
        replicas=st.none() | st.integers(0, 100),
        who=st.text(),
        said_at=st.text(),
        note=st.text(),
    )
)
def test_a_control_reads_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, control: ControlRecord) -> None:
    path = tmp_path_factory.getbasetemp() / "control.jsonl"
    path.unlink(missing_ok=True)
    with JournalWriter(path, factories.run()) as journal:
        journal.control(control)
    assert list(read_journal(path)) == [control]


class TestFromTheEnd:
    def test_records_come_backwards(self, tmp_path: Path) -> None:
        path = tmp_path / "run.jsonl"
        records = write_small_journal(path)
        backwards = list(read_journal(path).newest_first())

        assert [(type(r), r.time_s) for r in reversed(backwards)] == [(type(r), r.time_s) for r in records]

    def test_over_any_number_of_blocks(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "run.jsonl"
        records = write_small_journal(path)
        for block_bytes in (1, 7, 100, 1000, 4096):
            monkeypatch.setattr("springtide.journal.reading._BLOCK_BYTES", block_bytes)
            assert [r.time_s for r in read_journal(path).newest_first()] == [r.time_s for r in reversed(records)]

    def test_a_torn_record_is_left_out_and_an_empty_run_has_none(self, tmp_path: Path) -> None:
        path = tmp_path / "run.jsonl"
        write_small_journal(path)
        path.write_bytes(path.read_bytes()[:-5])
        assert isinstance(next(read_journal(path).newest_first()), DecisionRecord)

        with JournalWriter(tmp_path / "begun.jsonl", factories.run()):
            assert list(read_journal(tmp_path / "begun.jsonl").newest_first()) == []

    def test_only_what_is_asked_for_is_read(self, tmp_path: Path) -> None:
        """Damage far from the end is none of its business; near it, it is an error."""
        path = tmp_path / "run.jsonl"
        write_small_journal(path)
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join([lines[0], b"#" + lines[1], *lines[2:]]))
        newest = read_journal(path).newest_first()
        assert isinstance(next(r for r in newest if isinstance(r, ObservationRecord)), ObservationRecord)
        with pytest.raises(SpringtideError, match="damaged near its end"):
            list(newest)


def test_whether_a_journal_is_being_written_can_be_told(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    assert not is_being_written(path)
    with JournalWriter(path, factories.run()) as journal:
        assert is_being_written(path)
        journal.observation(factories.observation())
        assert is_being_written(path)
    assert not is_being_written(path)
