"""An application for live Spark as its user writes it: what can be refused without Spark is refused at once, in one line."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from springtide.backends.spark.application import Application, OnError, Stream
from springtide.errors import SpringtideError
from springtide.model.application import SLO, Grouping


def read(spark: Any) -> Any: ...


def same(df: Any) -> Any:
    return df


def save(df: Any, batch_id: int) -> None: ...


@pytest.fixture
def app() -> Application:
    return Application("clicks")


@pytest.fixture
def events(app: Application) -> Stream:
    return app.source("events", read)


def refusal(build: Callable[[], object]) -> str:
    """What a user is told, which is one line."""
    with pytest.raises(SpringtideError) as refused:
        build()
    assert str(refused.value).splitlines() == [str(refused.value)]
    return str(refused.value)


class TestWhatIsKept:
    def test_the_example_of_the_module(self) -> None:
        app = Application("clicks", slo=SLO(latency_s=5))
        events = app.source("events", read, ingest_time="offered_at")
        parsed = app.operator("parse", same, events)
        counts = app.operator("count", same, parsed, shards=8, output_mode="update")
        app.sink(counts, save)
        app.check()

        assert app.sources["events"].ingest_time == "offered_at"
        assert app.sources["events"].read is read
        assert [(o.name, o.inputs) for o in app.operators.values()] == [("parse", ("events",)), ("count", ("parse",))]
        assert app.sinks == {"count": [save]}

    def test_an_operator_is_shuffled_and_fails_with_its_function_unless_told_otherwise(
        self, app: Application, events: Stream
    ) -> None:
        app.operator("parse", same, events)
        parse = app.operators["parse"]

        assert (parse.grouping, parse.shards, parse.key, parse.stateful) == (Grouping.SHUFFLE, 0, (), False)
        assert (parse.replicas, parse.output_mode, parse.fuse, parse.on_error) == (1, "append", True, OnError.FAIL)
        assert (parse.max_rows_per_batch, parse.edge) == (None, None)

    def test_shards_without_a_key_are_those_of_state(self, app: Application, events: Stream) -> None:
        for name, options in {"count": {"shards": 8}, "window": {"shards": 8, "grouping": "key"}}.items():
            app.operator(name, same, events, **options)
            assert (app.operators[name].grouping, app.operators[name].shards) == (Grouping.KEY, 8)
            assert app.operators[name].stateful

    @pytest.mark.parametrize(
        ("options", "key", "shards"),
        [
            ({"key": "user"}, ("user",), 64),
            ({"key": ["user", "day"]}, ("user", "day"), 64),
            ({"key": "user", "shards": 16}, ("user",), 16),
            ({"key": "user", "grouping": "key"}, ("user",), 64),
        ],
    )
    def test_a_key_groups_rows_without_state(
        self, app: Application, events: Stream, options: dict[str, Any], key: tuple[str, ...], shards: int
    ) -> None:
        app.operator("enrich", same, events, **options)
        enrich = app.operators["enrich"]

        assert (enrich.grouping, enrich.key, enrich.shards) == (Grouping.KEY, key, shards)
        assert not enrich.stateful

    def test_rows_may_be_set_aside_by_a_keyed_operator_without_state(self, app: Application, events: Stream) -> None:
        app.operator("parse", same, events, key="user", on_error="dead-letter")

        assert app.operators["parse"].on_error is OnError.DEAD_LETTER

    def test_a_stream_may_have_several_sinks_and_readers(self, app: Application, events: Stream) -> None:
        parsed = app.operator("parse", same, events)
        app.sink(parsed, save)
        app.sink(parsed, save)
        app.sink(app.operator("count", same, parsed, shards=2), save)
        app.check()

        assert app.sinks["parse"] == [save, save]


class TestNames:
    @pytest.mark.parametrize("name", ["", "a b", "a/b", "..", ".hidden", "a+b", "a:b", "a\nb", "*"])
    def test_a_name_that_could_be_no_folder(self, app: Application, events: Stream, name: str) -> None:
        for build in (
            lambda: Application(name),
            lambda: app.source(name, read),
            lambda: app.operator(name, same, events),
        ):
            assert refusal(build).startswith(f"{name!r} cannot be the name of a")

    @pytest.mark.parametrize("name", ["clicks", "größe", "a-b_c.d", "2nd", "_x"])
    def test_a_name_that_can(self, name: str) -> None:
        assert Application(name).source(name, read) == Stream(name)

    def test_a_name_is_used_once(self, app: Application, events: Stream) -> None:
        app.operator("parse", same, events)
        for build in (
            lambda: app.source("events", read),
            lambda: app.source("parse", read),
            lambda: app.operator("events", same, events),
            lambda: app.operator("parse", same, events),
        ):
            assert "is used twice in application 'clicks'" in refusal(build)


class TestOperators:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"shards": 0}, "shards must be at least 1, not 0"),
            ({"shards": -3}, "shards must be at least 1, not -3"),
            ({"replicas": 0}, "replicas must be at least 1, not 0"),
            ({"replicas": 5, "max_replicas": 4}, "max_replicas (4) is below replicas (5)"),
            ({"max_rows_per_batch": 0}, "max_rows_per_batch must be at least 1, not 0"),
            ({"output_mode": "updates"}, "output_mode cannot be 'updates'; did you mean 'update'?"),
            ({"output_mode": "xyz"}, "output_mode cannot be 'xyz'; known: append, complete, update"),
            ({"grouping": "shufle"}, "grouping cannot be 'shufle'; did you mean 'shuffle'?"),
            ({"grouping": "shared"}, "the grouping 'shared' exists in the simulator only"),
            ({"grouping": "key"}, "key grouping needs the column(s) in key="),
            ({"grouping": "load_balanced", "shards": 8}, "is grouped by its own key, not by 'load_balanced'"),
            ({"grouping": "shared", "shards": 8}, "is grouped by its own key, not by 'shared'"),
            ({"on_error": "deadletter"}, "on_error cannot be 'deadletter'; did you mean 'dead-letter'?"),
            ({"on_error": "dead-letter", "shards": 8}, "rows can be set aside only by an operator without state"),
        ],
    )
    def test_an_option_that_cannot_be(self, app: Application, events: Stream, options: dict[str, Any], message: str) -> None:
        told = refusal(lambda: app.operator("count", same, events, **options))

        assert told.startswith("operator 'count': ")
        assert message in told
        assert app.operators == {}, "what was refused is not kept"

    def test_rows_of_two_inputs_cannot_be_set_aside(self, app: Application, events: Stream) -> None:
        other = app.source("other", read)

        assert refusal(lambda: app.operator("join", same, events, other, on_error="dead-letter")).startswith(
            "operator 'join': rows can be set aside only by an operator without state and with one input"
        )

    def test_an_operator_reads_something(self, app: Application) -> None:
        assert refusal(lambda: app.operator("parse", same)) == (
            "operator 'parse' has no input: name the streams it reads after its function"
        )

    def test_an_operator_is_a_function(self, app: Application, events: Stream) -> None:
        swapped: Any = events
        assert refusal(lambda: app.operator("parse", swapped, swapped)) == (
            "operator 'parse': expected a function of (DataFrame), not Stream(name='events')"
        )
        nothing: Any = None
        assert refusal(lambda: app.operator("join", nothing, events, events)) == (
            "operator 'join': expected a function of (DataFrame, DataFrame), not None"
        )

    def test_an_input_is_a_stream_of_this_application(self, app: Application, events: Stream) -> None:
        foreign = Application("views").source("eventz", read)
        text: Any = "evnts"

        assert refusal(lambda: app.operator("parse", same, foreign)) == (
            "operator 'parse': the input 'eventz' is not a stream of this application; did you mean 'events'?"
        )
        assert refusal(lambda: app.operator("parse", same, text)) == (
            "operator 'parse': the input 'evnts' is not a stream of this application; did you mean 'events'?"
        )

    def test_streams_flow_forward(self, app: Application, events: Stream) -> None:
        """An operator can read only what was written before it, so there is no cycle to be found later."""
        assert "the input 'later' is not a stream" in refusal(lambda: app.operator("parse", same, Stream("later")))


class TestSourcesAndSinks:
    def test_a_source_is_a_function(self, app: Application) -> None:
        path: Any = "events.csv"

        assert (
            refusal(lambda: app.source("events", path)) == "source 'events': expected a function of (spark), not 'events.csv'"
        )
        assert app.sources == {}

    def test_a_sink_is_a_function(self, app: Application, events: Stream) -> None:
        parsed = app.operator("parse", same, events)
        path: Any = "out"

        assert refusal(lambda: app.sink(parsed, path)) == "sink of 'parse': expected a function of (df, batch_id), not 'out'"
        assert app.sinks == {}

    def test_a_source_is_not_saved_as_it_is(self, app: Application, events: Stream) -> None:
        assert refusal(lambda: app.sink(events, save)).startswith("a sink takes the stream of an operator, not 'events'")

    def test_a_sink_of_another_application(self, app: Application, events: Stream) -> None:
        assert "not 'elsewhere'" in refusal(lambda: app.sink(Stream("elsewhere"), save))

    def test_a_name_is_not_a_stream(self, app: Application, events: Stream) -> None:
        app.operator("parse", same, events)
        name: Any = "parse"

        assert "'parse'" in refusal(lambda: app.sink(name, save))

    def test_a_value_of_many_lines_is_refused_in_one(self, app: Application) -> None:
        """As a table of pandas is, or a DataFrame of a session with eager evaluation."""

        class Table:
            def __repr__(self) -> str:
                return "   word  count\n0     a      1\n1     b      2"

        table: Any = Table()
        assert "source 'events'" in refusal(lambda: app.source("events", table))


class TestApplications:
    @pytest.mark.parametrize("trigger_s", [-1.0, math.nan])
    def test_a_trigger_that_cannot_be(self, trigger_s: float) -> None:
        assert refusal(lambda: Application("clicks", trigger_s=trigger_s)) == (
            f"application 'clicks': trigger_s must be 0 or more, not {trigger_s}"
        )

    def test_one_without_operators_could_not_run(self, app: Application) -> None:
        assert refusal(app.check) == "application 'clicks' has no operator"

    def test_a_source_feeds_somebody(self, app: Application, events: Stream) -> None:
        app.sink(app.operator("parse", same, events), save)
        app.source("idle", read)

        assert refusal(app.check).startswith("source 'idle' feeds nobody")

    def test_an_operator_leads_somewhere(self, app: Application, events: Stream) -> None:
        parsed = app.operator("parse", same, events)
        app.operator("count", same, parsed)

        assert refusal(app.check).startswith("operator 'count' leads nowhere")
        app.sink(Stream("count"), save)
        app.check()

    @pytest.mark.parametrize("grouping", ["load_balanced", "shared"])
    def test_a_key_excludes_another_grouping(self, app: Application, events: Stream, grouping: str) -> None:
        assert grouping in refusal(lambda: app.operator("enrich", same, events, key="user", grouping=grouping))
