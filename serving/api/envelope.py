"""What holds for every request and answer, whatever the route: identity, limits, headers, counting, last resort."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Callable

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dashboards.assets import STYLE_HASHES
from serving.api.problems import Problem, from_status

__all__ = ["LOOPBACK_NAMES", "Envelope"]

LOOPBACK_NAMES = frozenset({b"localhost", b"127.0.0.1", b"[::1]"})
"""Names under which a loopback server is addressed; any other means that a foreign page rebound its name to us."""

_BODY_SECONDS = 30.0
_MOST_IN_FLIGHT = 256
_GIVEN_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_UNMATCHED = "unmatched"
_HEAD = "HEAD"
_POLICY = (
    f"default-src 'none'; script-src 'self'; style-src 'self' {' '.join(STYLE_HASHES)}; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
).encode()
_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-security-policy", _POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)

Counted = Callable[[str, str, int, float], None]
log = structlog.get_logger(__name__)


class _Refusal(Exception):
    """A request that is refused while its body still arrives."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem.detail)


class Envelope:
    """ASGI middleware around every route.

    Gives each request an id (or keeps the caller's), refuses foreign host names and bodies that are too
    large or too slow, answers HEAD as GET without the body, adds the security headers, counts the answer,
    and turns what nobody expected into a logged 500 that tells the client nothing but the id.
    """

    def __init__(self, app: ASGIApp, *, body_limit_bytes: int, counted: Counted) -> None:
        """Wrap ``app``; ``counted`` is told route template, method, status and seconds of every answer."""
        self._app = app
        self._body_limit = body_limit_bytes
        self._counted = counted
        self._in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        headers = dict(scope["headers"])
        request_id = _request_id(headers)
        scope.setdefault("state", {})["request_id"] = request_id
        answer = _Answer(send, request_id, bodiless=scope["method"] == _HEAD)
        # A copy, since the server below goes by the method that was asked.
        asked = {**scope, "method": "GET"} if scope["method"] == _HEAD else scope
        refused = self._refusal(headers)
        self._in_flight += 1
        try:
            if refused is None:
                await self._app(asked, _Body(receive, self._body_limit), answer)
            else:
                await refused.response(request_id)(scope, receive, answer)
        except _Refusal as refusal:
            await answer.instead(refusal.problem, scope, receive)
        except Exception:
            log.exception("request_failed", request_id=request_id, method=scope["method"], path=scope["path"])
            await answer.instead(from_status(500, "The service failed; its log says more."), scope, receive)
        finally:
            self._in_flight -= 1
            seconds = time.perf_counter() - began
            self._counted(_template(asked, answer.status), scope["method"], answer.status, seconds)

    def _refusal(self, headers: dict[bytes, bytes]) -> Problem | None:
        if _host_name(headers.get(b"host", b"")) not in LOOPBACK_NAMES:
            return from_status(421, "This server answers under localhost, 127.0.0.1 and [::1] only.")
        if self._in_flight >= _MOST_IN_FLIGHT:
            return from_status(503, "Too many requests are being answered.", {"Retry-After": "1"})
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self._body_limit:
            return _too_large(self._body_limit)
        return None


class _Answer:
    """The way out: notes the status, adds to the headers what every answer carries, and can hold back the body."""

    def __init__(self, send: Send, request_id: str, *, bodiless: bool) -> None:
        self.status = 500
        self._send = send
        self._request_id = request_id
        self._bodiless = bodiless
        self._started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._started = True
            self.status = message["status"]
            headers = [*message["headers"], *_HEADERS, (b"x-request-id", self._request_id.encode())]
            if not any(name == b"cache-control" for name, _ in message["headers"]):
                headers.append((b"cache-control", b"no-store"))
            message = {**message, "headers": headers}
        elif self._bodiless and message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await self._send(message)

    async def instead(self, problem: Problem, scope: Scope, receive: Receive) -> None:
        """Answer with a problem, unless an answer has begun and can only be cut short."""
        if not self._started:
            await problem.response(self._request_id)(scope, receive, self)


class _Body:
    """The way in: a body that is refused as soon as it is too large, or stops arriving."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self._limit = limit
        self._size = 0
        self._complete = False

    async def __call__(self) -> Message:
        if self._complete:
            return await self._receive()
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                message = await self._receive()
        except TimeoutError as error:
            raise _Refusal(from_status(408, f"The body did not arrive within {_BODY_SECONDS:g} s.")) from error
        self._size += len(message.get("body", b""))
        self._complete = not message.get("more_body", False)
        if self._size > self._limit:
            raise _Refusal(_too_large(self._limit))
        return message


def _too_large(limit: int) -> Problem:
    # The rest of such a body is not read, so the connection cannot be used again.
    detail = f"The body is larger than {limit:,} bytes. Split the request."
    return from_status(413, detail, {"Connection": "close"})


def _request_id(headers: dict[bytes, bytes]) -> str:
    given = headers.get(b"x-request-id", b"")
    return given.decode() if _GIVEN_ID.fullmatch(given) else secrets.token_hex(8)


def _host_name(host: bytes) -> bytes:
    if host.startswith(b"["):
        return host[: host.find(b"]") + 1].lower()
    return host.partition(b":")[0].lower()


def _template(scope: Scope, status: int) -> str:
    # A path that no route has must not become a label: anybody could make up any number of them.
    route = scope.get("route")
    return _UNMATCHED if route is None or (status == 404 and not hasattr(route, "path")) else route.path
