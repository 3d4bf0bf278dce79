"""What was seen, in every state that a page must show well."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from advisor.domain.plans import PoolWithoutAdvice
from dashboards.pages import JobPage, PoolPage, Seen, job_page, pool_page
from tests.serving.fake_service import FakePages
from tests.serving.fake_values import NOON, an_advice


def seen(**more: Any) -> Seen:
    """A fresh world in which everything could be read."""
    data = FakePages()
    known: dict[str, Any] = {
        "now": NOON,
        "stale_after_minutes": 30.0,
        "advice": replace(an_advice(), without_advice=(PoolWithoutAdvice("h100", "its samples are of another step."),)),
        "history": data.history(),
        "money": data.money(),
    }
    return Seen(**{**known, **more})


def stale() -> Seen:
    """The same two hours later."""
    return seen(now=NOON + timedelta(hours=2))


def of_two_sources() -> Seen:
    """A world whose history came from two clusters."""
    return seen(history=replace(FakePages().history(), sources=("slurm-a", "slurm-b")))


def unread() -> Seen:
    """A world of which nothing could be read."""
    return seen(advice=None, history=None, money=None, troubles=("the database is locked",))


def a_pool_page(pool: int = 0, world: Seen | None = None) -> PoolPage:
    world = world or seen()
    assert world.advice is not None
    found = world.advice.pools[pool]
    return pool_page(world, found, FakePages(advice_now=world.advice).recent_demand(found.pool, 6.0))


def a_job_page(job_id: str = "train-20") -> JobPage:
    view = FakePages().job(job_id)
    assert view is not None
    return job_page(seen(), view)
