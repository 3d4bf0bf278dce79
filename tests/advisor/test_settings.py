from __future__ import annotations

import re
from pathlib import Path

import pytest

from advisor.errors import Refused
from advisor.settings import Settings, load_settings


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
        ('[dcgm]\nmemory = "percent"', "dcgm.memory"),
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


@pytest.mark.parametrize(
    "name, meant",
    [
        ("GSA_PRICE__X", None),
        ("GSA_PRICE__PER_GPU_HOUR", "GSA_PRICES__PER_GPU_HOUR"),
        ("GSA_PRICES__PER_GPU_YEAR", "GSA_PRICES__PER_GPU_HOUR"),
        ("GSA_STORAGE_HOME", "GSA_STORAGE__HOME"),
        ("GSA_HOME", None),
        ("GSA_PORT", None),
        ("gsa_modes", "GSA_MODE"),
    ],
)
def test_a_variable_that_sets_nothing_is_refused_by_its_name(
    name: str, meant: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "8081")

    with pytest.raises(Refused, match="no setting has this name") as refused:
        load_settings()

    assert refused.value.value == name
    assert refused.value.remedy == (f"Did you mean {meant}?" if meant else _NO_IDEA)


_NO_IDEA = "Unset it; the reference of settings lists every name."


def test_every_documented_variable_and_what_others_set_is_let_through(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `\w+` \| `(GSA_\w+)` \| .*? \| `?(.*?)`? \|", page, flags=re.MULTILINE)
    assert len(rows) > 30
    for name, default in rows:
        if default != "unset":
            monkeypatch.setenv(name, default)
    others = {
        "GSA_CONFIG": "gsa.toml",
        "GSA_BENCH_HOME": "bench",
        "GSA_BENCH_TRACE": "trace.csv",
        "GSA_PORT": "tcp://10.0.0.7:8080",
        "GSA_PORT_8080_TCP": "tcp://10.0.0.7:8080",
        "GSA_PORT_8080_TCP_ADDR": "10.0.0.7",
        "GSA_WEB_SERVICE_HOST": "10.0.0.7",
        "GSA_SERVICE_PORT_HTTP": "8080",
    }
    for name, value in others.items():
        monkeypatch.setenv(name, value)

    assert load_settings() == Settings()


def test_a_list_that_is_no_json_is_refused_with_how_to_write_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GSA_DEMAND__HORIZONS_MINUTES", "5,15")

    with pytest.raises(Refused, match=r"demand: .* as JSON\. Write a list as \[5, 15\]"):
        load_settings()


def test_a_secret_is_never_printed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GSA_PROMETHEUS__BEARER_TOKEN", "s3cret")
    monkeypatch.setenv("GSA_PROMETHEUS__HEADERS", '{"X-Key": "s3cret"}')
    settings = load_settings()

    assert settings.prometheus.bearer_token is not None
    assert settings.prometheus.bearer_token.get_secret_value() == "s3cret"
    for shown in (repr(settings), str(settings), settings.model_dump_json(), repr(settings.prometheus)):
        assert "s3cret" not in shown


@pytest.mark.parametrize(
    "text",
    [
        'url = "http://ada:s3cret@host:9090"',
        'url = "http://s3cret@host:9090"',
        'url = "http://host:9090/?key=s3cret"',
        'url = "s3cret"',
        'url = "http://host:s3cret"',
        "bearer_token = ['s3cret']",
        'pasword = "s3cret"',
        'username = "ada"\npassword = "s3cret"\npassword_file = "x"',
        'password = "s3cret"',
        'username = "ada"\npassword = "s3cret"\nbearer_token = "s3cret"',
        'username = "ada"\nbearer_token = "s3cret"',
        'headers = { "X-Key" = "s3cret\\n" }',
        'headers = { "X Key" = "s3cret" }',
        'headers = "s3cret"',
    ],
)
def test_a_refused_secret_is_not_repeated(file: Path, text: str) -> None:
    file.write_text(f"[prometheus]\n{text}\n", encoding="utf-8")

    with pytest.raises(Refused) as refused:
        load_settings(file)

    assert refused.value.field.startswith("prometheus")
    assert "s3cret" not in f"{refused.value}{refused.value.__cause__}"


@pytest.mark.parametrize("url", ["http://host", "https://host:9090/select/0/prometheus/", "http://[::1]:9090"])
def test_an_address_may_have_a_port_and_a_path(file: Path, url: str) -> None:
    file.write_text(f'[prometheus]\nurl = "{url}"\n', encoding="utf-8")

    assert load_settings(file).prometheus.url == url
