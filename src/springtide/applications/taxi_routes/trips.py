"""The lines that come: trips as the grand challenge published them, one CSV line each, or made from a seed.

Rules: lines come in the order of the file. A line's own times stay as they are; because nearly all are whole minutes, the lines
of a minute are offered evenly over it.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from springtide.errors import SpringtideError, require
from springtide.model.observation import FloatArray

SCHEMA = pa.schema([("line", pa.string())])

COLUMNS = (
    "medallion,hack_license,pickup_datetime,dropoff_datetime,trip_time_in_secs,trip_distance,pickup_longitude,pickup_latitude,"
    "dropoff_longitude,dropoff_latitude,payment_type,fare_amount,surcharge,mta_tax,tip_amount,tolls_amount,total_amount"
)
_DROPOFF = 3
_COORDINATES = (6, 7, 8, 9)
_STAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trips:
    """Lines in their order, and the second at which each is offered, counted from the first drop-off."""

    lines: tuple[str, ...]
    times_s: FloatArray

    @property
    def table(self) -> pa.Table:
        return pa.table([pa.array(self.lines, pa.string())], schema=SCHEMA)


def trips_of(lines: Sequence[str], *, minutes: int | None = None) -> Trips:
    """Lines with the times at which they are offered; only those of the first minutes, if a number is given."""
    times_s = _offered_s(lines)
    kept = len(lines) if minutes is None else int(np.searchsorted(times_s, minutes * 60.0))
    return Trips(lines=tuple(lines[:kept]), times_s=times_s[:kept])


def recorded_lines(path: Path) -> list[str]:
    """The lines of a recording, without its header."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            header, *lines = file.read().splitlines()
    except (OSError, ValueError) as error:
        raise SpringtideError(f"{path}: cannot be read ({error})") from None
    require(header == COLUMNS, f"{path}: does not begin with the grand challenge's 17 columns: is this the recording?")
    return lines


def with_company(lines: Sequence[str], *, copies: int, seed: int) -> list[str]:
    """Beside each trip `copies` - 1 others of the same times, whose ends lie up to 0.003 degrees (300 m) away.

    The recording is a part of the real flow: this is how it gets the real flow's rate. A line that cannot be read, and
    an end at 0, have company that is like them.
    """
    moves = np.random.default_rng((seed, 1)).uniform(-0.003, 0.003, (len(lines), copies - 1, len(_COORDINATES)))
    found = []
    for line, those in zip(lines, moves.tolist(), strict=True):
        found.append(line)
        found.extend(_moved(line, move) for move in those)
    return found


def _moved(line: str, move: Sequence[float]) -> str:
    fields = line.split(",")
    try:
        moved = [float(fields[at]) for at in _COORDINATES]
    except (IndexError, ValueError):
        return line
    for at, here, by in zip(_COORDINATES, moved, move, strict=True):
        if here != 0:
            fields[at] = f"{here + by:.6f}"
    return ",".join(fields)


def _offered_s(lines: Sequence[str]) -> FloatArray:
    stamps_s = np.array([_stamp_s(line) for line in lines])
    require(bool(np.any(np.isfinite(stamps_s))), "no line has the time of a drop-off")
    first_s = stamps_s[np.isfinite(stamps_s)][0]
    # Time never goes back; a line without a time, or with an earlier one, comes with the line before it.
    reached_s = np.maximum.accumulate(np.where(np.isfinite(stamps_s), stamps_s, first_s) - first_s)
    reached_s = np.maximum(reached_s, 0.0)
    minutes, first_row, count = np.unique(reached_s // 60.0, return_index=True, return_counts=True)
    of_minute = np.repeat(np.arange(minutes.size), count)
    position = np.arange(len(lines)) - first_row[of_minute]
    offered: FloatArray = 60.0 * (minutes[of_minute] + position / count[of_minute])
    return offered


def _stamp_s(line: str) -> float:
    fields = line.split(",")
    if len(fields) <= _DROPOFF or not _STAMP.fullmatch(fields[_DROPOFF]):
        return np.nan
    try:
        return datetime.fromisoformat(fields[_DROPOFF]).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return np.nan


_MADE_MINUTES = 60
_MADE_TRIPS_PER_MINUTE = 150.0
_PLACES = 120
_BEGIN = datetime(2013, 1, 1, tzinfo=UTC)


def made_lines(seed: int) -> list[str]:
    """An hour like the recorded one: a ramp and a burst, popular places, and now and then a line that is wrong or late."""
    rng = np.random.default_rng((seed, 2))
    places = np.column_stack((rng.uniform(-74.01, -73.93, _PLACES), rng.uniform(40.70, 40.80, _PLACES)))
    popularity = 1.0 / np.arange(1, _PLACES + 1)
    popularity /= popularity.sum()
    found = []
    for minute in range(_MADE_MINUTES):
        burst = 2.0 if 40 <= minute < 46 else 1.0
        trips = max(1, rng.poisson(_MADE_TRIPS_PER_MINUTE * burst * min(1.0, (minute + 1) / 20)))
        ends = places[rng.choice(_PLACES, (trips, 2), p=popularity)] + rng.normal(0.0, 0.001, (trips, 2, 2))
        dropoff = _BEGIN + timedelta(minutes=minute)
        found += [_made_line(rng, dropoff, those) for those in ends.reshape(trips, 4).tolist()]
    return found


def _made_line(rng: np.random.Generator, dropoff: datetime, ends: list[float]) -> str:
    took_s = 60 * int(rng.integers(2, 30))
    kind = rng.random()
    if kind < 0.005:
        dropoff -= timedelta(minutes=int(rng.integers(1, 45)))
    pickup = dropoff - timedelta(seconds=took_s)
    if 0.005 <= kind < 0.010:
        pickup, dropoff = dropoff, pickup
    if 0.010 <= kind < 0.025:
        ends = [0.0, 0.0, *ends[2:]]
    if 0.025 <= kind < 0.030:
        ends = [ends[0] - 2.0, *ends[1:]]
    cents = 250 + took_s // 2
    fields = [f"{rng.integers(2**63):032X}", f"{rng.integers(2**63):032X}", _stamp(pickup), _stamp(dropoff), str(took_s)]
    fields += [f"{took_s / 300:.2f}", *(f"{end:.6f}" for end in ends), "CSH"]
    fields += [f"{cents / 100:.2f}", "0.50", "0.50", "0.00", "0.00", f"{cents / 100 + 1:.2f}"]
    return ",".join(fields[: 9 if 0.030 <= kind < 0.035 else len(fields)])


def _stamp(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M:%S}"
