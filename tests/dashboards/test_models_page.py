"""The page of the models: which versions there are, from what, how they measured, and which one is served."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest

from dashboards.data import RegisteredModel
from dashboards.pages import models_page
from tests.dashboards.worlds import seen
from tests.serving.fake_service import FakePages
from tests.serving.fake_values import an_advice, some_models
from tests.serving.http import an_app, get


def page(pages: FakePages | None = None) -> str:
    return html.unescape(re.sub(r"\s+", " ", get(an_app(pages=pages), "/models").text))


def test_a_version_tells_when_and_from_what_it_was_made():
    shown = page()

    assert "23 Feb 2026, 12:00 UTC" in shown, "when the champion was made"
    assert "82,000 generated jobs" in shown
    assert f'<code title="{"4" * 64}">{"4" * 16}</code>' in shown


def test_losses_stand_beside_those_of_the_baseline_and_of_the_champion_of_the_time():
    durations, _ = models_page(seen(), (), some_models()).models
    newest, champion, _ = durations.versions

    assert [(row.measure, row.rival, row.model, row.of_rival) for row in newest.compared] == [
        ("Log MAE", "median of five", 0.92, 1.13),
        ("Pinball loss at 90 %", "median of five", 0.26, 0.41),
        ("Log MAE", "champion of the time", 0.91, 0.9),
    ]
    assert newest.compared[0].change == pytest.approx(0.92 / 1.13 - 1)
    assert len(champion.compared) == 2
    assert "0.920" in page()


def test_the_skills_of_a_demand_model_stand_by_pool_and_horizon_with_gaps():
    _, demand = models_page(seen(), (), some_models()).models
    (version,) = demand.versions

    assert version.horizons == (30, 1440)
    assert [(row.pool, row.skills) for row in version.skills] == [("a100", (0.08, -0.29)), ("l4-shared", (0.01, None))]


def test_champion_and_challenger_are_marked_and_who_still_serves_after_a_promotion():
    shown = page()
    assert re.search(r"Version 4 <span class=\"chip good\">champion</span>", shown)
    assert re.search(r"Version 5 <span class=\"chip\">challenger</span>", shown)
    assert "still serves" not in shown

    before = FakePages(advice_now=replace(an_advice(), models={"durations": "3", "demand": "3"}))
    assert re.search(r"Version 3 <span class=\"chip warn\">still serves</span>", page(before))


def test_older_versions_are_counted():
    assert "2 more versions" in page()
    assert models_page(seen(), (), some_models()).models[0].older == 2


def test_without_a_version_the_page_says_who_answers_and_what_to_do():
    none = tuple(RegisteredModel(name=name, versions=(), in_all=0) for name in ("durations", "demand"))
    unserved = replace(an_advice(), models={"durations": None, "demand": None})

    shown = page(FakePages(models=none, advice_now=unserved))

    assert shown.count("No version is registered") == 2
    assert shown.count("A simple baseline answers: no version is served.") == 2
    assert "gsa train" in shown


def test_a_registry_out_of_reach_leaves_the_rest_of_the_page():
    shown = page(FakePages(models=None))

    assert "the model registry could not be reached" in shown
    assert "The registry cannot be read just now." in shown
    assert "Week by week" in shown
