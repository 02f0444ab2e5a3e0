"""An evening of the `words` application, told by its journal.

It is calm, then `count` runs hot and gets a second host; a third is wanted and refused; calm again; and the run is killed.
"""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Sequence

import msgspec
import pytest
from rich.console import Console

import factories
from springtide.errors import SpringtideError
from springtide.journal.from_model import decision_record, end_record, observation_record, outcome_record
from springtide.journal.records import ControlRecord, DecisionRecord, Record, RunRecord
from springtide.model.action import AddHosts
from springtide.model.decision import Decision, Expectation, Outcome, WhyNot
from springtide.report.explain import Entry, Explanation, Figure, Filters, VerdictCount, clock_text, explain, render

RUN = factories.run(trace="evening", seed=7)
ONE_HOST = factories.allocation(hosts=1)
TWO_HOSTS = factories.allocation(hosts=2, replicas={"count": 2})
WANTED = WhyNot("Cooldown", "add host-2", "40 s are left of 120 s")


def interval(index: int, decision: Decision, *, events: Sequence[str] = (), start_s: float = 0.0) -> list[Record]:
    """An observation and the decision on it; what is requested is one host until the story adds the second."""
    requested = ONE_HOST if index <= 10 else TWO_HOSTS
    seen = factories.observation(index=index, allocation=requested, events=events)
    actions = [AddHosts(("host-1",))] if decision.planned != requested else []
    moved = (observation_record(seen), decision_record(seen, decision, actions))
    return [msgspec.structs.replace(record, time_s=record.time_s + start_s) for record in moved]


def hold(reason: str, planned: object = ONE_HOST, why_not: Sequence[WhyNot] = ()) -> Decision:
    return factories.decision(planned, reason=reason, why_not=why_not)


def evening(start_s: float = 0.0) -> list[Record]:
    """Intervals 0-9 calm, 10 scales up, 11-13 are refused a third host, 14-19 calm; no end."""
    scale_up = factories.decision(
        TWO_HOSTS, reason="host-0 is at 0.95, above 0.8", expected=Expectation(utilisation=0.48, latency_s=1.25)
    )
    outcome = Outcome(
        interval=11,
        expected=scale_up.expected,
        measured=Expectation(utilisation=0.55, processed_rows_per_s=100.0, latency_s=1.1),
        verdict="as expected",
    )
    records: list[Record] = []
    for index in range(10):
        records += interval(index, hold(f"busiest host at 0.{50 + index}, below 0.8"), start_s=start_s)
    records += interval(10, scale_up, events=["host-0 is hot"], start_s=start_s)
    for index in range(11, 14):
        made = hold("host-0 is at 0.85, above 0.8", TWO_HOSTS, [WANTED])
        seen, decided = interval(index, made, start_s=start_s)
        records += [seen, outcome_record(outcome, seen.time_s), decided] if index == 11 else [seen, decided]
    for index in range(14, 20):
        records += interval(index, hold("busiest host at 0.6, below 0.8", TWO_HOSTS), start_s=start_s)
    return records


def shown(explanation: Explanation, width: int = 100) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(render(explanation))
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def entries(run: RunRecord, records: Sequence[Record], **filters: object) -> tuple[Entry, ...]:
    return explain(run, records, Filters(**filters)).entries


class TestTheEvening:
    def test_reads_as_a_timeline(self) -> None:
        assert shown(explain(RUN, evening())) == [
            "words, policy static, every 60 s, trace evening, seed 7",
            "00:01:00-00:11:00  held: busiest host at 0.50..0.59, below 0.8 (10 intervals)",
            "00:11:00           event: host-0 is hot",
            "                   changed: add host-1; count 1 -> 2 replicas; move 4 shards of count",
            "                   because: host-0 is at 0.95, above 0.8",
            "                   expected: utilisation 0.48, latency 1.25 s",
            "                   came of it: as expected (utilisation 0.55, latency 1.1 s)",
            "00:12:00-00:15:00  held: host-0 is at 0.85, above 0.8 (3 intervals)",
            "                   Cooldown: not add host-2, because 40 s are left of 120 s",
            "00:15:00-00:20:00  held: busiest host at 0.6, below 0.8 (6 intervals)",
            "ends early at 00:20:00: the run was killed, or is still going",
        ]

    def test_says_when_it_ended(self) -> None:
        ended = explain(RUN, [*evening(), end_record(1260.0, {"hosts": 2})])
        assert ended.ended
        assert shown(ended)[-2:] == [
            "00:15:00-00:21:00  held: busiest host at 0.6, below 0.8 (6 intervals)",
            "ended at 00:21:00",
        ]

    def test_is_told_in_run_time_whatever_the_clock_started_at(self) -> None:
        started_s = 1_770_000_000.0
        run = factories.run(trace="evening", seed=7, time_s=started_s)
        assert explain(run, evening(start_s=started_s)).entries == explain(RUN, evening()).entries

    def test_a_change_has_its_promises_beside_what_was_measured(self) -> None:
        (change,) = entries(RUN, evening(), changes_only=True)
        assert change.figures == (
            Figure(what="utilisation", expected=0.48, measured=0.55),
            Figure(what="latency_s", expected=1.25, measured=1.1),
        )
        assert change.verdicts == (VerdictCount(verdict="as expected", intervals=1),)
        assert change.actions == ("add host-1",)
        assert (change.start_s, change.end_s, change.first_interval) == (660.0, 720.0, 10)

    def test_is_plain_json_too(self) -> None:
        told = msgspec.json.decode(msgspec.json.encode(explain(RUN, evening())))
        assert (told["application"], told["ended"], told["last_s"]) == ("words", False, 1200.0)
        assert [entry["intervals"] for entry in told["entries"]] == [10, 1, 3, 6]


class TestFilters:
    def test_changes_only(self) -> None:
        assert [e.first_interval for e in entries(RUN, evening(), changes_only=True)] == [10]

    def test_a_window_of_time_counts_only_what_is_in_it(self) -> None:
        inside = entries(RUN, evening(), since_s=540.0, until_s=720.0)
        assert [(e.start_s, e.intervals) for e in inside] == [(540.0, 2), (660.0, 1), (720.0, 1)]
        assert inside[0].reason == "busiest host at 0.58..0.59, below 0.8"

    def test_an_operator_is_changed_or_spoken_of(self) -> None:
        records = evening()
        assert [e.first_interval for e in entries(RUN, records, operator="count")] == [10]
        records += interval(20, hold("parse is the bottleneck", TWO_HOSTS))
        records += interval(21, hold("parse-all is none of ours", TWO_HOSTS))
        records += interval(22, hold("calm", TWO_HOSTS, [WhyNot("Bounded", "a replica for parse", "4 is the limit")]))
        assert [e.first_interval for e in entries(RUN, records, operator="parse")] == [20, 22]

    def test_what_lies_between_is_not_folded_away(self) -> None:
        records = [
            record
            for index, reason in enumerate(["parse waits", "count waits", "parse waits"])
            for record in interval(index, hold(reason))
        ]
        assert [(e.first_interval, e.intervals) for e in entries(RUN, records, operator="parse")] == [(0, 1), (2, 1)]

    def test_nothing_left_is_said(self) -> None:
        assert shown(explain(RUN, evening(), Filters(since_s=7200.0)))[1:] == [
            "no decision matches the filters",
            "ends early at 00:20:00: the run was killed, or is still going",
        ]

    def test_an_unknown_operator_is_named_with_the_nearest(self) -> None:
        with pytest.raises(SpringtideError, match="application 'words' has no operator 'cuont'; did you mean 'count'"):
            explain(RUN, [], Filters(operator="cuont"))

    def test_a_window_that_ends_before_it_starts(self) -> None:
        with pytest.raises(SpringtideError, match="nothing lies between 01:00:00 and 00:30:00"):
            explain(RUN, [], Filters(since_s=3600.0, until_s=1800.0))


class TestFolding:
    @pytest.mark.parametrize(
        ("first", "second", "folded"),
        [
            ("at 0.5, below 0.8", "at 0.75, below 0.8", "at 0.5..0.75, below 0.8"),
            ("9,500 rows wait.", "12,000 rows wait.", "9,500..12,000 rows wait."),
            ("the trend is -3.5 rows/s", "the trend is 2 rows/s", "the trend is -3.5..2 rows/s"),
            ("busiest host-10 at 0.60", "busiest host-9 at 0.70", "busiest host-9..host-10 at 0.60..0.70"),
            ("1.2e+04 rows/s", "950 rows/s", "950..1.2e+04 rows/s"),
            ("20% busy (4 hosts)", "5% busy (4 hosts)", "5..20% busy (4 hosts)"),
        ],
    )
    def test_numbers_that_vary_become_a_range(self, first: str, second: str, folded: str) -> None:
        assert [e.reason for e in entries(RUN, interval(0, hold(first)) + interval(1, hold(second)))] == [folded]

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ("parse-1 is calm", "parse-2 is calm"),
            ("calm since 14:20", "calm since 14:21"),
            ("stage v1", "stage v2"),
            ("calm", "idle"),
        ],
    )
    def test_names_that_differ_are_other_reasons(self, first: str, second: str) -> None:
        assert len(entries(RUN, interval(0, hold(first)) + interval(1, hold(second)))) == 2

    def test_a_refusal_is_not_folded_into_calm(self) -> None:
        told = entries(RUN, interval(0, hold("calm")) + interval(1, hold("calm", why_not=[WANTED])) + interval(2, hold("calm")))
        assert [e.why_not for e in told] == [(), ("Cooldown: not add host-2, because 40 s are left of 120 s",), ()]

    def test_refusals_that_differ_in_numbers_are_one(self) -> None:
        vetoes = [WhyNot("Cooldown", "add host-2", f"{left} s are left") for left in (120, 60)]
        records = [r for index, veto in enumerate(vetoes) for r in interval(index, hold("hot", why_not=[veto]))]
        assert entries(RUN, records)[0].why_not == ("Cooldown: not add host-2, because 60..120 s are left",)

    def test_an_event_begins_a_line_of_its_own(self) -> None:
        told = entries(RUN, interval(0, hold("calm")) + interval(1, hold("calm"), events=["host-0 was lost"]))
        assert [(e.intervals, e.events) for e in told] == [(1, ()), (1, ("host-0 was lost",))]

    def test_verdicts_of_a_stretch_are_counted(self) -> None:
        records: list[Record] = []
        promise = Expectation(utilisation=0.5)
        for index, verdict in enumerate(["as expected", "utilisation 0.9, not 0.5", "as expected", "utilisation 0.7, not 0.5"]):
            records += interval(index, factories.decision(ONE_HOST, reason="calm", expected=promise))
            outcome = Outcome(interval=index + 1, expected=promise, measured=Expectation(), verdict=verdict)
            records.append(outcome_record(outcome, 60.0 * (index + 2)))
        explanation = explain(RUN, records)
        assert shown(explanation, width=160)[1] == (
            "00:01:00-00:05:00  held: calm (4 intervals); "
            "came of it: as expected (2 of 4), utilisation 0.7..0.9, not 0.5 (2 of 4)"
        )

    def test_an_unfinished_change_has_no_outcome_yet(self) -> None:
        records = interval(0, factories.decision(TWO_HOSTS, reason="hot", expected=Expectation(utilisation=0.5)))
        assert shown(explain(RUN, records))[3:5] == [
            "          expected: utilisation 0.5",
            "          came of it: not known",
        ]

    def test_without_a_promise_there_is_no_verdict_but_what_was_measured(self) -> None:
        measured = Expectation(utilisation=0.5, processed_rows_per_s=12_000.0)
        outcome = Outcome(interval=1, expected=Expectation(), measured=measured, verdict="as expected")
        records = [*interval(0, factories.decision(TWO_HOSTS, reason="hot")), outcome_record(outcome, 120.0)]
        assert shown(explain(RUN, records))[3] == "          came of it: utilisation 0.5, processed 12,000 rows/s"
        assert explain(RUN, records).entries[0].verdicts == ()


def test_a_run_killed_before_it_decided_anything() -> None:
    assert shown(explain(RUN, []))[1:] == [
        "no decision was recorded",
        "ends early at 00:00:00: the run was killed, or is still going",
    ]


def test_words_in_brackets_are_shown_as_they_are() -> None:
    """rich would take [bold] for markup."""
    assert any("within [bold] bounds" in line for line in shown(explain(RUN, interval(0, hold("within [bold] bounds")))))


def test_days_are_shown_beyond_the_first() -> None:
    assert [clock_text(s) for s in (0.0, 59.9999999, 86_399.0, 86_400.0)] == ["00:00:00", "00:01:00", "23:59:59", "1d 00:00:00"]


def test_rich_is_not_imported_until_something_is_rendered() -> None:
    program = "import sys, springtide.report.explain; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


class TestWhatWasAskedForByHand:
    def told(self, **filters: object) -> list[str]:
        records = evening()
        at = next(i for i, r in enumerate(records) if isinstance(r, DecisionRecord) and r.interval == 16)
        seen = records[at]
        asked = {"time_s": seen.time_s, "interval": 16, "who": "ada", "said_at": "2026-03-01T12:17:00Z"}
        records[at:at] = [
            ControlRecord(do="pin", operator="count", replicas=2, **asked),
            ControlRecord(do="refused", note="drain host-9: there is no host 'host-9'", **asked),
        ]
        return shown(explain(RUN, records, Filters(**filters)))

    def test_is_told_where_it_took_effect(self) -> None:
        lines = self.told(since_s=901)
        assert lines[1:5] == [
            "00:16:00           held: busiest host at 0.6, below 0.8",
            "00:17:00-00:20:00  by hand: pin count to 2 replicas (ada)",
            "                   by hand: refused: drain host-9: there is no host 'host-9' (ada)",
            "                   held: busiest host at 0.6, below 0.8 (4 intervals)",
        ]

    def test_is_a_change_like_those_of_the_policy(self) -> None:
        assert any("pin count" in line for line in self.told(changes_only=True))

    def test_concerns_the_operator_that_it_names(self) -> None:
        assert any("pin count" in line for line in self.told(operator="count", since_s=901))
        assert not any("pin count" in line for line in self.told(operator="parse"))
