"""Policies and guards by name, and what is said when a person asks for what is not there."""

import subprocess
import sys
from dataclasses import dataclass

import pytest

from springtide.errors import InvalidValue, SpringtideError
from springtide.plan.guards.bounds import Bounded
from springtide.plan.guards.cooldown import Cooldown, Scope
from springtide.plan.guards.dry_run import DryRun
from springtide.plan.parameters import parameter_types, with_parameters
from springtide.plan.policies.local_thresholds import LocalThresholds
from springtide.plan.policies.static import Static
from springtide.plan.registry import cite, guards, make_guard, make_policy, policies


@dataclass(frozen=True)
class _Switch:
    on: bool = False


def test_every_policy_and_guard_is_known_by_its_name() -> None:
    assert set(policies()) >= {"static", "local-thresholds", "global-thresholds"}
    limits = {"bounds", "cooldown", "confirmation", "scale-down-window", "token-bucket", "gain-cost"}
    assert set(guards()) == limits | {"balance", "dry-run"}
    assert all(known.name == name and known.summary for name, known in {**policies(), **guards()}.items())


def test_text_becomes_what_the_field_is() -> None:
    assert make_policy("local-thresholds", {"upper": "0.9", "consecutive": "2"}) == LocalThresholds(upper=0.9, consecutive=2)
    assert make_policy("local-thresholds", {"grace_s": 30}) == LocalThresholds(grace_s=30.0)
    assert make_policy("static", {"hosts": 3.0}) == Static(hosts=3)


def test_guards_go_around_a_policy() -> None:
    policy = make_policy("static", {})
    assert make_guard("dry-run", {}, policy) == DryRun(policy)
    assert make_guard("cooldown", {"scope": "host", "grace_s": "5"}, policy) == Cooldown(policy, grace_s=5.0, scope=Scope.HOST)
    assert make_guard("bounds", {"max_hosts": "none", "min_hosts": "2"}, policy) == Bounded(policy, min_hosts=2)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("local-treshold", {}, "there is no policy 'local-treshold'; did you mean 'local-thresholds'?"),
        ("local-thresholds", {"uper": 1}, "policy 'local-thresholds' has no parameter 'uper'; did you mean 'upper'?"),
        ("local-thresholds", {"upper": "high"}, "policy 'local-thresholds': upper must be a number, not 'high'"),
        ("local-thresholds", {"upper": "nan"}, "policy 'local-thresholds': upper must be a number, not 'nan'"),
        ("local-thresholds", {"upper": "1.2"}, "local-thresholds: upper must be above 0 and at most 1, not 1.2"),
        ("local-thresholds", {"consecutive": 2.5}, "policy 'local-thresholds': consecutive must be a whole number, not 2.5"),
        ("static", {"hosts": True}, "policy 'static': hosts must be a whole number, not True"),
    ],
)
def test_mistakes_are_one_line_that_says_what_would_be_right(name: str, parameters: dict[str, object], message: str) -> None:
    with pytest.raises(SpringtideError) as mistake:
        make_policy(name, parameters)
    assert str(mistake.value) == message


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("cooldwn", {}, "there is no guard 'cooldwn'; did you mean 'cooldown'?"),
        ("cooldown", {"policy": 1}, "guard 'cooldown' has no parameter 'policy'; known: grace_s, scope"),
        ("cooldown", {"scope": "hots"}, "guard 'cooldown': scope must be one of application, operator, host, not 'hots'"),
        ("bounds", {"max_hosts": "many"}, "guard 'bounds': max_hosts must be a whole number or none, not 'many'"),
    ],
)
def test_mistakes_about_guards_too(name: str, parameters: dict[str, object], message: str) -> None:
    with pytest.raises(SpringtideError) as mistake:
        make_guard(name, parameters, Static())
    assert str(mistake.value) == message


def test_truths_are_read() -> None:
    assert set(parameter_types(Static)) == {"replicas", "hosts"}
    for text, truth in {"true": True, "No": False, "on": True}.items():
        assert with_parameters(_Switch, "a switch", {"on": text}) == {"on": truth}
    with pytest.raises(InvalidValue, match="a switch: on must be true or false, not 'maybe'"):
        with_parameters(_Switch, "a switch", {"on": "maybe"})


def test_a_citation_is_of_a_paper() -> None:
    assert "Heinze" in cite("global-thresholds")
    with pytest.raises(SpringtideError, match="did you mean 'static'"):
        cite("statik")


def test_the_registry_does_not_wait_for_scipy() -> None:
    loaded = "import springtide.plan.registry, sys; print('scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
