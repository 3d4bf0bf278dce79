"""Logs: structured, on standard error, event names in the past tense, ids as fields."""

from __future__ import annotations

import logging
import sys

import structlog

__all__ = ["set_up_logs"]

_CHATTY = ("mlflow", "alembic", "kubernetes", "httpx", "urllib3")


def set_up_logs() -> None:
    """Send our events to standard error, as JSON where that is no terminal, and quiet the libraries."""
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
