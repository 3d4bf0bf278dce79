"""How good would the predictions have been? A replay, not a split.

Questions are asked in the order of submission, answers come in the order of ends, models are refitted
on a schedule and their leaves and calibration move with every event in between. Nothing is seen early.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import NamedTuple

import lightgbm
import numpy as np
from numpy.typing import NDArray

from advisor.domain.forecasts import DurationDistribution
from advisor.domain.jobs import Job
from advisor.domain.reports import DurationReport, HeadToHead, RunProtocol
from advisor.domain.units import SECONDS_PER_DAY, counted, utc
from advisor.errors import Refused
from advisor.features.duration import DURATION_SCHEMA
from advisor.forecast.baselines import MEDIAN_OF_5
from advisor.forecast.duration import MODEL
from advisor.forecast.duration_model import DurationModel
from advisor.forecast.questions import Question
from advisor.history.snapshot import DIGEST_SHOWN, jobs_digest
from training.answers import Answers, History, history_of, replayed, served
from training.duration_report import ScoredJobs, duration_report
from training.duration_table import Progress
from training.forests import DurationSettings, fit_forests
from training.metrics import mark, scores_of
from training.outcomes import outcome_scores
from training.quality import may_be_served

__all__ = ["BacktestSettings", "Evaluated", "Predicted", "evaluate_and_fit", "evaluate_durations"]

Floats = NDArray[np.float64]

_OWNER_GPUS_COUNT = DURATION_SCHEMA.names.index("og_count")


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestSettings:
    """``split`` is the share of jobs, in order of submission, before the first scored one."""

    split: float = 0.7
    refit_days: float = 28.0
    fit: DurationSettings = field(default_factory=DurationSettings)

    def __post_init__(self) -> None:
        """Check the bounds.

        Raises:
            Refused: a split outside (0, 1), or no time between refits.
        """
        if not 0.0 < self.split < 1.0:
            raise Refused("split", self.split, "it lies strictly between 0 and 1", "Use 0.7.")
        if not self.refit_days > 0:
            raise Refused("refit_days", self.refit_days, "it must be above 0 days", "Use 28.")


class Predicted(NamedTuple):
    """What was said of ``jobs`` (by submission) as they were submitted: ``laws`` by place, from ``since`` on (Unix)."""

    jobs: tuple[Job, ...]
    laws: dict[int, DurationDistribution]
    since: float


class Evaluated(NamedTuple):
    """A report, a model of everything known, None where too few jobs had ended, and what was served on the way."""

    report: DurationReport
    model: DurationModel | None
    predicted: Predicted


def evaluate_durations(
    jobs: Sequence[Job],
    settings: BacktestSettings | None = None,
    progress: Progress | None = None,
    registered: Mapping[str, DurationModel] | None = None,
) -> DurationReport:
    """Replay ``jobs`` and score every predictor on those submitted from the split on.

    ``median_of_5`` is the floor, ``model`` what would have been served: fitted at the split and refitted
    on schedule from there, standing in for itself with the floor where it has nothing to go by.
    Each of ``registered`` (name to model, say ``champion``) is replayed with its trees as they are, if it
    was fitted before the split; of the others the report says that they were not.

    Raises:
        Refused: fewer than two jobs.
    """
    return _evaluated(jobs, settings or BacktestSettings(), progress, registered or {})[0]


def evaluate_and_fit(
    jobs: Sequence[Job],
    now: datetime,
    settings: BacktestSettings | None = None,
    progress: Progress | None = None,
    registered: Mapping[str, DurationModel] | None = None,
) -> Evaluated:
    """The report of :func:`evaluate_durations`, and a model of everything known at ``now``, from one replay.

    ``jobs`` are those known at ``now``. The model starts with the calibration window of the models that
    answered last in the evaluation, none of which had seen the jobs it asked about; it is None where too
    few jobs had ended to learn from.

    Raises:
        Refused: fewer than two jobs, or a time without zone.
    """
    chosen = settings or BacktestSettings()
    report, history, questions, laws = _evaluated(jobs, chosen, progress, registered or {})
    model = fit_forests(history.table, utc(now, "now").timestamp(), chosen.fit, questions)
    return Evaluated(report, model, Predicted(history.jobs, laws, history.split))


def _evaluated(
    jobs: Sequence[Job],
    chosen: BacktestSettings,
    progress: Progress | None,
    registered: Mapping[str, DurationModel],
) -> tuple[DurationReport, History, tuple[Question, ...], dict[int, DurationDistribution]]:
    """The report, the history it is of, the calibration window as it stood at the end, and what was served."""
    history = history_of(jobs, chosen.split, chosen.fit, progress)
    asked = np.array(sorted(history.floors), dtype=np.intp)
    known = history.table.gone[asked] >= 0
    scored = asked[known & ~history.table.censored[asked] & (history.table.seconds[asked] > 0)]
    answered, refits, questions = served(history, chosen.refit_days, chosen.fit, progress)
    answers = {MEDIAN_OF_5: history.floors, MODEL: answered.laws}
    seen = {name: model for name, model in registered.items() if model.fitted_at.timestamp() > history.split}
    answers |= {name: replayed(history, model).laws for name, model in registered.items() if name not in seen}
    seconds = history.table.seconds[scored]
    marks = {}
    for number, (name, laws) in enumerate(answers.items()):
        if progress is not None:
            progress("scores", number, len(answers))
        marks[name] = mark([laws[int(job)] for job in scored], seconds)
    protocol = _protocol(history, chosen, refits, [*_not_scored(asked.size - scored.size), *_not_asked(seen)])
    report = replace(
        duration_report(marks, _scored_jobs(history, scored), protocol),
        outcomes=outcome_scores(history.jobs, answered.chances, scored.tolist(), history.split),
        versus={name: _head_to_head(history, model, answered, scored) for name, model in seen.items()},
    )
    served_name = MODEL if may_be_served(report, None).promoted else MEDIAN_OF_5
    return replace(report, served=served_name), history, questions, answered.laws


def _head_to_head(history: History, rival: DurationModel, answered: Answers, scored: NDArray[np.intp]) -> HeadToHead:
    """What would be served against a model that was fitted after the split, on the jobs submitted since."""
    since = rival.fitted_at.timestamp()
    jobs = scored[history.table.submit[scored] > since]
    both = {MODEL: answered.laws, "rival": replayed(history, rival).laws if jobs.size else {}}
    seconds = history.table.seconds[jobs]
    scores = {
        name: scores_of(mark([laws[int(job)] for job in jobs], seconds), np.zeros(jobs.size), 1)
        for name, laws in both.items()
    }
    return HeadToHead(since=rival.fitted_at, model=scores[MODEL], rival=scores["rival"])


def _scored_jobs(history: History, scored: NDArray[np.intp]) -> ScoredJobs:
    return ScoredJobs(
        weeks=np.floor((history.table.submit[scored] - history.split) / (7 * SECONDS_PER_DAY)),
        warm=history.table.asked(scored)[0][:, _OWNER_GPUS_COUNT] > 0,
        gpus=np.array([history.jobs[int(job)].gpus for job in scored], dtype=np.float64),
        keys=[history.keys[int(job)] for job in scored],
    )


def _protocol(history: History, settings: BacktestSettings, refits: int, remarks: Sequence[str]) -> RunProtocol:
    jobs = history.jobs
    assumed = [
        "a duration counts from the start and is known from the end on",
        "ends come before submissions of the same second, which keep the order of the history",
    ]
    if any(job.start_assumed for job in jobs):
        assumed.append(f"start taken to be the submission for {counted(sum(job.start_assumed for job in jobs), 'job')}")
    if not refits:
        assumed.append("too few jobs had ended to fit a model: the baseline stands in throughout")
    return RunProtocol(
        data_digest=jobs_digest(jobs)[:DIGEST_SHOWN],
        rows=len(jobs),
        split_time=datetime.fromtimestamp(history.split, UTC),
        refits=refits,
        seed=settings.fit.seed,
        versions={"lightgbm": lightgbm.__version__, "numpy": np.__version__, "python": platform.python_version()},
        assumed=(*assumed, *remarks),
    )


def _not_scored(jobs: int) -> list[str]:
    return [f"not scored: {counted(jobs, 'job')} after the split, of no known duration above zero"] if jobs else []


def _not_asked(seen: Mapping[str, DurationModel]) -> list[str]:
    return [
        f"the {name} was fitted at {model.fitted_at:%Y-%m-%d %H:%M}Z on jobs after the split, so it is not scored"
        " beside the others but meets the model on the jobs that came since; its card has the figures of its own"
        " held-out part (gsa models show)"
        for name, model in seen.items()
    ]
