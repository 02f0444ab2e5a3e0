"""What a command that was run left behind, and what a refusal looks like."""

from typing import NamedTuple


class Ran(NamedTuple):
    code: int
    out: str
    err: str


def assert_refused(ran: Ran, hint: str) -> None:
    assert ran.code == 2, ran
    assert ran.out == ""
    lines = ran.err.strip().splitlines()
    assert len(lines) == 1, ran.err
    assert hint in lines[0]
