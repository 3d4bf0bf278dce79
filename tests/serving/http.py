"""Requests to an app: within the process for most tests, over a real socket where that is the point."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from advisor.settings import ServerSettings
from serving.app import create_app
from serving.bind import server_config
from tests.serving.fake_service import FakePages, FakeService

BASE = "http://127.0.0.1"


def an_app(service: FakeService | None = None, pages: FakePages | None = None, **limits: Any) -> FastAPI:
    """The real application around a fake service, with any server setting changed."""
    return create_app(service or FakeService(), pages or FakePages(), ServerSettings(**limits))


def call(app: FastAPI, method: str, path: str, **request: Any) -> httpx.Response:
    """One request, answered within the process; what the app raises becomes its answer, as in production."""

    async def answer() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
            return await client.request(method, path, **request)

    return asyncio.run(answer())


def get(app: FastAPI, path: str, **request: Any) -> httpx.Response:
    return call(app, "GET", path, **request)


def post(app: FastAPI, path: str, **request: Any) -> httpx.Response:
    return call(app, "POST", path, **request)


@contextlib.contextmanager
def running(app: FastAPI) -> Iterator[str]:
    """The app behind a real server on a free loopback port; yields its address."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        config = server_config(app, "127.0.0.1", port)
        config.log_level = "error"
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            _wait_until(lambda: server.started, thread)
            yield f"{BASE}:{port}"
        finally:
            server.should_exit = True
            thread.join(10)


def _wait_until(ready: Any, thread: threading.Thread) -> None:
    deadline = time.monotonic() + 10
    while not ready():
        if not thread.is_alive() or time.monotonic() > deadline:
            raise RuntimeError("the server did not start")
        time.sleep(0.01)
