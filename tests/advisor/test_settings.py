from __future__ import annotations

from pathlib import Path

import pytest

from advisor.errors import Refused
from advisor.settings import load_settings


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "gsa.toml"


def test_the_environment_wins_over_the_file_and_the_file_over_the_defaults(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text('mode = "Observe"\n[prices]\nper_gpu_hour = 3.0\ncurrency = "EUR"\n', encoding="utf-8")
    monkeypatch.setenv("GSA_PRICES__PER_GPU_HOUR", "7.5")

    settings = load_settings(file)

    assert (settings.mode, settings.prices.per_gpu_hour, settings.prices.currency) == ("Observe", 7.5, "EUR")
    assert settings.guards.cool_down_minutes == 30


@pytest.mark.parametrize(
    "text,field",
    [
        ("[prices]\nper_gpu_hour = -3", "prices.per_gpu_hour"),
        ("[prices]\nper_gpu_year = 3", "prices.per_gpu_year"),
        ("[prices]\nper_gpu_hour = inf", "prices.per_gpu_hour"),
        ('[storage]\nhome = "what?"', "storage.home"),
        ('[storage]\nhome = ""', "storage.home"),
        ("[weather]\nrain = 1", "weather"),
        ('mode = "Sometimes"', "mode"),
        ('[demand]\ntimezone = "Mars/Olympus"', "demand.timezone"),
        ("[demand]\nhorizons_minutes = [30, 10]", "demand.horizons_minutes"),
    ],
)
def test_a_wrong_setting_is_refused_by_its_full_name(file: Path, text: str, field: str) -> None:
    file.write_text(text, encoding="utf-8")

    with pytest.raises(Refused) as refused:
        load_settings(file)

    assert refused.value.field == field
    assert "Input should" not in refused.value.limit
    assert "inputs" not in refused.value.limit


def test_a_file_that_is_missing_or_no_toml_is_refused(file: Path) -> None:
    with pytest.raises(Refused, match="cannot be read"):
        load_settings(file)
    file.write_text("= 3", encoding="utf-8")
    with pytest.raises(Refused, match="not TOML"):
        load_settings(file)


def test_everything_local_lies_under_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GSA_STORAGE__HOME", str(tmp_path))

    storage = load_settings().storage

    assert storage.history == f"sqlite:///{tmp_path}/history.db"
    assert storage.tracking == f"sqlite:///{tmp_path}/registry.db"
    assert storage.artifact_root == f"file://{tmp_path}/artifacts"
    assert storage.snapshot_folder == tmp_path / "snapshots"
