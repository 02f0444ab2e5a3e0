"""One column of a file, as numbers or as times.

Rules: a cell that cannot be used is refused in one line that names the file, the row (the first row after the header
is row 1; blank lines do not count), the column and the cell. Cells stay as the file has them until they are asked for
as numbers or times, so that the message can repeat them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from springtide.errors import InvalidValue
from springtide.model.observation import FloatArray

_LONGEST_QUOTE = 60  # characters of a file that a message may repeat


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Times:
    """When each row happened: seconds after the first row, and the ISO time of that row where the file has dates."""

    offsets_s: FloatArray
    start: str | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Column:
    """The cells of one column; none is empty. Rows are numbered from 0 here, and from 1 in messages."""

    file: Path
    name: str
    cells: pa.Array

    def __post_init__(self) -> None:
        cells = _plain(self.cells)
        object.__setattr__(self, "cells", cells)
        empty = cells.is_null()
        if _is_text(cells):
            empty = pc.or_(empty, pc.equal(cells, "").fill_null(True))
        if pc.any(empty).as_py():
            row = pc.index(empty, True).as_py()
            raise InvalidValue(
                f"{self.file}, row {row + 1}: {self.name} is empty; "
                "give it a value, or remove the row to have the step filled from its neighbours"
            )

    def __len__(self) -> int:
        return len(self.cells)

    def numbers(self) -> FloatArray:
        """Every cell as a finite number."""
        if not (_is_text(self.cells) or _is_numeric(self.cells)):
            raise self._wrong_kind("numbers")
        numbers: FloatArray = self._converted(pa.float64(), "is not a number").to_numpy(zero_copy_only=False)
        self._refuse_any(~np.isfinite(numbers), "is not a finite number")
        return numbers

    def amounts(self) -> FloatArray:
        """Every cell as a finite number that is not negative."""
        numbers = self.numbers()
        self._refuse_any(numbers < 0, "is negative; use 0 where nothing arrived")
        return numbers

    def times(self) -> Times:
        """Every cell as a time: a number of seconds, an ISO time, or a timestamp. There must be at least one."""
        if _is_numeric(self.cells) or (_is_text(self.cells) and _converts(self.cells[:1], pa.float64())):
            seconds = self.numbers()
            return Times(offsets_s=seconds - seconds[0], start=None)
        stamps = self._stamps()
        nanoseconds = stamps.cast(pa.int64()).to_numpy(zero_copy_only=False)
        epoch = datetime(1970, 1, 1, tzinfo=UTC if stamps.type.tz else None)
        first = epoch + timedelta(microseconds=int(nanoseconds[0]) // 1000)
        return Times(offsets_s=(nanoseconds - nanoseconds[0]) / 1e9, start=first.isoformat())

    def refusal(self, row: int, why: str) -> InvalidValue:
        """The error that refuses a row because of its cell in this column."""
        return InvalidValue(f"{self.file}, row {row + 1}: {self.name} {self.quoted(row)} {why}")

    def quoted(self, row: int) -> str:
        return quoted(self.cells[row : row + 1].cast(pa.string())[0].as_py())

    def _stamps(self) -> pa.Array:
        zoned, naive = pa.timestamp("ns", "UTC"), pa.timestamp("ns")
        if _is_text(self.cells):
            if _converts(self.cells[:1], zoned):
                return self._converted(zoned, "is not an ISO time with a time zone, as the first row has")
            return self._converted(naive, "is neither a number of seconds nor an ISO time such as '2024-05-01 08:00:00'")
        kind = self.cells.type
        if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
            raise self._wrong_kind("times")
        has_zone = pa.types.is_timestamp(kind) and kind.tz
        return self._converted(zoned if has_zone else naive, "is outside the years 1678 to 2261")

    def _converted(self, kind: pa.DataType, why: str) -> pa.Array:
        try:
            return _cast(self.cells, kind)
        except pa.ArrowInvalid:
            raise self.refusal(_first_unconvertible(self.cells, kind), why) from None

    def _refuse_any(self, wrong: NDArray[np.bool_], why: str) -> None:
        if wrong.any():
            raise self.refusal(int(wrong.argmax()), why)

    def _wrong_kind(self, wanted: str) -> InvalidValue:
        return InvalidValue(f"{self.file}: column {self.name!r} holds {self.cells.type}, not {wanted}; name another column")


def quoted(text: str) -> str:
    """A piece of a file as a message shows it: in quotes, on one line, and not too long."""
    return repr(text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "...")


def _plain(cells: pa.Array) -> pa.Array:
    """Text of one kind and without surrounding blanks, times without a zone other than UTC; anything else as it is."""
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    if pa.types.is_large_string(cells.type) or pa.types.is_string_view(cells.type):
        cells = cells.cast(pa.string())
    if pa.types.is_timestamp(cells.type) and cells.type.tz:
        # Arrow prints a time of another zone only where the machine has a database of zones.
        cells = cells.cast(pa.timestamp(cells.type.unit, "UTC"))
    return pc.utf8_trim_whitespace(cells) if _is_text(cells) else cells


def _is_text(cells: pa.Array) -> bool:
    return bool(pa.types.is_string(cells.type))


def _is_numeric(cells: pa.Array) -> bool:
    kind = cells.type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _cast(cells: pa.Array, kind: pa.DataType) -> pa.Array:
    # A huge whole number may lose its last digits; a time may not wrap around.
    return cells.cast(kind, safe=not pa.types.is_floating(kind))


def _converts(cells: pa.Array, kind: pa.DataType) -> bool:
    try:
        _cast(cells, kind)
    except pa.ArrowInvalid:
        return False
    return True


def _first_unconvertible(cells: pa.Array, kind: pa.DataType) -> int:
    """The first row that cannot be converted, found by halving; some row cannot."""
    low, high = 0, len(cells)
    while high - low > 1:
        middle = (low + high) // 2
        if _converts(cells[low:middle], kind):
            low = middle
        else:
            high = middle
    return low
