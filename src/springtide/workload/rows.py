"""The rows that a replayed trace offers: when each is offered, its key, its value, its payload.

Rules: everything about a row is a pure function of its number, the curve and the seed. Any range of rows can
therefore be made alone, anywhere and as often as needed, and is the same rows. Seconds are those of the replay's
clock, counted from its start: `speed_up` of the trace's seconds pass in one of them. Only numpy is imported here.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import lru_cache
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from springtide.errors import require
from springtide.model.application import KeyDistribution
from springtide.model.observation import FloatArray
from springtide.workload.traces import Trace

IntArray = NDArray[np.int64]
ByteArray = NDArray[np.uint8]

VALUES = 1_000_000  # a row's value lies in 0..999_999

_MAX_WHOLE = 2**53  # beyond it, not every whole number is a float
_HEX_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)


class _Purpose(IntEnum):
    """What a row's chance is for: a number drawn for one says nothing about that for another."""

    KEY = 0
    VALUE = 1
    PAYLOAD = 2


class Columns(TypedDict):
    """Some rows, column by column; `payload` has a line of characters for each row."""

    row: IntArray
    offered_at_s: FloatArray
    key: IntArray
    value: IntArray
    payload: ByteArray


def cumulative_rows(trace: Trace) -> IntArray:
    """How many whole rows have been offered by each edge between steps. Fractions of a row are carried on, never lost.

    >>> cumulative_rows(Trace(name="sparse", step_s=1.0, counts=np.array([0.4, 0.4, 0.4, 2.0])))
    array([0, 0, 1, 1, 3])
    """
    offered = np.concatenate(([0.0], np.cumsum(trace.counts)))
    require(
        float(offered[-1]) < _MAX_WHOLE,
        f"trace {trace.name!r}: {offered[-1]:g} rows are too many to be numbered; scale it to fewer than {_MAX_WHOLE}",
    )
    return np.rint(offered).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplayedRows:
    """The rows of a trace, or of the part of it that begins with `first_step`; the rows of a step are evenly spread over it.

    `cumulative` has one number more than there are steps: the rows before each step, and those before the end. The
    order of the keys' frequencies is another after every `60 / shuffles_per_minute` seconds of the replay.

    >>> trace = Trace(name="lunch", step_s=1.0, counts=np.array([2.0, 0.0, 4.0]))
    >>> rows = ReplayedRows(step_s=trace.step_s, cumulative=cumulative_rows(trace), speed_up=2.0)
    >>> rows.total_rows, rows.duration_s, rows.rows_before(1.2)
    (6, 1.5, 4)
    >>> rows.offered_at_s(np.arange(6))
    array([0.   , 0.25 , 1.   , 1.125, 1.25 , 1.375])
    """

    step_s: float
    cumulative: IntArray
    first_step: int = 0
    speed_up: float = 1.0
    keys: KeyDistribution = field(default_factory=KeyDistribution)
    payload_bytes: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        for what, number in (("step_s", self.step_s), ("speed_up", self.speed_up)):
            require(math.isfinite(number) and number > 0, f"{what} must be finite and above 0, not {number}")
        for what, whole in (("first_step", self.first_step), ("payload_bytes", self.payload_bytes), ("seed", self.seed)):
            require(whole >= 0, f"{what} must be 0 or more, not {whole}")
        cumulative = np.array(self.cumulative, np.int64)
        require(cumulative.ndim == 1 and cumulative.size > 1, f"cumulative must span at least one step, not {cumulative.shape}")
        require(
            bool(cumulative[0] >= 0 and np.all(cumulative[1:] >= cumulative[:-1])),
            "cumulative must be 0 or more and never fall: it counts all rows so far",
        )
        cumulative.setflags(write=False)
        object.__setattr__(self, "cumulative", cumulative)
        require(math.isfinite(self.duration_s), f"a speed_up of {self.speed_up:g} makes the replay endless; choose more")
        require(
            self.duration_s * self.keys.shuffles_per_minute / 60 < _MAX_WHOLE,
            f"shuffles_per_minute of {self.keys.shuffles_per_minute:g} are too many to be numbered; choose fewer",
        )

    @property
    def total_rows(self) -> int:
        """The rows of the trace up to the end of the curve."""
        return int(self.cumulative[-1])

    @property
    def duration_s(self) -> float:
        """When the curve ends: nothing is offered then or later."""
        return (self.first_step + self.cumulative.size - 1) * self.step_s / self.speed_up

    def rows_before(self, elapsed_s: float) -> int:
        """How many rows have been offered once `elapsed_s` have passed: exactly those with `offered_at_s < elapsed_s`."""
        known = range(int(self.cumulative[0]), self.total_rows)
        before = bisect_left(known, elapsed_s, key=lambda row: float(self.offered_at_s(np.array([row]))[0]))
        return known.start + before

    def offered_at_s(self, rows: IntArray) -> FloatArray:
        """When each row is offered: never before a row with a lower number, and always before its step ends."""
        self._require_known(rows)
        step = np.searchsorted(self.cumulative, rows, side="right") - 1
        begin_s, end_s = self._begin_s(step), self._begin_s(step + 1)
        share = (rows - self.cumulative[step]) / (self.cumulative[step + 1] - self.cumulative[step])
        offered_at_s: FloatArray = np.minimum(begin_s + (end_s - begin_s) * share, np.nextafter(end_s, -np.inf))
        return offered_at_s

    def keys_of(self, rows: IntArray) -> IntArray:
        """The key of each row: Zipf frequencies, in the order that holds when the row is offered."""
        return self._keys_at(rows, self.offered_at_s(rows))

    def values_of(self, rows: IntArray) -> IntArray:
        self._require_known(rows)
        return (self._hashed(rows, _Purpose.VALUE) % np.uint64(VALUES)).astype(np.int64)

    def payloads_of(self, rows: IntArray) -> ByteArray:
        """One line of `payload_bytes` ASCII characters for each row: 16 hexadecimal digits, again and again."""
        self._require_known(rows)
        octets = self._hashed(rows, _Purpose.PAYLOAD).astype("<u8").view(np.uint8).reshape(rows.size, 8)
        digits = _HEX_DIGITS[np.stack((octets >> 4, octets & 15), axis=-1).reshape(rows.size, 16)]
        payloads = np.empty((rows.size, self.payload_bytes), np.uint8)
        for at in range(0, self.payload_bytes, 16):
            payloads[:, at : at + 16] = digits[:, : self.payload_bytes - at]
        return payloads

    def batch(self, first: int, after: int) -> Columns:
        """The columns of the rows from `first` on and before `after`."""
        rows = np.arange(first, after, dtype=np.int64)
        offered_at_s = self.offered_at_s(rows)
        return {
            "row": rows,
            "offered_at_s": offered_at_s,
            "key": self._keys_at(rows, offered_at_s),
            "value": self.values_of(rows),
            "payload": self.payloads_of(rows),
        }

    def between(self, first: int, after: int) -> ReplayedRows:
        """Only the part of the curve that the rows from `first` on and before `after` need. They are the same rows."""
        require(
            self.cumulative[0] <= first <= after <= self.total_rows,
            f"rows {first} to {after} are not among the rows {self.cumulative[0]} to {self.total_rows} of this curve",
        )
        begin = min(int(np.searchsorted(self.cumulative, first, side="right")), self.cumulative.size - 1) - 1
        end = max(int(np.searchsorted(self.cumulative, after, side="left")), begin + 1)
        return replace(self, cumulative=self.cumulative[begin : end + 1], first_step=self.first_step + begin)

    def _require_known(self, rows: IntArray) -> None:
        if rows.size:
            lowest, highest, least = int(rows.min()), int(rows.max()), int(self.cumulative[0])
            require(
                least <= lowest and highest < self.total_rows,
                f"there is no row {lowest if lowest < least else highest}: "
                f"this curve has the rows from {least} on and before {self.total_rows}",
            )

    def _begin_s(self, steps: IntArray) -> FloatArray:
        """When steps of this curve begin. In a part of the curve it is the same float as in the whole."""
        return (steps + self.first_step).astype(np.float64) * self.step_s / self.speed_up

    def _keys_at(self, rows: IntArray, offered_at_s: FloatArray) -> IntArray:
        # The upper 53 bits of a hash are a float in [0, 1).
        chance = (self._hashed(rows, _Purpose.KEY) >> np.uint64(11)) * 2.0**-53
        ranks = np.searchsorted(_zipf_cdf(self.keys.keys, self.keys.zipf), chance, side="right")
        epochs = np.floor(offered_at_s * (self.keys.shuffles_per_minute / 60)).astype(np.int64)
        keys = np.empty(rows.size, np.int64)
        order = np.argsort(epochs, kind="stable")
        for same in np.split(order, np.flatnonzero(np.diff(epochs[order])) + 1):
            if same.size:
                keys[same] = _keys_by_rank(self.keys.keys, self.seed, int(epochs[same[0]]))[ranks[same]]
        return keys

    def _hashed(self, rows: IntArray, purpose: _Purpose) -> NDArray[np.uint64]:
        salt = np.random.SeedSequence(self.seed, spawn_key=(purpose,)).generate_state(1, np.uint64)
        # The finaliser of SplitMix64.
        x = (rows.astype(np.uint64) ^ salt) + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


@lru_cache(maxsize=4)
def _zipf_cdf(keys: int, exponent: float) -> FloatArray:
    cumulative = np.cumsum(np.arange(1, keys + 1, dtype=np.float64) ** -exponent)
    cdf: FloatArray = cumulative / cumulative[-1]
    return cdf


@lru_cache(maxsize=4)
def _keys_by_rank(keys: int, seed: int, epoch: int) -> IntArray:
    """The keys from the most frequent to the least, until the next shuffle."""
    return np.random.default_rng([seed, epoch]).permutation(keys)
