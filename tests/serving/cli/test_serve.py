"""The server as a process: it answers before it is ready, and ends cleanly when asked to."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.processes import environment, gsa, started


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


def test_where_it_serves_is_said_once_it_listens_and_nothing_else_is(tmp_path: Path, port: int) -> None:
    command = [sys.executable, "-c", "from serving.cli import main; main()", "serve", "--port", str(port)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}

    with subprocess.Popen(command, env=environment(tmp_path, {}), **pipes) as process:
        try:
            said = process.stdout.readline()
            # Without a retry: whoever has read the address may use it.
            answered = httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=60)
            process.terminate()
            rest, _ = process.communicate(timeout=60)
        finally:
            process.kill()

    assert said == f"dashboard and API on http://127.0.0.1:{port}/ (stop with Ctrl-C)\n"
    assert answered.status_code == 200
    assert rest == ""


@pytest.mark.parametrize("command", ["serve", "demo"])
def test_a_taken_port_is_refused_at_once_and_nothing_is_begun(
    command: str, server: subprocess.Popen[str], port: int, tmp_path: Path
) -> None:
    answers(port, server)
    home = tmp_path / "other"

    second = gsa(home, command, "--port", str(port))

    assert second.returncode == 3
    assert second.stdout == ""
    (line,) = second.stderr.splitlines()
    assert "the port is taken by another program. Choose another with --port" in line
    assert "rrno" not in line
    assert not home.exists()


def test_a_demo_is_not_made_anew_in_a_home_that_is_served(tmp_path: Path, port: int) -> None:
    home = tmp_path / "demo" / "synthetic"
    with started(home, "serve", "--port", str(port)) as served:
        try:
            answers(port, served)
            demo = gsa(tmp_path, "demo", "--no-serve")
            status = gsa(home, "history", "status", "--output", "json")
        finally:
            served.kill()

    assert demo.returncode == 4
    assert demo.stderr == (
        f"{home} is in use by gsa serve (process {served.pid}); stop that first, or choose another home\n"
    )
    assert json.loads(status.stdout)["jobs"] == 0
