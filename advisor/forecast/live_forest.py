"""The live half of a fitted model: its leaves and its calibration, moved by every submission, start and end."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.domain.jobs import Job, Outcome
from advisor.domain.units import SECONDS_PER_DAY
from advisor.features.duration import DURATION_SCHEMA
from advisor.features.replay import Event, EventKind
from advisor.forecast.baselines import NO_HISTORY
from advisor.forecast.calibration import Question, RollingCalibration
from advisor.forecast.duration_model import DurationModel
from advisor.forecast.leaves import LeafHistograms

__all__ = ["LiveForest", "Placement", "place", "refusal", "run_seconds"]

Floats = NDArray[np.float64]
LeafIndices = NDArray[np.int32]


_OWNER_COUNT = DURATION_SCHEMA.names.index("o_count")


class Placement(NamedTuple):
    """Where a job falls: its leaves, or None where the trees cannot read its row, and why or what was filled in.

    ``cold`` marks a job none of whose owner's jobs has ended.
    """

    leaves: LeafIndices | None
    cold: bool
    reasons: tuple[str, ...]


def place(model: DurationModel, rows: Floats) -> list[Placement]:
    """Where every row falls in the trees, all of them in one look-up."""
    filled, readable, reasons = model.readable(rows)
    leaves = iter(model.leaves_of(filled[readable]) if readable.any() else ())
    cold = (rows[:, _OWNER_COUNT] == 0.0).tolist()
    return [
        Placement(next(leaves) if known else None, unknown, why)
        for known, unknown, why in zip(readable.tolist(), cold, reasons, strict=True)
    ]


def refusal(placement: Placement, cdf: Floats | None) -> tuple[str, ...] | None:
    """Why the baseline must stand in for a forest that said ``cdf``; None where the forest may answer.

    An owner none of whose jobs has ended is better served by its parent's median than by the trees.
    """
    if placement.leaves is None:
        return placement.reasons
    if placement.cold:
        return (f"{NO_HISTORY}: no job of this owner has ended yet",)
    if cdf is None:
        return (f"{NO_HISTORY}: no job that fell where this one falls is known",)
    if not np.isfinite(cdf).all():
        return ("model_failed: the model's answer was not finite; the baseline stands in",)
    return None


def run_seconds(job: Job) -> float:
    """Seconds the job ran, or was seen to run where it was lost sight of; NaN if it never started."""
    gone = job.gone_at
    return math.nan if gone is None or job.start is None else (gone - job.start).total_seconds()


class LiveForest:
    """What one model knows by now. Times are Unix seconds.

    A job's weight falls with the age of its submission; it is kept relative to the fit, so that nothing
    already stored has to change as time goes by. Jobs submitted from the fit on are questions to the
    calibration; those before have been seen by the trees and prove nothing.
    """

    def __init__(self, model: DurationModel) -> None:
        self.model = model
        self._fitted = model.fitted_at.timestamp()
        self._leaves = LeafHistograms(model.trees, model.leaves, model.grid)
        self._calibration = RollingCalibration(model.grid, model.calibration, model.questions)
        self._open: dict[str, tuple[LeafIndices, float]] = {}

    @property
    def questions(self) -> tuple[Question, ...]:
        """The calibration window, oldest first."""
        return self._calibration.questions

    def answer(self, leaves: LeafIndices, now: float) -> Floats | None:
        """The CDF on the model's grid for a job that falls into ``leaves``, None where they hold nothing."""
        raw = self._leaves.cdf(leaves, now)
        return None if raw is None else self._calibration.bent(raw)

    def take(self, event: Event, placement: Placement | None) -> Floats | None:
        """Take in what happened; ``placement`` is where a submitted job falls, None if that was told before.

        Returns the answer to a submission as it stood before this event, where it is a question to the
        calibration.
        """
        job = event.job
        if event.kind is EventKind.SUBMITTED:
            if placement is None or placement.leaves is None or job.id in self._open:
                return None
            cdf = self._submitted(job.id, event.at, placement.leaves)
            if job.start == job.submit:
                self._started(job.id, event.at)
            return cdf
        if job.start is not None:
            self._started(job.id, job.start.timestamp())
        if event.kind is not EventKind.STARTED:
            self._gone(job)
        return None

    def _submitted(self, job_id: str, submit: float, leaves: LeafIndices) -> Floats | None:
        weight = math.exp((submit - self._fitted) / (self.model.decay_days * SECONDS_PER_DAY))
        self._open[job_id] = (leaves, weight)
        if submit < self._fitted:
            return None
        raw = self._leaves.cdf(leaves, submit)
        if raw is None:
            return None
        bent = self._calibration.bent(raw)
        self._calibration.asked(job_id, submit, raw)
        return bent

    def _started(self, job_id: str, start: float) -> None:
        known = self._open.get(job_id)
        if known is not None:
            self._leaves.started(job_id, known[0], start, known[1])
            self._calibration.started(job_id, start)

    def _gone(self, job: Job) -> None:
        known = self._open.pop(job.id, None)
        if known is None:
            return
        self._leaves.stopped(job.id)
        seconds, censored = run_seconds(job), job.outcome is Outcome.CENSORED
        if seconds > 0:
            learn = self._leaves.add_lost if censored else self._leaves.add
            learn(known[0], math.log(seconds), known[1])
        self._calibration.ended(job.id, seconds, censored=censored)
