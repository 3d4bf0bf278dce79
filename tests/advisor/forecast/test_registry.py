"""The registry keeps whole models, exactly one champion, and says so when it cannot be reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.errors import Refused, Transient
from advisor.forecast.registry import DURATIONS, ModelCard, ModelRegistry
from tests.builders import NOON

CARD = ModelCard(
    name=DURATIONS,
    made_at=NOON,
    data_digest="d1",
    rows=10,
    fitted_until=NOON,
    seed=1,
    versions={"lightgbm": "4"},
    measures={"model_log_mae": 0.9, "baseline_log_mae": 1.1},
    reasons=("beats the baseline",),
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("registry")


@pytest.fixture
def registry(home: Path, request: pytest.FixtureRequest) -> ModelRegistry:
    # Making MLflow's tables takes seconds, so the module shares one database; each test demotes first.
    opened = ModelRegistry.open(f"sqlite:///{home}/registry.db", (home / "artifacts").as_uri())
    opened.demote(DURATIONS)
    return opened


def an_artifact(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "model.txt").write_text(text, encoding="utf-8")
    return folder


def test_a_registered_version_comes_back_with_its_files_and_card(registry: ModelRegistry, tmp_path: Path) -> None:
    version = registry.register(an_artifact(tmp_path / "m", "trees"), CARD)

    loaded = registry.load(DURATIONS, version)

    assert (loaded.folder / "model.txt").read_text(encoding="utf-8") == "trees"
    assert loaded.card == CARD
    assert loaded.aliases == ("challenger",)


def test_promotion_moves_the_champion_and_keeps_exactly_one(registry: ModelRegistry, tmp_path: Path) -> None:
    first = registry.register(an_artifact(tmp_path / "a", "a"), CARD)
    second = registry.register(an_artifact(tmp_path / "b", "b"), CARD)

    registry.promote(DURATIONS, first)
    registry.promote(DURATIONS, second)

    champion = registry.champion(DURATIONS)
    assert champion is not None
    assert champion.version == second
    assert [v.version for v in registry.versions(DURATIONS) if "champion" in v.aliases] == [second]
    assert registry.challenger(DURATIONS) is None


def test_what_a_killed_registration_left_is_removed_and_nothing_else(
    registry: ModelRegistry, tmp_path: Path, home: Path
) -> None:
    version = registry.register(an_artifact(tmp_path / "whole", "trees"), CARD)
    before = set((home / "artifacts").rglob("*"))
    run = registry._client.create_run(registry._experiment())
    registry._client.log_artifacts(run.info.run_id, str(an_artifact(tmp_path / "half", "tr")), DURATIONS)

    assert registry.discard_unfinished() == 1

    assert {path for path in (home / "artifacts").rglob("*") if path.is_file()} <= before
    assert (registry.load(DURATIONS, version).folder / "model.txt").read_text(encoding="utf-8") == "trees"
    assert registry.discard_unfinished() == 0


def test_without_promotion_there_is_no_champion(registry: ModelRegistry, tmp_path: Path) -> None:
    registry.register(an_artifact(tmp_path / "m", "x"), CARD)

    assert registry.champion(DURATIONS) is None
    assert registry.champion("demand") is None


def test_an_unknown_version_is_refused_with_the_remedy(registry: ModelRegistry) -> None:
    with pytest.raises(Refused, match=r"version: '999' is refused.*gsa models list"):
        registry.promote(DURATIONS, "999")


def test_a_registry_that_cannot_be_reached_is_transient(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder", encoding="utf-8")

    with pytest.raises(Transient, match="model registry"):
        ModelRegistry.open("sqlite:////proc/none/registry.db", blocked.as_uri()).champion(DURATIONS)


@pytest.mark.parametrize("card", ["{}", "[]", '{"made_at": 3}', "no json"])
def test_a_broken_card_is_refused_by_its_path_and_hides_no_other_version(
    registry: ModelRegistry, tmp_path: Path, card: str
) -> None:
    good = registry.register(an_artifact(tmp_path / "good", "x"), CARD)
    broken = registry.register(an_artifact(tmp_path / "broken", "x"), CARD)
    registry.promote(DURATIONS, broken)
    (registry.load(DURATIONS, broken).folder / "card.json").write_text(card, encoding="utf-8")

    with pytest.raises(Refused, match="model card"):
        registry.champion(DURATIONS)

    listed = [version.version for version in registry.versions(DURATIONS)]
    assert good in listed
    assert broken not in listed
