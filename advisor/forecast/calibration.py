"""Rolling calibration: have the latest answers come true as often as they said?

Every answer F is later met by a duration d; u = F(d) is uniform where the answers are honest. g, the
distribution of the u of the latest questions, bends later answers: F' = F + w (g(F) - F). A job that
still runs counts as censored at F(age), so long jobs, which report late, are not forgotten. The weight w
grows with the evidence and the bend is bounded, so that a bad hour cannot bend answers far.

What it promises is marginal: over the window, not per owner and not per GPU count.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from advisor.domain.units import SECONDS_PER_DAY
from advisor.forecast.grid import LogGrid

__all__ = ["CalibrationSettings", "Question", "RollingCalibration"]

Floats = NDArray[np.float64]

_LEVELS = np.linspace(0.0, 1.0, 201)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationSettings:
    """How far back, and how far, calibration may go.

    ``window`` latest questions of at most ``days``; nothing below ``least`` of them; ``shrink`` is the
    number of questions at which half of the bend is believed; ``bound`` the largest bend in probability;
    ``every`` how many questions until g is drawn anew.
    """

    window: int = 1500
    days: float = 14.0
    least: int = 150
    shrink: float = 1000.0
    bound: float = 0.04
    every: int = 25


@dataclass(slots=True)
class Question:
    """One answer given at submission, and what is known of how it came out.

    ``start`` is NaN while the job waits. ``u`` is NaN until the job is gone; then ``cdf``, which is only
    needed until then, is let go. ``censored`` marks a job that was lost sight of at ``u``.
    """

    job_id: str
    submit: float
    cdf: Floats | None
    start: float = math.nan
    u: float = math.nan
    censored: bool = False


class RollingCalibration:
    """The live window of questions of one line of models, and the bend drawn from it."""

    def __init__(self, grid: LogGrid, settings: CalibrationSettings, questions: Iterable[Question] = ()) -> None:
        self._grid = grid
        self._settings = settings
        self._window: deque[Question] = deque(replace(question) for question in questions)
        self._open = {q.job_id: q for q in self._window if q.cdf is not None}
        self._asked = len(self._window)
        self._bend: Floats | None = None
        if self._window:
            self._draw(self._window[-1].submit)

    @property
    def questions(self) -> tuple[Question, ...]:
        """The window as it stands, oldest first."""
        return tuple(replace(question) for question in self._window)

    def asked(self, job_id: str, submit: float, cdf: Floats) -> None:
        """The uncalibrated answer ``cdf`` was given at ``submit`` (Unix seconds)."""
        question = Question(job_id, submit, cdf)
        self._window.append(question)
        self._open[job_id] = question
        while len(self._window) > self._settings.window or self._too_old(self._window[0], submit):
            self._open.pop(self._window.popleft().job_id, None)
        self._asked += 1
        if self._asked % self._settings.every == 0:
            self._draw(submit)

    def started(self, job_id: str, start: float) -> None:
        """The job began to run."""
        question = self._open.get(job_id)
        if question is not None:
            question.start = start

    def ended(self, job_id: str, seconds: float, *, censored: bool) -> None:
        """The job is gone after running ``seconds`` (NaN or none: it never ran, and the question is void)."""
        question = self._open.pop(job_id, None)
        if question is None:
            return
        if seconds > 0 and question.cdf is not None:
            log_seconds = np.array([math.log(seconds)])
            question.u = float(self._grid.at(question.cdf[np.newaxis], log_seconds)[0])
            question.censored = censored
        question.cdf = None

    def bent(self, cdf: Floats) -> Floats:
        """``cdf`` as recent experience corrects it; unchanged until there is enough of that."""
        if self._bend is None:
            return cdf
        bent = np.clip(cdf + np.interp(cdf, _LEVELS, self._bend), 0.0, 1.0)
        bent[0], bent[-1] = 0.0, 1.0
        return np.maximum.accumulate(bent)

    def _too_old(self, question: Question, now: float) -> bool:
        return now - question.submit > self._settings.days * SECONDS_PER_DAY

    def _draw(self, now: float) -> None:
        """Draw g from the window as of ``now``: a Kaplan-Meier estimate, linear between its steps."""
        known, censored = self._outcomes(now)
        count = known.size
        if count < self._settings.least:
            self._bend = None
            return
        # At equal u an end comes before a job that was still running there.
        order = np.lexsort((censored, known))
        known, censored = known[order], censored[order]
        at_risk = np.arange(count, 0, -1)
        survival = np.cumprod(np.where(censored, 1.0, 1.0 - 1.0 / at_risk))
        steps = ~censored
        # Half of each step lies before its u: the middle of the staircase, not its upper or lower corner.
        before = np.concatenate([[1.0], survival[:-1]])[steps]
        g = 1.0 - (before + survival[steps]) / 2.0
        u = np.concatenate([[0.0], known[steps], [1.0]])
        drawn = np.interp(_LEVELS, u, np.concatenate([[0.0], g, [1.0]]))
        weight = count / (count + self._settings.shrink)
        self._bend = np.clip(weight * (drawn - _LEVELS), -self._settings.bound, self._settings.bound)

    def _outcomes(self, now: float) -> tuple[Floats, NDArray[np.bool_]]:
        """The u of every question that says anything, and whether it is a lower bound only."""
        gone = [q for q in self._window if not math.isnan(q.u)]
        running = [q for q in self._window if q.cdf is not None and q.start < now]
        us = np.array([q.u for q in gone])
        censored = np.array([q.censored for q in gone], dtype=np.bool_)
        if running:
            cdfs = np.array([q.cdf for q in running])
            ages = np.log(np.maximum(now - np.array([q.start for q in running]), 1.0))
            us = np.concatenate([us, self._grid.at(cdfs, ages)])
            censored = np.concatenate([censored, np.ones(len(running), dtype=np.bool_)])
        return us, censored
