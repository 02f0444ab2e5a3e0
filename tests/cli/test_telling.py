"""A log of JSON lines: what a run was like, what was decided and why, for machines that read standard error."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta, timezone

import pytest

import factories
from springtide.cli.telling import InWords, StructuredLog, teller
from springtide.errors import SpringtideError
from springtide.model.action import AddHosts
from springtide.model.decision import WhyNot
from springtide.model.observation import Latency

NOON = datetime(2026, 3, 1, 13, 0, 0, 250_000, tzinfo=timezone(timedelta(hours=1)))


class Log(StructuredLog):
    def __init__(self) -> None:
        self.lines: list[bytes] = []
        super().__init__(self.lines.append, lambda: NOON)

    def read(self) -> list[dict[str, object]]:
        assert not any(b"\n" in line for line in self.lines)
        return [json.loads(line) for line in self.lines]


def test_an_interval_is_one_object() -> None:
    log = Log()
    log.observation(factories.observation(index=3, rows=600.0, backlog_rows={"count": 40.0}, latency_s=1.5))

    (line,) = log.read()
    assert line == {
        "timestamp": "2026-03-01T12:00:00.250Z",
        "level": "info",
        "kind": "observation",
        "interval": 3,
        "time_s": 240.0,
        "offered_per_s": 10.0,
        "backlog_rows": 40.0,
        "latency_p50_s": 1.5,
        "latency_p99_s": 1.5,
        "latency_slo_s": 1.5,
        "late_share": 0.0,
        "hosts": 1,
        "replicas": {"parse": 1, "count": 1},
    }


def test_events_have_lines_of_their_own() -> None:
    log = Log()
    log.observation(factories.observation(events=["host-0 failed", "a line\nbreak"]))

    assert [(line["kind"], line.get("message")) for line in log.read()] == [
        ("observation", None),
        ("event", "host-0 failed"),
        ("event", "a line\nbreak"),
    ]


def test_a_decision_says_why_and_why_not() -> None:
    log = Log()
    seen = factories.observation(allocation=factories.allocation(hosts=1))
    veto = WhyNot("cooldown", "add host-2", "40 s are left")
    planned = factories.allocation(hosts=2)
    log.decision(seen, factories.decision(planned, reason="too hot", why_not=[veto]), [AddHosts(("host-1",))])
    log.decision(seen, factories.decision(seen.requested, reason="hold"), [])

    decided, held = log.read()
    assert decided["reason"] == "too hot"
    assert str(decided["change"]).startswith("add host-1")
    assert decided["why_not"] == ["cooldown: not add host-2, because 40 s are left"]
    assert decided["actions"] == ["add host-1"]
    assert (held["change"], held["actions"]) == (None, [])


def test_what_is_not_finite_is_null() -> None:
    log = Log()
    log.observation(factories.observation(latency=Latency(rows=1.0, p50_s=math.nan, p99_s=math.inf)))

    (line,) = log.read()
    assert (line["latency_p50_s"], line["latency_p99_s"]) == (None, None)


def test_warnings_have_their_level() -> None:
    log = Log()
    log.say("Starting Spark ...")
    log.warn("the configuration stays as it was")

    assert [(line["level"], line["kind"], line["message"]) for line in log.read()] == [
        ("info", "message", "Starting Spark ..."),
        ("warning", "message", "the configuration stays as it was"),
    ]


def test_lines_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    teller("json").say("hello")
    teller("text").say("hello")
    teller("text").warn("mind the step")

    out, err = capsys.readouterr()
    as_json, in_words, warning = err.splitlines()
    assert out == ""
    assert datetime.fromisoformat(json.loads(as_json)["timestamp"]).tzinfo == UTC
    assert (in_words, warning) == ("hello", "springtide: mind the step")
    assert isinstance(teller("text"), InWords)


def test_another_format_is_refused() -> None:
    with pytest.raises(SpringtideError, match="did you mean 'json'"):
        teller("jsn")
