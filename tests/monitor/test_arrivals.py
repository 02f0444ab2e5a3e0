"""How fast rows arrive, by readings that are taken whenever a batch is planned."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from springtide.monitor.arrivals import Arrivals


def read_in_steps(rows_in_second: Callable[[int], float], until_s: float) -> list[tuple[float, Arrivals]]:
    """What is known after each reading of a source that hands rows out once a second, in batches of about 2 s."""
    rng = random.Random(7)
    arrivals, at_s, found = Arrivals(), 0.3, []
    while at_s < until_s:
        arrivals = arrivals.then(sum(rows_in_second(second) for second in range(int(at_s))), at_s)
        found.append((at_s, arrivals))
        at_s += rng.uniform(1.3, 2.5)
    return found


def test_a_source_that_hands_rows_out_once_a_second_has_a_constant_rate() -> None:
    settled = [arrivals.rows_per_s for at_s, arrivals in read_in_steps(lambda _: 40.0, 120.0) if at_s > 12]

    assert settled == pytest.approx([40.0] * len(settled), rel=0.12)


@pytest.mark.parametrize(("before", "after"), [(40.0, 180.0), (180.0, 40.0), (40.0, 60.0)])
def test_a_change_of_the_rate_is_seen_within_three_readings(before: float, after: float) -> None:
    seen = read_in_steps(lambda second: before if second < 30 else after, 60.0)

    later = [arrivals.rows_per_s for at_s, arrivals in seen if at_s > 31][2:]

    assert later == pytest.approx([after] * len(later), rel=0.3)


def test_rows_that_come_once_a_minute_do_not_look_like_many() -> None:
    seen = read_in_steps(lambda second: float(second % 60 == 0), 300.0)

    assert max(arrivals.rows_per_s for _, arrivals in seen[5:]) < 0.3


def test_never_fewer_rows_are_supposed_than_the_source_said() -> None:
    for at_s, arrivals in read_in_steps(lambda second: 10.0 * (second % 7), 90.0):
        assert arrivals.offered_by(at_s) >= arrivals.readings[-1][1]


def test_a_source_that_counts_from_another_row_begins_anew() -> None:
    before = Arrivals().then(offered=1000.0, at_s=1.0).then(offered=1100.0, at_s=2.0)
    after = before.then(offered=5.0, at_s=3.0)

    assert (before.rows_per_s, after.rows_per_s) == (100.0, 0.0)
    assert after.began_anew(before)
    assert not before.then(offered=1200.0, at_s=3.0).began_anew(before)


def test_a_reading_that_is_no_newer_changes_nothing() -> None:
    arrivals = Arrivals().then(offered=10.0, at_s=1.0).then(offered=20.0, at_s=2.0)

    assert arrivals.then(offered=20.0, at_s=1.9) is arrivals


def test_a_rate_that_rises_may_have_begun_to_just_before_it_was_read() -> None:
    """90 rows instead of 40 within a second: 90/s all the time, or 190/s in its last third."""
    steady = Arrivals().then(offered=0.0, at_s=0.0).then(offered=40.0, at_s=1.0).then(offered=80.0, at_s=2.0)

    first = steady.then(offered=170.0, at_s=3.0)
    second = first.then(offered=350.0, at_s=4.0)

    assert (steady.rising_rows_per_s, first.rising_rows_per_s, second.rising_rows_per_s) == (None, 190.0, 180.0)


def test_a_rate_that_has_risen_and_stays_or_falls_rises_no_more() -> None:
    risen = Arrivals().then(offered=0.0, at_s=0.0).then(offered=40.0, at_s=1.0).then(offered=240.0, at_s=2.0)

    stays = risen.then(offered=440.0, at_s=3.0)

    assert stays.rising_rows_per_s == 200.0
    assert stays.then(offered=640.0, at_s=4.0).rising_rows_per_s is None
    assert risen.then(offered=270.0, at_s=3.0).rising_rows_per_s is None
