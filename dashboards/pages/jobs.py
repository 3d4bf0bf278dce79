"""The pages about jobs: the newest of them, and one with its prediction and what really came."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Literal
from urllib.parse import quote

from advisor.domain.explanations import DurationExplanation, FeatureEffect
from advisor.domain.jobs import Job, pool_of
from advisor.domain.promises import Promise
from advisor.domain.units import shown_duration
from dashboards.charts import Chart, Mark, duration_chart
from dashboards.data import JobView
from dashboards.pages.frame import Page, Seen, frame

__all__ = ["JobPage", "JobsPage", "job_page", "jobs_page"]


Predicted = Literal["at submission", "afterwards", "now"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """One job with its prediction, as the list shows it."""

    id: Annotated[str, "What its source calls the job."]
    source: Annotated[str | None, "Whose job it is: another source may use the same id for another job."]
    url: Annotated[str, "The job's own page."]
    name: Annotated[str | None, "Name of the job."]
    user: Annotated[str | None, "Who submitted it."]
    namespace: Annotated[str | None, "Kubernetes namespace, virtual cluster or account."]
    gpus: Annotated[float, "GPUs it asks for."]
    submit: Annotated[datetime, "When it was submitted, UTC."]
    status: Annotated[str, "Waiting, running, or how it ended, at the moment the page speaks of."]
    p50_seconds: Annotated[float, "Predicted from what was known at submission: even odds to end within this time."]
    p90_seconds: Annotated[float, "Predicted from what was known at submission: nine in ten to end within this time."]
    predicted: Annotated[
        Predicted,
        "When the prediction was made: at submission, before anything was known of the end; afterwards, by a model that"
        " may have been fitted on this very job; or just now, where none is on record.",
    ]
    elapsed_seconds: Annotated[float | None, "How long it has run, or ran; none before its start."]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsPage(Page):
    """The newest jobs."""

    query: Annotated[str, "What id, user, namespace or name must hold."]
    jobs: Annotated[tuple[JobRow, ...], "Jobs, the newest first."]
    limit: Annotated[int, "At most so many jobs are shown."]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemainingView:
    """What is left of a running job."""

    p50_seconds: Annotated[float, "Even odds that it ends within this time from now."]
    p90_seconds: Annotated[float, "Nine in ten that it ends within this time from now."]
    p50_end: Annotated[datetime, "When it has ended with even odds, UTC."]
    p90_end: Annotated[datetime, "When it has ended with nine chances in ten, UTC."]
    chart: Annotated[Chart, "Likelihood of every remaining time."]


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectRow:
    """What one feature did to the prediction."""

    meaning: Annotated[str, "What the feature says."]
    value: Annotated[str | None, "Its value for this job; none where it is unknown."]
    direction: Annotated[str, "Whether it made the prediction longer or shorter."]
    share: Annotated[float, "Its part of everything that pushed this prediction either way."]


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyView:
    """Why the job is predicted as it is, as known now."""

    last_end: Annotated[datetime | None, "When the latest job of its history ended, UTC."]
    weights: Annotated[str, "What forest, hazard model and baseline count in the answer."]
    effects: Annotated[tuple[EffectRow, ...], "The features that moved the prediction most, strongest first."]
    narrower: Annotated[tuple[str, ...], "What would make the prediction sharper."]


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseView:
    """What was promised to the job, and whether it was kept."""

    asked_at: Annotated[datetime, "When the promise was recorded, UTC."]
    replayed: Annotated[
        bool,
        "Whether it was made afterwards, from what had been known at the submission but by a model that may have been"
        " fitted on this very job, and not when the job came in.",
    ]
    kept: Annotated[
        bool | None,
        "Whether the job ended within the promised P90; broken once it has run longer, none while that is open.",
    ]
    ratio: Annotated[float | None, "How long it ran, or has run so far, as a multiple of the promised P50."]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage(Page):
    """One job."""

    job: Annotated[JobRow, "The job as in the list of jobs."]
    json_url: Annotated[str, "This page as JSON."]
    pool: Annotated[str, "The pool whose demand it belongs to."]
    start: Annotated[datetime | None, "When it started, UTC; none while it waits."]
    end: Annotated[datetime | None, "When it ended, UTC; none where that is not known."]
    wait_seconds: Annotated[
        float | None, "From submission to its node, else to its start; none where neither is known."
    ]
    p80_seconds: Annotated[float, "Predicted as P50 and P90 are: four in five to end within this time."]
    p95_seconds: Annotated[float, "Predicted as P50 and P90 are: nineteen in twenty to end within this time."]
    mean_seconds: Annotated[float, "Expected duration; a small chance of a very long run pulls it up."]
    typical_seconds: Annotated[float, "The duration p whose window from p/2 to 2p is most likely."]
    served: Annotated[str, "Who predicts: the model, or a simple baseline."]
    model_version: Annotated[str | None, "Version of the model; none where a baseline answers."]
    key: Annotated[str, "The history that carried the prediction, for instance user+gpus."]
    key_count: Annotated[int, "Ended jobs in that history."]
    reasons: Annotated[tuple[str, ...], "Why a baseline or a prior answers, where it does."]
    promise: Annotated[PromiseView | None, "The promise on record; none where nothing was recorded."]
    remaining: Annotated[RemainingView | None, "What is left; none unless it runs."]
    failed_chance: Annotated[float | None, "The chance that it fails, given how long it has run; none once it ended."]
    cancelled_chance: Annotated[float | None, "The chance that somebody cancels it; none once it has ended."]
    why: Annotated[WhyView | None, "What the prediction rests on; none once the job has ended."]
    actual_seconds: Annotated[float | None, "How long it really ran; none while that is not known."]
    actual_chance: Annotated[
        float | None, "The predicted chance of ending by the time it really did; 50 % is the median."
    ]
    verdict: Annotated[str | None, "How the prediction fared."]
    chart: Annotated[Chart, "Likelihood of every duration as predicted, and what really came."]


def jobs_page(seen: Seen, views: tuple[JobView, ...], query: str, limit: int) -> JobsPage:
    """The list of jobs as found."""
    return JobsPage(frame=frame(seen), query=query, jobs=tuple(_row(view, seen.now) for view in views), limit=limit)


def job_page(seen: Seen, view: JobView) -> JobPage:
    """The page of one job."""
    job, forecast, durations = view.job, view.forecast, view.forecast.distribution
    actual = job.duration_seconds
    return JobPage(
        frame=frame(seen),
        job=_row(view, seen.now),
        json_url=_url(job, ".json"),
        pool=pool_of(job),
        start=job.start,
        end=job.end,
        wait_seconds=job.wait_seconds,
        p80_seconds=durations.quantile(0.8),
        p95_seconds=durations.quantile(0.95),
        mean_seconds=durations.mean if view.promise is None else view.promise.mean_seconds,
        typical_seconds=durations.typical if view.promise is None else view.promise.typical_seconds,
        served=forecast.served,
        model_version=forecast.model_version,
        key=forecast.key,
        key_count=forecast.key_count,
        reasons=forecast.reasons,
        promise=None if view.promise is None else _promise(view.promise, view),
        remaining=_remaining(view, seen.now),
        failed_chance=None if view.outcomes is None else view.outcomes.failed,
        cancelled_chance=None if view.outcomes is None else view.outcomes.cancelled,
        why=None if view.explanation is None else _why(view.explanation),
        actual_seconds=actual,
        actual_chance=None if actual is None else durations.probability_by(actual),
        verdict=None if actual is None else _verdict(actual, view),
        chart=duration_chart("prediction", "Prediction", durations, _marks(view), whole=view.promise is None),
    )


def _row(view: JobView, now: datetime | None) -> JobRow:
    job, durations = view.job, view.forecast.distribution
    return JobRow(
        id=job.id,
        source=job.source,
        url=_url(job),
        name=job.name,
        user=job.user,
        namespace=job.namespace,
        gpus=job.gpus,
        submit=job.submit,
        status=_status(job, now),
        p50_seconds=durations.median,
        p90_seconds=durations.quantile(0.9),
        predicted=_predicted(view.promise),
        elapsed_seconds=view.elapsed_seconds,
    )


def _url(job: Job, form: str = "") -> str:
    """Where the page of ``job`` is, whatever jobs of the same id may come."""
    whose = "" if job.source is None else f"?source={quote(job.source, safe='')}"
    return f"/jobs/{quote(job.id, safe='')}{form}{whose}"


def _predicted(promise: Promise | None) -> Predicted:
    if promise is None:
        return "now"
    return "afterwards" if promise.replayed else "at submission"


def _status(job: Job, now: datetime | None) -> str:
    if job.outcome is not None:
        return job.outcome.value
    return "waiting" if job.start is None or (now is not None and job.start > now) else "running"


def _marks(view: JobView) -> tuple[Mark, ...]:
    actual = view.job.duration_seconds
    if actual is not None and actual > 0:
        return (Mark(actual, f"really {shown_duration(actual)}", "@second"),)
    if view.elapsed_seconds is not None and view.elapsed_seconds > 0:
        ran = shown_duration(view.elapsed_seconds)
        said = f"ran at least {ran}" if view.remaining is None else f"ran {ran} so far"
        return (Mark(view.elapsed_seconds, said, "@second"),)
    return ()


_PART_NAMES = {"forest": "forest", "hazard": "hazard model", "median_of_5": "median of five"}


def _why(explanation: DurationExplanation) -> WhyView:
    counted = [(_PART_NAMES.get(part, part), weight) for part, weight in explanation.weights.items() if weight >= 0.005]
    return WhyView(
        last_end=explanation.last_end,
        weights=", ".join(f"{part} {weight * 100:.0f} %" for part, weight in counted),
        effects=tuple(
            EffectRow(
                meaning=effect.meaning,
                value=_shown_value(effect),
                direction="longer" if effect.longer else "shorter",
                share=effect.share,
            )
            for effect in explanation.effects
        ),
        narrower=explanation.narrower,
    )


def _shown_value(effect: FeatureEffect) -> str | None:
    if effect.value is None:
        return None
    if effect.unit == "s":
        return shown_duration(effect.value)
    if effect.unit == "share":
        return f"{effect.value * 100:.0f} %"
    return f"{effect.value:,.4g} {effect.unit}".strip()


def _promise(promise: Promise, view: JobView) -> PromiseView:
    actual = view.job.duration_seconds
    ran = view.elapsed_seconds if actual is None else actual
    late = ran is not None and ran > promise.p90_seconds
    return PromiseView(
        asked_at=promise.asked_at,
        replayed=promise.replayed,
        kept=None if actual is None and not late else not late,
        ratio=None if ran is None else ran / promise.p50_seconds,
    )


def _remaining(view: JobView, now: datetime | None) -> RemainingView | None:
    if view.remaining is None or now is None:
        return None
    p50, p90 = view.remaining.quantile(0.5), view.remaining.quantile(0.9)
    return RemainingView(
        p50_seconds=p50,
        p90_seconds=p90,
        p50_end=now + timedelta(seconds=p50),
        p90_end=now + timedelta(seconds=p90),
        chart=duration_chart("remaining", "Still to go", view.remaining),
    )


def _verdict(actual: float, view: JobView) -> str:
    median, p90 = view.forecast.distribution.median, view.forecast.distribution.quantile(0.9)
    if actual > p90:
        return "It ran longer than the P90 that was predicted, as one job in ten should."
    ratio = max(actual, 1.0) / median
    if 0.5 <= ratio <= 2.0:
        return "It ended within a factor of two of the predicted median."
    return "It ended within the predicted P90, but far from the predicted median."
