"""Who may ask what: the rules that every request is held against before anything answers it.

* The `Host` header names this server and nobody else: a name that is made to point here (DNS rebinding) is refused.
* Nothing is answered to other sites; the page itself may be opened from anywhere.
* On loopback, reading is free. On any other address, everything needs the token: in a header, or once as `?token=`, which sets
  a cookie that scripts cannot read and other sites cannot send.
* Whatever changes something needs the token in a header, the same origin, and a body of JSON: no other site's form has those.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

TOKEN_HEADER = "x-springtide-token"
LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
HEADERS = (
    ("content-security-policy", "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
)
_SAFE_METHODS = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class Refusal:
    status: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The parts of a request that decide whether it is answered; names of headers are in lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    reached_at: str = ""  # the address of this machine that the request came to

    @property
    def changes(self) -> bool:
        return self.method not in _SAFE_METHODS


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The names that this server goes by, and its token."""

    token: str
    host: str = "127.0.0.1"
    port: int = 0
    names: frozenset[str] = frozenset()  # of this machine, if it listens on all of its addresses

    @property
    def guarded(self) -> bool:
        """Whether even reading needs the token."""
        return not is_loopback(self.host)

    @property
    def cookie(self) -> str:
        return f"springtide-token-{self.port}"  # cookies know no ports, and there may be a second dashboard

    def refusal(self, asked: Asked) -> Refusal | None:
        """Why a request is not answered."""
        return self._stranger(asked) or self._token_refusal(asked) or (_form(asked) if asked.changes else None)

    def brings_token(self, asked: Asked) -> bool:
        """Whether the address holds the token, which then goes on in a cookie."""
        return self.guarded and self._is_token(_in_query(asked))

    def _stranger(self, asked: Asked) -> Refusal | None:
        host = _host_name(asked.headers.get("host", ""))
        if host not in self._known_names(asked.reached_at):
            return Refusal(403, f"this server is not called {host!r}: open it by the address that it printed")
        opens_page = asked.method == "GET" and asked.headers.get("sec-fetch-mode") == "navigate"
        if asked.headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not opens_page:
            return Refusal(403, "requests from other sites are not answered")
        return None

    def _known_names(self, reached_at: str) -> frozenset[str]:
        reached = {reached_at} if is_wildcard(self.host) else set()
        return LOOPBACK_NAMES | {self.host.lower()} | self.names | reached

    def _token_refusal(self, asked: Asked) -> Refusal | None:
        if not self.guarded and not asked.changes:
            return None
        said = _in_header(asked) or ("" if asked.changes else _in_query(asked))
        if said:
            return None if self._is_token(said) else Refusal(403, "that is not the token of this dashboard")
        if not asked.changes and self._is_token(_in_cookie(asked, self.cookie)):
            return None
        return Refusal(401, "this needs the token that the dashboard printed when it was started")

    def _is_token(self, said: str) -> bool:
        return bool(said) and hmac.compare_digest(said.encode(), self.token.encode())


def is_loopback(host: str) -> bool:
    """
    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("example.org")
    (True, True, False, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_wildcard(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def _form(asked: Asked) -> Refusal | None:
    """What a request that changes something must look like."""
    origin = asked.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc.lower() != asked.headers.get("host", "").lower():
        return Refusal(403, "requests from other sites are not answered")
    if asked.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return Refusal(400, "the body must be application/json")
    return None


def _host_name(header: str) -> str:
    """
    >>> _host_name("localhost:8765"), _host_name("[::1]:8765"), _host_name("a@b"), _host_name("[")
    ('localhost', '::1', '', '')
    """
    if "@" in header or "/" in header:
        return ""
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def _in_header(asked: Asked) -> str:
    bearer, _, token = asked.headers.get("authorization", "").partition(" ")
    return asked.headers.get(TOKEN_HEADER, "") or (token.strip() if bearer.lower() == "bearer" else "")


def _in_query(asked: Asked) -> str:
    return parse_qs(asked.query).get("token", [""])[0]


def _in_cookie(asked: Asked, name: str) -> str:
    try:
        found = SimpleCookie(asked.headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value
