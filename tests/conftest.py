"""Fixtures that every suite may use, and the hypothesis profiles."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, settings

settings.register_profile("dev", deadline=None, max_examples=50)
settings.register_profile(
    "ci", deadline=None, max_examples=100, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

pytest_plugins = ["tests.servers.control_plane", "tests.servers.prometheus"]

ROOT = Path(__file__).resolve().parent.parent
TRACES = ROOT.parent / "shared" / "data"


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    """No set-up of the logs outlives a test: a command run within it binds them to a stream that is then closed."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)


@pytest.fixture(scope="session")
def traces() -> Path:
    """The folder of real traces, which lies beside the project and is never part of it."""
    if not TRACES.is_dir():
        pytest.skip("the real traces are not beside this checkout (../shared/data)")
    return TRACES
