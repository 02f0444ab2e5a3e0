"""Every mistake in an application file is one line: the file, the place, the value, and the nearest right word."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import pytest

from springtide.config import ApplicationFile, build, parse_application, read_application
from springtide.errors import InvalidValue, SpringtideError
from springtide.model.allocation import HostType, Pool
from springtide.model.application import SLO, Edge, Grouping, KeyDistribution, Operator, Source

EXAMPLES = Path(__file__).parents[1] / "examples"

WORDS = """\
name = "words"
timeout_s = 60

[slo]
latency_s = 2.5
percentile = 0.95

[[source]]
name = "lines"
share = 0.5

[[operator]]
name = "parse"
service_time_s = 0.001
grouping = "shuffle"

[[operator]]
name = "count"
service_time_s = 0.002
shards = 32
state_bytes_per_shard = 1_000_000
queue_rows = inf
keys = { keys = 500, zipf = 1.1, shuffles_per_minute = 2 }

[[edge]]
from = "lines"
to = "parse"

[[edge]]
from = "parse"
to = "count"
selectivity = 8

[hosts]
cores = 8
start_s = 12.5
max_hosts = 6

[simulator]
step_s = 0.5
"""


def read(text: str) -> ApplicationFile:
    return parse_application(text, "words.toml")


def message(text: str) -> str:
    with pytest.raises(SpringtideError) as caught:
        read(text)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def changed(old: str, new: str) -> str:
    assert WORDS.count(old) == 1
    return WORDS.replace(old, new)


def test_a_file_says_everything_about_an_application() -> None:
    file = read(WORDS)
    application = file.application
    assert application.name == "words"
    assert application.timeout_s == 60.0
    assert application.slo == SLO(latency_s=2.5, percentile=0.95)
    assert application.sources == (Source(name="lines", share=0.5),)
    assert application.operators == (
        Operator(name="parse", service_time_s=0.001, grouping=Grouping.SHUFFLE),
        Operator(
            name="count",
            service_time_s=0.002,
            shards=32,
            state_bytes_per_shard=1_000_000,
            queue_rows=math.inf,
            keys=KeyDistribution(keys=500, zipf=1.1, shuffles_per_minute=2.0),
        ),
    )
    assert application.edges == (
        Edge(upstream="lines", downstream="parse"),
        Edge(upstream="parse", downstream="count", selectivity=8.0),
    )
    assert file.pool == Pool(host=HostType(cores=8, start_s=12.5), max_hosts=6)
    assert file.simulator == {"step_s": 0.5}


def test_what_is_left_out_has_the_models_defaults() -> None:
    file = read('name = "one"\n[[operator]]\nname = "count"\nservice_time_s = 1')
    assert file.application.operators == (Operator(name="count", service_time_s=1.0),)
    assert file.application.slo == SLO()
    assert file.pool == Pool()
    assert file.simulator == {}


def test_keys_may_be_a_table_of_their_own() -> None:
    file = read('name = "one"\n[[operator]]\nname = "count"\nservice_time_s = 1\n[operator.keys]\nzipf = 0.5')
    assert file.application.operators[0].keys == KeyDistribution(zipf=0.5)


def test_whole_numbers_become_floats_where_a_float_is_meant() -> None:
    assert isinstance(read(WORDS).application.timeout_s, float)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("timeout_s", "timout_s", "words.toml: there is no key 'timout_s' here; did you mean 'timeout_s'?"),
        ("[hosts]", "[host]", "words.toml: there is no key 'host' here; did you mean 'hosts'?"),
        ("percentile", "percentil", "words.toml: [slo]: there is no key 'percentil' here; did you mean 'percentile'?"),
        ("shards", "shard", "words.toml: [[operator]] 'count': there is no key 'shard' here; did you mean 'shards'?"),
        ("zipf", "zpif", "words.toml: [[operator]] 'count' keys: there is no key 'zpif' here; did you mean 'zipf'?"),
        ("max_hosts", "max_host", "words.toml: [hosts]: there is no key 'max_host' here; did you mean 'max_hosts'?"),
        (
            "selectivity",
            "selectivty",
            "words.toml: [[edge]] parse -> count: there is no key 'selectivty' here; did you mean 'selectivity'?",
        ),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest_right_one(old: str, new: str, said: str) -> None:
    assert message(changed(old, new)) == said


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("shards = 32", 'shards = "32"', "[[operator]] 'count': shards must be a whole number, not '32'"),
        ("shards = 32", "shards = true", "[[operator]] 'count': shards must be a whole number, not true"),
        ("shards = 32", "shards = 32.5", "[[operator]] 'count': shards must be a whole number, not 32.5"),
        ("latency_s = 2.5", "latency_s = false", "[slo]: latency_s must be a number, not false"),
        ("latency_s = 2.5", 'latency_s = "2 s"', "[slo]: latency_s must be a number, not '2 s'"),
        ("latency_s = 2.5", f"latency_s = 1{'0' * 400}", "[slo]: latency_s is too large a number"),
        ('name = "words"', "name = 5", "name must be text in quotes, not 5"),
        ('name = "lines"', "name = 5", "[[source]] number 1: name must be text in quotes, not 5"),
        ("cores = 8", "cores = [8]", "[hosts]: cores must be a whole number, not a list"),
        ("{ keys = 500, zipf = 1.1, shuffles_per_minute = 2 }", "500", "[[operator]] 'count': keys must be a table, not 500"),
        ('"shuffle"', '"shufle"', "[[operator]] 'parse': grouping cannot be 'shufle'; did you mean 'shuffle'?"),
        ('"shuffle"', "3", "[[operator]] 'parse': grouping cannot be 3; known: key, load_balanced, shared, shuffle"),
    ],
)
def test_a_value_of_the_wrong_type_is_shown(old: str, new: str, said: str) -> None:
    assert message(changed(old, new)) == f"words.toml: {said}"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "words"\n', "", "words.toml: name is missing"),
        ('name = "parse"\n', "", "words.toml: [[operator]] number 1: name is missing"),
        ("service_time_s = 0.002\n", "", "words.toml: [[operator]] 'count': service_time_s is missing"),
        ('from = "lines"\n', "", "words.toml: [[edge]] number 1: from is missing"),
        ('to = "count"\n', "", "words.toml: [[edge]] number 2: to is missing"),
    ],
)
def test_a_missing_key_is_named(old: str, new: str, said: str) -> None:
    assert message(changed(old, new)) == said


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('to = "count"', 'to = "cout"', "edge parse -> cout: there is no operator 'cout'; did you mean 'count'?"),
        (
            'from = "lines"',
            'from = "line"',
            "edge line -> parse: there is no operator or source 'line'; did you mean 'lines'?",
        ),
        (
            'from = "lines"',
            'from = "count"',
            "application 'words': the edges form a cycle: count -> parse -> count; remove one of them",
        ),
        ("selectivity = 8", "selectivity = -8", "[[edge]] parse -> count: selectivity must be 0 or more, not -8.0"),
        ("share = 0.5", "share = -1", "[[source]] 'lines': share must be 0 or more, not -1.0"),
        ("service_time_s = 0.001", "service_time_s = -1", "[[operator]] 'parse': service_time_s must be above 0, not -1.0"),
        ("zipf = 1.1", "zipf = -1", "[[operator]] 'count' keys: zipf must be 0 or more, not -1.0"),
        ("percentile = 0.95", "percentile = 95", "[slo]: percentile must lie between 0 and 1, not 95.0"),
        ("cores = 8", "cores = 0", "[hosts]: cores must be at least 1, not 0"),
        ("max_hosts = 6", "max_hosts = 0", "[hosts]: max_hosts (0) must not be below min_hosts (1)"),
        ("timeout_s = 60", "timeout_s = 0", "application 'words': timeout_s must be above 0, not 0.0"),
    ],
)
def test_what_the_model_refuses_comes_through_whole(old: str, new: str, said: str) -> None:
    assert message(changed(old, new)) == f"words.toml: {said}"


def test_tables_are_what_they_are_headed_as() -> None:
    assert message(changed("[slo]", "[[slo]]")) == "words.toml: slo must be one table, headed [slo], not a list"
    assert message('name = "x"\n[operator]\nname = "y"') == (
        "words.toml: operator must be a list of tables: head each of them [[operator]], in two pairs of brackets"
    )
    assert message('name = "x"\nedge = ["a", "b"]').startswith("words.toml: edge must be a list of tables")
    assert message('name = "x"').endswith("add at least one [[operator]]")


def test_a_syntax_error_has_its_line() -> None:
    assert message('name = "words"\ntimeout_s 60').startswith("words.toml: ")
    assert "line 2" in message('name = "words"\ntimeout_s 60')
    assert message('name = "words"\nedge = [').endswith("(at line 2, the end of the file)")
    assert message(f"name = {'9' * 5000}").startswith("words.toml: ")


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    latin = tmp_path / "latin.toml"
    latin.write_bytes('name = "caf\xe9"'.encode("latin-1"))
    for path, said in (
        (tmp_path / "none.toml", "there is no such file"),
        (tmp_path, "this is a directory; name a TOML file in it"),
        (latin, "this is not UTF-8 text (invalid continuation byte at byte 11)"),
        (latin / "below.toml", "cannot be read: Not a directory"),
    ):
        with pytest.raises(SpringtideError) as caught:
            read_application(path)
        assert str(caught.value) == f"{path}: {said}"


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "words.toml"
    path.write_text(WORDS, encoding="utf-8-sig")
    assert read_application(path) == read(WORDS)


def test_the_tweets_example_is_the_papers() -> None:
    file = read_application(EXAMPLES / "tweets.toml")
    assert [o.name for o in file.application.operators] == ["parse", "content", "author", "store"]
    assert file.application.timeout_s == 30.0
    assert {o.queue_rows for o in file.application.operators} == {100_000.0}
    assert (file.pool.host.cores, file.pool.max_hosts) == (8, 7)


def test_the_stock_queries_example_has_35_queries_that_fit_the_pool() -> None:
    file = read_application(EXAMPLES / "stock-queries.toml")
    assert len(file.application.operators) == 35
    assert file.pool.max_hosts == 10
    cores_at_1000_ticks_per_s = sum(
        1000 * edge.selectivity * file.application.operator(edge.downstream).service_time_s for edge in file.application.edges
    )
    assert cores_at_1000_ticks_per_s == pytest.approx(6.6, abs=0.1)


class Model(StrEnum):
    TUPLE = "tuple"
    MICRO_BATCH = "micro_batch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    at_s: float
    host: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Stands for the simulator's settings."""

    step_s: float = 1.0
    model: Model = Model.TUPLE
    exact: bool = False
    failures: tuple[Failure, ...] = ()
    hosts: tuple[str, ...] = ()
    slo: SLO = field(default_factory=SLO)

    def __post_init__(self) -> None:
        if self.step_s <= 0:
            raise InvalidValue(f"settings: step_s must be above 0, not {self.step_s}")


def test_any_dataclass_is_built_from_a_table() -> None:
    table = {
        "model": "micro_batch",
        "exact": True,
        "failures": [{"at_s": 5}, {"at_s": 7.5, "host": "host-1"}],
        "hosts": ["a", "b"],
        "slo": {"latency_s": 1},
    }
    assert build(Settings, table, "x.toml: [settings]") == Settings(
        model=Model.MICRO_BATCH,
        exact=True,
        failures=(Failure(at_s=5.0), Failure(at_s=7.5, host="host-1")),
        hosts=("a", "b"),
        slo=SLO(latency_s=1.0),
    )


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"stp_s": 1}, "x.toml: [settings]: there is no key 'stp_s' here; did you mean 'step_s'?"),
        ({"step_s": 0}, "x.toml: [settings]: step_s must be above 0, not 0.0"),
        ({"exact": 1}, "x.toml: [settings]: exact must be true or false, not 1"),
        ({"model": "micro-batch"}, "x.toml: [settings]: model cannot be 'micro-batch'; did you mean 'micro_batch'?"),
        ({"failures": {"at_s": 1}}, "x.toml: [settings]: failures must be a list, not a table"),
        ({"failures": [{"at_s": 1}, {}]}, "x.toml: [settings] failures number 2: at_s is missing"),
        ({"failures": [{"at_s": 1, "host": 3}]}, "x.toml: [settings] failures number 1: host must be text in quotes, not 3"),
        ({"hosts": ["a", 2]}, "x.toml: [settings]: hosts number 2 must be text in quotes, not 2"),
        ({"slo": {"latency_s": -1}}, "x.toml: [settings] slo: latency_s must be above 0, not -1.0"),
    ],
)
def test_a_mistake_in_any_dataclass_is_one_line(table: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        build(Settings, table, "x.toml: [settings]")
    assert str(caught.value) == said
