"""The end of a batch is delayed so that the next one starts when it is meant to; nothing is delayed when a query stops."""

from __future__ import annotations

import math
import threading
import time

import pytest

from springtide.backends.spark.pacing import Pacing


def delayed_s(pacing: Pacing, began_s: float) -> float:
    before_s = time.monotonic()
    pacing.delay_end(began_s)
    return time.monotonic() - before_s


def in_background(pacing: Pacing, began_s: float) -> threading.Thread:
    thread = threading.Thread(target=pacing.delay_end, args=(began_s,), daemon=True)
    thread.start()
    return thread


def test_without_a_trigger_interval_nothing_is_delayed() -> None:
    assert delayed_s(Pacing(), time.time()) < 0.05


def test_a_batch_returns_when_its_interval_is_over_and_at_once_if_it_took_longer() -> None:
    pacing = Pacing()
    pacing.set(0.4)
    assert delayed_s(pacing, time.time() - 0.1) == pytest.approx(0.3, abs=0.1)
    assert delayed_s(pacing, time.time() - 5.0) < 0.05


def test_what_spark_takes_between_two_batches_is_part_of_the_interval() -> None:
    pacing = Pacing()
    pacing.set(0.5)
    pacing.delay_end(time.time() - 1.0)
    pacing.batch_begins(time.time() + 0.3)
    assert delayed_s(pacing, time.time()) == pytest.approx(0.2, abs=0.1)


def test_the_users_own_interval_is_the_least_and_sparks_to_keep() -> None:
    pacing = Pacing(2.0)
    pacing.set(0.5)
    assert pacing.trigger_s == 2.0
    assert delayed_s(pacing, time.time()) < 0.05, "Spark itself waits for it"


def test_a_multiple_of_the_users_interval_leaves_time_for_spark_to_meet_it() -> None:
    pacing = Pacing(0.4)
    pacing.set(0.8)
    assert delayed_s(pacing, time.time()) == pytest.approx(0.6, abs=0.1)


def test_a_query_that_follows_no_interval_is_never_delayed() -> None:
    pacing = Pacing()
    pacing.limit_to(0.0, 0.0)
    pacing.set(3.0)
    assert pacing.trigger_s == 0.0
    assert pacing.bounds_s == (0.0, 0.0)


@pytest.mark.parametrize("wake", [lambda pacing: pacing.set(0.0), lambda pacing: pacing.end()], ids=["shorter", "stopped"])
def test_a_batch_that_waits_follows_a_change_at_once(wake) -> None:
    pacing = Pacing()
    pacing.set(60.0)
    waiting = in_background(pacing, time.time())
    wake(pacing)
    waiting.join(timeout=10.0)
    assert not waiting.is_alive()
    assert math.isinf(pacing.bounds_s[1])
