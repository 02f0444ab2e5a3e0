import pytest
from guard_stories import INTERVAL_S, Scripted, placed, play, replicas, stalled_view, view, why_nots, with_replicas

from springtide.errors import InvalidValue
from springtide.model.allocation import Allocation, OperatorAllocation
from springtide.plan.guards.token_bucket import TokenBucket, TokenBucketMemory

START = placed(2)
SLOW_S, QUICK_S = 0.19, 0.02  # the application's SLO is 0.2 s, as R_max in section 4


def test_a_token_a_minute_is_a_change_a_minute() -> None:
    ramp = tuple(with_replicas(START, "parse", *["host-0"] * n) for n in range(2, 12))
    assert INTERVAL_S == 20.0
    decisions = play(TokenBucket(Scripted(ramp)), START, intervals=7, latency_s=SLOW_S)
    assert replicas(decisions, "parse") == [2, 2, 2, 5, 5, 5, 8]
    assert why_nots(decisions[1]) == [
        "token-bucket: not parse 2 -> 3 replicas, because the plan takes 1 token and the bucket held 0.333"
    ]


def test_no_token_comes_while_the_response_time_is_well_within_the_slo() -> None:
    ramp = tuple(with_replicas(START, "parse", *["host-0"] * n) for n in range(2, 12))
    decisions = play(TokenBucket(Scripted(ramp), beta=0.75), START, intervals=6, latency_s=0.15)
    assert replicas(decisions, "parse") == [2, 2, 2, 2, 2, 2]
    assert why_nots(decisions[5])[0].endswith(
        "the bucket held 0; none came, as a response time of 0.15 s is not above 0.75 x 0.2 s"
    )


def test_beta_0_generates_tokens_always() -> None:
    ramp = tuple(with_replicas(START, "parse", *["host-0"] * n) for n in range(2, 12))
    decisions = play(TokenBucket(Scripted(ramp), beta=0), START, intervals=4, latency_s=0.0)
    assert replicas(decisions, "parse") == [2, 2, 2, 5]


def test_scale_out_comes_before_migration_and_migration_before_scale_in() -> None:
    base = with_replicas(START, "parse", "host-0", "host-0")
    wanted = with_replicas(base, "parse", "host-0")  # scale-in
    wanted = with_replicas(wanted, "rank", "host-1")  # migration
    wanted = with_replicas(wanted, "count", "host-1", "host-1")  # scale-out
    granted = []
    for capacity in (1, 2, 3):
        (decision,) = play(TokenBucket(Scripted((wanted,)), capacity=capacity), base, intervals=1)
        granted.append([n for n in ("count", "rank", "parse") if decision.planned.operators[n] == wanted.operators[n]])
        assert len(decision.why_not) == 3 - capacity
    assert granted == [["count"], ["count", "rank"], ["count", "rank", "parse"]]


def test_of_two_of_a_kind_the_one_that_moves_less_state_goes_first() -> None:
    one_moved = OperatorAllocation(("host-0", "host-1"), (0,) * 7 + (1,))
    start = START.with_operator("count", OperatorAllocation(("host-0", "host-1"), (0,) * 8))
    wanted = with_replicas(start, "rank", "host-1").with_operator("count", one_moved)  # 4 shards of 1 kB, 1 of 1 MB
    (decision,) = play(TokenBucket(Scripted((wanted,))), start, intervals=1)
    assert decision.planned == with_replicas(start, "rank", "host-1")
    assert why_nots(decision) == [
        "token-bucket: not move 1 shard of count, because the plan takes 2 tokens and the bucket held 1"
    ]


def test_the_hosts_of_a_granted_change_come_with_it() -> None:
    wanted = with_replicas(START, "parse", "host-0", "host-2", "host-3")
    decision, memory = TokenBucket(Scripted((wanted,))).decide(view(START), TokenBucketMemory(inner=0, tokens=1))
    assert decision.planned == wanted
    assert decision.why_not == ()
    assert memory.tokens == 0


def test_the_hosts_of_a_refused_change_stay_away() -> None:
    wanted = with_replicas(START, "parse", "host-0", "host-2")
    decision, memory = TokenBucket(Scripted((wanted,))).decide(
        view(START, latency_s=QUICK_S), TokenBucketMemory(inner=0, tokens=0)
    )
    assert decision.planned == START
    assert why_nots(decision)[1] == "token-bucket: not add host-2, because it would have served nothing but parse"
    assert memory.tokens == 0


def test_a_host_that_comes_or_goes_by_itself_takes_a_token() -> None:
    spare = START.with_hosts((*START.hosts, "host-2"))
    decisions = play(TokenBucket(Scripted((spare, START))), START, intervals=4, latency_s=SLOW_S)
    assert [len(d.planned.hosts) for d in decisions] == [3, 3, 3, 2]
    assert why_nots(decisions[1]) == [
        "token-bucket: not release host-2, because the plan takes 1 token and the bucket held 0.333"
    ]


def test_a_host_goes_after_its_operators_and_takes_no_token_before() -> None:
    decision, memory = TokenBucket(Scripted((placed(1),)), capacity=2).decide(view(START), TokenBucketMemory(inner=0, tokens=2))
    assert decision.planned == Allocation(("host-0",), placed(1).operators)
    assert memory.tokens == 0
    busy = with_replicas(START, "rank", "host-1")
    decision, memory = TokenBucket(Scripted((placed(1),))).decide(view(busy), TokenBucketMemory(inner=0, tokens=1))
    assert decision.planned == with_replicas(START, "rank", "host-0")
    assert why_nots(decision)[-1] == "token-bucket: not release host-1, because it still serves count"
    assert memory.tokens == 0


def test_the_bucket_holds_no_more_than_its_capacity() -> None:
    guard = TokenBucket(Scripted((START,)), capacity=2, tokens_per_minute=60)
    _, memory = guard.decide(view(START), guard.start())
    assert memory.tokens == 2


def test_an_application_that_lets_no_row_out_is_slow() -> None:
    guard = TokenBucket(Scripted((START,)))
    _, memory = guard.decide(stalled_view(START), TokenBucketMemory(inner=0, tokens=0))
    assert memory.tokens == pytest.approx(1 / 3)


def test_ten_tenths_of_a_token_are_a_token() -> None:
    guard = TokenBucket(Scripted((START,)), tokens_per_minute=0.3)
    memory = TokenBucketMemory(inner=0, tokens=0)
    for index in range(10):
        _, memory = guard.decide(view(START, index=index), memory)
    assert memory.tokens < 1
    wanted = with_replicas(START, "parse", "host-0", "host-0")
    decision, memory = TokenBucket(Scripted((wanted,)), tokens_per_minute=0).decide(view(START), memory)
    assert decision.planned == wanted
    assert memory.tokens == 0


@pytest.mark.parametrize("settings", [{"capacity": 0}, {"tokens_per_minute": -1}, {"beta": 1.5}])
def test_impossible_settings_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(InvalidValue, match=f"token-bucket: {next(iter(settings))} must"):
        TokenBucket(Scripted((START,)), **settings)  # type: ignore[arg-type]
