"""Logs: structured, on standard error, event names in the past tense, ids as fields."""

from __future__ import annotations

import logging
import sys

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

__all__ = ["set_up_logs"]

# Plain tracebacks: the pretty ones print every local variable, which for a table of jobs takes tens of seconds.
_FOR_A_TERMINAL: tuple[Processor, ...] = (
    structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
)
_FOR_A_COLLECTOR: tuple[Processor, ...] = (
    structlog.processors.format_exc_info,
    structlog.processors.JSONRenderer(),
)
_CHATTY = ("mlflow", "alembic", "kubernetes", "httpx", "urllib3")


def set_up_logs(*untold: str) -> None:
    """Send our events to standard error, as JSON where that is no terminal, and quiet the libraries.

    Events named in ``untold`` are left out: those that the command itself tells, as its last sentence.
    """
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
    structlog.configure(
        processors=[
            _Dropping(frozenset(untold)),
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *(_FOR_A_TERMINAL if sys.stderr.isatty() else _FOR_A_COLLECTOR),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


class _Dropping:
    """Lets no event of these names through."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def __call__(self, logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        del logger, method
        if event["event"] in self._names:
            raise structlog.DropEvent
        return event
