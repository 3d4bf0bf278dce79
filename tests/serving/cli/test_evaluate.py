"""``gsa evaluate durations``: the store with its registered models, a trace, and the report as a page."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from advisor.domain.ingest import JobBatch
from advisor.domain.jobs import Job
from advisor.errors import Refused
from advisor.forecast.calibration import CalibrationSettings
from advisor.forecast.registry import CHALLENGER, CHAMPION, DURATIONS, ModelCard
from advisor.history.store import HistoryStore
from advisor.settings import load_settings
from serving.cli import evaluate, ingest
from serving.wiring import open_registry
from tests.builders import a_history
from training.duration import fit_durations
from training.forests import DurationSettings

JOBS = 700
SPLIT = int(0.7 * JOBS)
"""Place of the first job that is scored, at the default share."""
SMALL = DurationSettings(trees=2, leaves=31, least_jobs=50, calibration=CalibrationSettings(least=40, every=20))
MAPPING = """[columns]
id = "id"
submit = "submit"
start = "start"
end = "end"
user = "user"
gpus = "gpus"
outcome = "outcome"

[outcomes]
completed = ["completed"]
failed = ["failed"]
cancelled = ["cancelled"]
"""

Gsa = Callable[..., Result]


@pytest.fixture(scope="module")
def history() -> list[Job]:
    return a_history(JOBS, seed=12)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("evaluate")


@pytest.fixture(scope="module")
def trace(folder: Path, history: list[Job]) -> tuple[str, ...]:
    """The history as a file, by the options that name it."""
    with (folder / "jobs.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("id", "submit", "start", "end", "user", "gpus", "outcome"))
        for job in history:
            rows.writerow((job.id, job.submit, job.start, job.end, job.user, job.gpus, job.outcome.value))
    (folder / "mapping.toml").write_text(MAPPING)
    return (str(folder / "jobs.csv"), "--format", "table", "--mapping", str(folder / "mapping.toml"))


@pytest.fixture(scope="module")
def gsa(folder: Path, trace: tuple[str, ...], history: list[Job]) -> Gsa:
    """Runs a command on a store of that history; its champion saw nothing of the scored part, its challenger did."""
    environment = {"GSA_STORAGE__HOME": str(folder / "home"), "GSA_DURATIONS__TREES": "2"}

    def run(command: Any, *arguments: object, **more: str) -> Result:
        given = [str(each) for each in arguments]
        return CliRunner().invoke(command, given, env={**environment, **more}, catch_exceptions=False)

    assert run(ingest.app, "trace", *trace, "--source", "test").exit_code == 0
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        _register(history[SPLIT - 100].submit, CHAMPION)
        _register(history[SPLIT + 100].submit, CHALLENGER)
    return run


def _register(moment: datetime, alias: str) -> None:
    settings = load_settings(None)
    with HistoryStore.open(settings.storage.history) as store:
        model = fit_durations(store.jobs(moment), moment, SMALL)
    assert model is not None
    artefact = settings.storage.home / alias
    artefact.mkdir()
    model.save(artefact)
    card = ModelCard(
        name=DURATIONS,
        made_at=moment,
        data_digest="d",
        rows=JOBS,
        fitted_until=moment,
        seed=1,
        versions={},
        measures={},
    )
    registry = open_registry(settings)
    version = registry.register(artefact, card)
    if alias == CHAMPION:
        registry.promote(DURATIONS, version)


@pytest.fixture(scope="module")
def document(gsa: Gsa, folder: Path) -> dict[str, Any]:
    """What the store's evaluation prints for machines, its page written beside."""
    result = gsa(evaluate.app, "durations", "--html", folder / "report.html", "--output", "json")
    assert result.exit_code == 0
    return json.loads(result.stdout)


def test_on_the_store_the_champion_stands_beside_model_and_baseline(document, history) -> None:
    assert set(document["predictors"]) == {"median_of_5", "model", "champion"}
    asked = sum(job.submit >= history[SPLIT].submit for job in history)
    assert {scores["n"] for scores in document["predictors"].values()} == {asked}
    champion = document["predictors"]["champion"]
    assert champion["log_mae"] != document["predictors"]["median_of_5"]["log_mae"]
    assert set(champion["by"]) == {"warm", "cold", "gpus", "decade", "key"}
    assert set(champion["running"]) == {"600", "3600", "21600"}


def test_a_challenger_that_saw_the_scored_part_is_named_and_not_scored(document) -> None:
    (said,) = [line for line in document["protocol"]["assumed"] if "challenger" in line]
    assert "fitted at" in said
    assert "not scored" in said


def test_a_split_after_both_fits_scores_both(gsa: Gsa) -> None:
    result = gsa(evaluate.app, "durations", "--split", "0.9", "--output", "json")

    document = json.loads(result.stdout)
    assert set(document["predictors"]) == {"median_of_5", "model", "champion", "challenger"}
    assert not any("not scored here" in line for line in document["protocol"]["assumed"])


def test_a_trace_is_evaluated_without_the_models_of_the_store(gsa: Gsa, trace, document) -> None:
    result = gsa(evaluate.app, "durations", "--trace", *trace, "--output", "json")

    of_trace = json.loads(result.stdout)
    assert set(of_trace["predictors"]) == {"median_of_5", "model"}
    # The store holds them under the name of another source.
    assert of_trace["protocol"]["data_digest"] != document["protocol"]["data_digest"]
    assert of_trace["predictors"]["model"] == document["predictors"]["model"]
    assert of_trace["protocol"]["synthetic"] is False


def test_people_read_the_same_in_tables(gsa: Gsa, trace, folder: Path) -> None:
    (folder / "short.csv").write_text("".join((folder / "jobs.csv").read_text().splitlines(keepends=True)[:120]))
    result = gsa(evaluate.app, "durations", "--trace", folder / "short.csv", *trace[1:])

    assert result.exit_code == 0
    for title in ("held-out part", "by history and GPUs"):
        assert title in result.stdout
    assert "served: median_of_5" in result.stdout


def test_the_page_is_written_whole_beside_the_document(document, folder: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")

    assert page.rstrip().endswith("</html>")
    assert document["protocol"]["data_digest"] in page
    assert "Champion" in page
    assert "the challenger was fitted at" in page
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []


def test_a_page_takes_the_place_of_an_older_one(gsa: Gsa, trace, folder: Path) -> None:
    (folder / "tiny.csv").write_text("".join((folder / "jobs.csv").read_text().splitlines(keepends=True)[:30]))
    target = folder / "older.html"
    target.write_text("an older report")

    page = ("--html", target, "--output", "json")
    result = gsa(evaluate.app, "durations", "--trace", folder / "tiny.csv", *trace[1:], *page)

    assert result.stderr.splitlines()[-1] == f"the report is written to {target}"
    json.loads(result.stdout)
    assert target.read_text(encoding="utf-8").lstrip().startswith("<!doctype html>")


@pytest.mark.parametrize("place", ["nowhere/report.html", "home"])
def test_a_page_that_cannot_be_written_is_refused_before_anything_is_evaluated(gsa: Gsa, folder: Path, place) -> None:
    with pytest.raises(Refused, match="no plain file can be written there"):
        gsa(evaluate.app, "durations", "--trace", "no-such-file", "--html", folder / place)


def test_a_generated_history_is_called_that(gsa: Gsa, tmp_path: Path, history: list[Job]) -> None:
    url = f"sqlite:///{tmp_path}/history.db"
    with HistoryStore.open(url) as store:
        store.append(JobBatch(source="synthetic", jobs=tuple(history[:40]), synthetic=True), history[-1].submit)

    result = gsa(evaluate.app, "durations", "--output", "json", GSA_STORAGE__HISTORY_URL=url)

    assert json.loads(result.stdout)["protocol"]["synthetic"] is True
