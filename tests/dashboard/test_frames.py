"""One interval as a picture, and the list of what was decided."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from journals import COSTS, control_line, decision_line, observation_line, older, placed, run_line, small_run, write

from springtide.dashboard.decisions import decisions
from springtide.dashboard.following import FollowedJournal
from springtide.dashboard.frames import frame, moves
from springtide.journal.records import AllocationRecord, PlacementRecord


def followed(path: Path, lines: list[bytes]) -> FollowedJournal:
    journal = FollowedJournal(write(path / "run.jsonl", lines))
    journal.read_all()
    return journal


def pictured(journal: FollowedJournal, row: int) -> dict[str, Any]:
    return frame([journal.observation(row)], journal.observed(row - 1) if row else None)


def allocated(shard_hosts: str, hosts: str = "ab") -> AllocationRecord:
    """Shards on hosts of one letter, one replica on each host."""
    placement = PlacementRecord(
        operator="count", replica_hosts=tuple(hosts), shard_replicas=tuple(hosts.index(host) for host in shard_hosts)
    )
    return AllocationRecord(hosts=tuple(hosts), operators=(placement,))


def test_a_shard_that_another_host_serves_has_moved() -> None:
    found = list(moves(allocated("aabb"), allocated("abbb")))
    assert found == [{"operator": "count", "shard": 1, "from": "a", "to": "b"}]


def test_a_shard_that_another_replica_on_the_same_host_serves_has_not_moved() -> None:
    assert list(moves(allocated("aabb", "ab"), allocated("aabb", "ba"))) == []


def test_what_is_asked_for_is_pending_until_it_is_so(tmp_path: Path) -> None:
    journal = followed(tmp_path, small_run())
    asked, done = pictured(journal, 1), pictured(journal, 2)
    move = {"operator": "count", "shard": 0, "from": "host-0", "to": "host-1"}
    assert asked["moves"] == []
    assert move in asked["pending"]
    assert move in done["moves"]
    assert done["pending"] == []


def test_a_picture_tells_operators_hosts_and_shards(tmp_path: Path) -> None:
    first = pictured(followed(tmp_path, small_run()), 0)
    parse, count = first["operators"]
    assert (parse["shard_hosts"], parse["shard_rows_per_s"]) == ([], None)
    assert count["shard_hosts"] == ["host-0"] * 4
    assert count["shard_rows_per_s"] == pytest.approx([25.0] * 4)
    assert first["sources"] == [{"name": "source", "rows_per_s": 100.0}]
    assert first["hosts"][0]["replicas"] == 2
    assert first["moves"] == []


def test_rates_are_means_over_all_intervals_that_are_told_of(tmp_path: Path) -> None:
    """As where batches take longer than an interval: nothing is processed in the last one, and much in the one before."""
    journal = followed(tmp_path, [run_line(), observation_line(0, rows=6000.0), observation_line(1, rows=0.0)])
    both = frame([journal.observation(0), journal.observation(1)], None)
    alone = pictured(journal, 1)
    assert (both["interval"], both["rates_over_s"], alone["rates_over_s"]) == (1, 120.0, 60.0)
    for name, rate in (("processed_per_s", 50.0), ("offered_per_s", 50.0)):
        assert [operator[name] for operator in both["operators"]] == pytest.approx([rate, rate])
        assert [operator[name] for operator in alone["operators"]] == [0.0, 0.0]
    assert both["operators"][1]["shard_rows_per_s"] == pytest.approx([12.5] * 4)
    assert both["sources"] == [{"name": "source", "rows_per_s": 0.0}]


def test_a_journal_without_shards_has_no_rates_of_shards(tmp_path: Path) -> None:
    journal = followed(tmp_path, [run_line(), observation_line(0, with_shards=False)])
    count = pictured(journal, 0)["operators"][1]
    assert count["shard_rows_per_s"] is None
    assert len(count["shard_hosts"]) == 4


def test_a_picture_tells_what_a_batch_costs_and_how_busy_hosts_are(tmp_path: Path) -> None:
    seen = observation_line(0, costs={"count": COSTS}, utilisation=0.4, busy_share=0.9)
    picture = pictured(followed(tmp_path, [run_line(), seen]), 0)
    parse, count = picture["operators"]
    assert parse["costs"] is None
    assert count["costs"] == {
        "driver_s": {"value": 0.3184, "error": 0.02918},
        "batch_s": {"value": 0.08195, "error": 0.03681},
        "task_s": {"value": 0.07545, "error": 0.07338},
        "shard_s": {"value": 0.06848, "error": 0.02494},
        "row_s": {"value": 0.00304, "error": 0.0005984},
        "skew": {"value": 1.171, "error": 0.7115},
        "batches": 9.571,
    }
    assert (count["utilisation"], count["busy_share"]) == (0.4, 0.9)
    (host,) = picture["hosts"]
    assert (host["utilisation"], host["busy_share"]) == (pytest.approx(0.4), 0.9)


def test_costs_are_those_of_the_last_interval_that_is_told_of(tmp_path: Path) -> None:
    earlier = replace(COSTS, batches=1.0)
    lines = [observation_line(0, costs={"count": earlier}), observation_line(1, costs={"count": COSTS})]
    journal = followed(tmp_path, [run_line(), *lines])
    both = frame([journal.observation(0), journal.observation(1)], None)
    assert both["operators"][1]["costs"]["batches"] == 9.571


def test_a_journal_of_an_older_version_has_neither_costs_nor_busy_shares(tmp_path: Path) -> None:
    picture = pictured(followed(tmp_path, [run_line(), older(observation_line(0))]), 0)
    for operator in picture["operators"]:
        assert (operator["costs"], operator["busy_share"], operator["utilisation"]) == (None, None, 0.5)
    assert [(host["busy_share"], host["utilisation"]) for host in picture["hosts"]] == [(None, 0.5)]


def test_decisions_come_newest_first_with_what_came_of_them(tmp_path: Path) -> None:
    newest, middle, oldest = decisions(followed(tmp_path, small_run()))
    assert [newest["interval"], middle["interval"], oldest["interval"]] == [2, 1, 0]
    assert newest["verdict"] is None
    assert newest["measured"] is None
    assert middle["verdict"] == "utilisation 0.6 instead of 0.5"
    assert middle["why_not"] == [{"who": "bounds", "what": "a third host", "why": "two is the limit"}]
    assert middle["change"] is None
    assert oldest["verdict"] == "as expected"
    assert oldest["measured"]["utilisation"] == 0.6
    assert "host-1" in oldest["change"]


def test_decisions_that_changed_nothing_can_be_left_out_but_never_controls(tmp_path: Path) -> None:
    journal = followed(tmp_path, [*small_run(), control_line(2, "pause", note=""), decision_line(3)])
    shown = decisions(journal, changes_only=True)
    assert [entry["interval"] for entry in shown] == [2, 2, 0]
    assert shown[0]["control"]["do"] == "pause"
    assert shown[0]["control"]["who"] == "dashboard"


def test_a_page_ends_with_an_interval_so_that_the_next_can_go_on_before_it(tmp_path: Path) -> None:
    lines = [run_line(), observation_line(0, allocation=placed())]
    for i in range(6):
        lines += [control_line(i, "pause"), control_line(i, "resume"), decision_line(i)]
    journal = followed(tmp_path, lines)
    seen: list[int] = []
    before = None
    while page := decisions(journal, before=before, limit=4):
        seen += [entry["interval"] for entry in page]
        before = page[-1]["interval"]
    assert seen == [i for i in range(5, -1, -1) for _ in range(3)]
