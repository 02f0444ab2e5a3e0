"""Which operators share a query, and what policies are told of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.backends.spark.application import Application, OnError, Stream
from springtide.backends.spark.fusion import UNKNOWN_SERVICE_TIME_S, QueryPlan, described, fused, pool_of
from springtide.errors import InvalidValue
from springtide.model.allocation import spread
from springtide.model.application import SLO, Grouping


class Topic:
    """A stream of the user's own."""

    def write(self, df: Any, batch_id: int) -> None: ...

    def read(self, spark: Any) -> Any: ...


def same(df: Any) -> Any:
    return df


def save(df: Any, batch_id: int) -> None: ...


def chain(*operators: tuple[str, dict[str, Any]], sinks: tuple[str, ...] = ()) -> Application:
    """`events` -> the operators one after the other -> a sink behind the last, and behind those that are named."""
    app = Application("clicks")
    stream = app.source("events", same)
    streams: dict[str, Stream] = {}
    for name, options in operators:
        stream = streams[name] = app.operator(name, same, stream, **options)
    for name in {*sinks, operators[-1][0]}:
        app.sink(streams[name], save)
    return app


def names(app: Application) -> list[str]:
    return [plan.name for plan in fused(app)]


class TestChains:
    def test_operators_without_a_shuffle_between_them_run_in_one_query(self) -> None:
        (plan,) = fused(chain(("parse", {}), ("filter", {}), ("format", {})))

        assert plan.name == "parse+filter+format"
        assert (plan.head.name, plan.last.name) == ("parse", "format")

    def test_what_follows_state_runs_with_it_and_what_comes_before_does_not(self) -> None:
        assert names(chain(("parse", {}), ("count", {"shards": 8}), ("format", {}))) == ["parse", "count+format"]

    @pytest.mark.parametrize(
        "options",
        [
            {"shards": 8},
            {"key": "user"},
            {"grouping": "load_balanced"},
            {"fuse": False},
            {"on_error": "dead-letter"},
            {"replicas": 2},
            {"max_replicas": 4},
            {"max_rows_per_batch": 100},
        ],
    )
    def test_an_operator_that_begins_a_query_of_its_own(self, options: dict[str, Any]) -> None:
        assert names(chain(("parse", {}), ("enrich", options))) == ["parse", "enrich"]

    def test_rows_that_may_be_set_aside_are_those_of_one_operator(self) -> None:
        """A dead letter names the operator whose function failed."""
        assert names(chain(("parse", {"on_error": "dead-letter"}), ("format", {}))) == ["parse", "format"]

    def test_a_stream_of_the_users_own_lies_between_two_queries(self) -> None:
        assert names(chain(("parse", {"edge": Topic()}), ("format", {}))) == ["parse", "format"]

    def test_a_stream_that_is_saved_ends_its_query(self) -> None:
        assert names(chain(("parse", {}), ("format", {}), sinks=("parse",))) == ["parse", "format"]

    def test_a_stream_with_two_readers_ends_its_query(self) -> None:
        app = Application("clicks")
        parsed = app.operator("parse", same, app.source("events", same))
        for name in ("count", "store"):
            app.sink(app.operator(name, same, parsed), save)

        assert names(app) == ["parse", "count", "store"]

    def test_a_join_begins_a_query_and_what_follows_it_runs_with_it(self) -> None:
        app = Application("clicks")
        left = app.operator("left", same, app.source("clicks", same))
        right = app.operator("right", same, app.source("views", same))
        joined = app.operator("join", same, left, right, shards=4)
        app.sink(app.operator("format", same, joined), save)

        assert names(app) == ["left", "right", "join+format"]

    def test_two_queries_may_read_one_source(self) -> None:
        app = Application("clicks")
        events = app.source("events", same)
        for name in ("count", "store"):
            app.sink(app.operator(name, same, events), save)

        assert names(app) == ["count", "store"]

    def test_a_chain_comes_after_what_it_reads_though_it_was_begun_before(self) -> None:
        app = Application("clicks")
        events = app.source("events", same)
        first = app.operator("first", same, events)
        other = app.operator("other", same, events)
        second = app.operator("second", same, first)
        app.sink(app.operator("join", same, other, second), save)

        assert names(app) == ["other", "first+second", "join"]

    def test_an_application_that_could_not_run_is_refused(self) -> None:
        app = Application("clicks")
        app.operator("parse", same, app.source("events", same))

        with pytest.raises(InvalidValue, match="operator 'parse' leads nowhere"):
            fused(app)


@st.composite
def applications(draw: st.DrawFn) -> Application:
    """Any DAG of up to eight operators: joins, branches, state, keys, sinks in the middle."""
    app = Application("any")
    streams = [app.source(f"source-{i}", same) for i in range(draw(st.integers(1, 2)))]
    kinds: list[dict[str, Any]] = [
        {}, {}, {}, {"shards": 4}, {"key": "user"}, {"grouping": "load_balanced"}, {"fuse": False}, {"edge": Topic()},
        {"on_error": "dead-letter"},
    ]  # fmt: skip
    for number in range(draw(st.integers(1, 8))):
        options = draw(st.sampled_from(kinds))
        most = 1 if "on_error" in options else 2
        inputs = draw(st.lists(st.sampled_from(streams), min_size=1, max_size=most))
        streams.append(app.operator(f"operator-{number}", same, *inputs, **options))
    read = {name for node in app.operators.values() for name in node.inputs}
    for stream in streams:
        if stream.name in app.operators and (stream.name not in read or draw(st.booleans())):
            app.sink(stream, save)
    for name in [name for name in app.sources if name not in read]:
        del app.sources[name]
    return app


def may_share(app: Application, before: QueryPlan, after: QueryPlan) -> bool:
    """The rules of the module, said once more."""
    readers = [o.name for o in app.operators.values() if before.last.name in o.inputs]
    return (
        after.head.inputs == (before.last.name,)
        and readers == [after.head.name]
        and before.last.name not in app.sinks
        and before.last.edge is None
        and after.head.fuse
        and after.head.grouping is Grouping.SHUFFLE
        and before.last.on_error is after.head.on_error is OnError.FAIL
    )


@given(applications())
def test_every_operator_has_one_query_and_queries_are_as_few_as_can_be(app: Application) -> None:
    plans = fused(app)

    assert sorted(o.name for plan in plans for o in plan.chain) == sorted(app.operators)
    for plan in plans:
        for number in range(1, len(plan.chain)):
            assert may_share(app, QueryPlan(plan.chain[:number]), QueryPlan(plan.chain[number:]))
    assert not any(may_share(app, before, after) for before in plans for after in plans if before is not after)


@given(applications())
def test_queries_come_after_those_that_they_read(app: Application) -> None:
    known = set(app.sources)
    for plan in fused(app):
        assert known.issuperset(plan.head.inputs)
        known.add(plan.last.name)


@given(applications())
def test_policies_see_the_queries_and_the_streams_between_them(app: Application) -> None:
    plans = fused(app)
    model = described(app, plans)

    assert {o.name for o in model.operators} == {plan.name for plan in plans}
    assert {s.name for s in model.sources} == set(app.sources)
    by_last = {plan.last.name: plan.name for plan in plans}
    assert {(e.upstream, e.downstream) for e in model.edges} == {
        (by_last.get(name, name), plan.name) for plan in plans for name in plan.head.inputs
    }
    spread(model, ("host-0",)).check(model)


class TestDescription:
    def test_an_operator_is_the_head_of_its_query(self) -> None:
        app = chain(
            ("parse", {"max_replicas": 5}),
            ("by-user", {"key": "user"}),
            ("balance", {"grouping": "load_balanced", "max_replicas": 3}),
            ("count", {"shards": 8, "max_replicas": 4}),
            ("format", {"max_replicas": 99}),
        )
        app.slo = SLO(latency_s=2.0)
        model = described(app, fused(app))

        assert [(o.name, o.grouping, o.shards, o.max_replicas) for o in model.operators] == [
            ("parse", Grouping.SHUFFLE, 1, 5),
            ("by-user", Grouping.KEY, 64, 64),
            ("balance", Grouping.LOAD_BALANCED, 1, 3),
            ("count+format", Grouping.KEY, 8, 4),
        ]
        assert {o.service_time_s for o in model.operators} == {UNKNOWN_SERVICE_TIME_S}
        assert (model.name, model.slo) == ("clicks", SLO(latency_s=2.0))
        assert [(e.upstream, e.downstream) for e in model.edges] == [
            ("events", "parse"), ("parse", "by-user"), ("by-user", "balance"), ("balance", "count+format")
        ]  # fmt: skip

    def test_a_stream_that_is_read_twice_by_one_operator_is_one_edge(self) -> None:
        app = Application("clicks")
        parsed = app.operator("parse", same, app.source("events", same))
        app.sink(app.operator("join", same, parsed, parsed, shards=4), save)
        model = described(app, fused(app))

        assert [(e.upstream, e.downstream) for e in model.edges] == [("events", "parse"), ("parse", "join")]

    def test_the_pool_is_what_may_be_asked_for(self) -> None:
        pool = pool_of(2, 2**30, 1, 5)

        assert (pool.host.cores, pool.host.memory_bytes, pool.min_hosts, pool.max_hosts) == (2, 2**30, 1, 5)
        with pytest.raises(InvalidValue, match=r"max_hosts \(2\) must not be below min_hosts \(3\)"):
            pool_of(2, 2**30, 3, 2)


class TestInline:
    def test_an_inline_operator_runs_in_the_query_of_its_reader(self) -> None:
        app = Application("clicks")
        events = app.source("events", same)
        parsed = app.operator("parse", lambda df: [*df, "parsed"], events, inline=True)
        cleaned = app.operator("clean", lambda df: [*df, "cleaned"], parsed, inline=True)
        counted = app.operator("count", lambda df: [*df, "counted"], cleaned, shards=8)
        app.sink(counted, save)

        (plan,) = fused(app)

        assert plan.name == "count"
        assert plan.head.inputs == ("events",)
        assert plan.head.function(["row"]) == ["row", "parsed", "cleaned", "counted"]

    def test_two_readers_each_apply_it_and_arguments_stay_in_their_order(self) -> None:
        app = Application("clicks")
        events, pages = app.source("events", same), app.source("pages", same)
        both = app.operator("both", lambda left, right: f"({left} with {right})", events, pages, inline=True)
        joined = app.operator("join", lambda *inputs: " | ".join(inputs), pages, both, events, shards=8)
        counted = app.operator("count", lambda df: f"counted {df}", both, shards=8)
        app.sink(joined, save)
        app.sink(counted, save)

        join, count = fused(app)

        assert join.head.inputs == ("pages", "events", "pages", "events")
        assert join.head.function("p1", "e1", "p2", "e2") == "p1 | (e1 with p2) | e2"
        assert count.head.function("e", "p") == "counted (e with p)"

    def test_what_it_cannot_have_is_named(self) -> None:
        app = Application("clicks")
        events = app.source("events", same)

        with pytest.raises(InvalidValue, match="so leave out shards, grouping"):
            app.operator("count", same, events, shards=8, inline=True)
        with pytest.raises(InvalidValue, match="so leave out replicas"):
            app.operator("parse", same, events, replicas=2, inline=True)
        parsed = app.operator("clean", same, events, inline=True)
        with pytest.raises(InvalidValue, match="leave inline=True out"):
            app.sink(parsed, save)
        app.sink(app.operator("count", same, events, shards=8), save)
        with pytest.raises(InvalidValue, match="'clean' is inline and nobody reads it"):
            app.check()
