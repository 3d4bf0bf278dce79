"""The server as a process: it answers before it is ready, and ends cleanly when asked to."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.processes import gsa, started


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture
def server(tmp_path: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    with started(tmp_path, "serve", "--port", str(port)) as process:
        yield process
        process.kill()


def answers(port: int, process: subprocess.Popen[str]) -> httpx.Response:
    """The first answer; a refused connection is tried again for as long as the process lives."""
    transport = httpx.HTTPTransport(retries=100)
    with httpx.Client(transport=transport, timeout=60) as client:
        while process.poll() is None:
            try:
                return client.get(f"http://127.0.0.1:{port}/healthz")
            except httpx.ConnectError:
                continue
    raise AssertionError("the server ended before it answered")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_server_ends_with_0(server: subprocess.Popen[str], port: int, number: signal.Signals) -> None:
    assert answers(port, server).status_code == 200

    server.send_signal(number)

    assert server.wait(60) == 0


def test_a_taken_port_is_refused_with_the_remedy(server: subprocess.Popen[str], port: int, tmp_path: Path) -> None:
    answers(port, server)

    second = gsa(tmp_path / "other", "serve", "--port", str(port))

    assert second.returncode == 3
    assert "is it taken? Choose another port." in second.stderr
