"""What every test of the server shares: its log as a list of events."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
from structlog.testing import capture_logs


@pytest.fixture(autouse=True)
def logged() -> Iterator[list[MutableMapping[str, Any]]]:
    """Events logged during the test, oldest first; nothing is printed."""
    with capture_logs() as events:
        yield events
