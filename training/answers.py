"""What would have been answered: every predictor's answers to one history, each given as it stood then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import numpy as np

from advisor.domain.forecasts import DurationDistribution, DurationForecast, OutcomeChances
from advisor.domain.jobs import Job
from advisor.domain.units import SECONDS_PER_DAY
from advisor.errors import Refused
from advisor.features.replay import EventKind, events_of
from advisor.forecast.baselines import MedianOfFive
from advisor.forecast.duration_model import DurationModel
from advisor.forecast.live import LiveModel, refusal
from advisor.forecast.questions import Question
from training.calibrate import warm_up_begins
from training.duration_table import DurationTable, Progress, duration_table
from training.forests import DurationSettings, fit_forests
from training.model_replay import ModelReplay

__all__ = ["Answers", "History", "history_of", "replayed", "served"]


class Answers(NamedTuple):
    """By place in the history: how long each job was said to run, and of those the model answered how they end."""

    laws: dict[int, DurationDistribution]
    chances: dict[int, OutcomeChances]


@dataclass(frozen=True, slots=True)
class History:
    """The jobs in order of submission, their table, and when scoring begins and everything ends.

    ``floors`` are the floor's answers to the jobs from the split on, ``keys`` the histories that carried them.
    """

    jobs: tuple[Job, ...]
    table: DurationTable
    floors: dict[int, DurationDistribution]
    keys: dict[int, str]
    split: float
    until: datetime


def history_of(jobs: Sequence[Job], split: float, fit: DurationSettings, progress: Progress | None = None) -> History:
    """``jobs`` with their rows and the floor's answers to those after the share ``split`` of them.

    Jobs of one instant are taken by their ids, as a store hands them over, so that a file and the store that it
    filled are evaluated alike: whose answer comes first counts, for whoever asks at that instant learns of it.

    Raises:
        Refused: fewer than two jobs.
    """
    if len(jobs) < 2:
        raise Refused("jobs", len(jobs), "an evaluation needs at least 2 jobs", "Bring in more history.")
    ordered = tuple(sorted(jobs, key=lambda job: (job.submit, job.id)))
    # Jobs of one second stay on one side: bulk submissions know each other's answers.
    begin = ordered[max(int(split * len(ordered)), 1)].submit
    until = max(moment for job in ordered for moment in (job.submit, job.start, job.gone_at) if moment is not None)
    floors = _floors(ordered, begin)
    scored = sum(job.submit >= begin for job in ordered)
    newest = scored + fit.jobs_needed
    return History(
        jobs=ordered,
        table=duration_table(ordered, until, progress, newest),
        floors={place: answer.distribution for place, answer in floors.items()},
        keys={place: answer.key for place, answer in floors.items()},
        split=begin.timestamp(),
        until=until,
    )


def _floors(jobs: Sequence[Job], split: datetime) -> dict[int, DurationForecast]:
    """The floor's answer to every job submitted from ``split`` on."""
    floor = MedianOfFive()
    answers: dict[int, DurationForecast] = {}
    for event in events_of(jobs):
        if event.kind is EventKind.SUBMITTED:
            if event.moment >= split:
                answers[event.place] = floor.answer(event.job, 0.0)
            floor.submitted(event.job)
        elif event.kind is not EventKind.STARTED:
            floor.ended(event.job)
    return answers


def served(
    history: History, refit_days: float, fit: DurationSettings, progress: Progress | None
) -> tuple[Answers, int, tuple[Question, ...]]:
    """What would have been served from the split on, how many fits that took, and the calibration window at the end."""
    replay = ModelReplay(history.jobs, history.table, history.until)
    answers = Answers(dict(history.floors), {})
    questions = None
    spans = list(_spans(history, refit_days, fit))
    fitted = 0
    for number, (begin, end) in enumerate(spans):
        if progress is not None:
            progress("refits", number, len(spans))
        model = fit_forests(history.table, begin, fit, questions or ())
        if model is None:
            continue
        fitted += 1
        live = LiveModel(model)
        _collect(replay, live, end, answers)
        questions = live.questions
    return answers, fitted, questions or ()


def _spans(history: History, refit_days: float, fit: DurationSettings) -> Iterator[tuple[float, float]]:
    """From each refit to the next: one to fill the calibration window, then on schedule from the split on."""
    submit = history.table.submit
    begin = warm_up_begins(submit, history.split, fit.calibration)
    if begin < history.split:
        yield begin, history.split
    begin, last = history.split, float(submit.max())
    while begin <= last:
        end = begin + refit_days * SECONDS_PER_DAY
        # A span without submissions needs no model.
        if ((submit >= begin) & (submit < end)).any():
            yield begin, end
        begin = end


def _collect(replay: ModelReplay, live: LiveModel, until: float, answers: Answers) -> None:
    """Put the model's answers in place of the floor's, for the scored jobs it may answer."""
    edges = live.model.grid.log_edges
    for job, placement, answer in replay.run(live, until):
        if job in answers.laws and answer is not None and refusal(placement, answer.cdf) is None:
            answers.laws[job] = DurationDistribution(edges, answer.cdf)
            answers.chances[job] = answer.chances


def replayed(history: History, model: DurationModel) -> Answers:
    """The answers of one model that is never refitted."""
    answers = Answers(dict(history.floors), {})
    replay = ModelReplay(history.jobs, history.table, history.until)
    _collect(replay, LiveModel(model), np.inf, answers)
    return answers
