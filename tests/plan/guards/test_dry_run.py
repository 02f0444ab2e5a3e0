from guard_stories import Scripted, placed, play, why_nots

from springtide.plan.guards.dry_run import DryRun


def test_nothing_is_carried_out_and_the_journal_says_what_would_have_been() -> None:
    start = placed(1)
    decisions = play(DryRun(Scripted((placed(2, parse=2),))), start, intervals=2)
    assert [d.planned for d in decisions] == [start, start]
    assert why_nots(decisions[1]) == [
        "dry-run: not add host-1; parse 1 -> 2 replicas; move 4 shards of rank, because nothing is carried out in a dry run"
    ]
    assert decisions[1].reason == "the script says so"


def test_a_policy_that_wants_nothing_is_not_vetoed() -> None:
    (decision,) = play(DryRun(Scripted((placed(1),))), placed(1), intervals=1)
    assert decision.why_not == ()
