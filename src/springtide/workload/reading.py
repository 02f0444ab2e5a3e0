"""Traces from files with one row per step: a column of times, and one of counts or rates.

Rules: nothing is repaired in silence. The only thing made up is the count of a step that is missing, and the trace
says how many there are; anything else that is wrong with a file is refused in one line that says where and what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from springtide.errors import InvalidValue, nearest, require
from springtide.model.observation import FloatArray
from springtide.workload.columns import Column, quoted
from springtide.workload.tables import Table, name_without_suffix, open_table
from springtide.workload.traces import Trace

TIME_COLUMNS = ("timestamp", "time", "datetime", "date", "second", "seconds", "time_s", "unix_time", "t")
COUNT_COLUMNS = ("count", "rows", "value", "requests", "events", "n", "statistics")
RATE_COLUMNS = ("rate", "rate_per_s", "rows_per_s")

# A recorder's clock jitters: a time may miss its step by this share of a step. Beyond it, the steps are not equal.
_JITTER = 0.25

# Differences between times are compared in microseconds: seconds since 1970 are no more precise than that as a float.
_TIME_DECIMALS = 6

# With fewer rows than one in so many steps, nearly all of the trace would be made up.
_MAX_STEPS_PER_ROW = 10

_MOST_NAMES = 12  # of a table's columns, in a message

_ONE_ROW_PER_STEP = "a trace has one row per step of equal length; count single events per second or minute first"


def read_trace(
    path: str | Path,
    *,
    time_column: str | None = None,
    count_column: str | None = None,
    rate_column: str | None = None,
) -> Trace:
    """The trace in a `.csv`, `.csv.gz` or `.parquet` file.

    Columns that are not given are found by their usual names. Times are numbers of seconds or ISO times; a rate is in
    rows per second. The step is the usual difference between times, and missing steps are filled by a straight line
    between their neighbours.
    """
    table = open_table(Path(path))
    time_at = _position(table, time_column, TIME_COLUMNS, "--time-column")
    amount_at, are_rates = _amount_position(table, count_column, rate_column)
    name = name_without_suffix(table.file)
    return trace_of(name, table.column(time_at), table.column(amount_at), are_rates=are_rates)


def trace_of(name: str, times: Column, amounts: Column, *, are_rates: bool = False) -> Trace:
    """The trace of a column of times and one of counts, or of rates."""
    require(len(times) > 1, f"{times.file}: has a single row, which does not tell how long a step is; give at least two")
    when = times.times()
    step_s, indices = _grid(times, when.offsets_s)
    counts = amounts.amounts() * (step_s if are_rates else 1.0)
    steps = int(indices[-1]) + 1
    return Trace(
        name=name,
        step_s=step_s,
        counts=np.interp(np.arange(steps), indices, counts),
        start=when.start,
        gaps=steps - indices.size,
    )


def _amount_position(table: Table, count_column: str | None, rate_column: str | None) -> tuple[int, bool]:
    """Where the table says how much arrived, and whether as rates. A table that has both is read by its counts."""
    require(count_column is None or rate_column is None, f"{table.file}: give --count-column or --rate-column, not both")
    has_rates_only = _usual_name(table, COUNT_COLUMNS) is None and _usual_name(table, RATE_COLUMNS) is not None
    if rate_column is not None or (count_column is None and has_rates_only):
        return _position(table, rate_column, RATE_COLUMNS, "--rate-column"), True
    return _position(table, count_column, COUNT_COLUMNS, "--count-column or --rate-column"), False


def _position(table: Table, given: str | None, usual: Sequence[str], option: str) -> int:
    """The position of the column that was given, or else of the first usual one."""
    name = given if given is not None else _usual_name(table, usual)
    if name is None:
        present = [quoted(n) for n in table.names[:_MOST_NAMES]] + ["..."] * (len(table.names) > _MOST_NAMES)
        raise InvalidValue(
            f"{table.file}: no column is called {usual[0]!r} or a usual word for it, only {', '.join(present)}; "
            f"name yours with {option}"
        )
    same = [i for i, n in enumerate(table.names) if n == name]
    same = same or [i for i, n in enumerate(table.names) if n.casefold() == name.casefold()]
    require(bool(same), f"{table.file}: there is no column {name!r}; {nearest(name, table.names)} (see {option})")
    require(len(same) == 1, f"{table.file}: {len(same)} columns are named {name!r}; rename one, or name another with {option}")
    return same[0]


def _usual_name(table: Table, usual: Sequence[str]) -> str | None:
    return next((name for word in usual for name in table.names if name.casefold() == word), None)


def _grid(times: Column, offsets_s: FloatArray) -> tuple[float, NDArray[np.int64]]:
    """The length of a step, and the step that each row falls in."""
    differences_s = np.diff(offsets_s)
    _refuse_disorder(times, differences_s)
    usual_s = _usual_difference(differences_s)
    require(usual_s > 0, f"{times.file}: its times are less than a microsecond apart; {_ONE_ROW_PER_STEP}")
    # Small differences of a drifting clock add up, so over many rows the mean may fit where the usual one does not.
    mean_s = float(offsets_s[-1] / np.rint(differences_s / usual_s).sum())
    step_s = mean_s if _fits(offsets_s, mean_s) and not _fits(offsets_s, usual_s) else usual_s
    _refuse_sparse(times, offsets_s[-1] / step_s)
    _refuse_stray(times, offsets_s, step_s)
    indices = np.rint(offsets_s / step_s).astype(np.int64)
    crowded = np.flatnonzero(np.diff(indices) == 0)
    if crowded.size:
        raise times.refusal(
            int(crowded[0]) + 1, f"falls in the same step of {step_s:g} s as the row before; {_ONE_ROW_PER_STEP}"
        )
    return step_s, indices


def _usual_difference(differences_s: FloatArray) -> float:
    """The most frequent difference, the smallest if several are; the median where no difference occurs twice."""
    values, frequencies = np.unique(np.round(differences_s, _TIME_DECIMALS), return_counts=True)
    usual = frequencies.argmax() if frequencies.max() > 1 else (values.size - 1) // 2
    return float(values[usual])


def _refuse_disorder(times: Column, differences_s: FloatArray) -> None:
    late = np.flatnonzero(differences_s <= 0)
    if late.size:
        row = int(late[0]) + 1
        if differences_s[row - 1] == 0:
            raise times.refusal(row, "occurs twice; keep one row for each time, with the sum of the counts")
        raise times.refusal(row, f"is before that of the row above, {times.quoted(row - 1)}; sort the rows by time")


def _refuse_sparse(times: Column, last_position: float) -> None:
    rows = len(times)
    require(
        last_position < _MAX_STEPS_PER_ROW * rows,
        f"{times.file}: {rows:,} rows for {last_position + 1:,.0f} steps are too few; {_ONE_ROW_PER_STEP}",
    )


def _refuse_stray(times: Column, offsets_s: FloatArray, step_s: float) -> None:
    stray = np.flatnonzero(_misses(offsets_s, step_s) > _JITTER)
    if stray.size:
        raise times.refusal(int(stray[0]), f"is not a whole number of steps of {step_s:g} s after row 1; {_ONE_ROW_PER_STEP}")


def _fits(offsets_s: FloatArray, step_s: float) -> bool:
    return bool(_misses(offsets_s, step_s).max() <= _JITTER)


def _misses(offsets_s: FloatArray, step_s: float) -> FloatArray:
    """By what share of a step each row misses its step."""
    positions = offsets_s / step_s
    return np.abs(positions - np.rint(positions))
