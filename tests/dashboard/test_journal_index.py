"""A journal as columns: what is kept of each interval, for journals of today and of yesterday."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from journals import POOL, control_line, decision_line, end_line, line, observation_line, placed, run_line, small_run

from springtide.dashboard.index import DamagedJournal, Index
from springtide.dashboard.parts import ApplicationPart, EdgePart, OperatorLoad, OperatorPart, SloPart, SourcePart
from springtide.dashboard.work import Work


def indexed(lines: list[bytes]) -> Index:
    index = Index()
    index.feed(b"".join(lines))
    return index


def test_each_interval_is_a_row_of_figures() -> None:
    index = indexed(small_run(pool=POOL, live=True))
    assert index.rows["time_s"].tolist() == [60.0, 120.0, 180.0]
    assert index.rows["offered_per_s"].tolist() == pytest.approx([100.0, 110.0, 120.0])
    assert index.rows["hosts"].tolist() == [1, 1, 2]
    assert index.rows["replicas"].tolist() == [2, 2, 3]
    assert index.rows["changed"].tolist() == [0, 0, 1]
    assert index.rows["core_h"].tolist() == pytest.approx([4 / 60, 8 / 60, 16 / 60])
    assert index.places["interval"].tolist() == [0, 1, 2]


def test_a_forecast_stands_at_the_interval_that_it_was_for() -> None:
    index = indexed(small_run())
    np.testing.assert_allclose(index.rows["forecast_per_s"], [math.nan, 110.0, 130.0])
    np.testing.assert_allclose(index.rows["forecast_low_per_s"], [math.nan, 55.0, 65.0])
    np.testing.assert_allclose(index.rows["forecast_high_per_s"], [math.nan, 220.0, 260.0])


def test_a_journal_without_any_of_the_newer_fields_is_shown_too() -> None:
    index = indexed([run_line(), observation_line(0, with_shards=False), decision_line(0), end_line(60.0)])
    assert index.run is not None
    assert index.run.pool is None
    assert not index.run.live
    assert np.isnan(index.rows["forecast_per_s"]).all()
    assert index.end is not None


def test_the_file_may_come_in_any_pieces() -> None:
    whole = b"".join(small_run())
    index, at = Index(), 0
    for size in (1, 700, 3, 5000, len(whole)):
        at = min(len(whole), at + size)
        index.feed(whole[index.whole_bytes : at])
    assert index.whole_bytes == len(whole)
    assert index.rows["time_s"].tolist() == indexed([whole]).rows["time_s"].tolist()


def test_a_torn_last_line_is_left_for_later() -> None:
    lines = small_run()
    index = indexed([*lines[:2], lines[2][:40]])
    assert len(index) == 1
    assert index.whole_bytes == len(lines[0]) + len(lines[1])


def test_records_know_where_the_allocation_that_they_leave_out_was_written() -> None:
    index = indexed(small_run())
    assert index.places["observed_at"].tolist() == [0, 0, 2]
    assert index.places["requested_at"].tolist() == [0, 1, 2]


def test_an_observation_without_any_allocation_before_it_is_damage() -> None:
    with pytest.raises(DamagedJournal, match=r"line 2 is damaged .it leaves out an allocation"):
        indexed([run_line(), observation_line(0, before=placed())])


def test_a_damaged_line_is_named_and_what_came_before_it_is_kept() -> None:
    index = Index()
    with pytest.raises(DamagedJournal, match="line 3 is damaged"):
        index.feed(run_line() + observation_line(0) + b"#" + observation_line(1))
    assert len(index) == 1


def test_what_is_not_a_journal_is_said() -> None:
    with pytest.raises(DamagedJournal, match="not a journal"):
        indexed([b"a,b,c\n"])
    with pytest.raises(DamagedJournal, match="not a journal"):
        indexed([end_line()])
    with pytest.raises(DamagedJournal, match=r"format is 2.*upgrade"):
        indexed([run_line(format=2)])
    with pytest.raises(DamagedJournal, match="second run"):
        indexed([run_line(), run_line()])


def test_a_kind_of_record_that_is_not_known_yet_is_passed_over() -> None:
    index = indexed([run_line(), line({"kind": "weather", "time_s": 1.0}), observation_line(0)])
    assert len(index) == 1
    assert index.lines == 3


def test_controls_add_up_to_how_the_run_is_steered() -> None:
    index = indexed(
        [
            run_line(live=True),
            control_line(0, "pause"),
            control_line(1, "pin", operator="count", replicas=4),
            control_line(1, "drain", host="host-2"),
            control_line(2, "refused", operator="count", replicas=99, note="at most 4"),
        ]
    )
    assert index.steering.paused
    assert index.steering.pins == {"count": 4}
    assert index.steering.draining == {"host-2"}
    index.feed(
        control_line(3, "resume") + control_line(3, "unpin", operator="count") + control_line(3, "undrain", host="host-2")
    )
    assert not index.steering.paused
    assert not index.steering.pins
    assert not index.steering.draining


def test_counts_are_of_the_whole_run() -> None:
    totals = indexed(small_run()).totals
    assert (totals.decisions, totals.changes, totals.vetoes) == (3, 2, 1)
    assert totals.reconfigurations == {"hosts_added": 1}
    assert totals.core_s == 960.0


def test_an_interval_in_which_no_row_left_has_no_latency() -> None:
    silent = json.loads(observation_line(0))
    silent["latency"]["rows"] = 0.0
    assert math.isnan(indexed([run_line(), line(silent)]).rows["latency_p50_s"][0])


FAN = ApplicationPart(
    name="fan",
    sources=[SourcePart("clicks")],
    operators=[OperatorPart("parse", 0.001, 0, 8), OperatorPart("count", 0.01, 8, 8)],
    edges=[EdgePart("clicks", "parse"), EdgePart("parse", "count", 1.0)],
    slo=SloPart(latency_s=5.0, percentile=0.9),
)


def load(name: str, processed: float, emitted: float, service_s: float) -> OperatorLoad:
    return OperatorLoad(
        name=name, replicas=1, processed_rows=processed, emitted_rows=emitted, backlog_rows=0.0, service_time_s=service_s
    )


def test_the_work_of_a_row_is_what_was_measured_down_the_dag() -> None:
    work = Work(FAN)
    work.then([load("parse", 100, 50, 0.002), load("count", 50, 0, 0.02)], {"clicks": 100.0})
    assert work.core_s_per_row == pytest.approx(0.002 + 0.5 * 0.02)
    assert work.demand({"clicks": 10.0}) == {"parse": 10.0, "count": 5.0}


def test_the_work_of_a_row_does_not_depend_on_who_is_behind() -> None:
    calm, behind = Work(FAN), Work(FAN)
    calm.then([load("parse", 100, 100, 0.002), load("count", 100, 0, 0.02)], {"clicks": 100.0})
    behind.then([load("parse", 100, 100, 0.002), load("count", 10, 0, 0.02)], {"clicks": 1000.0})
    assert behind.core_s_per_row == pytest.approx(calm.core_s_per_row)


def test_an_interval_of_silence_leaves_the_work_of_a_row_as_it_was() -> None:
    work = Work(FAN)
    work.then([], {"clicks": 0.0})
    assert math.isnan(work.core_s_per_row)
    work.then([load("parse", 100, 100, 0.002)], {"clicks": 100.0})
    before = work.core_s_per_row
    work.then([load("parse", 0, 0, 0.0)], {"clicks": 0.0})
    assert work.core_s_per_row == before


def test_capacity_is_what_the_running_cores_could_take() -> None:
    # Both operators take 1 ms a row, and a host has 4 cores: 4 / 0.002.
    index = indexed(small_run())
    assert index.rows["capacity_per_s"].tolist() == pytest.approx([2000.0, 2000.0, 4000.0])
