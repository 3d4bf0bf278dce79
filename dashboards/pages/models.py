"""The page about models: which versions there are, how they measured, and how what they promised was kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from advisor.domain.promises import KeptPromises
from dashboards.charts import Chart, promises_kept
from dashboards.data import Compared, ModelVersion, PoolSkill, RegisteredModel
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PromisesView:
    """How the promises of one origin were kept."""

    chart: Annotated[Chart, "Promises kept by day of submission."]
    weeks: Annotated[tuple[KeptRow, ...], "Promises kept by week of submission, the newest first."]
    days: Annotated[tuple[KeptRow, ...], "Promises kept by day of submission, the newest first."]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRow:
    """One loss of a version beside a rival's on the same held-out jobs."""

    measure: Annotated[
        str,
        "What is compared; smaller is better. Log MAE is the mean of |ln(predicted / real)|, 0.69 being off by a factor"
        " of two; the pinball loss of the 90 % quantile says how sharp and how honest the P90 is.",
    ]
    rival: Annotated[str, "Whom it is compared with: the baseline, or the champion of the time."]
    model: Annotated[float, "The loss of this version."]
    of_rival: Annotated[float, "The loss of the rival."]
    change: Annotated[float | None, "The loss of this version relative to the rival's; below 0 this version is better."]


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillRow:
    """The skills of a demand model in one pool."""

    pool: Annotated[str, "Pool."]
    skills: Annotated[
        tuple[float | None, ...],
        "1 - loss / best baseline's loss at each horizon, on the pool's recent days; above 0 the model is better.",
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionView:
    """One registered version."""

    version: Annotated[str, "Version in the registry."]
    served: Annotated[bool, "Whether the newest advice was made with it."]
    champion: Annotated[bool, "Whether it is the version that is to be served."]
    challenger: Annotated[bool, "Whether it is the newest version that is not served."]
    made_at: Annotated[datetime, "When it was made, UTC."]
    fitted_until: Annotated[datetime, "The last moment of history that it has seen, UTC."]
    rows: Annotated[int, "Jobs that it was made from."]
    data_digest: Annotated[str, "Digest of these jobs: the same digest, the same data."]
    synthetic: Annotated[bool, "Whether these jobs were generated; its figures then say nothing about a real cluster."]
    compared: Annotated[tuple[ComparedRow, ...], "Its losses on held-out jobs, beside those of the baseline."]
    horizons: Annotated[tuple[int, ...], "Horizons of its skills, minutes ahead."]
    skills: Annotated[tuple[SkillRow, ...], "Its skill in every pool at every horizon."]
    reasons: Annotated[tuple[str, ...], "Why it was, or was not, promoted when it was made."]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelView:
    """One model with its versions."""

    name: Annotated[str, "What it forecasts: durations or demand."]
    served: Annotated[str | None, "The version the newest advice was made with; none where a baseline answers."]
    versions: Annotated[tuple[VersionView, ...], "Its newest versions, and older ones that are champion or challenger."]
    older: Annotated[int, "Further versions, or versions that cannot be read; `gsa models list` tells what is known."]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelsPage(Page):
    """Models and their promises."""

    models: Annotated[tuple[ModelView, ...] | None, "What the registry holds; none where it cannot be read."]
    promises_read: Annotated[bool, "Whether the promises could be read."]
    live: Annotated[
        PromisesView | None,
        "Promises made when the jobs were submitted, before their ends were known; none where none came due.",
    ]
    replayed: Annotated[
        PromisesView | None,
        "Promises made afterwards, by models that may have been fitted on these very jobs; none where there are none.",
    ]


def models_page(
    seen: Seen, days: Sequence[KeptPromises] | None, registered: Sequence[RegisteredModel] | None
) -> ModelsPage:
    """The page of what is ``registered`` and of the promises of ``days``, oldest first; None where it cannot be read.

    Days of which nothing is known yet are left out.
    """
    served = {} if seen.advice is None else seen.advice.models
    return ModelsPage(
        frame=frame(seen),
        models=None if registered is None else tuple(_model(one, served.get(one.name)) for one in registered),
        promises_read=days is not None,
        live=_promises([day for day in days or () if not day.replayed]),
        replayed=_promises([day for day in days or () if day.replayed]),
    )


def _promises(days: Sequence[KeptPromises]) -> PromisesView | None:
    known = [day for day in days if day.counted]
    chart = promises_kept(known)
    if chart is None:
        return None
    return PromisesView(
        chart=chart,
        weeks=tuple(_row(week) for week in reversed(_by_week(known))),
        days=tuple(_row(day) for day in reversed(known)),
    )


def _by_week(days: Sequence[KeptPromises]) -> list[KeptPromises]:
    weeks: dict[datetime, KeptPromises] = {}
    for day in days:
        monday = day.begin - timedelta(days=day.begin.weekday())
        none = KeptPromises(begin=monday, replayed=day.replayed, ended=0, overdue=0, within_p50=0, within_p90=0)
        weeks[monday] = weeks.get(monday, none).joined(day)
    return list(weeks.values())


def _row(kept: KeptPromises) -> KeptRow:
    return KeptRow(
        begin=kept.begin,
        ended=kept.ended,
        overdue=kept.overdue,
        p50_share=kept.p50_share,
        p90_share=kept.p90_share,
    )


def _model(model: RegisteredModel, served: str | None) -> ModelView:
    return ModelView(
        name=model.name,
        served=served,
        versions=tuple(_version(one, served) for one in model.versions),
        older=model.in_all - len(model.versions),
    )


def _version(one: ModelVersion, served: str | None) -> VersionView:
    horizons = tuple(sorted({skill.minutes for skill in one.skills}))
    return VersionView(
        version=one.version,
        served=one.version == served,
        champion="champion" in one.aliases,
        challenger="challenger" in one.aliases,
        made_at=one.made_at,
        fitted_until=one.fitted_until,
        rows=one.rows,
        data_digest=one.data_digest,
        synthetic=one.synthetic,
        compared=tuple(_compared(each) for each in one.compared),
        horizons=horizons,
        skills=_skills(one.skills, horizons),
        reasons=one.reasons,
    )


_MEASURES = {"log_mae": "Log MAE", "pinball_90": "Pinball loss at 90 %"}
_RIVALS = {"median_of_5": "median of five", "champion": "champion of the time"}


def _compared(each: Compared) -> ComparedRow:
    return ComparedRow(
        measure=_MEASURES.get(each.measure, each.measure),
        rival=_RIVALS.get(each.rival, each.rival),
        model=each.model,
        of_rival=each.of_rival,
        change=each.model / each.of_rival - 1.0 if each.of_rival > 0 else None,
    )


def _skills(skills: Sequence[PoolSkill], horizons: Sequence[int]) -> tuple[SkillRow, ...]:
    at = {(one.pool, one.minutes): one.skill for one in skills}
    return tuple(
        SkillRow(pool=pool, skills=tuple(at.get((pool, minutes)) for minutes in horizons))
        for pool in dict.fromkeys(one.pool for one in skills)
    )
