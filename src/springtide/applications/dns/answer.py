"""What the windows must be, computed once more: one line after the other, in plain Python; and how many tunnels were found."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from springtide.applications.dns import operators
from springtide.applications.dns.names import DOUBLE_SUFFIXES
from springtide.applications.dns.operators import KEPT, DnsOperators, Thresholds, Verdict

Key = tuple[int, str, str, str]  # the window's begin in seconds, outcome, client, domain


@dataclass
class Window:
    """The queries of a client for a domain in one window."""

    queries: int = 0
    subdomains: set[str] = field(default_factory=set)
    data_queries: int = 0
    bytes: int = 0
    sub_chars: int = 0
    sub_digits: int = 0
    longest_label: int = 0
    entropy_millibit: int = 0

    def add(self, sub: str, kind: str, octets: int) -> None:
        self.queries += 1
        self.subdomains.add(sub)
        self.data_queries += kind in operators.DATA_TYPES
        self.bytes += octets
        self.sub_chars += len(sub)
        self.sub_digits += sum(character in "0123456789" for character in sub)
        self.longest_label = max(self.longest_label, *map(len, sub.split(".")))
        self.entropy_millibit += entropy_millibit(sub)

    def row(self) -> tuple[int, ...]:
        return (
            self.queries,
            len(self.subdomains),
            self.data_queries,
            self.bytes,
            self.sub_chars,
            self.sub_digits,
            self.longest_label,
            self.entropy_millibit,
        )

    def verdict(self, limits: Thresholds) -> str:
        signs = [
            len(self.subdomains) / self.queries >= limits.min_distinct_percent / 100,
            self.entropy_millibit / self.queries >= limits.min_mean_entropy_millibit,
            self.sub_chars / self.queries >= limits.min_mean_sub_chars,
            self.data_queries / self.queries >= limits.min_data_percent / 100,
        ]
        if sum(signs) >= 3 and self.queries >= limits.min_queries:
            return "tunnel"
        return "suspicious" if sum(signs) >= 2 else "normal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """Windows that were called tunnels, beside those in which a tunnel was used."""

    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float:
        return self.right / max(1, self.right + self.wrong)

    @property
    def recall(self) -> float:
        return self.right / max(1, self.right + self.missed)


def answer(rows: Iterable[tuple[int, str]], rules: DnsOperators) -> dict[Key, Window]:
    """Of rows (received in microseconds, line), in any order."""
    windows: dict[Key, Window] = {}
    for received_us, line in rows:
        outcome = outcome_of(line, received_us, rules)
        at_us, client, domain, sub, kind, octets = received_us, "", "", "", "", 0
        if outcome == KEPT:
            stamp, client, name, kind, size = line.split(" ")
            at_us, octets = _microseconds(stamp) or 0, int(size)
            domain, sub = registered(name.lower())
        begin_s = at_us // 1_000_000 // rules.window_s * rules.window_s
        windows.setdefault((begin_s, outcome, client, domain), Window()).add(sub, kind, octets)
    return windows


def outcome_of(line: str, received_us: int, rules: DnsOperators) -> str:
    """The first rule that refuses the line, or that it is kept."""
    fields = line.split(" ")
    if len(fields) != 5:
        return operators.BAD_FIELDS
    stamp, client, name, kind, size = fields
    asked_us = _microseconds(stamp)
    if asked_us is None:
        return operators.BAD_TIME
    window_us = rules.window_s * 1_000_000
    closed_us = (asked_us // window_us + 1) * window_us + round(rules.allowed_lateness_s * 1e6)
    refused = {
        operators.BAD_CLIENT: not _is_address(client),
        operators.BAD_NAME: not _is_name(name.lower()),
        operators.BAD_TYPE: kind not in operators.TYPES,
        operators.BAD_BYTES: not re.fullmatch("[0-9]{1,9}", size),
        operators.FROM_THE_FUTURE: asked_us > received_us,
        operators.TOO_LATE: received_us >= closed_us,
    }
    return next((outcome for outcome, is_so in refused.items() if is_so), KEPT)


def registered(name: str) -> tuple[str, str]:
    """The domain that was registered, and what is below it.

    >>> registered("www.shop.co.uk"), registered("example.com"), registered("co.uk")
    (('shop.co.uk', 'www'), ('example.com', ''), ('co.uk', ''))
    """
    labels = name.split(".")
    depth = 3 if len(labels) > 2 and name.endswith(tuple(f".{suffix}" for suffix in DOUBLE_SUFFIXES)) else 2
    return ".".join(labels[-depth:]), ".".join(labels[:-depth])


def entropy_millibit(text: str) -> int:
    """
    >>> entropy_millibit(""), entropy_millibit("aaaa"), entropy_millibit("ab"), entropy_millibit("abcdefgh")
    (0, 0, 1000, 3000)
    """
    counts = [len(text), *(-count for count in Counter(text).values())]
    weighed = [round(1000 * abs(c) * math.log2(abs(c))) * (1 if c > 0 else -1) for c in counts if c]
    return sum(weighed) // len(text) if text else 0


def detection(windows: dict[Key, Window], tunnels: set[tuple[str, str]], limits: Thresholds) -> Detection:
    """How well tunnels are told from what they hide among, of the windows of queries that are kept."""
    found = Counter(
        (window.verdict(limits) == Verdict.TUNNEL, (client, domain) in tunnels)
        for (_, outcome, client, domain), window in windows.items()
        if outcome == KEPT
    )
    return Detection(right=found[True, True], wrong=found[True, False], missed=found[False, True])


def _microseconds(stamp: str) -> int | None:
    if not re.fullmatch(operators.TIME, stamp):
        return None
    try:
        since = datetime.fromisoformat(stamp) - datetime.fromisoformat("1970-01-01T00:00:00+00:00")
    except ValueError:
        return None
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _is_address(client: str) -> bool:
    parts = client.split(".")
    return len(parts) == 4 and all(re.fullmatch("0|[1-9][0-9]{0,2}", part) and int(part) < 256 for part in parts)


def _is_name(name: str) -> bool:
    labels = name.split(".")
    fine = all(0 < len(label) < 64 and re.fullmatch("[a-z0-9_-]*", label) for label in labels)
    return fine and len(labels) > 1 and len(name) <= 253
