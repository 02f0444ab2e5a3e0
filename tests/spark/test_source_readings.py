"""What sources have offered, by what they say whenever a batch is planned."""

from __future__ import annotations

import pytest

from springtide.backends.spark.source_readings import SourceReadings, offsets_at_end


def planned(read: float, offered: float) -> list[tuple[object, object]]:
    """One source that counts rows, as Spark knows it when a batch is planned."""
    return [({"row": round(read)}, {"row": round(offered)})]


def steady(rows_per_s: float = 40.0, until_s: int = 10) -> SourceReadings:
    readings = SourceReadings(["rows"])
    for second in range(until_s + 1):
        assert not readings.read(planned(rows_per_s * (second - 1), rows_per_s * second), float(second))
    return readings


def test_the_rows_of_a_steady_source_are_counted_once() -> None:
    readings = SourceReadings(["rows"])
    counted = []
    for second in range(1, 30):
        readings.read(planned(40.0 * (second - 1), 40.0 * second), float(second))
        if second % 3 == 0:
            readings.count(planned(40.0 * (second - 1), 40.0 * second), second + 0.5, idle=False)
            counted.append(readings.take_arrived())

    assert counted[1:] == pytest.approx([120.0] * 8)


def test_a_source_that_begins_to_bring_much_more_is_known_at_once() -> None:
    readings = steady()

    assert readings.read(planned(400.0, 580.0), 11.0)
    assert readings.rising_rows_per_s == {"rows": pytest.approx(40.0 + 3 * 140.0)}
    assert not readings.read(planned(400.0, 580.0), 11.0), "the same reading says nothing new"
    assert not readings.read(planned(580.0, 760.0), 12.0)


@pytest.mark.parametrize("offered", [430.0, 440.0, 475.0])
def test_a_source_that_goes_on_about_as_before_says_nothing(offered: float) -> None:
    readings = steady()

    assert not readings.read(planned(400.0, offered), 11.0)
    assert readings.rising_rows_per_s == {}


def test_a_source_that_does_not_count_rows_is_silent() -> None:
    readings = SourceReadings(["files"])
    offsets = [(None, {"logOffset": 4})]

    assert not readings.read(offsets, 1.0)
    assert readings.count(offsets, 2.0, idle=False) == {"files": None}
    assert (readings.take_arrived(), readings.rising_rows_per_s) == (None, None)


def test_what_is_idle_offers_nothing_more() -> None:
    readings = steady()

    assert readings.count(planned(400.0, 400.0), 13.0, idle=True) == {"rows": 0.0}
    assert readings.count(planned(400.0, 400.0), 13.0, idle=False)["rows"] == pytest.approx(120.0)


def test_before_the_first_batch_nothing_is_known() -> None:
    assert offsets_at_end(None) == ([], 0.0)


def test_what_spark_says_late_of_an_earlier_batch_changes_nothing() -> None:
    """Its account of a batch comes when the batch is over, and the next one may have been planned by then."""
    readings = steady()
    before = readings.rates_per_s

    readings.read(planned(360.0, 360.0), 9.5)

    assert readings.rates_per_s == before
    assert readings.count(planned(360.0, 360.0), 10.0, idle=False) == {"rows": pytest.approx(40.0)}
