"""Another version becomes champion while completions come in and people ask: no answer is mixed, and none is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from advisor.clock import ManualClock
from advisor.domain.ingest import JobBatch
from advisor.domain.jobs import Job
from advisor.forecast.calibration import CalibrationSettings
from advisor.forecast.duration_model import DurationModel
from advisor.forecast.registry import DEMAND, DURATIONS, ModelCard, ModelRegistry
from advisor.history.reading import JobChanges
from advisor.history.store import HistoryStore
from advisor.settings import DemandSettings, Settings, load_settings
from serving.answers import duration_answers
from serving.api.service import DurationAnswer, DurationAsk
from serving.champions import Champions
from serving.foresight import Foresight
from serving.live import LiveAdvisor, LiveParts
from serving.wiring import ClusterChoice, open_registry
from tests.builders import NOON, a_history, a_job
from training.duration import DurationSettings, fit_durations

SMALL = DurationSettings(trees=3, leaves=31, least_jobs=50, calibration=CalibrationSettings(least=40, every=5))
HISTORY = a_history(560, seed=5)
FITTED = HISTORY[400].submit
SECOND = timedelta(seconds=1)
ASKS = (
    DurationAsk(id="known", gpus=1.0, user="user-1"),
    DurationAsk(id="runs", gpus=2.0, user="user-2", elapsed_seconds=300.0),
    DurationAsk(id="new", gpus=1.0, user="newcomer"),
)
CARD = ModelCard(
    name=DURATIONS,
    made_at=NOON,
    data_digest="d1",
    rows=400,
    fitted_until=FITTED,
    seed=1,
    versions={},
    measures={},
    reasons=(),
)


class Busy(HistoryStore):
    """Something comes in whenever a state has just begun to be rebuilt, and again when its cycle is done."""

    meanwhile: Callable[[], None] | None = None

    def changed_since(self, revision: int | None) -> JobChanges:
        changes = super().changed_since(revision)
        if revision is None and self.meanwhile is not None:
            self.meanwhile()
        return changes

    def record_advice(self, time: datetime, document: Mapping[str, Any]) -> None:
        super().record_advice(time, document)
        if self.meanwhile is not None:
            self.meanwhile()


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("GSA_STORAGE__HOME", str(tmp_path))
    return load_settings()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Busy]:
    # In a file, since several threads read and write.
    with Busy.open(f"sqlite:///{tmp_path}/busy.db") as opened:
        assert isinstance(opened, Busy)
        yield opened


@pytest.fixture(scope="module")
def models() -> list[DurationModel]:
    found = [fit_durations(HISTORY, FITTED, replace(SMALL, trees=trees)) for trees in (3, 4)]
    return [model for model in found if model is not None]


@pytest.fixture
def registry(settings: Settings, models: list[DurationModel], tmp_path: Path) -> ModelRegistry:
    opened = open_registry(settings)
    for number, model in enumerate(models):
        model.save(tmp_path / f"model-{number}")
        opened.register(tmp_path / f"model-{number}", CARD)
    return opened


class Feed:
    """What happens in the cluster, step by step: some jobs of the history, and one of a newcomer that ends."""

    def __init__(self, store: HistoryStore, live: LiveAdvisor) -> None:
        self._store, self._live = store, live
        self._steps = iter(range(410, 560, 10))
        self._turn = threading.Lock()
        self._newcomers: list[Job] = []
        self.taken_in = 0

    def step(self) -> None:
        """The next step, taken in."""
        with self._turn:
            now = HISTORY[next(self._steps)].submit
            number = len(self._newcomers)
            self._newcomers.append(a_job(f"new-{number}", user="newcomer", submit=now - SECOND, seconds=1.0))
            known = [job for each in HISTORY if (job := each.as_of(now)) is not None]
            self._store.append(JobBatch(source="test", jobs=(*known, *self._newcomers)), now)
            assert self._live.take_in()
            self.taken_in = len(self._newcomers)


class Asker(threading.Thread):
    """Asks over and over, and keeps what was answered at each moment by each version, and what was wrong with it."""

    def __init__(self, live: LiveAdvisor, feed: Feed, stopped: threading.Event) -> None:
        super().__init__(daemon=True)
        self._live, self._feed, self._stopped = live, feed, stopped
        self.answered: dict[tuple[datetime, str], tuple[DurationAnswer, ...]] = {}
        self.wrong: list[str] = []

    def run(self) -> None:
        last = NOON
        while not self._stopped.is_set():
            least = self._feed.taken_in
            answers = self._live.durations(ASKS)
            moments = {answer.as_of for answer in answers}
            versions = {answer.forecast.model_version for answer in answers}
            if len(moments) > 1 or len(versions) > 1 or None in versions:
                self.wrong.append(f"mixed: {moments}, {versions}")
                continue
            (moment,), (version,) = moments, versions
            if moment < last:
                self.wrong.append(f"back in time: {moment} after {last}")
            if answers[2].forecast.key_count < least:
                self.wrong.append(f"lost: {answers[2].forecast.key_count} of {least} ends")
            if self.answered.setdefault((moment, str(version)), answers) != answers:
                self.wrong.append(f"two answers of one moment: {moment}")
            last = moment


def test_a_swap_under_way_mixes_no_answers_and_loses_none(store, settings, registry, models):
    live = LiveAdvisor(
        LiveParts(settings=settings, history=store, registry=registry, clock=ManualClock(NOON), cluster=ClusterChoice())
    )
    store.append(JobBatch(source="test", jobs=tuple(job.as_of(FITTED) for job in HISTORY[:401])), FITTED)
    registry.promote(DURATIONS, "1")
    live.refresh()
    feed, stopped = Feed(store, live), threading.Event()
    feed.step()
    store.meanwhile = feed.step
    askers = [Asker(live, feed, stopped) for _ in range(2)]
    for asker in askers:
        asker.start()
    try:
        for version in ("2", "1", "2"):
            feed.step()
            registry.promote(DURATIONS, version)
            live.refresh()
            feed.step()
    finally:
        stopped.set()
        for asker in askers:
            asker.join(30.0)

    assert [asker.wrong for asker in askers] == [[], []]
    assert feed.taken_in == 13
    answered = askers[0].answered | askers[1].answered
    assert {version for _, version in answered} == {"1", "2"}
    last = live.durations(ASKS)
    assert last[2].forecast.key_count == 13
    moments = sorted(answered)
    for moment, version in {*moments[:: max(len(moments) // 4, 1)], (last[0].as_of, "2")}:
        served = Champions(
            durations=models[int(version) - 1],
            demand=None,
            versions={DURATIONS: version, DEMAND: None},
            named={DURATIONS: version, DEMAND: None},
            reasons=(),
        )
        store.meanwhile = None
        rebuilt = Foresight(served, store, DemandSettings())
        assert rebuilt.take_in(moment)
        expected = duration_answers(replace(live._current(), foresight=rebuilt), ASKS)
        assert (last if moment == last[0].as_of else answered[moment, version]) == expected
