"""`taxi-routes` without Spark: what the buckets, the parts and the whole tell together is what one sorted list tells."""

from __future__ import annotations

import dataclasses
import gzip
import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark import cloudpickle

from springtide.applications.taxi_routes.answer import Answer, answered
from springtide.applications.taxi_routes.application import Recording, TaxiRoutes
from springtide.applications.taxi_routes.counting import LATE, WINDOW_US, Arrival, CountChange, WindowCounts
from springtide.applications.taxi_routes.parsing import with_time_told
from springtide.applications.taxi_routes.ranking import GlobalRank, PartialRank, PartTop, RankChange
from springtide.applications.taxi_routes.trips import COLUMNS, made_lines, recorded_lines, trips_of, with_company
from springtide.errors import InvalidValue, SpringtideError

MINUTE_US = 60_000_000
NEW_YEAR = datetime(2013, 1, 1, tzinfo=UTC)
BUCKETS, PARTS = 5, 2
PLACES = 40

# Places in one column of cells: a trip from the first to the n-th of them is route n.
LATITUDES = [40.75 - 0.004491556 * place for place in range(PLACES)]
ROUTES = [f"157.162-157.{162 + place}" for place in range(PLACES)]

Item = TypeVar("Item")


def line_of(route: int, dropoff_minute: float, took_minutes: float = 5) -> str:
    dropoff = NEW_YEAR + timedelta(minutes=dropoff_minute)
    times = [f"{when:%Y-%m-%d %H:%M:%S}" for when in (dropoff - timedelta(minutes=took_minutes), dropoff)]
    places = f"-73.98,{LATITUDES[0]:.6f},-73.98,{LATITUDES[route]:.6f}"
    return f"M,H,{times[0]},{times[1]},300,1.0,{places},CSH,3.50,0.50,0.50,0.00,0.00,4.50"


class InParts:
    """The three states with everything between them done by hand: what Spark does, without Spark."""

    def __init__(self) -> None:
        self.counts = ["" for _ in range(BUCKETS)]
        self.parts = ["" for _ in range(PARTS)]
        self.whole = ""
        self.late: list[int] = []

    def batch(self, trips: Sequence[Arrival], rng: np.random.Generator) -> list[RankChange]:
        """What changes with the trips of a batch, which come in any order. States are texts between two batches."""
        changes: list[tuple[int, CountChange]] = []
        for bucket in range(BUCKETS):
            mine = [trip for trip in trips if hash_of(trip.route) == bucket]
            ticks = [trip._replace(route=None) for trip in trips]
            counts = WindowCounts.of_text(self.counts[bucket]) if self.counts[bucket] else WindowCounts()
            changes += [(bucket, change) for change in counts.follow(shuffled([*mine, *ticks], rng))]
            self.counts[bucket] = counts.text()
        self.late += [change.row for _, change in changes if change.trips == LATE]
        told: list[PartTop] = []
        for part in range(PARTS):
            ranks = PartialRank.of_text(self.parts[part]) if self.parts[part] else PartialRank()
            told += ranks.follow(part, shuffled([change for bucket, change in changes if bucket % PARTS == part], rng))
            self.parts[part] = ranks.text()
        whole = GlobalRank.of_text(self.whole) if self.whole else GlobalRank()
        found = whole.follow(shuffled(told, rng))
        self.whole = whole.text()
        return found


def hash_of(route: str | None) -> int:
    return sum(map(ord, route or "")) % BUCKETS


def shuffled(items: Sequence[Item], rng: np.random.Generator) -> list[Item]:
    return [items[at] for at in rng.permutation(len(items))]


def arrivals(trips: Sequence[tuple[int, int]]) -> list[Arrival]:
    """Trips as (route, minute of the drop-off)."""
    begin_us = int(NEW_YEAR.timestamp()) * 1_000_000
    return [
        Arrival(row, ROUTES[route], begin_us + (minute - 5) * MINUTE_US, begin_us + minute * MINUTE_US)
        for row, (route, minute) in enumerate(trips)
    ]


def answer_of(trips: Sequence[tuple[int, int]]) -> Answer:
    return answered([line_of(route, minute) for route, minute in trips])


Trip = tuple[int, int]
STEPS_MINUTES = (0, 0, 0, 1, 1, 2, 5, 35, -1, -7, -40)  # time stands still, goes on, leaps, and goes back
any_trips = st.lists(st.tuples(st.integers(0, PLACES - 1), st.sampled_from(STEPS_MINUTES)), min_size=1, max_size=150)


@given(any_trips, st.lists(st.integers(1, 150), max_size=6), st.integers(0, 3))
def test_parts_and_batches_of_any_kind_tell_what_one_sorted_list_tells(drawn: list[Trip], cuts: list[int], seed: int) -> None:
    """Some trips come out of order, and some late."""
    minutes = itertools.accumulate(step for _, step in drawn)
    trips = [(route, minute) for (route, _), minute in zip(drawn, minutes, strict=True)]
    right = answer_of(trips)
    rng = np.random.default_rng(seed)
    in_parts = InParts()
    found: list[RankChange] = []
    edges = sorted({0, len(trips), *(cut for cut in cuts if cut < len(trips))})
    for first, after in itertools.pairwise(edges):
        found += in_parts.batch(arrivals(trips)[first:after], rng)
    assert [tuple(change) for change in found] == right.changes
    assert [(row,) for row in sorted(in_parts.late)] == right.late


def test_a_long_busy_stream_is_ranked_in_parts_as_in_one_list() -> None:
    rng = np.random.default_rng(11)
    routes = np.minimum(rng.zipf(1.3, 1500) - 1, PLACES - 1).tolist()
    trips = [(route, at // 10) for at, route in enumerate(routes)]
    in_parts = InParts()
    found = [change for first in range(0, 1500, 130) for change in in_parts.batch(arrivals(trips)[first : first + 130], rng)]
    assert [tuple(change) for change in found] == answer_of(trips).changes


def test_a_route_behind_comes_up_when_one_in_front_falls() -> None:
    ranks = PartialRank()
    ranks.follow(0, [CountChange(row, f"route {row}", 20 - row, row, row, 0, 0) for row in range(12)])
    (told,) = ranks.follow(0, [CountChange(12, "route 3", 1, 3, 3, 0, 0)])
    assert [standing[3] for standing in told.top] == [f"route {row}" for row in (0, 1, 2, 4, 5, 6, 7, 8, 9, 10)]
    assert ranks.follow(0, [CountChange(13, "route 11", 2, 11, 11, 0, 0)]) == []


def test_of_routes_with_as_many_trips_the_one_with_the_more_recent_drop_off_is_first() -> None:
    changes = answer_of([(1, 0), (2, 0), (1, 1), (2, 2), (1, 2)]).changes
    assert [[ROUTES.index(route) for route in routes] for _, _, _, routes, _ in changes] == [
        [1],
        [2, 1],
        [1, 2],
        [2, 1],
        [1, 2],
    ]
    assert changes[-1][4] == (3, 2)
    assert InParts().batch(arrivals([(1, 0), (2, 0), (1, 1), (2, 2), (1, 2)]), np.random.default_rng(0))[-1].routes == (
        ROUTES[1],
        ROUTES[2],
    )


def test_a_trip_has_left_the_window_when_30_minutes_have_passed_even_on_a_route_where_nothing_happens() -> None:
    changes = answer_of([(1, 0), (2, 29), (3, 30)]).changes
    assert [(row, [ROUTES.index(route) for route in routes]) for row, _, _, routes, _ in changes] == [
        (0, [1]),
        (1, [2, 1]),
        (2, [3, 2]),
    ]


def test_only_the_first_ten_are_told_and_a_route_comes_back_when_others_leave() -> None:
    twice = [(route, 0) for route in range(11)] + [(route, 1) for route in range(10)]
    right = answer_of([*twice, (15, 30)])
    last = right.changes[-1]
    assert last[4] == (1,) * 10  # what came at minute 0 is gone
    assert last[3] == (ROUTES[15], *(ROUTES[route] for route in range(9, 0, -1)))
    assert ROUTES[10] not in right.changes[-2][3]


def test_a_late_trip_does_not_count_and_one_out_of_order_does() -> None:
    counts = WindowCounts()
    changes = counts.follow(arrivals([(1, 40), (1, 20), (1, 10), (1, 11)]))
    assert [(change.row, change.trips) for change in changes] == [(0, 1), (1, 2), (2, LATE), (3, 3)]
    assert {change.last_row for change in changes if change.trips > 0} == {0}  # the most recent is the one of minute 40


def test_a_batch_that_runs_again_from_the_same_state_says_the_same() -> None:
    rng = np.random.default_rng(5)
    trips = arrivals([(int(route), at // 4) for at, route in enumerate(rng.integers(0, 16, 200))])
    text = WindowCounts()
    text.follow(trips[:100])
    before = text.text()
    assert WindowCounts.of_text(before).follow(trips[100:]) == WindowCounts.of_text(before).follow(trips[100:])


def test_state_holds_no_more_than_the_window_however_long_it_runs() -> None:
    counts, ranks = WindowCounts(), PartialRank()
    sizes = []
    for hour in range(8):
        rows = [Arrival(hour * 600 + at, f"route {hour}-{at}", 0, (hour * 60 + at // 10) * MINUTE_US) for at in range(600)]
        ranks.follow(0, counts.follow(rows))
        sizes.append((len(counts.text()), len(ranks.text())))
        assert len(counts.stays) == len(ranks.routes) == 300
    assert max(sizes[3:]) <= (1.1 * sizes[2][0], 1.1 * sizes[2][1])
    assert counts.stays[0][0] > counts.clock_us - WINDOW_US


def test_every_bucket_learns_the_first_trip_of_each_time() -> None:
    trips = pd.DataFrame(
        {
            "row": [7, 3, 5, 4], "bucket": pd.array([1, 0, 1, -1], dtype="int32"), "route": ["a", "b", "a", None],
            "pickup_us": 0, "dropoff_us": [20, 10, 20, 0], "reason": [None, None, None, "times"],
        }
    )  # fmt: skip
    told = with_time_told(trips, 3)
    ticks = told[told["route"].isna() & told["reason"].isna()]
    assert sorted(zip(ticks["row"], ticks["bucket"], ticks["dropoff_us"], strict=True)) == [
        (3, 0, 10), (3, 1, 10), (3, 2, 10), (5, 0, 20), (5, 1, 20), (5, 2, 20),
    ]  # fmt: skip
    assert told["row"].tolist()[:4] == [7, 3, 5, 4]
    assert with_time_told(trips.iloc[3:], 3)["reason"].tolist() == ["times"]


def test_lines_of_a_minute_are_offered_over_it_in_their_order() -> None:
    lines = [line_of(1, 0), line_of(1, 0.5), line_of(1, 2), "no trip", line_of(1, 1), line_of(1, 2)]
    assert trips_of(lines).times_s.tolist() == [0.0, 30.0, 120.0, 135.0, 150.0, 165.0]
    assert trips_of(lines, minutes=2).lines == tuple(lines[:2])
    assert trips_of(["no trip", *lines]).times_s[0] == 0.0
    with pytest.raises(InvalidValue, match="no line has the time of a drop-off"):
        trips_of(["no trip"])


def test_made_lines_have_every_kind_of_trouble_and_come_from_the_seed() -> None:
    lines = made_lines(7)
    assert lines == made_lines(7) != made_lines(8)
    answer = answered(lines)
    assert {reason for _, reason in answer.rejected} == {"malformed", "zero coordinates", "times", "outside"}
    assert answer.late
    assert len(answer.rejected) < 0.1 * len(lines)
    assert len(answer.changes) > 200


def test_trips_beside_a_recorded_one_have_its_times_and_lie_near() -> None:
    lines = [line_of(3, 1), "no trip"]
    found = with_company(lines, copies=3, seed=1)
    assert found[0] == lines[0]
    assert found[3:] == ["no trip"] * 3
    recorded, first, second = (line.split(",") for line in found[:3])
    assert recorded[:6] == first[:6] == second[:6]
    assert recorded[10:] == first[10:]
    assert first[6:10] != second[6:10]
    assert all(abs(float(a) - float(b)) <= 0.003001 for a, b in zip(recorded[6:10], first[6:10], strict=True))
    assert with_company(lines, copies=1, seed=1) == lines


def test_a_file_that_is_no_recording_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trips.csv.gz"
    path.write_bytes(gzip.compress(f"{COLUMNS}\n{line_of(1, 0)}\n".encode()))
    assert recorded_lines(path) == [line_of(1, 0)]
    path.write_bytes(gzip.compress(b"time,count\n1,2\n"))
    with pytest.raises(InvalidValue, match="17 columns: is this the recording"):
        recorded_lines(path)
    path.write_bytes(b"no gzip")
    with pytest.raises(SpringtideError, match="cannot be read"):
        recorded_lines(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"copies": 0}, "copies must be at least 1, not 0"),
        ({"minutes": 0}, "minutes must be at least 1, not 0"),
        ({"speed_up": 0.0}, "speed_up must be above 0"),
        ({"parts": 9, "buckets": 8}, r"parts \(9\) are made of buckets"),
        ({"seed": -1}, "seed must be 0 or more"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        TaxiRoutes(**options)  # type: ignore[arg-type]


def test_the_application_is_one_that_can_run_and_its_functions_travel(tmp_path: Path) -> None:
    app, apart = TaxiRoutes().application(tmp_path), TaxiRoutes(apart=True).application(tmp_path)
    behind = {"count": 8, "partial-rank": 4, "rank": 1}
    for one, before in ((app, {"rejected": 0}), (apart, {"parse": 0, "area": 0, "route": 0})):
        one.check()
        assert {name: node.shards for name, node in one.operators.items()} == before | behind
    for node in (*app.operators.values(), *apart.operators.values()):
        assert node.max_rows_per_batch is None  # a batch must hold all that its rows led to
        assert len(cloudpickle.dumps(node.function)) < 10_000


def test_without_the_recording_it_says_what_it_does_instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPRINGTIDE_DATA", str(tmp_path))
    assert TaxiRoutes().data() == f"made from seed 7: no debs2015_trips_20130101_0002_0056.csv.gz in {tmp_path}"
    assert TaxiRoutes(recording=Recording.MADE).data() == "made from seed 7"


@pytest.mark.parametrize("recording", [Recording.NEW_YEAR, Recording.SPARSE])
def test_real_trips_are_ranked_in_parts_as_in_one_list(recording: Recording) -> None:
    application = TaxiRoutes(recording=recording, copies=1)
    if not application.data().startswith("debs2015"):
        pytest.skip(f"the recorded trips are not here ({application.data()})")
    lines = application.trips().lines
    right = answered(lines)
    rejected = dict(right.rejected)
    trips = [trip_of(row, line) for row, line in enumerate(lines) if row not in rejected]
    in_parts, rng = InParts(), np.random.default_rng(1)
    found = [change for first in range(0, len(trips), 700) for change in in_parts.batch(trips[first : first + 700], rng)]
    assert [tuple(change) for change in found] == right.changes
    zero = sum(reason == "zero coordinates" for reason in rejected.values())
    assert (len(lines), zero) == {Recording.NEW_YEAR: (10_004, 176), Recording.SPARSE: (1_000, 22)}[recording]


def trip_of(row: int, line: str) -> Arrival:
    """A trip that is known to be fine; its cells by rounding, not by edges."""
    fields = line.split(",")
    pickup, dropoff = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in fields[2:4])
    cells = []
    for longitude, latitude in (fields[6:8], fields[8:10]):
        east, south = (float(longitude) + 74.913585) / 0.005986, (41.474937 - float(latitude)) / 0.004491556
        cells.append(f"{int(east + 0.5) + 1}.{int(south + 0.5) + 1}")
    return Arrival(row, "-".join(cells), *(int(when.timestamp()) * 1_000_000 for when in (pickup, dropoff)))


def test_a_small_run_is_small_and_the_usual_one_has_the_rates_it_should() -> None:
    small = TaxiRoutes.small()
    trips = small.trips()
    assert 2_000 < len(trips.lines) < 6_000
    assert trips.times_s[-1] / small.speed_up < 25
    usual = dataclasses.replace(TaxiRoutes(), recording=Recording.MADE)
    seconds = np.bincount((usual.trips().times_s / usual.speed_up).astype(int))
    assert 120 < seconds.size < 180
    assert 200 < seconds.max() < 600
