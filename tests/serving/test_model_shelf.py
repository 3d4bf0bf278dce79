"""What is told of registered versions: what the registry holds, each card fetched once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from advisor.forecast.registry import DEMAND, DURATIONS, ModelCard, ModelRegistry, Registered
from serving.model_shelf import ModelShelf
from tests.builders import NOON

CARD = ModelCard(
    name=DURATIONS,
    made_at=NOON,
    data_digest="d1",
    rows=10,
    fitted_until=NOON,
    seed=1,
    versions={"lightgbm": "4"},
    measures={
        "model.log_mae": 0.9,
        "model.pinball_90": 0.2,
        "median_of_5.log_mae": 1.1,
        "median_of_5.pinball_90": 0.3,
        "champion.log_mae": 0.8,
        "model_since_champion.log_mae": 0.7,
    },
    reasons=("beats the baseline",),
)
SKILLS = {"skill.gpu.a100.60": 0.1, "skill.gpu.a100.5": -0.2, "skill.t4.60": 0.0}


class Counting(ModelRegistry):
    """A registry that notes which artefacts were fetched."""

    fetched: list[str]

    def load(self, name: str, version: str) -> Registered:
        self.fetched.append(f"{name} {version}")
        return super().load(name, version)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Counting:
    """Ten versions of the duration model, of which the first was promoted, and one of the demand model."""
    home = tmp_path_factory.mktemp("registry")
    opened = Counting.open(f"sqlite:///{home}/registry.db", (home / "artifacts").as_uri())
    opened.fetched = []
    for number in range(10):
        folder = _folder(home / f"d{number}")
        version = opened.register(folder, replace(CARD, rows=10 + number))
        if number == 0:
            opened.promote(DURATIONS, version)
    opened.register(_folder(home / "demand"), replace(CARD, name=DEMAND, measures=SKILLS))
    return opened


def _folder(path: Path) -> Path:
    path.mkdir()
    (path / "model.txt").write_text("trees", encoding="utf-8")
    return path


def test_the_newest_are_told_and_the_champion_however_old(registry):
    durations, demand = ModelShelf(registry).registered()

    assert [(one.version, one.aliases) for one in durations.versions][:2] == [("10", ("challenger",)), ("9", ())]
    assert [one.version for one in durations.versions][-1] == "1"
    assert durations.versions[-1].aliases == ("champion",)
    assert (len(durations.versions), durations.in_all) == (9, 10)
    assert durations.versions[0].rows == 19
    assert (demand.name, demand.in_all) == (DEMAND, 1)


def test_losses_are_told_beside_each_rival_the_floor_first_and_a_meeting_by_its_own_jobs(registry):
    (newest, *_), compared = ModelShelf(registry).registered()[0].versions, []
    compared = [(one.rival, one.measure, one.model, one.of_rival) for one in newest.compared]

    assert compared == [
        ("median_of_5", "log_mae", 0.9, 1.1),
        ("median_of_5", "pinball_90", 0.2, 0.3),
        ("champion", "log_mae", 0.7, 0.8),
    ]
    assert newest.skills == ()


def test_skills_are_told_by_pool_and_horizon_whatever_the_name_of_the_pool_holds(registry):
    (version,) = ModelShelf(registry).registered()[1].versions

    assert [(one.pool, one.minutes, one.skill) for one in version.skills] == [
        ("gpu.a100", 5, -0.2),
        ("gpu.a100", 60, 0.1),
        ("t4", 60, 0.0),
    ]
    assert version.compared == ()


def test_a_card_is_fetched_once_and_aliases_are_read_each_time(registry):
    shelf = ModelShelf(registry)
    shelf.registered()
    registry.fetched.clear()
    registry.promote(DURATIONS, "9")
    try:
        shelf_again = shelf.registered()
    finally:
        registry.promote(DURATIONS, "1")

    assert {one.version: one.aliases for one in shelf_again[0].versions}["9"] == ("champion",)
    # Promoting itself looks the version up.
    assert set(registry.fetched) <= {"durations 9", "durations 1"}


def test_the_api_is_told_every_version_with_its_own_words(registry):
    summaries = ModelShelf(registry).summaries()

    assert [one.version for one in summaries if one.name == DURATIONS] == [str(n) for n in range(10, 0, -1)]
    assert summaries[-1].measures == SKILLS
