"""The rules of access around a web application, and the headers that every answer has."""

from __future__ import annotations

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from springtide.dashboard.access import HEADERS, Access, Asked, Refusal

_ANSWER_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS]


class Guarded:
    """Answers what may be answered. Not a response in sight: a stream of events is passed through as it comes."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        asked = _asked(scope)
        extra = list(_ANSWER_HEADERS)
        refusal = self._access.refusal(asked)
        if refusal is None and self._access.brings_token(asked):
            cookie = f"{self._access.cookie}={self._access.token}; HttpOnly; SameSite=Strict; Path=/"
            extra.append((b"set-cookie", cookie.encode()))

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", []))
                if not any(name.lower() == b"cache-control" for name, _ in headers):
                    headers.append((b"cache-control", b"no-cache"))  # else a browser shows the page of an older version
                message = {**message, "headers": [*headers, *extra]}
            await send(message)

        if refusal is not None:
            await _refuse(refusal, send_with_headers)
        else:
            await self._app(scope, receive, send_with_headers)


def _asked(scope: Scope) -> Asked:
    server = scope.get("server")
    return Asked(
        method=scope["method"],
        path=scope["path"],
        query=scope["query_string"].decode("latin-1"),
        headers={name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]},
        reached_at=server[0] if server else "",
    )


async def _refuse(refusal: Refusal, send: Send) -> None:
    body = msgspec.json.encode({"error": refusal.why})
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
