"""The live half of a fitted model: leaves, blend and calibration, moved by every submission, start and end.

An answer mixes three parts: what became of the jobs that fall into the same leaves, the hazard counted from the
latest submissions of the same keys, and the baseline. The mixture is calibrated as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.domain.forecasts import OutcomeChances
from advisor.domain.jobs import Job, JobIdentity, Outcome
from advisor.domain.units import SECONDS_PER_DAY
from advisor.features.keys import JobKeys, keys_of
from advisor.features.replay import Event, EventKind
from advisor.forecast.baselines import MEDIAN_OF_5, NO_HISTORY, MedianOfFive
from advisor.forecast.blend import Weights
from advisor.forecast.calibration import Bend
from advisor.forecast.duration_model import DurationModel
from advisor.forecast.leaves import LeafHistograms
from advisor.forecast.questions import Question, QuestionWindow

__all__ = ["PARTS", "Inquiry", "LiveAnswer", "LiveModel", "Placement", "place", "refusal", "run_seconds"]

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
LeafIndices = NDArray[np.int32]
Bools = NDArray[np.bool_]


_ALIKE_BEYOND = 60.0

_AT_A_TIME = 250
"""Jobs answered together: the leaves of so many stay within some megabytes."""

PARTS = ("forest", "hazard", MEDIAN_OF_5)
"""What an answer is mixed from."""

_FLOORS_KEPT = 1000
_FLOOR = PARTS.index(MEDIAN_OF_5)


class Placement(NamedTuple):
    """Where a job falls when it is asked about.

    ``leaves`` is None where the trees cannot read its row, ``hazard`` the CDF of the hazard model, None where it was
    not wanted; ``reasons`` say why, or what was filled in.
    """

    leaves: LeafIndices | None
    hazard: Singles | None
    reasons: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether both opinions of the model can be had."""
        return self.leaves is not None and self.hazard is not None


class Inquiry(NamedTuple):
    """A job asked about, where it falls, and the seconds it has run."""

    job: Job
    placement: Placement
    age_seconds: float


def place(model: DurationModel, rows: Floats, latest: Singles, hazards: Bools | None = None) -> list[Placement]:
    """Where every row falls, all in one look-up; the hazard only of those in ``hazards``, by default all."""
    filled, readable, reasons = model.readable(rows)
    leaves = iter(model.leaves_of(filled[readable]) if readable.any() else ())
    wanted = readable if hazards is None else readable & hazards
    found = model.hazard.cdfs(filled[wanted], latest[wanted]).astype(np.float32) if wanted.any() else ()
    cdfs = iter(found)
    return [
        Placement(next(leaves) if known else None, next(cdfs) if asked else None, why)
        for known, asked, why in zip(readable.tolist(), wanted.tolist(), reasons, strict=True)
    ]


def refusal(placement: Placement, cdf: Floats | None) -> tuple[str, ...] | None:
    """Why the baseline must stand in for a model that said ``cdf``; None where the model may answer."""
    if placement.leaves is None:
        return placement.reasons
    if placement.hazard is None:
        return ("no_hazard: the job had ended when it was told of, so nothing was kept of what was known before it",)
    if cdf is None:
        return (f"{NO_HISTORY}: no job that fell where this one falls is known",)
    if not np.isfinite(cdf).all():
        return ("model_failed: the model's answer was not finite; the baseline stands in",)
    return None


def run_seconds(job: Job) -> float:
    """Seconds the job ran, or was seen to run where it was lost sight of; NaN if it never started."""
    seconds = job.run_seconds
    return math.nan if seconds is None else seconds


class LiveAnswer(NamedTuple):
    """The CDF of the whole duration on the model's grid, and how the job will end."""

    cdf: Floats
    chances: OutcomeChances


def _parts(forest: Floats, placement: Placement, floor: Floats) -> Floats:
    return np.array([forest, placement.hazard, floor])


def _mixed(weights: Floats, parts: Floats) -> Floats:
    mixed: Floats = weights @ parts
    mixed[0], mixed[-1] = 0.0, 1.0
    # Sums of equal parts may differ in their last bit from edge to edge.
    return np.minimum(np.maximum.accumulate(mixed), 1.0)


class LiveModel:
    """What one model knows by now. Times are Unix seconds.

    A job's weight falls with the age of its submission; it is kept relative to the fit, so that nothing
    already stored has to change as time goes by. Jobs submitted from the fit on are questions to blend and
    calibration; those before have been seen by the trees and prove nothing.
    """

    def __init__(self, model: DurationModel) -> None:
        self.model = model
        self.floor = MedianOfFive(model.prior)
        self._fitted = model.fitted_at.timestamp()
        self._leaves = LeafHistograms(model.trees, model.leaves, model.grid)
        self._window = QuestionWindow(model.grid, model.calibration.window, model.calibration.days, model.questions)
        self._weights = Weights.prior(model.blend)
        self._bend = Bend()
        self._open: dict[JobIdentity, tuple[LeafIndices, float]] = {}
        self._floors: dict[JobKeys, Floats] = {}
        if self._window.last_submit is not None:
            self._draw(self._window.last_submit)

    @property
    def questions(self) -> tuple[Question, ...]:
        """The window of latest questions, oldest first."""
        return self._window.questions

    def weights_of(self, job: Job) -> Floats:
        """What forest, hazard and baseline weigh in an answer to ``job``."""
        return self._weights.of(self._depth(job))

    def shares_of(self, job: Job) -> dict[str, float]:
        """The same by name."""
        return dict(zip(PARTS, self.weights_of(job).tolist(), strict=True))

    def answers(self, asked: Sequence[Inquiry], now: float) -> list[LiveAnswer | None]:
        """How long jobs will run from their start, asked at ``now``, and how they will end having run so long.

        None where a row cannot be read or its leaves hold nothing.
        """
        found: list[LiveAnswer | None] = [None] * len(asked)
        readable = [place for place, one in enumerate(asked) if one.placement.complete]
        for first in range(0, len(readable), _AT_A_TIME):
            chosen = readable[first : first + _AT_A_TIME]
            for place, answer in zip(chosen, self._answers([asked[place] for place in chosen], now), strict=True):
                found[place] = answer
        return found

    def _answers(self, asked: Sequence[Inquiry], now: float) -> Iterator[LiveAnswer | None]:
        counts = self._leaves.counts(np.array([one.placement.leaves for one in asked]), now)
        forests = self._leaves.cdfs(counts)
        chances = self._leaves.chances(counts, np.array([one.age_seconds for one in asked]), self._weight(now))
        for one, forest, chance in zip(asked, forests, chances, strict=True):
            weights = self.weights_of(one.job)
            # The baseline's distribution is dear to make and often weighs nothing.
            floor = self._floor_cdf(one.job) if weights[_FLOOR] > 0 else np.zeros_like(forest)
            mixed = None if np.isnan(forest[-1]) else _mixed(weights, _parts(forest, one.placement, floor))
            yield None if mixed is None else LiveAnswer(self._bend.of(mixed), chance)

    def _weight(self, submit: float) -> float:
        exponent = (submit - self._fitted) / (self.model.decay_days * SECONDS_PER_DAY)
        # Beyond this many times the memory all are alike, and no number is too large or too small to be kept.
        return math.exp(min(max(exponent, -_ALIKE_BEYOND), _ALIKE_BEYOND))

    def _floor_cdf(self, job: Job) -> Floats:
        """The baseline on the grid; it stays the same for all jobs alike until another has ended."""
        keys = keys_of(job)
        known = self._floors.get(keys)
        if known is None:
            law = self.floor.answer(job, 0.0).distribution
            known = np.interp(self.model.grid.log_edges, law.log_edges, law.cdf)
            # What the baseline puts beyond the grid is counted at its outermost edges.
            known[0], known[-1] = 0.0, 1.0
            if len(self._floors) >= _FLOORS_KEPT:
                self._floors.clear()
            self._floors[keys] = known
        return known

    def _depth(self, job: Job) -> int:
        """Ends of the same owner and GPU count; -1 where not even the owner has had one."""
        ends, of_owner = self.floor.ends(job)
        return ends if of_owner else -1

    def take(self, event: Event, placement: Placement | None) -> LiveAnswer | None:
        """Take in what happened; ``placement`` is where a submitted job falls, None if that was told before.

        Returns the answer to a submission as it stood before this event, where it is a question to
        blend and calibration.
        """
        job = event.job
        if event.kind is EventKind.SUBMITTED:
            return self._submitted(job, event.at, placement)
        if job.start is not None:
            self._started(job.identity, job.start.timestamp())
        if event.kind is not EventKind.STARTED:
            self._gone(job)
            self.floor.ended(job)
            self._floors.clear()
        return None

    def _submitted(self, job: Job, at: float, placement: Placement | None) -> LiveAnswer | None:
        answer = None
        if placement is not None and placement.leaves is not None and job.identity not in self._open:
            self._open[job.identity] = (placement.leaves, self._weight(at))
            if at >= self._fitted:
                answer = self._asked(job, at, placement)
        self.floor.submitted(job)
        if job.start == job.submit:
            self._started(job.identity, at)
        return answer

    def _asked(self, job: Job, at: float, placement: Placement) -> LiveAnswer | None:
        if not placement.complete:
            return None
        counts = self._leaves.counts(np.array([placement.leaves]), at)
        (forest,) = self._leaves.cdfs(counts)
        if np.isnan(forest[-1]):
            return None
        depth = self._depth(job)
        parts = _parts(forest, placement, self._floor_cdf(job))
        mixed = _mixed(self._weights.of(depth), parts)
        question = Question(job.identity, at, depth, mixed.astype(np.float32), parts.astype(np.float32))
        (chances,) = self._leaves.chances(counts, np.zeros(1), self._weight(at))
        answer = LiveAnswer(self._bend.of(mixed), chances)
        self._window.asked(question)
        if self._window.asked_in_all % self.model.calibration.every == 0:
            self._draw(at)
        return answer

    def _draw(self, now: float) -> None:
        outcomes = self._window.outcomes(now)
        self._weights = Weights.drawn(self.model.blend, outcomes)
        self._bend = Bend.drawn(self.model.calibration, outcomes)

    def _started(self, job: JobIdentity, start: float) -> None:
        known = self._open.get(job)
        if known is not None:
            self._leaves.started(job, known[0], start, known[1])
            self._window.started(job, start)

    def _gone(self, job: Job) -> None:
        known = self._open.pop(job.identity, None)
        if known is None:
            return
        self._leaves.stopped(job.identity)
        seconds, censored = run_seconds(job), job.outcome is Outcome.CENSORED
        if seconds > 0:
            if censored:
                self._leaves.add_lost(known[0], math.log(seconds), known[1])
            else:
                self._leaves.add(known[0], math.log(seconds), known[1], job.outcome or Outcome.COMPLETED)
        self._window.ended(job.identity, seconds, censored=censored)
