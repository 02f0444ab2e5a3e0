"""A small journal with every kind of record, as a run that scales up once would write it."""

from __future__ import annotations

from pathlib import Path

import factories
from springtide.journal.reading import read_journal
from springtide.journal.records import Record
from springtide.journal.writing import JournalWriter
from springtide.model.action import AddHosts, SetReplicas
from springtide.model.decision import Expectation, Outcome, WhyNot

ONE_HOST = factories.allocation(hosts=1)
TWO_HOSTS = factories.allocation(hosts=2, replicas={"count": 2})
RUN = factories.run(seed=7, trace="a bursty day", step_s=1.0)


def write_small_journal(path: Path, **options: object) -> tuple[Record, ...]:
    """Two intervals; in the first, `count` is too busy and gets a second host. The records after the run."""
    expected = Expectation(utilisation=0.47, latency_s=1.0)
    busy = factories.observation(index=0, utilisation={"count": 0.95}, events=["host-0 is hot"])
    calm = factories.observation(index=1, allocation=TWO_HOSTS, utilisation=0.5, reconfigurations={"add_hosts": 1})
    scale_up = factories.decision(
        TWO_HOSTS, reason="count is at 0.95", expected=expected, why_not=[WhyNot("Bounded", "a third host", "two is the limit")]
    )
    with JournalWriter(path, RUN, **options) as journal:
        journal.observation(busy)
        journal.decision(busy, scale_up, [AddHosts(("host-1",)), SetReplicas("count", ("host-0", "host-1"), before=1)])
        journal.observation(calm)
        journal.outcome(
            Outcome(interval=1, expected=expected, measured=Expectation(utilisation=0.5), verdict="as expected"), time_s=120.0
        )
        journal.decision(calm, factories.decision(TWO_HOSTS), [])
        journal.end(120.0, {"host_hours": 0.05})
    return tuple(read_journal(path))
