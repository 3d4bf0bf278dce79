"""How well it was foretold how jobs would end."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from advisor.domain.forecasts import OutcomeChances
from advisor.domain.jobs import Job, Outcome
from advisor.domain.reports import OutcomeScores
from advisor.features.keys import keys_of
from advisor.features.replay import EventKind, events_of

__all__ = ["outcome_scores"]

Floats = NDArray[np.float64]

_FORETOLD = (Outcome.FAILED, Outcome.CANCELLED)
_LATEST = 5


def outcome_scores(
    jobs: Sequence[Job], chances: Mapping[int, OutcomeChances], scored: Sequence[int], split: float
) -> dict[str, OutcomeScores]:
    """Brier scores of the ``chances`` (by place in ``jobs``) of the ``scored`` jobs that have some; empty where none.

    Beside them stand two that know less: the share of all jobs that had ended so before the ``split`` (Unix
    seconds), and the share among the last five of the same owner and GPU count when the job was submitted.
    """
    told = [place for place in scored if place in chances]
    if not told:
        return {}
    before = [job.outcome for job in jobs if job.gone_at is not None and job.gone_at.timestamp() < split]
    owners = _owner_shares(jobs, set(told))
    found = {}
    for number, outcome in enumerate(_FORETOLD):
        came = np.array([jobs[place].outcome is outcome for place in told], dtype=np.float64)
        said = np.array([(chances[place].failed, chances[place].cancelled)[number] for place in told])
        usual = sum(known is outcome for known in before) / max(len(before), 1)
        of_owner = np.array([usual if (own := owners[place]) is None else own[number] for place in told])
        found[outcome.value] = OutcomeScores(
            n=len(told),
            rate=float(came.mean()),
            brier=_brier(said, came),
            brier_rate=_brier(np.full_like(came, usual), came),
            brier_owner=_brier(of_owner, came),
        )
    return found


def _brier(said: Floats, came: Floats) -> float:
    return float(np.mean((said - came) ** 2))


def _owner_shares(jobs: Sequence[Job], wanted: set[int]) -> dict[int, tuple[float, float] | None]:
    """Of each wanted job: which shares of the last five ends of its key failed and were cancelled, None where none."""
    latest: dict[tuple[object, ...], deque[Outcome | None]] = {}
    found: dict[int, tuple[float, float] | None] = {}
    for event in events_of(jobs):
        key = keys_of(event.job).owner_gpus
        if event.kind is EventKind.SUBMITTED and event.place in wanted:
            ends = latest.get(key)
            found[event.place] = None if ends is None else _shares(ends)
        elif event.kind is EventKind.ENDED and event.job.outcome is not Outcome.CENSORED:
            latest.setdefault(key, deque(maxlen=_LATEST)).append(event.job.outcome)
    return found


def _shares(ends: deque[Outcome | None]) -> tuple[float, float]:
    return ends.count(Outcome.FAILED) / len(ends), ends.count(Outcome.CANCELLED) / len(ends)
