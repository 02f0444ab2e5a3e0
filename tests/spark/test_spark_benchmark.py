"""What the benchmark of live Spark makes of the times it has measured, without Spark: known batches, known answers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import pytest

from springtide.benchmarks.figures import Bar, figure
from springtide.benchmarks.spark.batches import Batch, Disturbance, Pause, pauses, rows_per_s, settled
from springtide.benchmarks.spark.homes import Homes
from springtide.benchmarks.spark.measuring import Report, measure, table
from springtide.benchmarks.spark.pauses import ONE_SHARD, REGROUPED, RESTART, figures
from springtide.errors import SpringtideError
from springtide.model.allocation import OperatorAllocation

HERE = OperatorAllocation(("host-0",))
IDLE_S = 0.1
HOSTS = ("host-0", "host-1", "host-2", "host-3")


def batches(times_s: Sequence[float], idle_s: dict[int, float] | None = None) -> list[Batch]:
    """Batches that ended so far apart; the first ended at its own time. Before each, nothing was processed for a while."""
    idle = idle_s or {}
    ended_s = list(accumulate(times_s))
    return [
        Batch(began_s=end_s - time_s + idle.get(i, IDLE_S), ended_s=end_s, followed=HERE)
        for i, (end_s, time_s) in enumerate(zip(ended_s, times_s, strict=True))
    ]


def disturbance(kind: str, first: int, *, followed: int | None = None, after: int) -> Disturbance:
    return Disturbance(kind=kind, first=first, followed=first if followed is None else followed, after=after)


class TestPauses:
    def test_excess_is_what_the_disturbed_batches_took_beyond_normal_ones(self) -> None:
        run = batches([0.5] * 8 + [1.5, 0.75, 0.5, 0.25] + [0.5] * 8)

        (pause,) = pauses(run, [disturbance("move", 8, after=12)])

        assert pause.normal_s == pytest.approx(0.5)
        assert pause.batch == pytest.approx(3.0)
        assert pause.excess_s == pytest.approx(1.0 + 0.25 + 0.0 - 0.25)
        assert pause.excess == pytest.approx(2.0)
        assert pause.idle_s == pytest.approx(0.0)

    def test_nothing_changed_costs_nothing(self) -> None:
        (pause,) = pauses(batches([0.7] * 20), [disturbance("nothing", 10, after=14)])

        assert (pause.batch, pause.excess_s, pause.idle_s) == pytest.approx((1.0, 0.0, 0.0))

    def test_a_restart_counts_from_the_last_batch_to_the_first_row_after_it(self) -> None:
        run = batches([0.5] * 8 + [6.5] + [0.5] * 8, idle_s={8: 6.1})

        (pause,) = pauses(run, [disturbance("restart", 8, after=12)])

        assert pause.idle_s == pytest.approx(6.0)  # 6.1 s, of which 0.1 s lies between any two batches
        assert pause.batch_s == pytest.approx(6.5)
        assert pause.excess_s == pytest.approx(6.0)

    def test_batches_slowed_before_the_change_takes_effect_count_as_well(self) -> None:
        """An executor that starts takes its share of the machine before it is used."""
        run = batches([1.0] * 6 + [1.5, 1.5, 4.0, 1.0] + [1.0] * 6)

        (pause,) = pauses(run, [disturbance("add", 6, followed=8, after=10)])

        assert pause.batch == pytest.approx(4.0)
        assert pause.excess == pytest.approx(0.5 + 0.5 + 3.0)

    def test_normal_is_what_is_normal_at_the_time(self) -> None:
        """A neighbour makes everything twice as slow in the middle of the run; changes cost as many batches as before."""
        quiet, noisy = [0.5] * 12 + [1.0] + [0.5] * 12, [1.0] * 12 + [2.0] + [1.0] * 12

        early, late = pauses(batches(quiet + noisy), [disturbance("a", 12, after=13), disturbance("b", 37, after=38)])

        assert (early.normal_s, late.normal_s) == pytest.approx((0.5, 1.0))
        assert early.excess == pytest.approx(late.excess) == pytest.approx(1.0)

    def test_what_another_change_has_disturbed_is_not_normal(self) -> None:
        run = batches([0.5] * 3 + [9.0] * 4 + [0.5] * 2 + [1.0] + [0.5] * 3)

        _, pause = pauses(run, [disturbance("first", 3, after=7), disturbance("second", 9, after=10)])

        assert pause.normal_s == pytest.approx(0.5)
        assert pause.excess == pytest.approx(1.0)

    def test_a_change_without_a_quiet_batch_cannot_be_measured(self) -> None:
        with pytest.raises(SpringtideError, match="no undisturbed batch"):
            pauses(batches([0.5] * 4), [disturbance("move", 1, after=4)])

    def test_a_change_before_the_first_batch_cannot_be_built(self) -> None:
        with pytest.raises(SpringtideError, match="none before them"):
            disturbance("move", 0, after=4)


class TestFigures:
    def test_the_bars_are_those_of_the_changes_they_are_about(self) -> None:
        found = [pause(ONE_SHARD, batch_s=1.5, excess_s=0.5), pause(RESTART, idle_s=6.0)]
        found += [pause(kind, batch_s=1.3) for kind in REGROUPED]

        barred = {f.what: f.met for f in figures(found) if f.bar is not None}

        assert barred == {
            f"{ONE_SHARD}: its batch": True,
            f"{REGROUPED[0]}: its batch": False,
            f"{REGROUPED[1]}: its batch": False,
            "restart: nothing processed / excess of 1 shard": True,
        }

    def test_an_excess_lost_in_the_noise_does_not_make_a_restart_endlessly_worse(self) -> None:
        found = [pause(ONE_SHARD, excess_s=-0.3), pause(RESTART, idle_s=6.0)]

        assert figures(found)[-1].value == pytest.approx(6.0 / 0.1)

    def test_a_figure_is_a_median_with_the_middle_half_of_its_samples(self) -> None:
        made = figure("chain", "latency", "s", [5.0, 1.0, 2.0, 3.0, 4.0], Bar(limit=3.0))

        assert (made.value, made.low, made.high, made.met) == (3.0, 2.0, 4.0, True)

    def test_a_ratio_has_to_be_at_least_its_bar(self) -> None:
        assert figure("control", "on / off", "x", [0.96], Bar(limit=0.97, at_least=True)).met is False

    def test_the_table_names_bars_that_were_missed(self) -> None:
        found = figures([pause(ONE_SHARD, batch_s=2.5), pause(RESTART, idle_s=6.0)])
        report = Report(
            machine="m", spark="4", executors="4", quick=True, load={"pauses": 0.0}, figures=found, failed={}, within_bars=False
        )

        cells = [cell for column in table(report).columns for cell in column.cells]

        assert "<= 2 missed" in cells
        assert ">= 10 met" in cells


def test_a_case_that_is_not_there_is_refused_before_spark_is_started() -> None:
    with pytest.raises(SpringtideError, match="did you mean 'pauses'"):
        measure(["pause"])


def test_throughput_is_whole_batches_over_the_time_they_took() -> None:
    run = batches([1.0] * 10)  # they end at 1.0, 2.0, ...

    assert rows_per_s(run, [100.0] * 5 + [300.0] * 5, 2.5, 7.5) == pytest.approx((100 + 100 + 300 + 300) / 4)
    with pytest.raises(SpringtideError, match="1 batches"):
        rows_per_s(run, [1.0] * 10, 2.5, 3.5)


def test_batches_have_settled_when_they_get_no_faster() -> None:
    cooling = [20.0, 9.0, 4.0, 2.0, *np.linspace(1.5, 0.6, 12).tolist()]

    assert not settled(cooling)
    assert settled([*cooling, *[0.6, 0.65] * 8])
    assert not settled([0.6] * 15)  # too few to tell


class TestHomes:
    def test_one_shard_moves_and_the_others_stay(self) -> None:
        before = Homes(HOSTS * 2)

        after = before.moved(1)

        assert sum(a != b for a, b in zip(before.of, after.of, strict=True)) == 1
        assert after.placed().replica_hosts == HOSTS

    def test_a_shard_does_not_go_back_to_where_it_has_just_been(self) -> None:
        homes = Homes(HOSTS * 2)
        lately: list[tuple[int, str]] = []
        for _ in range(8):
            after = homes.moved(1)
            ((shard, was, now),) = [(s, a, b) for s, (a, b) in enumerate(zip(homes.of, after.of, strict=True)) if a != b]
            assert (shard, now) not in lately[-6:]
            lately.append((shard, was))
            homes = after
            assert max(homes.of.count(h) for h in HOSTS) <= 3

    def test_all_shards_move_and_come_home_after_a_full_turn_only(self) -> None:
        seen = [Homes(HOSTS * 2)]
        for _ in range(4):
            seen.append(seen[-1].all_moved())
            assert all(a != b for a, b in zip(seen[-2].of, seen[-1].of, strict=True))

        assert len({homes.of for homes in seen[:4]}) == 4

    def test_replicas_in_place_share_a_hosts_shards_and_move_none(self) -> None:
        homes = Homes(HOSTS * 2)

        twice = homes.with_replicas(2)

        assert twice.of == homes.of
        assert twice.placed().replicas == 8
        assert sorted(twice.placed().shard_replicas) == list(range(8))
        assert [twice.placed().shard_host(s) for s in range(8)] == list(homes.of)

    def test_fewer_hosts_take_the_shards_of_those_that_go(self) -> None:
        homes = Homes(HOSTS * 2)

        fewer = homes.on(HOSTS[1:])
        again = fewer.on((*HOSTS[1:], "host-4"))

        assert sum(a != b for a, b in zip(homes.of, fewer.of, strict=True)) == 2
        assert sum(a != b for a, b in zip(fewer.of, again.of, strict=True)) == 2
        assert again.of.count("host-4") == 2


def pause(kind: str, *, batch_s: float = 1.0, excess_s: float = 0.0, idle_s: float = 0.0) -> Pause:
    return Pause(kind=kind, normal_s=1.0, batch_s=batch_s, excess_s=excess_s, idle_s=idle_s)
