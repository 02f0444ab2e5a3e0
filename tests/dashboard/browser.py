"""What the tests of the page share: a journal that grows as they say, the dashboard in its own process, and a real Chromium."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from debian import program

SOURCES = str(Path(__file__).parents[2] / "src")
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
Record = dict[str, Any]


def chromium() -> str:
    """The browser of this machine, or Debian's."""
    return program("chromium", NAMES)


def springtide(*arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "springtide", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=True)


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": SOURCES, "PYTHONUNBUFFERED": "1"}


class Recording:
    """A simulated run, record by record, with what a live one has besides: rows of every shard, a pool, a forecast."""

    def __init__(self, path: Path) -> None:
        self.records: list[Record] = [json.loads(line) for line in path.read_text().splitlines()]
        self.records[0] |= {
            "live": True,
            "pool": {"min_hosts": 1, "max_hosts": 4, "cores": 4, "start_s": 30.0, "release_s": 5.0},
        }
        keyed = {operator["name"]: operator["shards"] for operator in self.records[0]["application"]["operators"]}
        for record in self.records:
            if record["kind"] == "observation":
                _with_shards(record, keyed)
            elif record["kind"] == "decision":
                record["forecast"] = [_forecast(60.0)]

    def of(self, kind: str) -> list[Record]:
        return [record for record in self.records if record["kind"] == kind]

    def until(self, interval: int) -> list[Record]:
        """Everything up to the decision on an interval."""
        last = next(i for i, r in enumerate(self.records) if r["kind"] == "decision" and r["interval"] == interval)
        return self.records[: last + 1]

    def in_batches(self, each: int) -> list[Record]:
        """The same in intervals of 2 s, of which only each so-many'th sees a batch end: as a live run with long batches."""
        found: list[Record] = json.loads(json.dumps(self.records))
        for record in found:
            for name in record.keys() & {"time_s", "start_s", "end_s", "interval_s"}:
                record[name] /= 15
            if record["kind"] == "observation" and record["interval"] % each:
                record["latency"] |= dict.fromkeys(record["latency"].keys() - {"rows"}) | {"rows": 0.0}
                for operator in record["operators"]:
                    operator |= {"processed_rows": 0.0, "emitted_rows": 0.0}
                    if operator["shards"]:
                        operator["shards"]["rows"] = [0.0] * len(operator["shards"]["rows"])
        return found

    def with_costs(self, costs: dict[str, Record], busy_share: float) -> list[Record]:
        """The same with what the batches of some operators cost, where every host is busy for this share of time."""
        found: list[Record] = json.loads(json.dumps(self.records))
        for record in found:
            if record["kind"] == "observation":
                for operator in record["operators"]:
                    operator |= {"costs": costs.get(operator["name"]), "busy_share": busy_share}
                for host in record["hosts"]:
                    host["busy_share"] = busy_share
        return found

    def older(self) -> list[Record]:
        """The same as versions wrote it that knew neither costs nor busy shares."""
        found: list[Record] = json.loads(json.dumps(self.records))
        for record in found:
            if record["kind"] == "observation":
                for load in (*record["operators"], *record["hosts"]):
                    load.pop("costs", None)
                    del load["busy_share"]
        return found

    def allocation(self, interval: int) -> Record:
        """The allocation observed in an interval; a journal has it only where it is new."""
        seen = [record["observed"] for record in self.of("observation")[: interval + 1] if record["observed"]]
        return dict(seen[-1])

    def moved(self) -> tuple[int, str, int, str, str]:
        """The first shard that another host serves: interval, operator, shard, from, to."""
        for interval in range(1, len(self.of("observation"))):
            before, now = shard_hosts(self.allocation(interval - 1)), shard_hosts(self.allocation(interval))
            for operator, hosts in now.items():
                for shard, (old, new) in enumerate(zip(before[operator], hosts, strict=True)):
                    if old != new:
                        return interval, operator, shard, old, new
        raise AssertionError("no shard moved in this run")


def shard_hosts(allocation: Record) -> dict[str, list[str]]:
    return {p["operator"]: [p["replica_hosts"][r] for r in p["shard_replicas"]] for p in allocation["operators"]}


def _with_shards(record: Record, keyed: dict[str, int]) -> None:
    for operator in record["operators"]:
        count = keyed[operator["name"]]
        if count:
            rows = [2 * operator["processed_rows"] * (shard + 1) / (count * (count + 1)) for shard in range(count)]
            none = [0.0] * count
            operator["shards"] = {"rows": rows, "busy_s": none, "backlog_rows": none, "state_bytes": none}


def _forecast(mean: float) -> Record:
    levels = {"mean": [mean] * 4, "low": [0.5 * mean] * 4, "high": [1.5 * mean] * 4}
    return {"source": "source", "model": "naive", "interval_s": 30.0, **levels}


def write(path: Path, records: list[Record], mode: str = "a") -> None:
    with path.open(mode) as file:
        file.writelines(json.dumps(record, separators=(",", ":")) + "\n" for record in records)


class Served:
    """`springtide dashboard` and where it is."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process = process
        self.address = address
        self.plain, _, self.token = address.partition("#token=")

    @property
    def port(self) -> int:
        return int(self.plain.rstrip("/").rpartition(":")[2])

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=30)


def serve(*journals: Path, port: int = 0) -> Served:
    command = [sys.executable, "-m", "springtide", "dashboard", *map(str, journals), "--port", str(port)]
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if address := re.search(r"http://\S+#token=\S+", line):
            return Served(process, address.group())
    raise AssertionError(f"the dashboard did not start: {''.join(said)}")
