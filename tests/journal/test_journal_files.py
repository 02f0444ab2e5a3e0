"""A journal says all that happened, stays small, and refuses in one line what it cannot do."""

from __future__ import annotations

import math
import resource
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from small_journal import ONE_HOST, RUN, TWO_HOSTS, write_small_journal

import factories
from springtide.errors import SpringtideError
from springtide.journal.from_model import allocation_record, end_record, policy_record
from springtide.journal.reading import read_journal
from springtide.journal.records import DecisionRecord, EndRecord, ObservationRecord, OutcomeRecord
from springtide.journal.writing import JournalWriter
from springtide.model.observation import Observation


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


def observations(path: Path) -> list[ObservationRecord]:
    return [record for record in read_journal(path) if isinstance(record, ObservationRecord)]


def lines(path: Path) -> list[dict[str, object]]:
    return [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]


class TestWhatIsKept:
    def test_every_record_in_the_order_it_was_written(self, path: Path) -> None:
        records = write_small_journal(path)

        assert read_journal(path).run == RUN
        assert [type(r) for r in records] == [
            ObservationRecord, DecisionRecord, ObservationRecord, OutcomeRecord, DecisionRecord, EndRecord
        ]  # fmt: skip
        assert [r.time_s for r in records] == [60.0, 60.0, 120.0, 120.0, 120.0, 120.0]

    def test_a_decision_says_what_changes_why_and_why_not(self, path: Path) -> None:
        records = write_small_journal(path)
        scale_up, hold = (r for r in records if isinstance(r, DecisionRecord))

        assert scale_up.change == "add host-1; count 1 -> 2 replicas; move 4 shards of count"
        assert scale_up.changed_operators == ("count",)
        assert scale_up.reason == "count is at 0.95"
        assert scale_up.why_not[0].what == "a third host"
        assert scale_up.actions == ("add host-1", "count: 1 -> 2 replicas")
        assert scale_up.expected.latency_s == 1.0
        assert scale_up.expected.processed_rows_per_s is None
        assert (hold.change, hold.actions) == (None, ())

    def test_an_observation_has_operators_and_hosts_by_name_in_arrays(self, path: Path) -> None:
        write_small_journal(path)
        _, calm = observations(path)

        assert [(o.name, o.replicas, o.utilisation) for o in calm.operators] == [("parse", 1, 0.5), ("count", 2, 0.5)]
        assert [(h.name, h.state, h.replicas) for h in calm.hosts] == [("host-0", "running", 2), ("host-1", "running", 1)]
        assert [(r.kind, r.count) for r in calm.reconfigurations] == [("add_hosts", 1)]
        assert calm.sources[0].rows == 6000.0

    def test_the_run_record_describes_the_application_and_the_policy(self, path: Path) -> None:
        write_small_journal(path)
        run = read_journal(path).run

        assert [(o.name, o.grouping, o.shards) for o in run.application.operators] == [
            ("parse", "shuffle", 0),
            ("count", "key", 8),
        ]
        assert run.application.timeout_s is None  # infinite, which JSON does not know
        assert (run.policy.name, run.policy.parameters[0].name, run.policy.parameters[0].value) == ("static", "hosts", 1)

    def test_shards_are_kept_only_when_asked_for(self, path: Path, tmp_path: Path) -> None:
        detailed = tmp_path / "detailed.jsonl"
        write_small_journal(path)
        write_small_journal(detailed, detail="shards")

        assert all(o.shards is None for o in observations(path)[0].operators)
        assert observations(detailed)[0].operators[1].shards.rows == (750.0,) * 8
        with pytest.raises(SpringtideError, match="did you mean 'shards'"):
            write_small_journal(tmp_path / "typo.jsonl", detail="shard")

    def test_what_is_not_finite_is_null(self, path: Path) -> None:
        app = factories.application("count")
        count = factories.operator_observation(
            app.operators[0], factories.allocation(app).operators["count"], backlog_s=math.inf, latency_s=math.nan,
            shards=factories.shard_loads(2, busy_s=math.nan),
        )  # fmt: skip
        with JournalWriter(path, RUN, detail="shards") as journal:
            journal.observation(factories.observation(application=app, operators={"count": count}))
            journal.end(60.0, {"ratio": math.nan, "cost": np.float64(2.5), "per_host": np.array([1.0, -math.inf])})

        text = path.read_text()
        assert "NaN" not in text
        assert "Infinity" not in text
        (record,) = observations(path)[0].operators
        assert (record.backlog_s, record.latency_s, record.shards.busy_s) == (None, None, (None, None))
        assert lines(path)[-1]["summary"] == {"ratio": None, "cost": 2.5, "per_host": [1.0, None]}

    def test_a_value_that_is_not_json_is_refused_by_name(self) -> None:
        with pytest.raises(SpringtideError, match=r"the summary of the run .*: a object is not JSON"):
            end_record(0.0, {"what": object()})
        with pytest.raises(SpringtideError, match="parameters of policy 'static'"):
            policy_record("static", {"what": object()})

    def test_a_record_needs_a_time_and_a_run_a_time_zone(self) -> None:
        with pytest.raises(SpringtideError, match="needs a time, not nan"):
            end_record(math.nan, {})
        with pytest.raises(SpringtideError, match="needs a time zone"):
            factories.run(created_at=RUN.created_at.replace(tzinfo=None))


class TestAllocations:
    def test_are_written_when_they_change_and_read_as_if_always_written(self, path: Path) -> None:
        story = [
            (ONE_HOST, ONE_HOST),
            (ONE_HOST, TWO_HOSTS),
            (ONE_HOST, TWO_HOSTS),
            (TWO_HOSTS, TWO_HOSTS),
            (ONE_HOST, ONE_HOST),
        ]
        with JournalWriter(path, RUN) as journal:
            for index, (observed, requested) in enumerate(story):
                journal.observation(factories.observation(index=index, allocation=observed, requested=requested))

        written = [(line["observed"] is not None, line["requested"] is not None) for line in lines(path)[1:]]
        assert written == [(True, True), (False, True), (False, False), (True, False), (True, True)]
        assert [(o.observed, o.requested) for o in observations(path)] == [
            (allocation_record(observed), allocation_record(requested)) for observed, requested in story
        ]

    def test_an_equal_allocation_is_not_written_again_though_it_is_another_object(self, path: Path) -> None:
        with JournalWriter(path, RUN) as journal:
            for index in range(2):
                journal.observation(factories.observation(index=index, allocation=factories.allocation(hosts=1)))
        assert lines(path)[2]["observed"] is None

    def test_are_written_in_full_again_after_appending(self, path: Path) -> None:
        for index in range(2):
            with JournalWriter(path, RUN, append=True) as journal:
                journal.observation(factories.observation(index=index))
        assert lines(path)[2]["observed"] is not None

    def test_one_that_was_never_written_is_damage(self, path: Path) -> None:
        write_small_journal(path)
        run, _, *others = path.read_bytes().splitlines(keepends=True)
        stable = msgspec.json.encode({**msgspec.json.decode(others[1]), "observed": None})
        path.write_bytes(run + stable + b"\n")
        with pytest.raises(SpringtideError, match="line 2: it leaves out an allocation"):
            list(read_journal(path))


class TestWriting:
    def test_an_existing_journal_is_not_overwritten(self, path: Path) -> None:
        write_small_journal(path)
        before = path.read_bytes()
        with pytest.raises(SpringtideError, match=r"run\.jsonl already exists: remove it, or name another file"):
            JournalWriter(path, RUN)
        assert path.read_bytes() == before

    def test_an_empty_file_is_as_good_as_none(self, path: Path) -> None:
        path.touch()
        assert len(write_small_journal(path)) == 6

    def test_appending_goes_on_with_the_same_run(self, path: Path) -> None:
        records = write_small_journal(path)
        later = msgspec.structs.replace(RUN, created_at=RUN.created_at.replace(year=2030), springtide_version="9.9")
        with JournalWriter(path, later, append=True) as journal:
            assert journal.cut is None
            journal.end(180.0, {})

        assert read_journal(path).run == RUN
        assert tuple(read_journal(path)) == (*records, EndRecord(time_s=180.0, summary={}))

    def test_appending_another_run_is_refused(self, path: Path) -> None:
        write_small_journal(path)
        with pytest.raises(SpringtideError, match="is of another run"):
            JournalWriter(path, factories.run(seed=8), append=True)

    @pytest.mark.parametrize("content", [b"precious", b"precious\nlines\n", b'{"kind":"observation"}\n'])
    def test_a_file_that_is_not_a_journal_is_left_as_it_is(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        with pytest.raises(SpringtideError, match="is not a journal"):
            JournalWriter(path, RUN, append=True)
        assert path.read_bytes() == content

    def test_a_journal_has_one_writer(self, path: Path) -> None:
        with JournalWriter(path, RUN), pytest.raises(SpringtideError, match="another run is writing it"):
            JournalWriter(path, RUN, append=True)
        JournalWriter(path, RUN, append=True).close()

    def test_a_place_that_cannot_be_written_is_one_line(self, tmp_path: Path) -> None:
        for place in (tmp_path, tmp_path / "no" / "such" / "folder", Path("/dev/null")):
            with pytest.raises(SpringtideError, match=f"^cannot write journal {place}: [^\n]+$"):
                JournalWriter(place, RUN)

    def test_records_are_synced_now_and_then_and_at_close(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        synced: list[int] = []
        monkeypatch.setattr("os.fsync", lambda _: synced.append(len(path.read_bytes().splitlines())))
        times_s = iter([0.0, 1.0, 2.0, 10.0, 12.0, 19.0, 20.0])  # opened, the run, five records
        with JournalWriter(path, RUN, sync_every_s=10.0, clock_s=lambda: next(times_s)) as journal:
            for _ in range(5):
                journal.end(0.0, {})
            journal.close()
        assert synced == [3, 6, 6]

    def test_a_full_disk_costs_the_record_and_nothing_else(self, path: Path, small_disk: None) -> None:
        with JournalWriter(path, RUN) as journal:
            journal.end(1.0, {})
            with pytest.raises(SpringtideError, match="File too large; the records before are kept"):
                journal.end(2.0, {"long": "x" * 100_000})
            journal.end(3.0, {})
        assert [r.time_s for r in read_journal(path)] == [1.0, 3.0]
        assert read_journal(path).torn is None


@pytest.fixture
def small_disk() -> Iterator[None]:
    """No file may grow beyond 50 kB: the write that would is cut short, and the next one fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class TestReading:
    def test_is_repeatable_and_does_not_see_what_is_written_later(self, path: Path) -> None:
        records = write_small_journal(path)
        journal = read_journal(path)
        with JournalWriter(path, RUN, append=True) as writer:
            writer.end(180.0, {})
        assert tuple(journal) == tuple(journal) == records

    def test_holds_one_record_at_a_time(self, path: Path) -> None:
        write_small_journal(path)
        with path.open("ab") as file:
            file.write(b"not a record\n" * 1000)
        assert isinstance(next(iter(read_journal(path))), ObservationRecord)

    @pytest.mark.parametrize(
        ("damage", "line", "why"),
        [
            (b"\n", 2, "truncated"),
            (b'{"kind":"observation","time', 2, "malformed"),
            (b'{"kind":"dream","time_s":1.0}\n', 2, "Invalid value 'dream'"),
            (b'{"kind":"end","time_s":1.0,"summary":"\xff"}\n', 2, ""),
            (b'{"kind":"end","time_s":1.0,"summary":{"\xff":1}}\n', 2, ""),
        ],
    )
    def test_damage_in_the_middle_is_an_error_that_names_the_line(self, path: Path, damage: bytes, line: int, why: str) -> None:
        write_small_journal(path)
        first, *others = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(first + damage + b"".join(others))
        with pytest.raises(SpringtideError, match=f"damaged at line {line}: .*{why}.*; remove the line to read the rest"):
            list(read_journal(path))

    def test_a_second_run_in_one_file_is_damage(self, path: Path) -> None:
        write_small_journal(path)
        path.write_bytes(path.read_bytes() * 2)
        with pytest.raises(SpringtideError, match="line 8: a second run begins there"):
            list(read_journal(path))

    def test_a_missing_file(self, path: Path) -> None:
        with pytest.raises(SpringtideError, match=r"^there is no journal .*run\.jsonl$"):
            read_journal(path)

    def test_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(SpringtideError, match="is not a file: give the path of a journal"):
            read_journal(tmp_path)

    def test_an_empty_file(self, path: Path) -> None:
        path.touch()
        with pytest.raises(SpringtideError, match="holds no whole record: the file is empty"):
            read_journal(path)

    @pytest.mark.parametrize("content", [b"PK\x03\x04" * 50, b"rate,time\n1,2\n", b'{"kind":"decision","time_s":1.0}\n', b"\n"])
    def test_a_file_that_is_not_a_journal(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        with pytest.raises(SpringtideError, match=r"is not a journal: its first line is not a 'run' record"):
            read_journal(path)

    def test_a_damaged_run_record(self, path: Path) -> None:
        path.write_bytes(b'{"kind":"run","format":1}\n')
        with pytest.raises(SpringtideError, match="damaged at line 1: Object missing required field"):
            read_journal(path)

    def test_a_newer_format(self, path: Path) -> None:
        path.write_bytes(b'{"kind":"run","time_s":0.0,"format":99,"all":"else may differ"}\n')
        with pytest.raises(SpringtideError, match="has format 99, and this Springtide reads up to 1: upgrade springtide"):
            read_journal(path)

    def test_fields_added_by_a_later_version_of_the_same_format_do_not_matter(self, path: Path) -> None:
        records = write_small_journal(path)
        path.write_bytes(path.read_bytes().replace(b'"time_s":', b'"mood":"good","time_s":'))
        assert tuple(read_journal(path)) == records


def test_a_long_stable_run_stays_small(path: Path) -> None:
    """A month of minutes with 3,000 shards: their routing must not be written 43,200 times."""
    app = factories.application(factories.operator("count", shards=3000))
    placed = factories.allocation(app, hosts=4, replicas={"count": 16})
    stable: list[Observation] = [factories.observation(index=i, application=app, allocation=placed) for i in range(3)]
    with JournalWriter(path, RUN) as journal:
        for seen in stable:
            journal.observation(seen)
    _, first, *others = path.read_bytes().splitlines()
    assert len(first) > 10_000
    assert all(len(line) < 2_000 for line in others)
