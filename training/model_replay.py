"""Replays a history through a fitted model, placing jobs in batches where the online path places one at a time.

Rows do not depend on the model, so they are made once and every model is replayed on them; what happens
to the leaves and the calibration is the online code itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.domain.jobs import Job
from advisor.features.replay import SUBMISSIONS_TURN, Event, EventKind, events_of
from advisor.forecast.duration_model import DurationModel
from advisor.forecast.live import LiveAnswer, LiveModel, Placement, place
from training.duration_table import DurationTable

__all__ = ["Asked", "ModelReplay"]

Floats = NDArray[np.float64]


class Asked(NamedTuple):
    """One question of a replay: which job, where it fell, and what the model answered (None: nothing)."""

    job: int
    placement: Placement
    answer: LiveAnswer | None


class ModelReplay:
    """The events of one history, ready to be replayed through any model."""

    def __init__(self, jobs: Sequence[Job], table: DurationTable, until: datetime) -> None:
        self._events: list[Event] = events_of(jobs, until)
        self._table = table

    def run(self, live: LiveModel, until: float) -> Iterator[Asked]:
        """Feed ``live`` what happened before the submissions of ``until`` (Unix seconds).

        Yields every submission from the fit of its model on, as it was answered at that moment.
        """
        events = self._before(until)
        placements = self._placements(live.model, events)
        begin = live.model.fitted_at.timestamp()
        for event in events:
            placement = placements.pop(event.place, None) if event.kind is EventKind.SUBMITTED else None
            answer = live.take(event, placement)
            if placement is not None and event.at >= begin:
                yield Asked(event.place, placement, answer)

    def _before(self, until: float) -> list[Event]:
        return [e for e in self._events if (e.at, e.turn) < (until, SUBMISSIONS_TURN)]

    def _placements(self, model: DurationModel, events: Sequence[Event]) -> dict[int, Placement]:
        since = model.leaves_since.timestamp()
        submitted = (event for event in events if event.kind is EventKind.SUBMITTED and event.at >= since)
        jobs = self._table.kept(np.array([event.place for event in submitted], dtype=np.intp))
        if not jobs.size:
            return {}
        # Jobs the model was fitted on are never asked about: of them only the leaves are needed.
        asked = self._table.submit[jobs] >= model.fitted_at.timestamp()
        return dict(zip(jobs.tolist(), place(model, *self._table.asked(jobs), asked), strict=True))
