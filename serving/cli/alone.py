"""One training at a time: two of them would judge their models against the same champion, and both could replace it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog

from advisor.errors import Refused, Transient

__all__ = ["training_alone"]

_FILE = "training.lock"
_log = structlog.get_logger(__name__)


@contextmanager
def training_alone(home: Path) -> Iterator[None]:
    """Hold the right to train on ``home``; the system takes it back however the process ends.

    It binds the processes of one machine, or of one shared file system that keeps locks.

    Raises:
        Refused: the folder cannot be written.
        Transient: another process trains on it now.
    """
    try:
        home.mkdir(parents=True, exist_ok=True)
        file = (home / _FILE).open("a+", encoding="utf-8")
    except OSError as error:
        limit = f"the folder cannot be written: {error.strerror}"
        raise Refused("storage.home", str(home), limit, "Choose a writable folder (GSA_STORAGE__HOME).") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            who = f"process {file.read().strip() or 'of unknown number'}"
            raise Transient(f"another training runs on {home} ({who}); wait for it to end, then train again") from error
        except OSError as error:
            # Some file systems have no locks; to train unguarded there is what a single user wants.
            _log.warning("training_not_guarded", home=str(home), reason=str(error))
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
