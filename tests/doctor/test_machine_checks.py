"""A machine that is too small, too full or closed off is told so before a run finds out."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from springtide.doctor import machine
from springtide.doctor.examination import available_mb
from springtide.doctor.finding import Level
from springtide.doctor.machine import Executors

FOUR = Executors(most=4, cores=1, memory_mb=600)  # and the driver: 5,120 MB


@pytest.mark.parametrize(
    ("available", "level"),
    [(8000, Level.OK), (5120, Level.OK), (5119, Level.WARNING), (2000, Level.PROBLEM), (None, Level.WARNING)],
)
def test_memory_is_held_against_what_executors_take(available: int | None, level: Level) -> None:
    found = machine.memory(available, FOUR)
    assert found.level is level, found
    assert "5,120 MB" in f"{found.found} {found.advice}"


def test_the_memory_of_a_container_counts_and_not_that_of_its_machine(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:       24684544 kB\nMemFree:        20000000 kB\nMemAvailable:   20480000 kB\n")
    assert available_mb(meminfo, tmp_path) == 20_000
    (tmp_path / "memory.current").write_text(f"{500 * 2**20}\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert available_mb(meminfo, tmp_path) == 20_000, "no limit"
    (tmp_path / "memory.max").write_text(f"{2000 * 2**20}\n")
    assert available_mb(meminfo, tmp_path) == 1500
    assert available_mb(tmp_path / "nothing", tmp_path) is None


def test_executors_that_share_cores_are_a_warning() -> None:
    assert machine.cores(4, FOUR).level is Level.OK
    assert machine.cores(2, FOUR).level is Level.WARNING


@pytest.mark.parametrize(("free", "level"), [(80_000, Level.OK), (2000, Level.WARNING), (300, Level.PROBLEM)])
def test_a_full_disk_is_seen_before_state_is_written(free: int, level: Level) -> None:
    assert machine.disk(free, "springtide-clicks").level is level


@pytest.mark.parametrize(("free", "level"), [(2000, Level.OK), (500, Level.WARNING), (100, Level.PROBLEM)])
def test_a_full_temporary_folder_is_seen_before_jvms_unpack_there(free: int, level: Level) -> None:
    assert machine.temporary(Path("/tmp"), writable=True, executable=True, free_mb=free).level is level


def test_a_folder_that_is_not_there_yet_is_judged_by_where_it_would_be_made(tmp_path: Path) -> None:
    wanted = tmp_path / "state" / "clicks"
    assert machine.writing(str(wanted)).level is Level.OK
    assert not (tmp_path / "state").exists(), "nothing is left behind"
    assert not any(tmp_path.iterdir())


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "clicks").touch()
    found = machine.writing(str(tmp_path / "clicks"))
    assert found.level is Level.PROBLEM
    assert "is a file" in found.found


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        assert machine.writing(str(tmp_path)).level is Level.PROBLEM
        assert machine.compiled_code(tmp_path / "springtide").level is Level.WARNING
    finally:
        tmp_path.chmod(0o700)


def test_a_place_that_only_arrow_and_spark_can_reach_is_tried_as_they_would(tmp_path: Path) -> None:
    assert machine.writing(f"file://{tmp_path}/far/away").level is Level.OK
    found = machine.writing("nowhere://bucket/state")
    assert found.level is Level.PROBLEM
    assert "nowhere" in found.found


def test_a_temporary_folder_must_let_libraries_be_loaded() -> None:
    place = Path("/tmp")
    assert machine.temporary(place, writable=False, executable=True, free_mb=9000).level is Level.PROBLEM
    noexec = machine.temporary(place, writable=True, executable=False, free_mb=9000)
    assert noexec.level is Level.PROBLEM
    assert "RocksDB" in noexec.found


def test_few_open_files() -> None:
    levels = [machine.open_files(limit).level for limit in (None, 65_536, 2048, 256)]
    assert levels == [Level.OK, Level.OK, Level.WARNING, Level.PROBLEM]


def test_loopback_works_and_a_port_that_is_taken_is_seen() -> None:
    assert machine.loopback().level is Level.OK
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert machine.dashboard_port(server.getsockname()[1]).level is Level.WARNING


def test_no_loopback_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> socket.socket:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(socket, "create_server", refuse)
    found = machine.loopback()
    assert found.level is Level.PROBLEM
    assert "firewall" in found.advice
