"""One series from what was counted of it: its rates without gaps, its parts, its scale, and which windows there are.

This is the work that must see a whole series at once. It runs in Spark's Python workers, one series at a time.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from springtide.errors import require
from springtide.forecast.pipeline.filling import filled_rates, gaps_in
from springtide.forecast.pipeline.options import PrepareOptions
from springtide.forecast.pipeline.parts import Bounds, Lengths, lengths_for, split_of, usual_split
from springtide.forecast.pipeline.prepared import PreparedSeries, WindowCounts
from springtide.forecast.pipeline.rates import IntervalCounts, SeriesPlan, interval_at, rates_of, time_text
from springtide.forecast.pipeline.windowing import Series, days_of_windows, digest_of
from springtide.model.observation import FloatArray
from springtide.model.windows import Scale


def assemble(
    plan: SeriesPlan, counts: IntervalCounts, options: PrepareOptions, before: PreparedSeries | None
) -> tuple[PreparedSeries, Series]:
    """A series as it is now; boundaries, lengths and scale stay as they were `before`, so that new days are test days."""
    recorded = rates_of(plan, counts)
    series = replace(recorded, rates_per_s=filled_rates(recorded.rates_per_s, plan.interval_s))
    bounds = _new_bounds(series, options) if before is None else bounds_in(before, series)
    if before is None:
        lengths = lengths_for(bounds, plan.interval_s, options.past_s, options.future_s)
        scale = scale_of(series.rates_per_s[: bounds.validation], series.filled[: bounds.validation])
    else:
        lengths, scale = Lengths(past=before.past, future=before.future), before.scale
    days = days_of_windows(series, bounds, lengths, options.most_windows)
    totals = {part: sum(len(day.origins) for day in days if day.part == part) for part in ("train", "validation", "test")}
    summary = PreparedSeries(
        name=plan.name,
        kind=plan.kind,
        interval_s=plan.interval_s,
        past=lengths.past,
        future=lengths.future,
        scale=scale,
        intervals=len(series.rates_per_s),
        gaps=gaps_in(series.filled),
        start=_time(series, 0),
        validation_start=before.validation_start if before else _time(series, bounds.validation),
        test_start=before.test_start if before else _time(series, bounds.test),
        end=_time(series, len(series.rates_per_s)),
        windows=WindowCounts(**totals),
        written_rates=_digest(series),
        written={day.name: digest_of(day, series, lengths, scale) for day in days},
    )
    return summary, series


def scale_of(rates_per_s: FloatArray, filled: NDArray[np.bool_]) -> Scale:
    """The scale of a training part, from what was recorded of it."""
    recorded = rates_per_s[~filled]
    require(recorded.size > 0, "has nothing recorded in its training part")
    return Scale(
        low_per_s=float(recorded.min()),
        high_per_s=float(recorded.max()),
        mean_per_s=float(recorded.mean()),
        deviation_per_s=float(recorded.std()),
    )


def bounds_in(prepared: PreparedSeries, series: Series) -> Bounds:
    """Where the parts of a series begin, counted from its first interval, which may have moved."""
    end = len(series.rates_per_s)
    starts = (interval_at(text, series.interval_s) - series.first for text in (prepared.validation_start, prepared.test_start))
    validation, test = (min(max(0, start), end) for start in starts)
    return Bounds(validation=validation, test=test, end=end)


def _new_bounds(series: Series, options: PrepareOptions) -> Bounds:
    intervals = len(series.rates_per_s)
    split = usual_split(intervals, series.interval_s) if options.split is None else split_of(options.split)
    return split.bounds(intervals, series.interval_s)


def _time(series: Series, interval: int) -> str:
    return time_text((series.first + interval) * series.interval_s * 1_000_000)


def _digest(series: Series) -> str:
    hashed = hashlib.blake2b(repr((series.first, series.interval_s)).encode(), digest_size=8)
    hashed.update(series.rates_per_s.tobytes())
    hashed.update(series.filled.tobytes())
    return hashed.hexdigest()
