"""A real Prometheus, set up as the documentation says, has an answer to everything that the Grafana file asks."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from browser import serve
from debian import program
from journals import COSTS, POOL, append, observation_line, placed, small_run, write

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"
SOON_S = 60.0
# What a variable of Grafana stands for where everything is chosen.
EVERYTHING = {"$run": ".*", "$operator": ".*"}


@contextmanager
def prometheus(config: str, folder: Path) -> Iterator[httpx.Client]:
    """A server that scrapes as often as it can; it is gone at the end of the block."""
    path = program("prometheus")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    (folder / "prometheus.yml").write_text("global:\n  scrape_interval: 1s\n" + config)
    command = [path, f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'tsdb'}"]
    command.append(f"--web.listen-address=127.0.0.1:{port}")
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v1/", timeout=SOON_S) as client:
            yield client
    finally:
        process.terminate()
        process.wait(timeout=30)


def answer(client: httpx.Client, expression: str) -> list[dict[str, Any]]:
    said = client.get("query", params={"query": expression}).json()
    assert said["status"] == "success", f"{expression}: {said}"
    return list(said["data"]["result"])


def wait_for(client: httpx.Client, expression: str) -> list[dict[str, Any]]:
    """Until there is an answer: the server starts, and scrapes for the first time."""
    by_s = time.monotonic() + SOON_S
    while time.monotonic() < by_s:
        try:
            if found := answer(client, expression):
                return found
        except (httpx.TransportError, json.JSONDecodeError):
            pass
        time.sleep(0.2)
    raise AssertionError(f"no answer to {expression}")


def documented(number: int) -> str:
    """A block of YAML of the page, as it stands there."""
    return re.findall(r"^```yaml\n(.*?)^```$", (DOCS / "metrics.md").read_text(), flags=re.MULTILINE | re.DOTALL)[number]


def grafanas_expressions() -> list[str]:
    shown = json.loads((DOCS / "grafana" / "springtide.json").read_text())
    found = [target["expr"] for panel in shown["panels"] for target in panel.get("targets", [])]
    for variable, value in EVERYTHING.items():
        found = [expression.replace(variable, value) for expression in found]
    return found


def test_prometheus_has_an_answer_to_everything_that_grafana_asks(tmp_path: Path) -> None:
    live = write(tmp_path / "live.jsonl", small_run(pool=POOL, live=True))
    behind = {"rows": 180_000.0, "backlog_rows": {"count": 60_000.0}, "latency_s": 7.0}
    append(live, observation_line(3, allocation=placed(2, 2), costs={"count": COSTS}, **behind))
    dashboard = serve(live)
    (tmp_path / "alerts.yml").write_text(documented(2))
    config = documented(0).replace("127.0.0.1:8765", f"127.0.0.1:{dashboard.port}")
    try:
        with prometheus(f"rule_files: [alerts.yml]\n{config}", tmp_path) as client:
            (waiting,) = wait_for(client, "springtide_backlog_rows")
            assert float(waiting["value"][1]) == 60_000.0
            assert waiting["metric"]["job"] == "springtide"
            wait_for(client, "springtide_oracle_core_seconds")  # worked out a moment later
            wait_for(client, "increase(springtide_decisions_total[5m])")  # of two scrapes
            for expression in grafanas_expressions():
                assert "$" not in expression, expression
                assert answer(client, expression), expression
            (rules,) = client.get("rules").json()["data"]["groups"]
            states = {rule["name"]: answer(client, rule["query"]) for rule in rules["rules"]}
            assert states["ObjectiveIsMissed"], "7 s, where 5 s are allowed"
            assert not states["RunIsStaleOrFailed"]
    finally:
        dashboard.stop()
