"""The page about models: which are served, and how what they promised was kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from advisor.domain.promises import KeptPromises
from dashboards.charts import Chart, promises_kept
from dashboards.pages.frame import Page, Seen, frame

__all__ = ["ModelsPage", "models_page"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRow:
    """The promises to jobs submitted in one stretch of time."""

    begin: Annotated[datetime, "Where the stretch begins, midnight UTC; weeks begin on Mondays."]
    ended: Annotated[int, "Jobs that ran and have ended."]
    overdue: Annotated[
        int, "Jobs that still run, or were lost sight of, beyond their P90: broken whatever comes; younger ones wait."
    ]
    p50_share: Annotated[float | None, "Share that ended within the promised P50; half should."]
    p90_share: Annotated[float | None, "Share that ended within the promised P90; nine in ten should."]
    replayed: Annotated[
        int, "Promises among them that were made afterwards, from what had been known at the submission."
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelsPage(Page):
    """Models and their promises."""

    chart: Annotated[Chart | None, "Promises kept by day of submission; none before anything is known of any."]
    weeks: Annotated[tuple[KeptRow, ...], "Promises kept by week of submission, the newest first."]
    days: Annotated[tuple[KeptRow, ...], "Promises kept by day of submission, the newest first."]


def models_page(seen: Seen, days: Sequence[KeptPromises]) -> ModelsPage:
    """The page of the promises of ``days``, oldest first; those of which nothing is known yet are left out."""
    known = [day for day in days if day.counted]
    return ModelsPage(
        frame=frame(seen),
        chart=promises_kept(known),
        weeks=tuple(_row(week) for week in reversed(_by_week(known))),
        days=tuple(_row(day) for day in reversed(known)),
    )


def _by_week(days: Sequence[KeptPromises]) -> list[KeptPromises]:
    weeks: dict[datetime, KeptPromises] = {}
    for day in days:
        monday = day.begin - timedelta(days=day.begin.weekday())
        before = weeks.get(
            monday, KeptPromises(begin=monday, ended=0, overdue=0, within_p50=0, within_p90=0, replayed=0)
        )
        weeks[monday] = before.joined(day)
    return list(weeks.values())


def _row(kept: KeptPromises) -> KeptRow:
    return KeptRow(
        begin=kept.begin,
        ended=kept.ended,
        overdue=kept.overdue,
        p50_share=kept.p50_share,
        p90_share=kept.p90_share,
        replayed=kept.replayed,
    )
