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
class WithoutAdvice:
    """A pool that the newest cycle could not advise on."""

    pool: Annotated[str, "NodePool."]
    reason: Annotated[str, "What stood in the way, and how to mend it."]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceView:
    """The newest advice as a whole."""

    time: Annotated[datetime, "When it was made, UTC."]
    age_seconds: Annotated[float | None, "Its age; none before the clock is known."]
    mode: Annotated[str, "Observe and Recommend change nothing; Apply may act within its guards."]
    models: Annotated[tuple[ServedModel, ...], "Which model versions it was made with."]
    without_advice: Annotated[tuple[WithoutAdvice, ...], "Pools that its cycle could not advise on; they are missing."]
    notes: Annotated[tuple[str, ...], "What its cycle assumed, or could not do."]
    cluster_assumed: Annotated[
        bool, "Whether no cluster was described, so that all that is said to be set or in use now was assumed."
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryView:
    """What everything was learnt from."""

    jobs: Annotated[int, "Jobs in the history."]
    first: Annotated[datetime | None, "First event in the history; none while it is empty."]
    last: Annotated[datetime | None, "Last event in the history; nothing later is known."]
    sources: Annotated[tuple[str, ...], "Where the history came from."]
    dropped: Annotated[
        int,
        "What was left out of the history, jobs, pods and samples together; `gsa history status` counts them apart.",
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class PricesView:
    """What money on the page is counted with."""

    per_gpu_hour: Annotated[float, "Price of one GPU-hour."]
    per_waiting_gpu_minute: Annotated[float, "Worth of one GPU-minute of avoided waiting."]
    currency: Annotated[str, "Currency of every amount."]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Freshness, origin and terms of everything on the page."""

    now: Annotated[
        datetime | None,
        "The moment the page speaks of, UTC: the clock, or the end of a replayed history; none before the first cycle.",
    ]
    synthetic: Annotated[
        bool, "Whether the history is a generated workload; its numbers say nothing about a real cluster."
    ]
    advice: Annotated[AdviceView | None, "The newest advice; none before the first cycle."]
    history: Annotated[HistoryView | None, "What everything was learnt from; none where it cannot be read."]
    prices: Annotated[PricesView | None, "What money is counted with; none where it is not known."]
    stale: Annotated[tuple[str, ...], "What is older than advice should stand on."]
    troubles: Annotated[tuple[str, ...], "What could not be read just now."]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What every page has."""

    frame: Annotated[Frame, "Freshness, origin and terms of everything on the page."]


def frame(seen: Seen) -> Frame:
    """The frame of a page from what was read for it."""
    advice, history, money = seen.advice, seen.history, seen.money
    return Frame(
        now=seen.now,
        synthetic=(advice is not None and advice.synthetic) or (history is not None and history.synthetic),
        advice=None if advice is None else _advice(advice, seen.now),
        history=None if history is None else _history(history),
        prices=None if money is None else _prices(money),
        stale=_stale(seen),
        troubles=seen.troubles,
    )


def _advice(advice: Advice, now: datetime | None) -> AdviceView:
    return AdviceView(
        time=advice.time,
        age_seconds=_age(now, advice.time),
        mode=advice.mode.value,
        models=tuple(ServedModel(name=name, version=version) for name, version in advice.models.items()),
        without_advice=tuple(WithoutAdvice(pool=one.pool, reason=one.reason) for one in advice.without_advice),
        notes=advice.reasons,
        cluster_assumed=advice.cluster_assumed,
    )


def _history(history: HistorySummary) -> HistoryView:
    return HistoryView(
        jobs=history.jobs,
        first=history.first,
        last=history.last,
        sources=history.sources,
        dropped=history.dropped,
    )


def _prices(money: Money) -> PricesView:
    return PricesView(
        per_gpu_hour=money.per_gpu_hour,
        per_waiting_gpu_minute=money.per_waiting_gpu_minute,
        currency=money.currency,
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
