"""The dashboard as a web application: a page, an API that answers in JSON, events as they come, and metrics."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from sse_starlette import EventSourceResponse
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from springtide import __version__
from springtide.dashboard import controls
from springtide.dashboard.access import Access
from springtide.dashboard.decisions import decisions
from springtide.dashboard.describing import described, listed
from springtide.dashboard.guarding import Guarded
from springtide.dashboard.metrics import CONTENT_TYPE, metrics_text
from springtide.dashboard.series import series
from springtide.dashboard.status import State
from springtide.dashboard.watching import Watched, follow_all
from springtide.errors import SpringtideError

STATIC = Path(__file__).parent / "static"
PING_S = 10
_LONGEST_BODY_BYTES = 4096
_BAD, _NOT_FOUND, _CONFLICT, _UNAVAILABLE = 400, 404, 409, 503


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """The runs that are shown, and who may do what. `ready` is called once everything that is there has been read."""

    runs: Sequence[Watched]
    access: Access
    controls_allowed: bool = True
    ready: Callable[[], None] = lambda: None

    def app(self) -> ASGIApp:
        """The whole of it, with the rules of access around everything, errors included."""
        run = "/api/runs/{run:int}"
        answering = Starlette(
            routes=[
                Route("/", self._page),
                Route("/api/runs", self._runs),
                Route(run, self._run),
                Route(f"{run}/series", self._series),
                Route(f"{run}/frames/{{which}}", self._frame),
                Route(f"{run}/decisions", self._decisions),
                Route(f"{run}/events", self._events),
                Route(f"{run}/controls", self._control, methods=["POST"]),
                Route("/metrics", self._metrics),
                Route("/health", self._health),
                Mount("/static", StaticFiles(directory=STATIC, check_dir=False)),
            ],
            exception_handlers={
                HTTPException: _http_error,
                SpringtideError: _mistake,
                msgspec.DecodeError: _unreadable,
                Exception: _defect,
            },
            lifespan=self._lifespan,
        )
        return Guarded(answering, self.access)

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        for run in self.runs:
            run.journal.read_all()
        following = asyncio.create_task(follow_all(list(self.runs)))
        self.ready()
        try:
            yield
        finally:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following
            for run in self.runs:
                run.journal.close()

    async def _page(self, _: Request) -> Response:
        if not (STATIC / "index.html").is_file():
            raise HTTPException(_NOT_FOUND, "this installation has no page: install springtide again")
        return FileResponse(STATIC / "index.html")

    async def _runs(self, _: Request) -> Response:
        return _json({"runs": [listed(run) for run in self.runs], "version": __version__})

    async def _run(self, request: Request) -> Response:
        return _json(described(self._chosen(request), controls_allowed=self.controls_allowed))

    async def _series(self, request: Request) -> Response:
        run = self._chosen(request)
        found = series(
            run.journal.index,
            run.best,
            from_s=_number(request, "from_s", -math.inf),
            to_s=_number(request, "to_s", math.inf),
            points=_whole(request, "points", 800) or 800,
        )
        return _json(found)

    async def _frame(self, request: Request) -> Response:
        run, which = self._chosen(request), request.path_params["which"]
        index = run.journal.index
        if which.upper() == "LAST":
            row = len(index) - 1 if len(index) else None
        else:
            row = index.row_of(int(which)) if which.isascii() and which.isdigit() and len(which) < 19 else None
        if row is None:
            raise HTTPException(_NOT_FOUND, f"there is no interval {which}: the run has {len(index)}")
        return Response(run.frame(row), media_type="application/json", headers={"cache-control": "no-store"})

    async def _decisions(self, request: Request) -> Response:
        found = decisions(
            self._chosen(request).journal,
            before=_whole(request, "before", None),
            limit=_whole(request, "limit", 50) or 50,
            changes_only=request.query_params.get("changes", "0") not in ("", "0"),
        )
        return _json({"decisions": found})

    async def _events(self, request: Request) -> Response:
        return EventSourceResponse(self._chosen(request).events(), ping=PING_S)

    async def _control(self, request: Request) -> Response:
        run = self._chosen(request)
        index = run.journal.index
        wish = controls.read_wish(await _body(request))
        why = controls.why_unavailable(index, allowed=self.controls_allowed, failed=run.journal.failure is not None)
        if why or index.run is None:
            raise controls.NotNow(why)
        hosts = [host.name for host in run.journal.observation(len(index) - 1).hosts] if len(index) else []
        asked = controls.checked(wish, index.run, hosts)
        who = f"dashboard at {request.client.host}" if request.client else "dashboard"
        controls.ask(run.journal.path, asked, who)
        return _json({"said": str(asked)}, 202)

    async def _metrics(self, _: Request) -> Response:
        return Response(metrics_text(self.runs), media_type=CONTENT_TYPE, headers={"cache-control": "no-store"})

    async def _health(self, _: Request) -> Response:
        states = [{"id": run.number, "status": run.status().state} for run in self.runs]
        well = not any(run["status"] in (State.STALE, State.FAILED) for run in states)
        return _json({"status": "ok" if well else "failing", "runs": states}, 200 if well else _UNAVAILABLE)

    def _chosen(self, request: Request) -> Watched:
        number = int(request.path_params["run"])
        if number >= len(self.runs):
            raise HTTPException(_NOT_FOUND, f"there is no run {number}: there are {len(self.runs)}, numbered from 0")
        return self.runs[number]


def _json(value: Any, status: int = 200) -> Response:
    # msgspec writes null for what is not a finite number, as the API says.
    return Response(msgspec.json.encode(value), status, media_type="application/json", headers={"cache-control": "no-store"})


def _number(request: Request, name: str, default: float) -> float:
    text = request.query_params.get(name)
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise SpringtideError(f"{name} must be a number, not {text[:40]!r}")
    return value


def _whole(request: Request, name: str, default: int | None) -> int | None:
    value = _number(request, name, math.inf)
    if value == math.inf:
        return default
    if value != int(value) or not 0 <= value < 2**53:
        raise SpringtideError(f"{name} must be a whole number of 0 or more")
    return int(value)


async def _body(request: Request) -> bytes:
    body = b""
    async for block in request.stream():
        body += block
        if len(body) > _LONGEST_BODY_BYTES:
            raise SpringtideError(f"the body has more than {_LONGEST_BODY_BYTES} bytes")
    return body


async def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _json({"error": error.detail}, error.status_code)


async def _mistake(_: Request, error: Exception) -> Response:
    return _json({"error": str(error)}, _CONFLICT if isinstance(error, controls.NotNow) else _BAD)


async def _unreadable(_: Request, error: Exception) -> Response:
    return _json({"error": f"the journal cannot be read there any more: {error}"}, _UNAVAILABLE)


async def _defect(_: Request, error: Exception) -> Response:
    return _json({"error": f"a defect of the dashboard ({type(error).__name__}): its process has written more of it"}, 500)
