"""A server as a process of its own on loopback: started, awaited, killed with all its children."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

__all__ = ["ServerProcess", "binary", "free_port"]

_POLL_SECONDS = 0.05
_TRIES = 600
_GRACE_SECONDS = 10.0
_LOG_SHOWN = 4000


def binary(name: str, package: str) -> str:
    """The path of ``name``; without it the test is skipped, and fails where CI promises to have it."""
    found = shutil.which(name)
    if found is None:
        message = f"{name} is not installed; with Debian: apt-get install {package}"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return found


def free_port() -> int:
    """A port that nobody on loopback listens on just now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class ServerProcess:
    """One server on one port, which may be killed and started again on the same data."""

    def __init__(self, command: Callable[[int], Sequence[str]], ready: str, log: Path, *, scheme: str = "http") -> None:
        """``command`` gives its words for a port, ``ready`` is the path that answers 200 once it serves."""
        self.port = free_port()
        self._command, self._ready, self._log, self._scheme = command, ready, log, scheme
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it serves."""
        return f"{self._scheme}://127.0.0.1:{self.port}"

    @property
    def running(self) -> bool:
        """Whether it was started and has not been stopped since."""
        return self._process is not None

    def start(self) -> None:
        """Start it and wait until it is ready; where another took the port meanwhile, on another one at first."""
        for _ in range(3):
            if self._started():
                return
            if "address already in use" not in self.log():
                break
            self.port = free_port()
        raise RuntimeError(f"{self._command(self.port)[0]} did not start:\n{self.log()}")

    def _started(self) -> bool:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(self.port), stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        # Whoever signed its certificate, it is ours.
        with httpx.Client(base_url=self.url, trust_env=False, verify=False) as client:
            for _ in range(_TRIES):
                with suppress(httpx.TransportError):
                    if client.get(self._ready).status_code == httpx.codes.OK:
                        return True
                # The pause between two looks is a wait for its death, which ends the looking.
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(_POLL_SECONDS)
                    break
        self.stop()
        return False

    def stop(self, *, at_once: bool = False) -> None:
        """End it and all its children: politely, or as a power cut would."""
        process, self._process = self._process, None
        if process is None:
            return
        for kind in (signal.SIGKILL,) if at_once else (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, kind)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE_SECONDS)
                break

    def hold(self) -> None:
        """Let it stand still: connections are taken, and nothing is answered, until it may :meth:`go_on`."""
        self._signalled(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on after it stood still."""
        self._signalled(signal.SIGCONT)

    def _signalled(self, kind: signal.Signals) -> None:
        assert self._process is not None, "it is not running"
        os.killpg(self._process.pid, kind)

    def log(self) -> str:
        """The end of what it printed."""
        return self._log.read_text(encoding="utf-8", errors="replace")[-_LOG_SHOWN:] if self._log.exists() else ""
