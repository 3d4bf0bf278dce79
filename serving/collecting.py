"""The collecting loop: one source read into the history at every turn, for as long as the process lives.

A turn is idempotent and begins where the watermark of the last one stands, so that a process may be killed at any
moment and started again. Whatever fails is logged and tried again: at once after a short pause, then after longer ones,
never later than the next turn would have come. Between two turns a source that can be followed is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol, runtime_checkable

import structlog

from advisor.clock import Clock
from advisor.domain.ingest import JobBatch, left_out
from advisor.errors import AdvisorError
from advisor.history.store import HistoryStore
from advisor.telemetry.collector import Collected, collect
from advisor.telemetry.source import Source

__all__ = ["CollectLoop", "Followed", "Rhythm", "StartsAlone"]

_log = structlog.get_logger(__name__)

_FIRST_RETRY_SECONDS = 5.0
_LEAST_PAUSE_SECONDS = 1.0
_FOLLOW_SECONDS = 15.0
"""A watch cannot be broken off: so long at most the process takes to leave when it is asked to between two turns."""


@runtime_checkable
class Followed(Protocol):
    """A source that tells of what comes and goes between two readings, while it is followed."""

    def follow(self, seconds: float) -> None:
        """Take in what changes for so many seconds."""
        ...


class FollowedSource(Source, Followed, Protocol):
    """A source of jobs that can be followed."""


@dataclass(frozen=True, slots=True)
class StartsAlone:
    """Of ``inner`` only how long nodes take to start: its jobs come from elsewhere, and would be there twice."""

    inner: FollowedSource

    @property
    def name(self) -> str:
        """That of the source itself."""
        return self.inner.name

    def read(self, since: datetime | None, now: datetime) -> JobBatch:
        """As the source itself, without jobs and what was left out of them."""
        return replace(self.inner.read(since, now), jobs=(), rejections=(), whole=False)

    def follow(self, seconds: float) -> None:
        """As the source itself."""
        self.inner.follow(seconds)


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Time as the loop takes it: a turn begins ``every_seconds``.

    ``wait`` waits so many seconds, less where the process is asked to stop, and answers whether it is; ``chance``
    is in [0, 1) and spreads retries, lest all clients come back at once.
    """

    every_seconds: float
    clock: Clock
    wait: Callable[[float], bool]
    chance: Callable[[], float]

    def retry_seconds(self, failures: int) -> float:
        """The pause after so many failures in a row."""
        longest = min(_FIRST_RETRY_SECONDS * 2.0 ** min(failures - 1, 20), self.every_seconds)
        return max(longest * (0.5 + 0.5 * self.chance()), _LEAST_PAUSE_SECONDS)


class CollectLoop:
    """Reads ``source`` turn after turn into ``store``."""

    def __init__(self, source: Source, store: HistoryStore, rhythm: Rhythm) -> None:
        self._source = source
        self._store = store
        self._rhythm = rhythm
        self._failures = 0

    def turn(self) -> Collected:
        """Take one turn.

        Raises:
            AdvisorError: source or store cannot be used now, or will not be.
        """
        began = self._rhythm.clock.now()
        done = collect(self._source, self._store, began)
        _log.info(
            "collected",
            source=done.source,
            added=done.added,
            changed=done.changed,
            unchanged=done.unchanged,
            left_out={str(of): count for of, count in left_out(done.rejections).items()},
            watermark=None if done.watermark is None else done.watermark.isoformat(),
            seconds=round((self._rhythm.clock.now() - began).total_seconds(), 3),
        )
        return done

    def run(self) -> None:
        """Take turns until asked to stop; one under way is finished."""
        stopping = self._rhythm.wait(0.0)
        while not stopping:
            began = self._rhythm.clock.now()
            pause = self._tried()
            if pause is None:
                took = (self._rhythm.clock.now() - began).total_seconds()
                pause = max(self._rhythm.every_seconds - took, _LEAST_PAUSE_SECONDS)
            stopping = self._between(pause)

    def _tried(self) -> float | None:
        """Take a turn; the pause after one that failed, None after one that did not."""
        try:
            self.turn()
        except AdvisorError as error:
            self._failures += 1
            pause = self._rhythm.retry_seconds(self._failures)
            _log.warning(
                "collecting_failed",
                source=self._source.name,
                reason=str(error),
                failures=self._failures,
                again_in_seconds=round(pause, 1),
            )
            return pause
        except Exception:  # noqa: BLE001 - a defect must not silence the loop for good: logged whole, tried again
            self._failures += 1
            _log.exception("collecting_broke", source=self._source.name)
            return self._rhythm.every_seconds
        self._failures = 0
        return None

    def _between(self, seconds: float) -> bool:
        """Let ``seconds`` go by, following the source where it can be; whether the process is asked to stop."""
        if not isinstance(self._source, Followed):
            return self._rhythm.wait(seconds)
        until = self._rhythm.clock.now() + timedelta(seconds=seconds)
        while (left := (until - self._rhythm.clock.now()).total_seconds()) > 0.0:
            if self._rhythm.wait(0.0):
                return True
            try:
                self._source.follow(min(left, _FOLLOW_SECONDS))
            except AdvisorError as error:
                _log.warning("following_failed", source=self._source.name, reason=str(error))
                return self._rhythm.wait(max((until - self._rhythm.clock.now()).total_seconds(), _LEAST_PAUSE_SECONDS))
        return self._rhythm.wait(0.0)
