"""Logs: structured, on standard error, event names in the past tense, ids as fields."""

from __future__ import annotations

import io
import logging
import sys
from typing import TextIO, cast

import structlog
from structlog.typing import Processor

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


class _StandardError(io.TextIOBase):
    """Whatever standard error is at the moment of writing, since it may be replaced after the logs were set up."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


def set_up_logs(*, routine: bool = False) -> None:
    """Send our events to standard error, as JSON where that is no terminal, and quiet the libraries.

    With ``routine`` a collector is also given the events at debug: that all went as it always does.
    Nobody reads those at a terminal.
    """
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *(_FOR_A_TERMINAL if sys.stderr.isatty() else _FOR_A_COLLECTOR),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.DEBUG if routine and not sys.stderr.isatty() else logging.INFO
        ),
        logger_factory=structlog.PrintLoggerFactory(cast("TextIO", _StandardError())),
        cache_logger_on_first_use=False,
    )
