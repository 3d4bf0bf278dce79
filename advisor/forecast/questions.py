"""The latest answers and what came of them: what every correction is drawn from.

An answer is the mixture of several parts, each a CDF on one grid. Each is later met by a duration; until
then a job that runs says that it lasts at least as long as its age, so long jobs, which report late, are not forgotten.
"""

from __future__ import annotations

import base64
import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from advisor.domain.jobs import JobIdentity
from advisor.domain.units import SECONDS_PER_DAY
from advisor.forecast.grid import LogGrid

__all__ = ["Outcomes", "Question", "QuestionWindow"]

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Bools = NDArray[np.bool_]


@dataclass(slots=True)
class Question:
    """One answer given at submission, and what is known of how it came out.

    ``depth`` is how many jobs of the same owner and GPU count had ended, ``mixed`` the CDF answered before
    calibration, ``parts`` those it was mixed from, (parts, edges); both are let go when the job is gone.
    ``start`` is NaN while the job waits, ``log_seconds`` until it is gone. Then ``u`` is mixed at its duration
    and ``losses`` how the parts did (see :func:`cross_losses`). ``censored`` marks a job that was lost sight of.
    """

    job: JobIdentity
    submit: float
    depth: int
    mixed: Singles | None
    parts: Singles | None
    start: float = math.nan
    u: float = math.nan
    losses: Floats | None = None
    censored: bool = False

    def to_json(self) -> dict[str, Any]:
        """As kept with a model; single-precision rows as base64 of their little-endian bytes."""
        return {
            "source": self.job[0],
            "job": self.job[1],
            "submit": self.submit,
            "depth": self.depth,
            "mixed": None if self.mixed is None else _packed(self.mixed),
            "parts": None if self.parts is None else _packed(self.parts),
            "start": None if math.isnan(self.start) else self.start,
            "u": None if math.isnan(self.u) else self.u,
            "losses": None if self.losses is None else self.losses.tolist(),
            "censored": self.censored,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Back from what :meth:`to_json` wrote.

        Raises:
            KeyError, TypeError, ValueError: it is something else.
        """
        mixed, parts, losses = document["mixed"], document["parts"], document["losses"]
        single = None if mixed is None else _unpacked(mixed)
        return cls(
            # Models of earlier versions name no source.
            job=(document.get("source", ""), document["job"]),
            submit=float(document["submit"]),
            depth=int(document["depth"]),
            mixed=single,
            parts=None if parts is None or single is None else _unpacked(parts).reshape(-1, single.size),
            start=math.nan if document["start"] is None else float(document["start"]),
            u=math.nan if document["u"] is None else float(document["u"]),
            losses=None if losses is None else np.array(losses, dtype=np.float64),
            censored=bool(document["censored"]),
        )


def _packed(values: Singles) -> str:
    return base64.b64encode(values.astype("<f4").tobytes()).decode("ascii")


def _unpacked(text: str) -> Singles:
    return np.frombuffer(base64.b64decode(text, validate=True), dtype="<f4").astype(np.float32)


class Outcomes(NamedTuple):
    """What a window says as of some moment, one row per question that says anything.

    ``u`` is the answered probability of the duration, or of the age where ``censored``; ``losses`` (n, parts,
    parts); ``depth`` as in :class:`Question`.
    """

    u: Floats
    censored: Bools
    losses: Floats
    depth: NDArray[np.intp]


def cross_losses(grid: LogGrid, parts: Singles, log_seconds: Floats, censored: Bools) -> Floats:
    """How well parts and every two of them together foretold durations: (n, parts, parts) of (n, parts, edges).

    Entry (k, l) is the integral over ln seconds x of (F_k - 1{x >= y}) (F_l - 1{x >= y}), so that a mixture with
    weights w has the continuous ranked probability score w' losses w. Of a job only known to last at least y,
    the integral ends at y, so that nothing is charged for what is not known (Graf et al. 1999 use the same bound).
    Those that ended are judged beyond that too, which favours short answers a little: while no more than a fifth
    still run, truth scores best all the same. Between edges the product is taken as linear.
    """
    edges = grid.log_edges
    y = log_seconds[:, np.newaxis]
    below = np.clip((y - edges[:-1]) / grid.step, 0.0, 1.0)
    above = np.where(censored[:, np.newaxis], 0.0, 1.0 - below)
    count = parts.shape[1]
    found = np.empty((len(parts), count, count))
    for k in range(count):
        for other in range(k + 1):
            f, g = parts[:, k].astype(np.float64), parts[:, other].astype(np.float64)
            low, high = f * g, (1.0 - f) * (1.0 - g)
            lost = below * (low[:, :-1] + low[:, 1:]) + above * (high[:, :-1] + high[:, 1:])
            found[:, k, other] = found[:, other, k] = np.add.reduce(lost, axis=1) * grid.step / 2.0
    return found


class QuestionWindow:
    """The latest ``size`` questions of at most ``days``."""

    def __init__(self, grid: LogGrid, size: int, days: float, questions: Iterable[Question] = ()) -> None:
        self._grid = grid
        self._size = size
        self._days = days
        self._window: deque[Question] = deque(replace(question) for question in questions)
        self._open = {q.job: q for q in self._window if q.parts is not None}
        self.asked_in_all = len(self._window)

    @property
    def questions(self) -> tuple[Question, ...]:
        """The window as it stands, oldest first."""
        return tuple(replace(question) for question in self._window)

    @property
    def last_submit(self) -> float | None:
        """When the latest question was asked, None where none was."""
        return self._window[-1].submit if self._window else None

    def asked(self, question: Question) -> None:
        """An answer was given."""
        self._window.append(question)
        self._open[question.job] = question
        while len(self._window) > self._size or self._too_old(self._window[0], question.submit):
            self._open.pop(self._window.popleft().job, None)
        self.asked_in_all += 1

    def started(self, job: JobIdentity, start: float) -> None:
        """The job began to run."""
        question = self._open.get(self._known_as(job))
        if question is not None:
            question.start = start

    def ended(self, job: JobIdentity, seconds: float, *, censored: bool) -> None:
        """The job is gone after running ``seconds`` (NaN or none: it never ran, and the question is void)."""
        question = self._open.pop(self._known_as(job), None)
        if question is None:
            return
        if seconds > 0 and question.mixed is not None and question.parts is not None:
            logs, lost = np.array([math.log(seconds)]), np.array([censored])
            question.u = float(self._grid.at(question.mixed[np.newaxis].astype(np.float64), logs)[0])
            question.losses = cross_losses(self._grid, question.parts[np.newaxis], logs, lost)[0]
            question.censored = censored
        question.mixed = question.parts = None

    def _known_as(self, job: JobIdentity) -> JobIdentity:
        """As whose question it stands here: a model of an earlier version asked without naming the source."""
        return job if job in self._open else ("", job[1])

    def _too_old(self, question: Question, now: float) -> bool:
        return now - question.submit > self._days * SECONDS_PER_DAY

    def outcomes(self, now: float) -> Outcomes:
        """What the window says as of ``now`` (Unix seconds): durations of those gone, ages of those running."""
        gone = [q for q in self._window if q.losses is not None]
        running = [q for q in self._window if q.parts is not None and q.start < now]
        if not gone and not running:
            return Outcomes(np.empty(0), np.empty(0, dtype=np.bool_), np.empty((0, 0, 0)), np.empty(0, dtype=np.intp))
        us = [np.array([q.u for q in gone])]
        lost = [np.array([q.censored for q in gone], dtype=np.bool_)]
        losses = [np.array([q.losses for q in gone])] if gone else []
        if running:
            logs = np.log(np.maximum(now - np.array([q.start for q in running]), 1.0))
            alive = np.ones(len(running), dtype=np.bool_)
            us.append(self._grid.at(np.array([q.mixed for q in running], dtype=np.float64), logs))
            lost.append(alive)
            losses.append(cross_losses(self._grid, np.array([q.parts for q in running]), logs, alive))
        depth = np.array([q.depth for q in (*gone, *running)], dtype=np.intp)
        return Outcomes(np.concatenate(us), np.concatenate(lost), np.concatenate(losses), depth)
