"""What people ask of a run reaches it, whatever else is in the file; and nothing in the file can end the run."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

import factories
from springtide.backends.simulator.backend import SimulatorBackend
from springtide.backends.simulator.settings import SimulatorSettings
from springtide.errors import SpringtideError
from springtide.journal.controls import (
    ControlRequest,
    ControlsReader,
    append_control,
    controls_path,
    followed,
    in_words,
    refusal,
)
from springtide.journal.from_model import pool_record
from springtide.journal.reading import read_journal
from springtide.journal.records import ControlRecord, DecisionRecord, ObservationRecord, RunRecord
from springtide.journal.steered import SteeredJournal
from springtide.loop import ControlLoop
from springtide.model.allocation import HostType, Pool
from springtide.model.application import Grouping
from springtide.model.observation import Observation
from springtide.model.steering import UNSTEERED, Steering
from springtide.plan.registry import make_policy

APP = factories.application(
    factories.operator("parse", grouping=Grouping.SHUFFLE, service_time_s=0.01, max_replicas=6),
    factories.operator("count", service_time_s=0.02, shards=8),
)
POOL = Pool(host=HostType(cores=4, start_s=0.0, release_s=0.0), min_hosts=1, max_hosts=4)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


def pin(replicas: int = 4, operator: str = "count") -> ControlRequest:
    return ControlRequest(do="pin", operator=operator, replicas=replicas, who="ada")


class TestTheFile:
    def test_what_is_asked_for_is_read_once_in_its_order(self, journal: Path) -> None:
        reader = ControlsReader(journal)
        assert reader.new() == []
        append_control(journal, ControlRequest(do="pause", who="ada"))
        append_control(journal, pin())

        pause, pinned = reader.new()
        assert (pause.do, pinned.do, pinned.operator, pinned.replicas, pinned.who) == ("pause", "pin", "count", 4, "ada")
        assert datetime.fromisoformat(pause.said_at).tzinfo is not None
        assert reader.new() == []
        append_control(journal, ControlRequest(do="resume"))
        assert [request.do for request in reader.new()] == ["resume"]

    def test_what_was_there_before_the_run_is_not_meant_for_it(self, journal: Path) -> None:
        append_control(journal, ControlRequest(do="pause"))
        reader = ControlsReader(journal)
        append_control(journal, ControlRequest(do="resume"))

        assert [request.do for request in reader.new()] == ["resume"]

    def test_a_line_that_is_being_written_is_read_when_it_is_whole(self, journal: Path) -> None:
        reader, path = ControlsReader(journal), controls_path(journal)
        path.write_bytes(b'{"do":"pause","who":"ada"}\n{"do":"res')
        assert [request.do for request in reader.new()] == ["pause"]
        assert reader.new() == []
        with path.open("ab") as file:
            file.write(b'ume"}\n')
        assert [request.do for request in reader.new()] == ["resume"]

    def test_a_line_that_was_never_finished_does_not_spoil_the_next(self, journal: Path) -> None:
        reader = ControlsReader(journal)
        controls_path(journal).write_bytes(b'{"do":"pau')
        append_control(journal, ControlRequest(do="resume"))

        nonsense, resume = reader.new()
        assert nonsense.do == "refused"
        assert '{"do":"pau' in nonsense.note
        assert resume.do == "resume"

    @pytest.mark.parametrize(
        "line",
        [b"pause", b"[]", b"17", b'{"do":7}', b'{"do":"pin","replicas":"four"}', b"\xff\xfe", b"{" * 3000, b'{"who":"ada"}'],
    )
    def test_nonsense_is_refused_and_what_follows_is_read(self, journal: Path, line: bytes) -> None:
        reader = ControlsReader(journal)
        controls_path(journal).write_bytes(line + b"\n\n")
        append_control(journal, ControlRequest(do="pause"))

        nonsense, pause = reader.new()
        assert (nonsense.do, pause.do) == ("refused", "pause")
        assert nonsense.note
        assert refusal(nonsense, factories.run(APP).application, ["host-0"]) == nonsense.note

    def test_unknown_fields_are_of_a_later_version(self, journal: Path) -> None:
        reader = ControlsReader(journal)
        controls_path(journal).write_bytes(b'{"do":"pause","who":"ada","colour":"red","note":"I am no refusal"}\n')

        (pause,) = reader.new()
        assert (pause.do, pause.note) == ("pause", "")

    def test_a_line_without_end_is_refused(self, journal: Path) -> None:
        reader = ControlsReader(journal)
        controls_path(journal).write_bytes(b"x" * 300_000)
        assert [request.do for request in reader.new()] == ["refused"]

    def test_a_file_that_was_begun_anew_is_read_from_its_start(self, journal: Path) -> None:
        reader = ControlsReader(journal)
        for _ in range(3):
            append_control(journal, ControlRequest(do="pause"))
        assert len(reader.new()) == 3
        controls_path(journal).unlink()
        assert reader.new() == []
        append_control(journal, ControlRequest(do="resume"))
        assert [request.do for request in reader.new()] == ["resume"]

    def test_what_is_no_file_is_refused_once_and_waited_for_never(self, journal: Path) -> None:
        reader = ControlsReader(journal)
        os.mkfifo(controls_path(journal))
        (refused,) = reader.new()
        assert "not a regular file" in refused.note
        assert reader.new() == []

    def test_what_cannot_be_written_is_said(self, tmp_path: Path) -> None:
        with pytest.raises(SpringtideError, match=r"cannot write .*run\.jsonl\.controls"):
            append_control(tmp_path / "nowhere" / "run.jsonl", pin())

    def test_many_may_ask_at_once(self, journal: Path) -> None:
        reader = ControlsReader(journal)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda n: append_control(journal, pin(n)), range(1, 201)))

        requests = reader.new()
        assert sorted(request.replicas or 0 for request in requests) == list(range(1, 201))


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (ControlRequest(do="puase"), "there is no control 'puase'; did you mean 'pause'?"),
        (ControlRequest(do="refused"), "there is no control 'refused'"),
        (ControlRequest(do="pin", replicas=2), "pin needs an operator"),
        (ControlRequest(do="pin", operator="count"), "pin needs a number of replicas"),
        (pin(operator="cuont"), "application 'words' has no operator 'cuont'; did you mean 'count'?"),
        (pin(9), "count can have 1 to 8 replicas, not 9"),
        (pin(0), "count can have 1 to 8 replicas, not 0"),
        (ControlRequest(do="unpin", operator="count"), "count is not pinned"),
        (ControlRequest(do="drain"), "drain needs a host"),
        (ControlRequest(do="drain", host="host-7"), "there is no host 'host-7'; did you mean 'host-0'?"),
        (ControlRequest(do="undrain", host="host-0"), "host-0 is not being drained"),
    ],
)
def test_what_cannot_be_done_says_why(request_: ControlRequest, why: str) -> None:
    assert refusal(request_, factories.run(APP).application, ["host-0"], UNSTEERED).startswith(why)


def test_requests_add_up() -> None:
    steering = UNSTEERED
    for request in (
        ControlRequest(do="pause"),
        pin(4),
        pin(2, "parse"),
        pin(3),
        ControlRequest(do="drain", host="host-1"),
        ControlRequest(do="drain", host="host-2"),
        ControlRequest(do="undrain", host="host-1"),
        ControlRequest(do="unpin", operator="parse"),
    ):
        assert refusal(request, factories.run(APP).application, ["host-1", "host-2"], steering) == ""
        steering = followed(steering, request)

    assert steering == Steering(paused=True, pins={"count": 3}, draining=frozenset({"host-2"}))
    assert not followed(steering, ControlRequest(do="resume")).paused


# --- a run that is steered ------------------------------------------------------------------------------------------------


class Somebody:
    """A recorder that asks for things as the run goes on: what is said in interval n is there at the end of n + 1."""

    def __init__(self, journal: Path, asks: dict[int, list[ControlRequest | bytes]]) -> None:
        self._journal, self._asks = journal, asks

    def observation(self, observation: Observation) -> None: ...

    def decision(self, observation: Observation, *_: object) -> None:
        for asked in self._asks.get(observation.index, []):
            if isinstance(asked, bytes):
                with controls_path(self._journal).open("ab") as file:
                    file.write(asked)
            else:
                append_control(self._journal, asked)

    def outcome(self, *_: object) -> None: ...


def steered_run(journal: Path, asks: dict[int, list[ControlRequest | bytes]], *, rows_per_s: float, policy: str) -> None:
    """Twelve intervals of the simulator, journalled as a live run is."""
    from springtide.recording import Everyone  # noqa: PLC0415

    run: RunRecord = factories.run(APP, interval_s=10.0, pool=pool_record(POOL), live=True)
    rows = np.full((1, 120), rows_per_s)
    backend = SimulatorBackend(APP, POOL, SimulatorSettings(interval_s=10.0, initial_hosts=2), rows)
    with SteeredJournal(journal, run) as kept:
        loop = ControlLoop(application=APP, pool=POOL, policy=make_policy(policy, {}), interval_s=10.0, steering=kept.steering)
        loop.run(backend, Everyone((kept, Somebody(journal, asks))), backend.duration_s)


def test_a_run_does_as_it_is_told_and_keeps_who_said_so(journal: Path) -> None:
    asks: dict[int, list[ControlRequest | bytes]] = {
        1: [pin(5)],
        4: [ControlRequest(do="drain", host="host-1", who="bob"), b"rm -rf /\n"],
        6: [pin(99), ControlRequest(do="unpin", operator="count", who="ada")],
    }
    steered_run(journal, asks, rows_per_s=40.0, policy="static")

    records = list(read_journal(journal))
    controls = [r for r in records if isinstance(r, ControlRecord)]
    assert [(c.interval, c.do, c.who) for c in controls] == [
        (2, "pin", "ada"),
        (5, "drain", "bob"),
        (5, "refused", "somebody"),
        (7, "refused", "ada"),
        (7, "unpin", "ada"),
    ]
    assert in_words(controls[0]) == "pin count to 5 replicas (ada)"
    assert controls[3].note == "pin count to 99 replicas: count can have 1 to 8 replicas, not 99"
    counts = {r.interval: {o.name: o.replicas for o in r.operators} for r in records if isinstance(r, ObservationRecord)}
    assert counts[2]["count"] == 1
    assert counts[4]["count"] == counts[11]["count"] == 5, "the static policy leaves what was pinned as it is"
    hosts = {r.interval: [h.name for h in r.hosts] for r in records if isinstance(r, ObservationRecord)}
    assert (hosts[4], hosts[7]) == (["host-0", "host-1"], ["host-0"])
    of_interval = [type(r).__name__ for r in records if getattr(r, "interval", None) == 2]
    assert of_interval.index("ControlRecord") < of_interval.index("DecisionRecord")


def test_a_paused_policy_goes_on_deciding_and_is_let_go(journal: Path) -> None:
    asks: dict[int, list[ControlRequest | bytes]] = {0: [ControlRequest(do="pause")], 7: [ControlRequest(do="resume")]}
    steered_run(journal, asks, rows_per_s=300.0, policy="hpa")

    decisions = {r.interval: r for r in read_journal(journal) if isinstance(r, DecisionRecord)}
    assert all(decisions[i].change is None for i in range(1, 8))
    held = [w for i in range(1, 8) for w in decisions[i].why_not if w.why == "paused by hand"]
    assert held, "it says what would have been done"
    assert {w.who for w in held} == {"operator"}
    assert any(decisions[i].change is not None for i in range(8, 12))


def test_a_journal_of_a_live_run_has_every_shards_load_and_the_pool(journal: Path) -> None:
    steered_run(journal, {}, rows_per_s=40.0, policy="static")

    kept = read_journal(journal)
    assert kept.run.live
    assert kept.run.pool is not None
    assert (kept.run.pool.min_hosts, kept.run.pool.max_hosts, kept.run.pool.cores) == (1, 4, 4)
    first = next(r for r in kept if isinstance(r, ObservationRecord))
    assert first.operators[1].shards is not None
    assert len(first.operators[1].shards.rows) == 8


def test_what_a_killed_process_left_half_written_is_no_request(journal: Path) -> None:
    """A process that is killed while it asks leaves at most a torn line."""
    code = (
        "import os, signal, sys\n"
        "from springtide.journal.controls import ControlRequest, append_control\n"
        "append_control(sys.argv[1], ControlRequest(do='pause', who='ada'))\n"
        "open(sys.argv[1] + '.controls', 'ab').write(b'{\"do\":\"resume\"')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    reader = ControlsReader(journal)
    subprocess.run([sys.executable, "-c", code, str(journal)], check=False)

    assert [request.do for request in reader.new()] == ["pause"]
