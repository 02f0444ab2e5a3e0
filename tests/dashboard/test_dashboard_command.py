"""`springtide dashboard` as it is met: a real server on a real port, many viewers, and Ctrl-C."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from journals import POOL, append, observation_line, small_run, write

from ran import assert_refused
from springtide.dashboard.serving import token_from

SOON_S = 30.0


@pytest.fixture
def live(tmp_path: Path) -> Path:
    return write(tmp_path / "live.jsonl", small_run(pool=POOL, live=True))


class Served:
    """A dashboard in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stderr is not None
        self.said = process.stderr.readline()
        assert self.said.startswith("Dashboard: http://"), self.said + process.stderr.read()
        url = self.said.removeprefix("Dashboard: ").strip()
        self.base, _, fragment = url.partition("/#")
        self.base = self.base.partition("/?")[0]
        self.token = (fragment or url.partition("/?")[2]).removeprefix("token=")

    def stop(self, how: signal.Signals) -> tuple[int, str]:
        self.process.send_signal(how)
        _, err = self.process.communicate(timeout=SOON_S)
        return self.process.returncode, err


@contextmanager
def served(*arguments: object, **environment: str) -> Iterator[Served]:
    command = [sys.executable, "-m", "springtide", "dashboard", "--port", "0", *map(str, arguments)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})
    try:
        yield Served(process)
    finally:
        process.kill()
        process.communicate()


def test_a_run_is_shown_steered_and_left_with_ctrl_c(live: Path) -> None:
    with served(live) as shown:
        assert shown.base.startswith("http://127.0.0.1:")
        assert httpx.get(f"{shown.base}/api/runs/0").json()["intervals"] == 3
        body, token = {"do": "drain", "host": "host-1"}, {"x-springtide-token": shown.token}
        assert httpx.post(f"{shown.base}/api/runs/0/controls", json=body).status_code == 401
        assert httpx.post(f"{shown.base}/api/runs/0/controls", json=body, headers=token).status_code == 202
        assert json.loads(live.with_name("live.jsonl.controls").read_text())["host"] == "host-1"
        with httpx.stream("GET", f"{shown.base}/api/runs/0/events", timeout=SOON_S) as events:
            assert events.headers["content-type"].startswith("text/event-stream")
            lines = events.iter_lines()
            assert next(lines) == "event: status"
            code, err = shown.stop(signal.SIGINT)
            assert "event: frame" in list(lines)  # and the stream comes to an end of its own
        assert code == 130
        assert err.strip() == "springtide: interrupted"


def test_it_ends_when_it_is_told_to_without_a_traceback(live: Path) -> None:
    with served(live) as shown:
        code, err = shown.stop(signal.SIGTERM)
        assert code in (-signal.SIGTERM, 128 + signal.SIGTERM)
        assert err == ""


async def _new_frame(client: httpx.AsyncClient, base: str, ready: asyncio.Semaphore) -> dict[str, float]:
    """The first frame of an interval that was not there yet when the viewer came."""
    async with client.stream("GET", f"{base}/api/runs/0/events") as events:
        async for line in events.aiter_lines():
            if line.startswith("data: ") and '"interval":2,' in line:
                ready.release()
            elif line.startswith("data: ") and '"interval":3,' in line:
                return dict(json.loads(line.removeprefix("data: ")))
    raise AssertionError("the stream ended")


def test_fifty_viewers_see_a_new_interval(live: Path) -> None:
    async def story(base: str) -> None:
        limits = httpx.Limits(max_connections=100)
        async with httpx.AsyncClient(timeout=SOON_S, limits=limits) as client:
            ready = asyncio.Semaphore(0)
            viewers = [asyncio.create_task(_new_frame(client, base, ready)) for _ in range(50)]
            for _ in viewers:
                await asyncio.wait_for(ready.acquire(), SOON_S)
            append(live, observation_line(3))
            frames = await asyncio.wait_for(asyncio.gather(*viewers), SOON_S)
            assert frames == [frames[0]] * 50
            assert frames[0]["time_s"] == 240.0

    with served(live) as shown:
        asyncio.run(story(shown.base))


def test_a_journal_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "later.jsonl"
    with served(path) as shown, httpx.stream("GET", f"{shown.base}/api/runs/0/events", timeout=SOON_S) as events:
        lines = (line for line in events.iter_lines() if line.startswith("data: "))
        assert '"status":"empty"' in next(lines)
        write(path, small_run())
        assert any('"interval":2' in line for line in lines)


def test_raw_paths_do_not_lead_out_of_the_page(live: Path) -> None:
    with served(live) as shown:
        host, port = shown.base.removeprefix("http://").split(":")
        for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/../../../../etc/passwd", "//etc/passwd"):
            with socket.create_connection((host, int(port)), timeout=SOON_S) as raw:
                raw.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode())
                answer = b"".join(iter(lambda raw=raw: raw.recv(65536), b""))
            assert answer.split(b" ", 2)[1] in (b"404", b"400"), path


def test_other_addresses_are_not_opened_without_a_token(live: Path, monkeypatch: pytest.MonkeyPatch, springtide) -> None:
    monkeypatch.delenv("SPRINGTIDE_TOKEN", raising=False)
    assert_refused(springtide("dashboard", live, "--host", "0.0.0.0", "--port", "0"), "--token-file")


def test_on_other_addresses_the_token_comes_with_the_address(live: Path, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("0123456789abcdef\n")
    with served(live, "--host", "0.0.0.0", "--token-file", token) as shown:
        assert shown.token == "0123456789abcdef"
        assert "/?token=" in shown.said
        base = f"http://127.0.0.1:{shown.base.rpartition(':')[2]}"
        assert httpx.get(f"{base}/health").status_code == 401
        with httpx.Client() as browser:
            assert browser.get(f"{base}/health?token={shown.token}").status_code == 200
            assert browser.get(f"{base}/health").status_code == 200


def test_a_token_comes_from_a_file_or_the_environment_and_is_long_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, springtide, live: Path
) -> None:
    monkeypatch.delenv("SPRINGTIDE_TOKEN", raising=False)
    assert token_from(None) is None
    monkeypatch.setenv("SPRINGTIDE_TOKEN", "from-the-environment")
    assert token_from(None) == "from-the-environment"
    short = tmp_path / "short"
    short.write_text("abc")
    assert_refused(springtide("dashboard", live, "--token-file", short), "must have 16")
    assert_refused(springtide("dashboard", live, "--token-file", tmp_path / "none"), "cannot read the token")


def test_a_port_that_is_taken_is_one_line(live: Path, springtide) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert_refused(springtide("dashboard", live, "--port", port), f"cannot listen on 127.0.0.1:{port}")


def test_what_cannot_be_shown_is_refused_before_anything_is_opened(tmp_path: Path, springtide) -> None:
    other = tmp_path / "table.csv"
    other.write_text("a,b\n")
    assert_refused(springtide("dashboard", other), "is not a journal")
    assert_refused(springtide("dashboard", tmp_path), "is not a file")
    assert_refused(springtide("dashboard", tmp_path / "nowhere" / "run.jsonl"), "nor the folder")
    write(tmp_path / "run.jsonl", small_run())
    token = write(tmp_path / "token", [b"0123456789abcdef"])
    nowhere = springtide("dashboard", tmp_path / "run.jsonl", "--host", "no.such.host.invalid", "--token-file", token)
    assert_refused(nowhere, "no such address")
