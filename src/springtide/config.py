"""Reading an application from a commented TOML file.

    name = "tweets"                     # what follows a # is a comment
    [slo]
    latency_s = 2.0
    [[operator]]                        # the fields of `model.application.Operator`
    name = "parse"
    service_time_s = 0.001
    [[edge]]
    from = "parse"
    to = "count"
    [hosts]                             # the fields of `HostType` and `Pool`
    cores = 8

Rules: a key is a field of the dataclass it becomes, and defaults live in that dataclass and nowhere else. Every mistake
is one line that names the file, the place in it, the offending value and, for a word, the nearest right one.
"""

from __future__ import annotations

import tomllib
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from springtide.errors import InvalidValue, SpringtideError, nearest
from springtide.model.allocation import HostType, Pool
from springtide.model.application import SLO, Application, Edge, Operator, Source

T = TypeVar("T")

Table = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationFile:
    """What an application file says. `simulator` is its `[simulator]` table, which the simulator itself builds from."""

    application: Application
    pool: Pool
    simulator: Table = field(default_factory=dict)


def read_application(path: str | Path) -> ApplicationFile:
    """The application in the TOML file at `path`."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")  # some editors begin a file with a byte-order mark
    except FileNotFoundError:
        raise SpringtideError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise SpringtideError(f"{path}: this is a directory; name a TOML file in it") from None
    except UnicodeDecodeError as error:
        raise SpringtideError(f"{path}: this is not UTF-8 text ({error.reason} at byte {error.start})") from None
    except OSError as error:
        raise SpringtideError(f"{path}: cannot be read: {error.strerror}") from None
    return parse_application(text, str(path))


def parse_application(text: str, where: str) -> ApplicationFile:
    """The application that a TOML text describes; `where` names the text in errors, as a file's path does."""
    document = _parse(text, where)
    _check_keys(document, ["name", "timeout_s", "slo", "source", "operator", "edge", "hosts", "simulator"], where)
    settings = {key: document[key] for key in ("name", "timeout_s") if key in document}
    application = build(
        Application,
        {
            **settings,
            "slo": build(SLO, _table(document, "slo", where), f"{where}: [slo]"),
            "sources": [build(Source, table, place) for table, place in _named_tables(document, "source", where)],
            "operators": [build(Operator, table, place) for table, place in _named_tables(document, "operator", where)],
            "edges": [_edge(table, number, where) for number, table in enumerate(_tables(document, "edge", where), start=1)],
        },
        where,
    )
    return ApplicationFile(
        application=application,
        pool=_pool(_table(document, "hosts", where), f"{where}: [hosts]"),
        simulator=_table(document, "simulator", where),
    )


def build(cls: type[T], table: Table, where: str, spelling: Mapping[str, str] | None = None) -> T:
    """One of our dataclasses from a TOML table with its fields as keys.

    `where` is what an error begins with: the file, and the place in it, such as `tweets.toml: [[operator]] 'parse'`.
    `spelling` maps a field to the key that stands for it in the file, where they differ.
    """
    keys = {f.name: (spelling or {}).get(f.name, f.name) for f in _fields(cls) if f.init}
    _check_keys(table, keys.values(), where)
    kinds = get_type_hints(cls)
    values = {name: _value(kinds[name], table[key], key, where) for name, key in keys.items() if key in table}
    for each in _fields(cls):
        if each.init and each.name not in values and each.default is MISSING and each.default_factory is MISSING:
            raise InvalidValue(f"{where}: {keys[each.name]} is missing")
    try:
        return cls(**values)
    except InvalidValue as error:
        raise InvalidValue(f"{where}: {_without_subject(str(error), where)}") from None


def _parse(text: str, where: str) -> Table:
    try:
        return tomllib.loads(text)
    except ValueError as error:  # TOMLDecodeError is one, and so is a number of too many digits
        last_line = text.count("\n") + 1
        message = str(error).replace("at end of document", f"at line {last_line}, the end of the file")
        raise SpringtideError(f"{where}: {message}") from None


def _pool(table: Table, where: str) -> Pool:
    """Hosts and their limits, which share one table in the file."""
    host_keys = {f.name for f in fields(HostType)}
    pool_keys = {f.name for f in fields(Pool)} - {"host"}
    _check_keys(table, host_keys | pool_keys, where)
    host = build(HostType, {key: value for key, value in table.items() if key in host_keys}, where)
    limits = {key: value for key, value in table.items() if key in pool_keys}
    return build(Pool, {**limits, "host": host}, where)


def _edge(table: Table, number: int, where: str) -> Edge:
    ends = [table.get("from"), table.get("to")]
    place = f"{ends[0]} -> {ends[1]}" if all(isinstance(end, str) for end in ends) else f"number {number}"
    return build(Edge, table, f"{where}: [[edge]] {place}", spelling={"upstream": "from", "downstream": "to"})


def _named_tables(document: Table, key: str, where: str) -> Iterable[tuple[Table, str]]:
    """Each table of a list, with its place: named by the table's own name where it has one."""
    for number, table in enumerate(_tables(document, key, where), start=1):
        name = table.get("name")
        yield table, f"{where}: [[{key}]] {f'{name!r}' if isinstance(name, str) else f'number {number}'}"


def _tables(document: Table, key: str, where: str) -> Sequence[Table]:
    tables = document.get(key, [])
    if not (isinstance(tables, list) and all(isinstance(t, dict) for t in tables)):
        raise InvalidValue(f"{where}: {key} must be a list of tables: head each of them [[{key}]], in two pairs of brackets")
    return tables


def _table(document: Table, key: str, where: str) -> Table:
    table = document.get(key, {})
    if not isinstance(table, dict):
        raise InvalidValue(f"{where}: {key} must be one table, headed [{key}], not {_shown(table)}")
    return table


def _check_keys(table: Table, known: Iterable[str], where: str) -> None:
    known = list(known)
    for key in table:
        if key not in known:
            raise InvalidValue(f"{where}: there is no key {key!r} here; {nearest(key, known)}")


def _value(kind: Any, value: object, key: str, where: str) -> object:
    """A TOML value as a field's type, or one line that says why it cannot be."""
    if get_origin(kind) in (Union, types.UnionType):
        (kind,) = (k for k in get_args(kind) if k is not types.NoneType)
    if get_origin(kind) is tuple:
        items = enumerate(_listed(value, key, where), start=1)
        return tuple(_value(get_args(kind)[0], item, f"{key} number {number}", where) for number, item in items)
    if is_dataclass(kind):
        return value if isinstance(value, cast("type", kind)) else _nested(kind, value, key, where)
    if issubclass(kind, Enum):
        return _member(kind, value, key, where)
    return _scalar(kind, value, key, where)


def _nested(kind: Any, value: object, key: str, where: str) -> object:
    if not isinstance(value, dict):
        raise InvalidValue(f"{where}: {key} must be a table, not {_shown(value)}")
    return build(kind, value, f"{where} {key}")


def _listed(value: object, key: str, where: str) -> Sequence[object]:
    if not isinstance(value, list):
        raise InvalidValue(f"{where}: {key} must be a list, not {_shown(value)}")
    return value


def _member(kind: type[Enum], value: object, key: str, where: str) -> Enum:
    known = [str(member.value) for member in kind]
    if value not in known:
        raise InvalidValue(f"{where}: {key} cannot be {_shown(value)}; {nearest(str(value), known)}")
    return kind(value)


def _scalar(kind: type, value: object, key: str, where: str) -> object:
    # bool is a subclass of int in Python, and a whole number is a number in TOML: hence no isinstance here.
    if type(value) is kind:
        return value
    if kind is float and type(value) is int:
        return _as_float(value, key, where)
    if kind is int and type(value) is float and value.is_integer():  # 16e9 is how people write a size
        return int(value)
    wanted = {int: "a whole number", float: "a number", str: "text in quotes", bool: "true or false"}[kind]
    raise InvalidValue(f"{where}: {key} must be {wanted}, not {_shown(value)}")


def _as_float(value: int, key: str, where: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise InvalidValue(f"{where}: {key} is too large a number") from None


def _shown(value: object) -> str:
    """A value as the file has it, or what it is where it may be long."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list"
    return repr(value) if isinstance(value, str) else str(value)


def _without_subject(message: str, where: str) -> str:
    """The model names its subject (`operator 'parse': ...`) as `where` does (`[[operator]] 'parse'`): once is enough."""
    place = where.rpartition(": ")[2].replace("[", "").replace("]", "")
    subject, colon, rest = message.partition(": ")
    return rest if colon and (place.startswith(subject) or place.endswith(subject)) else message


def _fields(cls: type) -> tuple[Field[Any], ...]:
    return fields(cast("Any", cls))
