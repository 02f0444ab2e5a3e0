"""What the API answers, and how it refuses."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from journals import COSTS, POOL, append, control_line, end_line, observation_line, run_line, small_run, write
from served import ask, dashboard, post

import springtide
from springtide.dashboard.following import FollowedJournal
from springtide.dashboard.watching import Watched

SOON_S = 20.0


@pytest.fixture
def live(tmp_path: Path) -> Path:
    return write(tmp_path / "live.jsonl", small_run(pool=POOL, live=True))


def test_runs_are_numbered_as_on_the_command_line(live: Path, tmp_path: Path) -> None:
    found = ask(dashboard(live, tmp_path / "later.jsonl"), "/api/runs").json()
    assert found["version"] == springtide.__version__
    assert found["runs"] == [
        {"id": 0, "file": "live.jsonl", "application": "clicks", "policy": "static"},
        {"id": 1, "file": "later.jsonl", "application": None, "policy": None},
    ]


def test_a_run_is_described(live: Path) -> None:
    append(live, control_line(2, "pin", operator="count", replicas=2), control_line(2, "drain", host="host-1"))
    run = ask(dashboard(live), "/api/runs/0").json()
    assert run["application"]["sources"] == ["source"]
    assert {"name": "count", "shards": 4, "max_replicas": 4} in run["application"]["operators"]
    assert {"upstream": "parse", "downstream": "count", "selectivity": 1.0} in run["application"]["edges"]
    assert run["application"]["slo"] == {"latency_s": 5.0, "percentile": 0.9}
    assert run["policy"] == {"name": "static", "parameters": [{"name": "hosts", "value": 1}]}
    assert run["pool"] == {"min_hosts": 1, "max_hosts": 4, "cores": 4}
    assert (run["intervals"], run["first_s"], run["last_s"]) == (3, 0.0, 180.0)
    assert run["status"] == "running"
    assert run["steering"] == {"paused": False, "pins": {"count": 2}, "draining": ["host-1"]}
    assert run["controls"] == {"available": True, "why": ""}
    assert run["summary"] is None


def test_a_run_that_has_ended_has_a_summary_and_no_controls(live: Path) -> None:
    append(live, end_line())
    run = ask(dashboard(live), "/api/runs/0").json()
    assert (run["status"], run["summary"]) == ("ended", {"core_hours": 0.5})
    assert run["controls"] == {"available": False, "why": "the run has ended"}


def test_a_run_that_has_not_begun_is_empty(tmp_path: Path) -> None:
    shown = dashboard(tmp_path / "later.jsonl")
    run = ask(shown, "/api/runs/0").json()
    assert (run["status"], run["application"], run["intervals"], run["last_s"]) == ("empty", None, 0, None)
    assert ask(shown, "/api/runs/0/series").json()["time_s"] == []
    assert ask(shown, "/api/runs/0/decisions").json() == {"decisions": []}
    assert ask(shown, "/api/runs/0/frames/LAST").status_code == 404
    assert ask(shown, "/metrics").status_code == 200


def test_series_say_null_for_what_is_not_known(live: Path) -> None:
    found = ask(dashboard(live), "/api/runs/0/series?from_s=0&to_s=120&points=10").json()
    assert found["time_s"] == [60.0, 120.0]
    assert found["forecast_per_s"] == [None, 110.0]
    assert found["oracle_core_h"] == [None, None]
    assert found["changed"] == [0, 0]


def test_frames_by_number_and_the_last(live: Path) -> None:
    shown = dashboard(live)
    assert ask(shown, "/api/runs/0/frames/1").json()["interval"] == 1
    assert ask(shown, "/api/runs/0/frames/LAST").json()["interval"] == 2


def test_a_frame_has_what_a_batch_costs_and_how_busy_hosts_are(live: Path) -> None:
    append(live, observation_line(3, costs={"count": COSTS}, busy_share=0.9))
    shown = dashboard(live)
    last = ask(shown, "/api/runs/0/frames/LAST").json()
    costs = {operator["name"]: operator["costs"] for operator in last["operators"]}
    assert costs["count"]["row_s"] == {"value": 0.00304, "error": 0.0005984}
    assert costs["count"].keys() == {"driver_s", "batch_s", "task_s", "shard_s", "row_s", "skew", "batches"}
    assert costs["parse"] is None
    assert [host["busy_share"] for host in last["hosts"]] == [0.9]
    before = ask(shown, "/api/runs/0/frames/2").json()
    assert [operator["costs"] for operator in before["operators"]] == [None, None]


def test_decisions_by_page(live: Path) -> None:
    shown = dashboard(live)
    page = ask(shown, "/api/runs/0/decisions?before=2&limit=1").json()["decisions"]
    assert [entry["interval"] for entry in page] == [1]
    changes = ask(shown, "/api/runs/0/decisions?changes=1").json()["decisions"]
    assert [entry["interval"] for entry in changes] == [2, 0]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/runs/1", 404),
        ("/api/runs/x", 404),
        ("/api/runs/-1", 404),
        ("/api/runs/0/frames/99", 404),
        ("/api/runs/0/frames/-1", 404),
        ("/api/runs/0/frames/" + "9" * 40, 404),
        ("/api/runs/0/series?points=many", 400),
        ("/api/runs/0/series?points=-1", 400),
        ("/api/runs/0/series?from_s=nan", 400),
        ("/api/runs/0/decisions?before=1.5", 400),
        ("/api/runs/0/controls", 405),
        ("/nothing", 404),
    ],
)
def test_what_makes_no_sense_is_one_sentence(live: Path, path: str, status: int) -> None:
    answer = ask(dashboard(live), path)
    assert answer.status_code == status
    assert list(answer.json()) == ["error"]


def test_health_is_503_once_a_run_is_stale_or_failed(live: Path) -> None:
    shown = dashboard(live)
    assert ask(shown, "/health").json() == {"status": "ok", "runs": [{"id": 0, "status": "running"}]}
    os.utime(live, (0, 0))
    stale = ask(dashboard(live), "/health")
    assert (stale.status_code, stale.json()["runs"][0]["status"]) == (503, "stale")
    append(live, b"{]\n")
    failed = ask(dashboard(live), "/health")
    assert (failed.status_code, failed.json()["runs"][0]["status"]) == (503, "failed")


def test_a_frame_of_a_file_that_was_cut_off_is_an_answer_not_a_crash(live: Path) -> None:
    shown = dashboard(live)
    os.truncate(live, 10)
    answer = ask(shown, "/api/runs/0/frames/LAST")
    assert answer.status_code == 503
    assert "cannot be read" in answer.json()["error"]


def test_a_defect_is_a_sentence_too_and_keeps_other_sites_out(live: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("springtide.dashboard.app.series", broken)
    answer = ask(dashboard(live), "/api/runs/0/series", raising=False)
    assert answer.status_code == 500
    assert "ZeroDivisionError" in answer.json()["error"]
    assert "content-security-policy" in answer.headers


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"do": "pause"}, "pause"),
        ({"do": "resume"}, "resume"),
        ({"do": "pin", "operator": "count", "replicas": 4}, "pin count to 4 replicas"),
        ({"do": "pin", "operator": "count", "replicas": 1}, "pin count to 1 replica"),
        ({"do": "unpin", "operator": "count"}, "unpin count"),
        ({"do": "drain", "host": "host-1"}, "drain host-1"),
        ({"do": "undrain", "host": "host-9"}, "undrain host-9"),
    ],
)
def test_a_control_is_written_beside_the_journal_and_nowhere_else(live: Path, body: dict[str, Any], said: str) -> None:
    before = live.read_bytes()
    answer = post(dashboard(live), body)
    assert answer.status_code == 202
    assert answer.json()["said"].startswith(said)
    (line,) = live.with_name("live.jsonl.controls").read_text().splitlines()
    written = json.loads(line)
    assert written.keys() >= {"do", "operator", "host", "replicas", "who", "said_at"}
    assert {name: value for name, value in written.items() if value is not None}.items() >= body.items()
    assert written["who"].startswith("dashboard")
    assert "T" in written["said_at"]
    assert live.read_bytes() == before


def test_what_somebody_was_killed_while_asking_stays_apart(live: Path) -> None:
    controls = live.with_name("live.jsonl.controls")
    controls.write_bytes(b'{"do":"pau')
    post(dashboard(live), {"do": "pause"})
    torn, whole = controls.read_text().splitlines()
    assert torn == '{"do":"pau'
    assert json.loads(whole)["do"] == "pause"


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        ({"do": "explode"}, "no control 'explode'"),
        ({"do": "pin", "operator": "cuont", "replicas": 2}, "did you mean 'count'"),
        ({"do": "pin", "operator": "count", "replicas": 5}, "1 to 4 replicas, not 5"),
        ({"do": "pin", "operator": "count", "replicas": 0}, "1 to 4 replicas, not 0"),
        ({"do": "pin", "operator": "count"}, "needs a number"),
        ({"do": "pin", "replicas": 3}, "needs an operator"),
        ({"do": "drain"}, "needs a host"),
        ({"do": "drain", "host": "host-7"}, "no host 'host-7'"),
        ({"do": "pause", "host": "host-1"}, "takes no host"),
        ({"do": "pin", "operator": "count", "replicas": "4"}, "not a control"),
        ({"do": "pause", "more": 1}, "not a control"),
        ({}, "not a control"),
        ([], "not a control"),
        ({"do": "pause" * 2000}, "more than 4096 bytes"),
    ],
)
def test_a_control_that_makes_no_sense_is_refused_and_not_written(live: Path, body: Any, hint: str) -> None:
    answer = post(dashboard(live), body)
    assert answer.status_code == 400
    assert hint in answer.json()["error"]
    assert not live.with_name("live.jsonl.controls").exists()


def test_only_a_live_run_that_goes_on_takes_controls(live: Path, tmp_path: Path) -> None:
    recorded = write(tmp_path / "recorded.jsonl", small_run(pool=POOL))
    later = tmp_path / "later.jsonl"
    assert "not live" in post(dashboard(recorded), {"do": "pause"}).json()["error"]
    assert "not begun" in post(dashboard(later), {"do": "pause"}).json()["error"]
    assert "--no-controls" in post(dashboard(live, controls=False), {"do": "pause"}).json()["error"]
    append(live, end_line())
    answer = post(dashboard(live), {"do": "pause"})
    assert (answer.status_code, answer.json()["error"]) == (409, "the run has ended")
    assert list(tmp_path.glob("*.controls")) == []


def test_a_link_in_the_place_of_the_controls_is_not_followed(live: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("keep")
    live.with_name("live.jsonl.controls").symlink_to(secret)
    assert post(dashboard(live), {"do": "pause"}).status_code == 409
    assert secret.read_text() == "keep"


def watched(path: Path) -> Watched:
    run = Watched(0, FollowedJournal(path))
    run.journal.read_all()
    return run


def parsed(event: bytes) -> tuple[str, dict[str, Any]]:
    fields = dict(line.split(": ", 1) for line in event.decode().strip().split("\r\n"))
    return fields["event"], {**json.loads(fields["data"]), "#": fields.get("id")}


async def one_by_one(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The events of a stream; those that wait together come in one piece."""
    async for piece in pieces:
        for event in piece.split(b"\r\n\r\n")[:-1]:
            yield event


def test_a_viewer_is_told_how_it_is_and_then_everything_that_is_new(live: Path) -> None:
    async def story() -> None:
        run = watched(live)
        events = one_by_one(run.events())

        async def told() -> tuple[str, dict[str, Any]]:
            return parsed(await asyncio.wait_for(anext(events), 5))

        assert (await told())[1]["status"] == "running"
        name, newest = await told()
        assert (name, newest["#"], newest["interval"], newest["hosts"]) == ("frame", "2", 2, 2)
        await run.look()
        append(live, observation_line(3), control_line(3, "pause"), end_line())
        await run.look()
        name, newest = await told() if (said := await told())[0] == "status" else said
        assert (name, newest["interval"], newest["hosts"]) == ("frame", 3, 1)
        name, control = await told()
        assert (name, control["control"]["do"]) == ("control", "pause")
        name, status = await told()
        assert (name, status["status"]) == ("status", "ended")
        run.dismiss()
        assert [event async for event in events] == []
        assert run.viewers == 0

    asyncio.run(asyncio.wait_for(story(), SOON_S))


def test_a_viewer_that_does_not_read_loses_the_oldest_and_holds_up_nobody(tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl", [run_line()])

    async def story() -> None:
        run = watched(path)
        slow = one_by_one(run.events())
        await anext(slow)
        for i in range(300):
            append(path, observation_line(i))
            await run.look()
        run.dismiss()
        intervals = [parsed(event)[1]["interval"] async for event in slow if b"frame" in event[:20]]
        assert intervals[-1] == 299
        assert len(intervals) < 201

    asyncio.run(asyncio.wait_for(story(), SOON_S))


def test_the_oracle_is_worked_out_in_the_background(live: Path) -> None:
    async def story() -> None:
        run = Watched(0, FollowedJournal(live), oracle_after_s=0.0)
        viewer = one_by_one(run.events())
        await anext(viewer)  # its status
        await run.look()
        while b"event: oracle" not in await anext(viewer):
            pass
        assert run.best is not None
        assert len(run.best.core_h) == 3
        worked_out = run.best
        append(live, observation_line(3))
        await run.look()
        await asyncio.sleep(0.05)
        assert run.best is worked_out  # not again so soon

    asyncio.run(asyncio.wait_for(story(), SOON_S))
