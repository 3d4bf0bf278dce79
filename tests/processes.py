"""The command line as a process of its own, on a home of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["environment", "gsa", "started"]

_START = "from serving.cli import main; main()"
_SECONDS = 120.0


def gsa(home: Path, *arguments: str, under: tuple[str, ...] = (), **more: str) -> subprocess.CompletedProcess[str]:
    """Run ``gsa`` to its end; ``under`` is a command that runs it, ``more`` are variables of its environment."""
    return subprocess.run(
        [*under, *_command(arguments)],
        env=environment(home, more),
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
    )


@contextmanager
def started(home: Path, *arguments: str, **more: str) -> Iterator[subprocess.Popen[str]]:
    """``gsa``, running; what it prints is lost, so that it never waits for a reader.

    Leaving waits for its end, which the test has asked for; a test that fails, or forgot to ask, kills it.
    """
    process = subprocess.Popen(
        _command(arguments),
        env=environment(home, more),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        try:
            yield process
            process.wait(_SECONDS)
        except BaseException:
            process.kill()
            raise


def _command(arguments: tuple[str, ...]) -> list[str]:
    return [sys.executable, "-c", _START, *arguments]


def environment(home: Path, more: dict[str, str]) -> dict[str, str]:
    """This process's own, without settings; compiled modules are kept where Python was told not to write them."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GSA_")}
    if kept.pop("PYTHONDONTWRITEBYTECODE", None):
        kept["PYTHONPYCACHEPREFIX"] = str(Path(tempfile.gettempdir()) / f"gsa-tests-bytecode-{os.getuid()}")
    small = {"GSA_DURATIONS__TREES": "2", "GSA_DEMAND__HORIZONS_MINUTES": "[60]"}
    return {**kept, "GSA_STORAGE__HOME": str(home), **small, **more}
