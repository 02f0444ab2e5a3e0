"""The future of a trace, as the oracle sees it."""

from __future__ import annotations

import numpy as np
import pytest

from factories import observation
from springtide.forecast.running.foresight import Foresight
from springtide.model.protocols import FORESIGHT


def test_each_interval_is_told_what_comes_after_it_and_no_more_after_the_last() -> None:
    foresight = Foresight({"source": np.arange(12.0)}, step_s=5.0, interval_s=20.0, burst_s=5.0)
    first = foresight(observation(index=0, interval_s=20.0))
    assert first is not None
    assert first.model == FORESIGHT
    assert first.mean["source"] == pytest.approx([np.mean([4, 5, 6, 7]) / 5, np.mean([8, 9, 10, 11]) / 5])
    assert first.upper["source"] == pytest.approx([7 / 5, 11 / 5])
    assert foresight(observation(index=2, interval_s=20.0)) is None


def test_a_burst_is_the_highest_rate_that_lasts() -> None:
    rows = np.array([0.0, 0, 0, 0, 0, 0, 9, 3])
    foresight = Foresight({"source": rows}, step_s=1.0, interval_s=4.0, burst_s=2.0)
    told = foresight(observation(index=0, interval_s=4.0))
    assert told is not None
    assert told.upper["source"] == pytest.approx([6.0])  # 9 and 3 rows in two seconds


def test_the_last_interval_may_be_short() -> None:
    foresight = Foresight({"source": np.array([2.0, 2, 2, 2, 4])}, step_s=1.0, interval_s=4.0, burst_s=1.0)
    told = foresight(observation(index=0, interval_s=4.0))
    assert told is not None
    assert told.mean["source"] == pytest.approx([4.0])
