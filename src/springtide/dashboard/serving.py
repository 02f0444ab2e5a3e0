"""What `springtide dashboard` does: open the journals and a port, and answer until it is told to stop."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from sse_starlette.sse import AppStatus

from springtide.dashboard.access import Access, is_loopback, is_wildcard
from springtide.dashboard.app import Dashboard
from springtide.dashboard.following import FollowedJournal
from springtide.dashboard.watching import Watched
from springtide.errors import SpringtideError
from springtide.journal.reading import examine

TOKEN_VARIABLE = "SPRINGTIDE_TOKEN"
LEAST_TOKEN_CHARACTERS = 16
_LARGE_BYTES = 500e6  # that take a few seconds to read
_GRACE_S = 2  # that answers under way have when the server stops


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the user asked to be shown, and where. A token that is not given is made."""

    journals: list[Path]
    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = None
    controls: bool = True


def serve(wishes: Wishes, say: Callable[[str], None]) -> None:
    """Show the journals until a signal comes. Everything that can be refused is refused before the port is opened."""
    journals = [followed(path) for path in wishes.journals]
    if wishes.token is None and not is_loopback(wishes.host):
        raise SpringtideError(
            f"--host {wishes.host} lets other machines in: give them a token with --token-file FILE, or in {TOKEN_VARIABLE}"
        )
    for journal in journals:
        if journal.path.exists() and (size_bytes := journal.path.stat().st_size) > _LARGE_BYTES:
            say(f"Reading {journal.path.name}, {size_bytes / 1e9:.1f} GB ...")
    with listening(wishes.host, wishes.port) as bound:
        access = Access(
            token=wishes.token or secrets.token_urlsafe(24),
            host=wishes.host,
            port=bound.getsockname()[1],
            names=_names_of_this_machine() if is_wildcard(wishes.host) else frozenset(),
        )
        dashboard = Dashboard(
            runs=[Watched(number, journal) for number, journal in enumerate(journals)],
            access=access,
            controls_allowed=wishes.controls,
            ready=lambda: say(f"Dashboard: {address(access)}"),
        )
        config = uvicorn.Config(
            dashboard.app(),
            log_level="warning",
            access_log=False,  # addresses may hold the token
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_GRACE_S,
            lifespan="on",
        )
        _Server(config, dashboard.runs).run(sockets=[bound])


class _Server(uvicorn.Server):
    """Ends the streams of events, which would go on for ever, before it waits for the answers under way."""

    def __init__(self, config: uvicorn.Config, runs: Sequence[Watched]) -> None:
        super().__init__(config)
        self._runs = runs
        AppStatus.enable_automatic_graceful_drain = False  # it would cut them off in the middle

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for run in self._runs:
            run.dismiss()
        await super().shutdown(sockets)


def address(access: Access) -> str:
    """Where the page is, with the token: behind a # it is not sent, and before it a cookie comes of it."""
    name = socket.gethostname() if is_wildcard(access.host) else access.host
    return f"http://{f'[{name}]' if ':' in name else name}:{access.port}/{'?' if access.guarded else '#'}token={access.token}"


def _names_of_this_machine() -> frozenset[str]:
    return frozenset({socket.gethostname().lower(), socket.getfqdn().lower()})


def followed(path: Path) -> FollowedJournal:
    """A journal, or the place where one will be."""
    if path.exists():
        examine(path)
    elif not path.parent.is_dir():
        raise SpringtideError(f"there is no journal {path}, nor the folder in which it could be written")
    return FollowedJournal(path)


def token_from(file: Path | None) -> str | None:
    """The token in a file, or in the environment; none if there is neither."""
    if file is None:
        token, where = os.environ.get(TOKEN_VARIABLE, "").strip(), TOKEN_VARIABLE
        if not token:
            return None
    else:
        try:
            token, where = file.read_text(encoding="utf-8").strip(), str(file)
        except (OSError, UnicodeDecodeError) as error:
            raise SpringtideError(f"cannot read the token in {file}: {error}") from error
    if len(token) < LEAST_TOKEN_CHARACTERS or not token.isascii() or not token.isprintable() or set(token) & set(' ;,"\\&#%+'):
        raise SpringtideError(
            f"the token in {where} must have {LEAST_TOKEN_CHARACTERS} letters, digits, - or _ or more: try openssl rand -hex 24"
        )
    return token


def listening(host: str, port: int) -> socket.socket:
    """A socket that is bound, and listens."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (socket.gaierror, OverflowError) as error:
        raise SpringtideError(f"--host {host}: there is no such address ({error})") from error
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(place)
        bound.listen(256)
    except OSError as error:
        bound.close()
        raise SpringtideError(
            f"cannot listen on {host}:{port}: {os.strerror(error.errno or 0).lower()}; "
            "choose another --port, or 0 for any that is free"
        ) from error
    bound.set_inheritable(True)
    return bound
