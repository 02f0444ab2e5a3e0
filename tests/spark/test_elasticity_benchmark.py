"""What the benchmark of elasticity makes of runs, without Spark: known points, known answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from springtide.benchmarks.elasticity.measuring import CASES, measure
from springtide.benchmarks.elasticity.prediction import Stretch
from springtide.benchmarks.elasticity.steps import time_until_one_host_s
from springtide.errors import InvalidValue, SpringtideError
from springtide.report.summary import Point

QUIET = Point(
    time_s=0.0,
    offered_per_s=40.0,
    backlog_rows=0.0,
    replicas=1,
    hosts=1,
    utilisation=0.5,
    utilisation_max=0.5,
    latency_p50_s=1.0,
    latency_p90_s=2.0,
    latency_p99_s=2.5,
    changed=False,
)


def run(*intervals: tuple[float, int]) -> list[Point]:
    """Rates and hosts of intervals of 3 s."""
    return [replace(QUIET, time_s=3.0 * (i + 1), offered_per_s=rate, hosts=hosts) for i, (rate, hosts) in enumerate(intervals)]


def test_the_time_until_one_host_runs_from_the_end_of_the_burst() -> None:
    assert time_until_one_host_s(run((40, 1), (180, 1), (180, 4), (40, 4), (40, 2), (40, 1))) == 9.0
    assert time_until_one_host_s(run((40, 1), (180, 4), (40, 4), (40, 4))) == 6.0, "until the end of the run"
    with pytest.raises(InvalidValue, match="burst"):
        time_until_one_host_s(run((40, 1), (40, 1)))


def test_a_percentile_is_that_of_rows() -> None:
    stretch = Stretch(hosts=1, begins_s=0.0, ends_s=10.0)
    stretch.ages_s += [np.array([1.0, 3.0]), np.array([2.0])]
    stretch.rows += [np.array([80.0, 5.0]), np.array([15.0])]
    assert stretch.measured_s == 2.0
    assert stretch.rows_per_s == 10.0


def test_a_case_that_is_not_there_is_named_before_anything_starts() -> None:
    with pytest.raises(SpringtideError, match="pacing"):
        measure(["pace"])
    assert list(CASES) == ["steps", "constant", "prediction", "pacing"]
