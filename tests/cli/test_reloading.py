"""A configuration file that changes while a run goes on: what is valid takes effect, what is not is said and does not."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import factories
from springtide.backends.simulator.backend import SimulatorBackend
from springtide.backends.simulator.settings import SimulatorSettings
from springtide.cli.configuration import Configuration, Settings, read_configuration, settled
from springtide.cli.reloading import Reloading
from springtide.errors import SpringtideError
from springtide.journal.reading import read_journal
from springtide.journal.records import ControlRecord, DecisionRecord, ObservationRecord, Record
from springtide.journal.steered import SteeredJournal
from springtide.loop import Charge, ControlLoop
from springtide.model.allocation import HostType, Pool
from springtide.model.observation import Observation
from springtide.plan.policies.static import Static
from springtide.recording import Everyone

APP = factories.application()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "charge.toml"


class TestTheFile:
    def test_says_who_is_in_charge(self, file: Path) -> None:
        file.write_text(
            'policy = "local-thresholds"\nguards = ["cooldown:grace_s=60"]\nslo_s = 3\nmin_hosts = 2\nmax_hosts = 6\n'
            "[parameters]\nupper = 0.7\nconsecutive = 2\n"
        )
        settings = settled(Configuration(), read_configuration(file))

        assert settings == Settings(
            policy="local-thresholds",
            parameters={"upper": 0.7, "consecutive": 2},
            guards=("cooldown:grace_s=60",),
            slo_s=3.0,
            min_hosts=2,
            max_hosts=6,
        )
        assert type(settings.make_policy()).name == "cooldown"

    def test_an_empty_one_says_nothing(self, file: Path) -> None:
        file.write_text("")
        assert settled(Configuration(), read_configuration(file)) == Settings(policy="tide", min_hosts=1, max_hosts=4)

    def test_the_command_line_goes_before(self, file: Path) -> None:
        file.write_text('policy = "static"\nslo_s = 3\nmax_hosts = 6\n[parameters]\nhosts = 2\nreplicas = 5\n')
        said = read_configuration(file)

        assert settled(Configuration(parameters={"hosts": "3"}), said).parameters == {"hosts": "3", "replicas": 5}
        assert settled(Configuration(slo_s=1.0, max_hosts=9), said).slo_s == 1.0
        other = settled(Configuration(policy="ds2"), said)
        assert (other.policy, other.parameters) == ("ds2", {}), "parameters are those of the policy they stand beside"

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ('polcy = "static"', "there is no key 'polcy' here; did you mean 'policy'?"),
            ("policy = 7", "policy must be text in quotes, not 7"),
            ('slo_s = "soon"', "slo_s must be a number"),
            ("slo_s = -1", "slo_s must be above 0 s, not -1"),
            ("min_hosts = 5\nmax_hosts = 2", "max_hosts (2) must not be below min_hosts (5)"),
            ("min_hosts = 0", "min_hosts must be at least 1"),
            ("parameters = 3", "parameters must be one table"),
            ("[parameters]\nupper = [1, 2]", "upper must be one value"),
            ('guards = "cooldown"', "guards must be a list"),
            ("policy = ", "Invalid value"),
            ('policy = "statik"', "did you mean 'static'?"),
            ('policy = "static"\n[parameters]\nhots = 3', "has no parameter 'hots'; did you mean 'hosts'?"),
            ('guards = ["cooldwn"]', "did you mean 'cooldown'?"),
        ],
    )
    def test_what_is_wrong_is_said_in_one_line(self, file: Path, text: str, words: str) -> None:
        file.write_text(text + "\n")
        with pytest.raises(SpringtideError) as mistake:
            settled(Configuration(), read_configuration(file)).make_policy()
        assert words in str(mistake.value)
        assert "\n" not in str(mistake.value)

    def test_one_that_cannot_be_read_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(SpringtideError, match="there is no such file"):
            read_configuration(tmp_path / "nowhere.toml")
        with pytest.raises(SpringtideError, match="cannot be read"):
            read_configuration(tmp_path)
        (tmp_path / "latin.toml").write_bytes(b'policy = "caf\xe9"\n')
        with pytest.raises(SpringtideError, match=r"latin\.toml"):
            read_configuration(tmp_path / "latin.toml")


# --- while a run goes on --------------------------------------------------------------------------------------------------


@dataclass
class Heard:
    said: list[str] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        self.said.append(text)

    def warn(self, text: str) -> None:
        self.warned.append(text)


class Editor:
    """A recorder that edits the file as the run goes on: what is written in interval n is looked at at the end of n + 1."""

    def __init__(self, edits: dict[int, Callable[[], object]]) -> None:
        self._edits = edits

    def observation(self, observation: Observation) -> None: ...

    def decision(self, observation: Observation, *_: object) -> None:
        self._edits.get(observation.index, lambda: None)()

    def outcome(self, *_: object) -> None: ...


@dataclass
class Run:
    """Eight intervals of the simulator under a file, journalled as a live run is."""

    records: list[Record]
    heard: Heard
    charges: list[Charge]

    @property
    def controls(self) -> list[ControlRecord]:
        return [r for r in self.records if isinstance(r, ControlRecord)]

    def hosts(self) -> list[int]:
        return [len(r.hosts) for r in self.records if isinstance(r, ObservationRecord)]

    def reasons(self) -> list[str]:
        return [r.reason for r in self.records if isinstance(r, DecisionRecord)]


def run(file: Path, edits: dict[int, str | Callable[[], object]], given: Configuration | None = None) -> Run:
    written = {n: e if callable(e) else (lambda text=e: file.write_text(text)) for n, e in edits.items()}
    heard, charges = Heard(), []
    reloading = Reloading(file, given or Configuration(), APP.slo, heard)
    settings = reloading.settings
    host = HostType(cores=4, start_s=0.0, release_s=0.0)
    pool = Pool(host=host, min_hosts=settings.min_hosts, max_hosts=settings.max_hosts)

    def recharged(charge: Charge) -> Charge:
        charges.append(reloading.recharged(charge))
        return charges[-1]

    backend = SimulatorBackend(APP, pool, SimulatorSettings(interval_s=10.0), np.full((1, 80), 10.0))
    path = file.with_suffix(".jsonl")
    with SteeredJournal(path, factories.run(APP, live=True)) as journal:
        reloading.journal = journal
        loop = ControlLoop(application=APP, pool=pool, policy=settings.make_policy(), interval_s=10.0, recharged=recharged)
        loop.run(backend, Everyone((journal, reloading, Editor(written))), backend.duration_s)
    return Run(list(read_journal(path)), heard, charges)


def test_a_file_that_stays_as_it_is_changes_nothing(file: Path) -> None:
    file.write_text('policy = "static"\n')
    ran = run(file, {})

    assert ran.controls == []
    assert len({id(charge) for charge in ran.charges}) == 1


def test_a_new_policy_takes_over_at_the_end_of_the_interval(file: Path) -> None:
    file.write_text('policy = "static"\n[parameters]\nhosts = 1\n')
    ran = run(file, {2: 'policy = "static"\n[parameters]\nhosts = 3\n'})

    (reload,) = ran.controls
    assert (reload.interval, reload.do, reload.who) == (3, "reload", "configuration")
    assert reload.note == "parameters hosts=1 -> hosts=3"
    assert ran.hosts() == [1, 1, 1, 1, 3, 3, 3, 3]
    assert ran.heard.said == [f"{file}: parameters hosts=1 -> hosts=3"]


def test_a_policy_that_comes_into_charge_remembers_nothing(file: Path) -> None:
    """A cooldown of the old policy is not one of the new."""
    file.write_text('policy = "static"\nslo_s = 9\n')
    ran = run(
        file, {2: 'policy = "static"\nslo_s = 9\nguards = ["cooldown:grace_s=60"]\n', 4: 'policy = "static"\nslo_s = 8\n'}
    )

    assert [c.note for c in ran.controls] == [
        "guards none -> cooldown:grace_s=60",
        "guards cooldown:grace_s=60 -> none; slo_s 9.0 -> 8.0",
    ]
    policies = [charge.policy for charge in ran.charges]
    assert policies[0] is policies[2]
    assert [type(p) for p in (policies[2], policies[5])] == [Static, Static]
    assert policies[3] is not policies[2]


def test_bounds_and_objective_change_and_the_policy_stays(file: Path) -> None:
    file.write_text("min_hosts = 1\nmax_hosts = 4\n")
    ran = run(file, {1: "min_hosts = 2\nmax_hosts = 3\nslo_s = 2.5\n", 4: "min_hosts = 2\nmax_hosts = 3\n"})

    first, later, last = ran.charges[0], ran.charges[2], ran.charges[-1]
    assert later.policy is first.policy, "and keeps its memory"
    assert (later.pool.min_hosts, later.pool.max_hosts) == (2, 3)
    assert (first.application.slo.latency_s, later.application.slo.latency_s) == (5.0, 2.5)
    assert last.application.slo.latency_s == 5.0, "the application's own, again"
    assert ran.hosts()[-1] == 2, "`tide` keeps the fewest that are asked for"


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ('policy = "statik"\n', "there is no policy 'statik'; did you mean 'static'?"),
        ("max_hosts = 9\n", "max_hosts cannot be 9: the run was started with at most 4"),
        ("this is no TOML", "charge.toml: "),
    ],
)
def test_a_file_that_is_wrong_is_one_warning_and_changes_nothing(file: Path, wrong: str, why: str) -> None:
    file.write_text('policy = "static"\n')
    ran = run(file, {1: wrong, 5: 'policy = "static"\nmin_hosts = 2\n'})

    refused, reload = ran.controls
    assert (refused.do, refused.interval, reload.do, reload.interval) == ("refused", 2, "reload", 6)
    assert why in refused.note
    (warning,) = ran.heard.warned
    assert warning.startswith("the configuration stays as it was: ")
    assert why in warning
    assert ran.charges[5] is ran.charges[0]


def test_a_file_that_goes_away_is_said_once_and_what_it_said_holds(file: Path) -> None:
    file.write_text('policy = "static"\nmin_hosts = 2\n')
    ran = run(file, {1: file.unlink})

    (refused,) = ran.controls
    assert "there is no such file" in refused.note
    assert ran.charges[-1].pool.min_hosts == 2


def test_an_edit_of_the_same_length_is_noticed(file: Path) -> None:
    """Also within a tick of a coarse clock: editors replace a file, so that it is another one."""
    file.write_text("slo_s = 3\n")

    def replace() -> None:
        before = file.stat()
        other = file.with_suffix(".new")
        other.write_text("slo_s = 4\n")
        os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
        other.replace(file)

    ran = run(file, {1: replace})
    assert [c.note for c in ran.controls] == ["slo_s 3.0 -> 4.0"]


def test_what_the_command_line_says_stays(file: Path) -> None:
    file.write_text('policy = "static"\nslo_s = 3\n')
    ran = run(file, {1: 'policy = "static"\nslo_s = 2\n'}, Configuration(slo_s=4.0))

    assert [(c.do, c.note) for c in ran.controls] == [("reload", "nothing changed that the command line does not say")]
    assert ran.charges[-1] is ran.charges[0]
