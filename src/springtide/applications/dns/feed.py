"""The log of a resolver, one line for each query: row n is a pure function of n, its time and the seed. No loop over rows.

    2020-04-01T00:00:12.345678Z 10.0.1.17 www.example.com A 120

time, client, name, type of the query, bytes of the response. What is in them: some clients ask more than others, and few
domains are asked for most (Zipf). Most names have a short host before the domain; content networks have hexadecimal ones.
A few clients run a tunnel, half of the time: their queries, mostly TXT and NULL, carry data in long names below one domain,
all of them different. Lines come a little out of order, some come late, and some are broken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from springtide.applications.chance import Chance, IntArray
from springtide.applications.dns.names import DOUBLE_SUFFIXES
from springtide.errors import require
from springtide.model.observation import FloatArray

BEGIN_US = 1_585_699_200_000_000  # 1 April 2020: second 0 of the trace

_SCHEMA = pa.schema([("received_at", pa.timestamp("us", tz="UTC")), ("line", pa.string())])
_USUAL_LAG_S = 2.0
_FUTURE_US = 3_600_000_000
_CUT_AT = 35  # characters that are left of a line that is cut off

_SUFFIXES = ("com", "net", "org", "de", "io", *DOUBLE_SUFFIXES)
_HOSTS = (
    "",
    "www",
    "mail",
    "api",
    "cdn",
    "img",
    "static",
    "login",
    "ns1",
    "m",
    "app",
    "shop",
    "news",
    "auth",
    "db2",
    "eu-west-1.api",
)
_SYLLABLES = ("ba", "co", "di", "fe", "go", "hu", "ka", "lo", "mi", "nu", "pra", "sto", "ter", "vin", "web", "zen")
_TYPES = ("A", "AAAA", "HTTPS", "CNAME", "TXT", "MX", "NULL")
_USUAL_TYPES = (0.58, 0.24, 0.08, 0.05, 0.03, 0.02, 0.0)
_TUNNEL_TYPES = (0.05, 0.0, 0.0, 0.15, 0.5, 0.05, 0.25)
_HASHED_DOMAINS = 0.06  # of all domains are content networks
_HEXADECIMAL = np.frombuffer(b"0123456789abcdef", np.uint8)
_BASE32 = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz234567", np.uint8)
_TUNNEL_PERIOD_S = 600.0
_TUNNEL_LABELS = (30, 40, 50)


@dataclass(frozen=True, slots=True, kw_only=True)
class DnsFeed:
    """Makes the rows: `received_at`, the collector's own stamp, which never falls, and the `line`."""

    seed: int = 7
    clients: int = 400
    client_zipf: float = 0.6
    domains: int = 3000
    domain_zipf: float = 1.0
    tunnels: int = 4
    tunnel_share: float = 0.08
    malformed_share: float = 0.01
    late_share: float = 0.02
    late_by_s: float = 240.0

    def __post_init__(self) -> None:
        require(self.seed >= 0, f"seed must be 0 or more, not {self.seed}")
        for what, most in (("clients", 60_000), ("domains", 1_000_000), ("tunnels", 1000)):
            require(0 <= getattr(self, what) <= most, f"{what} must be between 0 and {most:,}, not {getattr(self, what)}")
        require(
            self.clients >= max(1, self.tunnels), f"there must be a client for each of {self.tunnels} tunnels, and one at least"
        )
        require(self.domains >= 1, "domains must be at least 1")
        for what in ("client_zipf", "domain_zipf", "late_by_s"):
            require(getattr(self, what) >= 0, f"{what} must be 0 or more, not {getattr(self, what)}")
        for what in ("tunnel_share", "malformed_share", "late_share"):
            require(0 <= getattr(self, what) <= 1, f"{what} must be between 0 and 1, not {getattr(self, what)}")

    @property
    def schema(self) -> pa.Schema:
        return _SCHEMA

    def tunnels_there(self) -> set[tuple[str, str]]:
        """The truth: clients that run a tunnel, each with its domain."""
        numbers = np.arange(self.tunnels)
        clients = _addresses(self._tunnel_clients(numbers)).to_pylist()
        return set(zip(clients, self._tunnel_domains(numbers).to_pylist(), strict=True))

    def made(self, first: int, after: int, elapsed_s: FloatArray) -> pa.Table:
        rows = np.arange(first, after, dtype=np.int64)
        chance = Chance(self.seed)
        received_us = BEGIN_US + np.rint(elapsed_s * 1e6).astype(np.int64)
        late = chance.share("late", rows) < self.late_share
        lag_s = chance.share("lag", rows) * np.where(late, self.late_by_s, _USUAL_LAG_S)
        broken = np.where(chance.share("malformed", rows) < self.malformed_share, 1 + chance.whole("how", rows, 5), 0)
        asked_us = np.where(broken == 1, received_us + _FUTURE_US, received_us - np.rint(lag_s * 1e6).astype(np.int64))
        line = self._lines(rows, self._tunnel_of(rows, elapsed_s), asked_us, broken)
        received = pa.array(received_us.view("datetime64[us]"), _SCHEMA.field("received_at").type)
        return pa.table([received, line], schema=_SCHEMA)

    def _tunnel_of(self, rows: IntArray, elapsed_s: FloatArray) -> IntArray:
        """The number of the tunnel that a query belongs to, or -1. A tunnel is silent in half of its period."""
        chance, chosen = Chance(self.seed), rows
        if not self.tunnels:
            return np.full(rows.size, -1, np.int64)
        tunnel = chance.whole("which tunnel", chosen, self.tunnels)
        phase = elapsed_s / _TUNNEL_PERIOD_S + chance.share("phase", tunnel)
        there = (chance.share("tunnels", rows) < self.tunnel_share) & (np.mod(phase, 1.0) < 0.5)
        return np.where(there, tunnel, -1)

    def _lines(self, rows: IntArray, tunnel: IntArray, asked_us: IntArray, broken: IntArray) -> pa.Array:
        chance, tunnels = Chance(self.seed), pa.array(tunnel >= 0)
        client = chance.zipf("client", rows, self.clients, self.client_zipf)
        client = np.where(tunnel >= 0, self._tunnel_clients(np.maximum(tunnel, 0)), client)
        usual = chance.among("type", rows, _USUAL_TYPES)
        kind = np.where(tunnel >= 0, chance.among("tunnel's type", rows, _TUNNEL_TYPES), usual)
        octets = 60 + chance.whole("bytes", rows, 400) * np.where(tunnel >= 0, 3, 1)
        lines = pc.binary_join_element_wise(
            pa.array(np.char.add(np.datetime_as_string(asked_us.view("datetime64[us]")), "Z")),
            pc.if_else(pa.array(broken == 2), "10.0.0.999", _addresses(client)),
            pc.if_else(
                pa.array(broken == 3), "a..example.com", pc.if_else(tunnels, self._data(rows, tunnel), self._names(rows))
            ),
            pc.if_else(pa.array(broken == 4), "TYPE?", _taken(_TYPES, kind)),
            pa.array(octets).cast(pa.string()),
            " ",
        )
        return pc.if_else(pa.array(broken == 5), pc.utf8_slice_codeunits(lines, 0, _CUT_AT), lines)

    def _names(self, rows: IntArray) -> pa.Array:
        """A host and a domain; a content network's host is hexadecimal, and one of its 500."""
        chance = Chance(self.seed)
        domain = chance.zipf("domain", rows, self.domains, self.domain_zipf)
        hashed = chance.share("hashed", domain) < _HASHED_DOMAINS
        host = chance.zipf("host", rows, len(_HOSTS), 1.0)
        digits = _letters(chance, "digits", domain * 500 + chance.whole("which host", rows, 500), _HEXADECIMAL, 12)
        hosts = pc.if_else(pa.array(hashed), digits, _taken(_HOSTS, host))
        parts = pc.if_else(pc.equal(hosts, ""), pa.scalar(None, pa.string()), hosts)
        return pc.binary_join_element_wise(
            parts, _domains(self.seed, self.domains).take(pa.array(domain)), ".", null_handling="skip"
        )

    def _data(self, rows: IntArray, tunnel: IntArray) -> pa.Array:
        """Names that carry data: one to three labels of it, and the tunnel's domain."""
        chance = Chance(self.seed)
        labels = chance.whole("labels", rows, 3)
        parts = [_letters(chance, f"data {at}", rows, _BASE32, length) for at, length in enumerate(_TUNNEL_LABELS)]
        carried = [pc.if_else(pa.array(labels >= at), part, pa.scalar(None, pa.string())) for at, part in enumerate(parts)]
        domain = self._tunnel_domains(np.maximum(tunnel, 0))
        return pc.binary_join_element_wise(*carried, domain, ".", null_handling="skip")

    def _tunnel_clients(self, tunnel: IntArray) -> IntArray:
        """Clients of the middle ranks, each its own."""
        return (self.clients // 2 + tunnel) % self.clients

    def _tunnel_domains(self, tunnel: IntArray) -> pa.Array:
        return pc.binary_join_element_wise("upd", pa.array(tunnel + 1).cast(pa.string()), "-sync.net", "")


def _addresses(client: IntArray) -> pa.Array:
    return pc.binary_join_element_wise(
        "10.0", pa.array(client // 250).cast(pa.string()), pa.array(client % 250 + 1).cast(pa.string()), "."
    )


@lru_cache(maxsize=4)
def _domains(seed: int, count: int) -> pa.Array:
    """Names of domains, most frequent first; a number keeps those apart that would sound the same."""
    chance, numbers = Chance(seed), np.arange(count)
    spoken = [_taken(_SYLLABLES, chance.whole(f"syllable {at}", numbers, len(_SYLLABLES))) for at in range(3)]
    name = pc.binary_join_element_wise(*spoken, pa.array(numbers).cast(pa.string()), "")
    return pc.binary_join_element_wise(name, _taken(_SUFFIXES, chance.zipf("suffix", numbers, len(_SUFFIXES), 1.0)), ".")


def _letters(chance: Chance, purpose: str, numbers: IntArray, alphabet: np.ndarray, length: int) -> pa.Array:
    """Strings of `length` letters, without making Python objects of them. The alphabet's size is a power of 2."""
    drawn = np.stack([chance.bits(f"{purpose} {at}", numbers) for at in range(-(-length // 8))], axis=1)
    octets = np.ascontiguousarray(drawn).view(np.uint8).reshape(numbers.size, 8 * drawn.shape[1])[:, :length]
    letters = np.ascontiguousarray(alphabet[octets & np.uint8(alphabet.size - 1)])
    ends = np.arange(numbers.size + 1, dtype=np.int32) * np.int32(length)
    return pa.StringArray.from_buffers(numbers.size, pa.py_buffer(ends), pa.py_buffer(letters))


def _taken(choice: Sequence[str], index: IntArray) -> pa.Array:
    return pa.array(choice, pa.string()).take(pa.array(index))
