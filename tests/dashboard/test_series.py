"""What charts are made of: thinned out without losing peaks, and beside what it would have cost otherwise."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from journals import POOL, decision_line, end_line, observation_line, placed, run_line, small_run

from springtide.dashboard.cheapest import Came, Cheapest, came, cheapest
from springtide.dashboard.index import Index
from springtide.dashboard.series import bucket_starts, lasts, means, newest_row, peaks, series, static_core_h
from springtide.model.allocation import HostType, Pool
from springtide.model.application import SLO
from springtide.plan.horizon.path import Moves, path_cost
from springtide.plan.policies.oracle import Oracle, stage_costs

COLUMNS = {
    "time_s", "offered_per_s", "offered_max_per_s", "forecast_per_s", "forecast_low_per_s", "forecast_high_per_s",
    "capacity_per_s", "backlog_rows", "latency_p50_s", "latency_slo_s", "latency_p99_s", "hosts", "replicas", "utilisation",
    "core_h", "static_core_h", "oracle_core_h", "changed", "late_share",
}  # fmt: skip


def indexed(lines: list[bytes]) -> Index:
    index = Index()
    index.feed(b"".join(lines))
    return index


def test_all_columns_have_the_same_length_and_a_row_has_the_same_names() -> None:
    index = indexed(small_run())
    found = series(index, None)
    assert found.keys() == COLUMNS | {"ahead"}
    assert {len(found[name]) for name in COLUMNS} == {3}
    assert newest_row(index, None, 2).keys() == COLUMNS
    assert newest_row(index, None, 2)["core_h"] == found["core_h"][2]


def test_a_run_without_an_interval_has_empty_columns() -> None:
    for index in (Index(), indexed([run_line()])):
        found = series(index, None)
        assert {len(found[name]) for name in COLUMNS} == {0}


def test_a_stretch_of_the_run_is_cut_out() -> None:
    index = indexed(small_run())
    assert series(index, None, from_s=120.0, to_s=120.0)["time_s"] == [120.0]
    assert series(index, None, from_s=500.0)["time_s"] == []
    assert series(index, None, from_s=120.0, to_s=60.0)["time_s"] == []


@given(
    st.lists(st.one_of(st.just(math.nan), st.floats(-1e6, 1e6)), min_size=1, max_size=60),
    st.integers(min_value=1, max_value=70),
)
def test_thinning_out_keeps_means_peaks_and_ends(values: list[float], points: int) -> None:
    column = np.array(values)
    starts = bucket_starts(len(values), points)
    ends = [*starts[1:].tolist(), len(values)]
    assert len(starts) == min(len(values), points)
    for bucket, (start, end) in enumerate(zip(starts.tolist(), ends, strict=True)):
        known = [v for v in values[start:end] if not math.isnan(v)]
        mean, peak = means(column, starts)[bucket], peaks(column, starts)[bucket]
        if known:
            assert mean == pytest.approx(sum(known) / len(known), abs=1e-6)
            assert peak == max(known)
        else:
            assert math.isnan(mean)
            assert math.isnan(peak)
        np.testing.assert_equal(lasts(column, starts)[bucket], values[end - 1])


def test_what_adds_up_and_what_is_a_peak_survive_thinning_out() -> None:
    lines = [run_line()]
    for i in range(100):
        lines.append(observation_line(i, before=placed() if i else None, rows=60000.0 if i == 37 else 600.0))
    index = indexed(lines)
    found = series(index, None, points=10)
    assert len(found["time_s"]) == 10
    assert max(found["offered_max_per_s"]) == 1000.0
    assert max(found["offered_per_s"]) == pytest.approx(109.0)
    assert found["core_h"][-1] == pytest.approx(index.rows["core_h"][-1])
    assert found["time_s"][-1] == 6000.0


def test_static_peak_is_the_most_hosts_so_far_all_the_time() -> None:
    index = indexed(small_run())
    assert static_core_h(index).tolist() == pytest.approx([8 / 60, 16 / 60, 24 / 60])
    index.feed(observation_line(3, allocation=placed(1, 1)))
    assert static_core_h(index).tolist() == pytest.approx([8 / 60, 16 / 60, 24 / 60, 32 / 60])


def test_what_lies_ahead_begins_after_the_last_interval_and_ends_with_the_run() -> None:
    index = indexed(small_run())
    ahead = series(index, None)["ahead"]
    assert ahead["time_s"] == [240.0, 300.0]
    assert ahead["mean_per_s"] == [125.0, 120.0]
    assert ahead["high_per_s"] == [250.0, 240.0]
    index.feed(end_line())
    assert series(index, None)["ahead"]["time_s"] == []


def test_a_later_decision_without_a_forecast_foresees_nothing() -> None:
    index = indexed([*small_run(), decision_line(2)])
    assert series(index, None)["ahead"]["time_s"] == []


SIZES = Pool(host=HostType(cores=4, start_s=30.0, release_s=5.0), min_hosts=1, max_hosts=3)


def test_the_oracle_pays_less_than_every_other_way_through_what_came() -> None:
    slo, lasted = SLO(latency_s=5.0), np.array([60.0, 60.0, 30.0, 60.0])
    demand = np.array([1.0, 9.0, 9.0, 1.0])
    path = Oracle().way(demand, SIZES, slo, lasted, 1)
    sizes = np.arange(1, 4)
    stages = stage_costs(demand, sizes * 4.0, sizes * 4.0 * Oracle().utilisation, slo, lasted)
    moves = Moves(up=120.0, down=20.0, change=480.0)
    costs = [path_cost(stages, sizes, 1, np.array(way), moves) for way in itertools.product((1, 2, 3), repeat=4)]
    assert path_cost(stages, sizes, 1, path, moves) == pytest.approx(min(costs))


def test_the_oracle_pays_for_hosts_while_they_start() -> None:
    lasted = np.full(200, 60.0)
    demand = np.where(np.arange(200) < 100, 1.0, 7.0)
    best = cheapest(Came(demand_cores=demand, lasted_s=lasted, hosts=1, pool=SIZES, slo=SLO()))
    assert best.core_h[99] == pytest.approx(100 * 4 / 60)
    assert best.core_h[-1] == pytest.approx((100 * 4 + 100 * 8) / 60 + 4 * 30 / 3600)
    assert best.cores == 8.0


def test_the_oracle_is_unknown_without_a_pool_and_goes_on_as_it_was_until_it_is_worked_out_again() -> None:
    assert came(indexed(small_run())) is None
    assert came(indexed([run_line(pool=POOL)])) is None
    index = indexed(small_run(pool=POOL))
    what_came = came(index)
    assert what_came is not None
    assert what_came.demand_cores.tolist() == pytest.approx([0.2, 0.22, 0.24])
    assert all(value is None or math.isnan(value) for value in series(index, None)["oracle_core_h"])
    older = Cheapest(core_h=np.array([0.1, 0.2]), cores=6.0)
    assert series(index, older)["oracle_core_h"] == pytest.approx([0.1, 0.2, 0.3])
