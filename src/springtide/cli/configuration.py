"""The configuration file of a live run: who is in charge, in a TOML file that may change while it runs.

    policy = "local-thresholds"
    guards = ["cooldown:grace_s=60"]    # the first is innermost
    slo_s = 5.0
    min_hosts = 1
    max_hosts = 4
    [parameters]                        # of the policy
    upper = 0.8

Every key may be left out. What the command line says goes before what the file says, at the start and later.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from springtide.cli.options import guarded
from springtide.config import build
from springtide.errors import InvalidValue, SpringtideError, require
from springtide.model.protocols import AnyPolicy
from springtide.plan.registry import make_policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """What a file, or a command line, says; what it leaves out is absent."""

    policy: str | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)
    guards: tuple[str, ...] | None = None
    slo_s: float | None = None
    min_hosts: int | None = None
    max_hosts: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What holds. Without `slo_s`, the application has its own objective."""

    policy: str = "tide"
    parameters: Mapping[str, object] = field(default_factory=dict)
    guards: tuple[str, ...] = ()
    slo_s: float | None = None
    min_hosts: int = 1
    max_hosts: int = 4

    def __post_init__(self) -> None:
        require(self.slo_s is None or 0 < self.slo_s < float("inf"), f"slo_s must be above 0 s, not {self.slo_s}")
        require(self.min_hosts >= 1, f"min_hosts must be at least 1, not {self.min_hosts}")
        require(
            self.max_hosts >= self.min_hosts, f"max_hosts ({self.max_hosts}) must not be below min_hosts ({self.min_hosts})"
        )

    def make_policy(self) -> AnyPolicy:
        return guarded(make_policy(self.policy, self.parameters), list(self.guards))

    def differences(self, other: Settings) -> str:
        """What is otherwise in `other`, in words: `slo_s 5.0 -> 3.0; guards none -> cooldown`."""
        return "; ".join(
            f"{name} {_shown(before)} -> {_shown(after)}"
            for name in self.__dataclass_fields__
            if (before := getattr(self, name)) != (after := getattr(other, name))
        )

    def same_policy(self, other: Settings) -> bool:
        return (self.policy, self.parameters, self.guards) == (other.policy, other.parameters, other.guards)


def read_configuration(path: Path) -> Configuration:
    """What the TOML file says; every mistake is one line that names it."""
    try:
        document = dict(tomllib.loads(path.read_text(encoding="utf-8-sig")))
    except FileNotFoundError:
        raise SpringtideError(f"{path}: there is no such file") from None
    except OSError as error:
        raise SpringtideError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # no TOML, or no UTF-8
        raise SpringtideError(f"{path}: {error}") from None
    parameters = document.pop("parameters", {})
    if not isinstance(parameters, dict):
        raise InvalidValue(f"{path}: parameters must be one table, headed [parameters]")
    for name, value in parameters.items():
        if isinstance(value, dict | list):
            raise InvalidValue(f"{path}: [parameters] {name} must be one value")
    said = build(_Scalars, document, str(path))
    return Configuration(
        policy=said.policy,
        parameters=parameters,
        guards=said.guards,
        slo_s=said.slo_s,
        min_hosts=said.min_hosts,
        max_hosts=said.max_hosts,
    )


def settled(given: Configuration, file: Configuration) -> Settings:
    """What holds, of what a command line gives and a file says.

    A file's parameters are its policy's: they do not go with another one that the command line names.
    """
    meant = file.policy is None or given.policy in (None, file.policy)
    says = {
        name: value
        for name in ("policy", "guards", "slo_s", "min_hosts", "max_hosts")
        for source in (file, given)
        if (value := getattr(source, name)) is not None
    }
    parameters = {**(file.parameters if meant else {}), **given.parameters}
    return replace(Settings(), **says, parameters=parameters)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scalars:
    """What a file may say beside the parameters."""

    policy: str | None = None
    guards: tuple[str, ...] | None = None
    slo_s: float | None = None
    min_hosts: int | None = None
    max_hosts: int | None = None


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={each}" for name, each in value.items()) or "none"
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return "the application's own" if value is None else str(value)
