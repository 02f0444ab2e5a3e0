"""A dashboard that answers within the test's own process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx

from springtide.dashboard.access import Access
from springtide.dashboard.app import Dashboard
from springtide.dashboard.following import FollowedJournal
from springtide.dashboard.watching import Watched

TOKEN = "a-token-for-the-tests"
PORT = 8765


def dashboard(*paths: Path, host: str = "127.0.0.1", controls: bool = True) -> Dashboard:
    """The journals as they are now: nobody follows them, so that a test decides when they are looked at."""
    runs = [Watched(number, FollowedJournal(path)) for number, path in enumerate(paths)]
    for run in runs:
        run.journal.read_all()
    return Dashboard(runs=runs, access=Access(token=TOKEN, host=host, port=PORT), controls_allowed=controls)


def ask(
    shown: Dashboard,
    path: str,
    *,
    method: str = "GET",
    base: str = f"http://127.0.0.1:{PORT}",
    raising: bool = True,
    **request: Any,
) -> httpx.Response:
    """One request against the application itself, without a network."""

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app=shown.app(), raise_app_exceptions=raising)
        async with httpx.AsyncClient(transport=transport, base_url=base) as client:
            return await client.request(method, path, **request)

    return asyncio.run(send())


def post(shown: Dashboard, body: Any, *, run: int = 0, **headers: str) -> httpx.Response:
    """Ask for a control, as the page does; `headers` add to that, with _ for -."""
    names = {"x-springtide-token": TOKEN} | {name.replace("_", "-"): value for name, value in headers.items()}
    return ask(shown, f"/api/runs/{run}/controls", method="POST", json=body, headers=names)
