"""Who may do what to a home at the same time, told by locks that the system takes back however a process ends.

One training at a time: two of them would judge their models against the same champion, and both could replace it.
And no demo anew in a home that somebody serves, whose history and champion would change under the reader.
The locks bind the processes of one machine, or of one shared file system that keeps locks.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import structlog

from advisor.errors import Refused, Transient

__all__ = ["HomeHold", "home_alone", "home_shared", "training_alone"]

_TRAINING = "training.lock"
_HOME = "home.lock"
_log = structlog.get_logger(__name__)


@contextmanager
def training_alone(home: Path) -> Iterator[None]:
    """Hold the right to train on ``home``.

    Raises:
        Refused: the folder cannot be written.
        Transient: another process trains on it now.
    """
    with _opened(home, _TRAINING) as file:
        if not _taken(file, fcntl.LOCK_EX, home):
            who = _holders(file)
            raise Transient(f"another training runs on {home} ({who}); wait for it to end, then train again")
        _sign(file, f"{os.getpid()}", alone=True)
        yield


class HomeHold:
    """A home held alone, until it is opened to others who only read what is there."""

    def __init__(self, file: IO[str], home: Path) -> None:
        """Made by :func:`home_alone`."""
        self._file = file
        self._home = home

    def share(self) -> None:
        """From now on others may serve the home too; nobody may hold it alone."""
        _taken(self._file, fcntl.LOCK_SH, self._home)


@contextmanager
def home_alone(home: Path, what: str) -> Iterator[HomeHold]:
    """Hold ``home`` alone, in the name of ``what`` (a command).

    Raises:
        Refused: the folder cannot be written.
        Transient: another process serves it, or holds it alone.
    """
    with _opened(home, _HOME) as file:
        if not _taken(file, fcntl.LOCK_EX, home):
            raise Transient(f"{home} is in use by {_holders(file)}; stop that first, or choose another home")
        _sign(file, f"{os.getpid()} {what}", alone=True)
        yield HomeHold(file, home)


@contextmanager
def home_shared(home: Path, what: str) -> Iterator[None]:
    """Hold ``home`` beside others who do the same; not at all where the folder cannot be written.

    Raises:
        Transient: another process holds it alone.
    """
    try:
        home.mkdir(parents=True, exist_ok=True)
        file = (home / _HOME).open("a+", encoding="utf-8")
    except OSError:
        # Whoever keeps history and registry elsewhere may serve from a home that is read only.
        yield
        return
    with file:
        if not _taken(file, fcntl.LOCK_SH, home):
            raise Transient(f"{home} is being filled by {_holders(file)}; wait for it to end")
        _sign(file, f"{os.getpid()} {what}", alone=False)
        yield


@contextmanager
def _opened(home: Path, name: str) -> Iterator[IO[str]]:
    try:
        home.mkdir(parents=True, exist_ok=True)
        file = (home / name).open("a+", encoding="utf-8")
    except OSError as error:
        limit = f"the folder cannot be written: {error.strerror}"
        raise Refused("storage.home", str(home), limit, "Choose a writable folder (GSA_STORAGE__HOME).") from error
    with file:
        yield file


def _taken(file: IO[str], kind: int, home: Path) -> bool:
    """Whether the lock is ours now; where the file system has none, it is taken as ours."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        # Some file systems have no locks; to go on unguarded there is what a single user wants.
        _log.warning("home_not_guarded", home=str(home), lock=file.name, reason=str(error))
    return True


def _sign(file: IO[str], line: str, *, alone: bool) -> None:
    """Leave our name in the file, beside the others who hold it or instead of those who did."""
    others = [] if alone else [one for one in _lines(file) if _alive(one)]
    file.truncate(0)
    file.write("".join(f"{one}\n" for one in (*others, line)))
    file.flush()


def _holders(file: IO[str]) -> str:
    """Who holds the file, for a person who may want to stop them."""
    living = [one.partition(" ") for one in _lines(file) if _alive(one)]
    said = [f"{what} (process {pid})" if what else f"process {pid}" for pid, _, what in living]
    return " and ".join(said) or "a process of unknown number"


def _lines(file: IO[str]) -> list[str]:
    file.seek(0)
    return [line for line in file.read().splitlines() if line.strip()]


def _alive(line: str) -> bool:
    pid = line.partition(" ")[0]
    if not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except OSError:
        # It lives, and belongs to somebody else.
        return True
    return True
