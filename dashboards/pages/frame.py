"""What stands around every page: how fresh and how real everything on it is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from advisor.domain.plans import Advice, Money
from advisor.domain.units import shown_duration
from dashboards.data import HistorySummary

__all__ = ["Frame", "Page", "Seen", "frame"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was read for a page, and what could not be (each trouble a sentence)."""

    now: datetime | None
    stale_after_minutes: float
    advice: Advice | None = None
    history: HistorySummary | None = None
    money: Money | None = None
    troubles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """Which version answers one kind of question."""

    name: Annotated[str, "What the model forecasts: durations or demand."]
    version: Annotated[str | None, "Registered version that is served; none where a baseline answers instead."]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Freshness, origin and terms of everything on the page."""

    now: Annotated[
        datetime | None,
        "The moment the page speaks of, UTC: the clock, or the end of a replayed history; none before the first cycle.",
    ]
    mode: Annotated[str | None, "Observe and Recommend change nothing; Apply may act within its guards."]
    synthetic: Annotated[
        bool, "Whether the history is a generated workload; its numbers say nothing about a real cluster."
    ]
    advice_time: Annotated[datetime | None, "When the newest advice was made; none before the first cycle."]
    advice_age_seconds: Annotated[float | None, "Age of the newest advice."]
    history_jobs: Annotated[int | None, "Jobs in the history that everything was learnt from."]
    history_first: Annotated[datetime | None, "First event in the history."]
    history_last: Annotated[datetime | None, "Last event in the history; nothing later is known."]
    history_sources: Annotated[tuple[str, ...], "Where the history came from."]
    history_dropped: Annotated[
        int | None, "Rows left out of the history; `gsa history status` says why, with examples."
    ]
    models: Annotated[tuple[ServedModel, ...], "Which model versions the advice was made with."]
    gpu_hour_price: Annotated[float | None, "Price of one GPU-hour that money on this page is counted with."]
    waiting_minute_price: Annotated[
        float | None, "Worth of one GPU-minute of avoided waiting that money is counted with."
    ]
    currency: Annotated[str | None, "Currency of every amount."]
    stale: Annotated[tuple[str, ...], "What is older than advice should stand on."]
    troubles: Annotated[tuple[str, ...], "What could not be read just now."]
    notes: Annotated[tuple[str, ...], "What the cycle assumed, or could not do."]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What every page has."""

    frame: Annotated[Frame, "Freshness, origin and terms of everything on the page."]


def frame(seen: Seen) -> Frame:
    """The frame of a page from what was read for it."""
    advice, history, money = seen.advice, seen.history, seen.money
    return Frame(
        now=seen.now,
        mode=None if advice is None else advice.mode.value,
        synthetic=(advice is not None and advice.synthetic) or (history is not None and history.synthetic),
        advice_time=None if advice is None else advice.time,
        advice_age_seconds=None if advice is None else _age(seen.now, advice.time),
        history_jobs=None if history is None else history.jobs,
        history_first=None if history is None else history.first,
        history_last=None if history is None else history.last,
        history_sources=() if history is None else history.sources,
        history_dropped=None if history is None else history.dropped,
        models=() if advice is None else tuple(ServedModel(name=n, version=v) for n, v in advice.models.items()),
        gpu_hour_price=None if money is None else money.per_gpu_hour,
        waiting_minute_price=None if money is None else money.per_waiting_gpu_minute,
        currency=None if money is None else money.currency,
        stale=_stale(seen),
        troubles=seen.troubles,
        notes=() if advice is None else advice.reasons,
    )


def _age(now: datetime | None, then: datetime) -> float | None:
    return None if now is None else max(0.0, (now - then).total_seconds())


def _stale(seen: Seen) -> tuple[str, ...]:
    limit = seen.stale_after_minutes * 60.0
    ages = []
    if seen.advice is not None:
        ages.append(("The advice", _age(seen.now, seen.advice.time)))
    if seen.history is not None and seen.history.last is not None:
        ages.append(("The last event in the history", _age(seen.now, seen.history.last)))
    return tuple(
        f"{what} is {shown_duration(age)} old; beyond {shown_duration(limit)} nothing is changed on its ground."
        for what, age in ages
        if age is not None and age > limit
    )
