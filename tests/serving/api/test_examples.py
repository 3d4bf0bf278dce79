"""The examples of the API reference: what is typed from them is answered, and they agree with each other."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI

from advisor.clock import ManualClock
from advisor.domain.ingest import JobBatch
from advisor.history.store import HistoryStore
from advisor.settings import load_settings
from advisor.telemetry.synthetic import synthetic_workload
from serving.api import examples
from serving.app import create_app
from serving.live import LiveAdvisor, LiveParts
from serving.wiring import ClusterChoice, open_registry
from tests.builders import NOON, a_history
from tests.docs.markdown_pages import DOCS, ROOT, blocks
from tests.serving.http import an_app, get, post

BATCHES = {
    "what make run generates": lambda: synthetic_workload(5, NOON, days=2),
    "a table without pools": lambda: JobBatch(source="table", jobs=tuple(a_history(60))),
}


@pytest.fixture(scope="module", params=BATCHES)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    """The real application on a home of its own, before any training."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GSA_STORAGE__HOME", str(tmp_path_factory.mktemp("home")))
        settings = load_settings()
    with HistoryStore.open(settings.storage.history) as store:
        batch = BATCHES[request.param]()
        store.append(batch, max(job.gone_at or job.submit for job in batch.jobs))
        parts = LiveParts(
            settings=settings,
            history=store,
            registry=open_registry(settings),
            clock=ManualClock(NOON),
            cluster=ClusterChoice(),
        )
        live = LiveAdvisor(parts)
        live.refresh()
        yield create_app(live, live, settings.server)


def documented_requests() -> dict[str, dict[str, Any]]:
    """Every request that the document shows, by route."""
    paths = get(an_app(), "/openapi.json").json()["paths"]
    bodies = {path: operations["post"]["requestBody"] for path, operations in paths.items() if "post" in operations}
    return {path: body["content"]["application/json"]["example"] for path, body in bodies.items()}


@pytest.mark.parametrize("path", documented_requests())
def test_a_documented_request_is_answered_by_any_served_home(served: FastAPI, path: str) -> None:
    asked = documented_requests()[path]

    answer = post(served, path, json=asked)

    assert answer.status_code == 200, answer.text
    (answers,) = (value for value in answer.json().values() if isinstance(value, list))
    assert [one["id"] for one in answers] == [job["id"] for job in asked["jobs"]]
    assert all(one.get("decision", "placed") == "placed" for one in answers)


def typed_requests() -> list[tuple[str, str | None]]:
    """Path and body of every curl line that README and tutorial offer."""
    found = []
    for page in (ROOT / "README.md", DOCS / "tutorial.md"):
        for block in blocks(page.read_text(encoding="utf-8")):
            for line in block.body.replace("\\\n", " ").splitlines():
                if line.startswith("curl "):
                    words = shlex.split(line)
                    (url,) = (word for word in words if word.startswith("http://127.0.0.1:8080/"))
                    found.append((url.split(":8080", 1)[1], words[words.index("-d") + 1] if "-d" in words else None))
    return found


@pytest.mark.parametrize("path, body", typed_requests())
def test_a_request_that_a_page_offers_for_typing_is_answered(served: FastAPI, path: str, body: str | None) -> None:
    headers = {"content-type": "application/json"}

    answer = get(served, path) if body is None else post(served, path, content=body, headers=headers)

    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    "asked, answered",
    [
        (examples.DURATIONS_ASK, examples.DURATIONS["predictions"]),
        (examples.ALLOCATIONS_ASK, examples.ALLOCATIONS["allocations"]),
    ],
)
def test_every_job_of_an_example_has_its_answer(asked: dict[str, Any], answered: list[dict[str, Any]]) -> None:
    assert [one["id"] for one in answered] == [job["id"] for job in asked["jobs"]]


def test_what_remains_is_shown_of_the_job_that_runs_and_only_of_it() -> None:
    ages = [job.get("elapsed_seconds") for job in examples.DURATIONS_ASK["jobs"]]
    shown = examples.DURATIONS["predictions"]

    assert [one["elapsed_seconds"] for one in shown] == ages
    assert [one["remaining"] is None for one in shown] == [age is None for age in ages]
    for one in shown:
        assert sum(one["explanation"]["weights"].values()) == pytest.approx(1.0)
        assert sum(one["outcomes"].values()) == pytest.approx(1.0)


def test_the_example_of_a_slice_length_adds_up() -> None:
    pool = examples.POOL_RECOMMENDATION
    (one,) = pool["slice_lengths"]
    switch, mean = pool["switch_cost_minutes"], one["mean_minutes"]
    costs = {point["minutes"]: point["cost"] for point in one["curve"]}

    assert one["closed_form_minutes"] == round(math.sqrt(2 * mean * switch), 1)
    assert one["rule_of_thumb_minutes"] == mean - switch
    assert mean * 60 == pool["durations"]["mean_seconds"]
    assert one["minutes"] == min(costs, key=costs.__getitem__)
    assert (one["cost"], one["current_cost"]) == (costs[one["minutes"]], costs[one["current_minutes"]])
    assert costs == {minutes: round(switch / minutes + minutes / (2 * mean), 3) for minutes in costs}


def test_allocated_slices_follow_each_other_and_cover_the_prediction() -> None:
    for one in examples.ALLOCATIONS["allocations"]:
        assert len(one["slices"]) == one["slice_count"]
        assert [s["start"] for s in one["slices"][1:]] == [s["end"] for s in one["slices"][:-1]]
        assert one["predicted_end"] == one["slices"][-1]["end"]
