"""The root command: what it lists, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

from advisor.errors import AdvisorError, Defect, Refused, Stale, Transient
from serving.cli import root


def gsa(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from serving.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_help_lists_every_command_without_importing_it() -> None:
    result = gsa("--help")

    assert result.returncode == 0
    for name, entry in root.COMMANDS.items():
        assert name in result.stdout
        assert entry.help.split(",")[0].split(".")[0] in result.stdout


def test_what_any_command_logs_never_reaches_the_document_on_standard_output() -> None:
    lines = (
        "import structlog",
        "from serving.cli import root",
        "root.app = lambda **_: structlog.get_logger().warning('version_passed_over')",
        "root.main()",
    )
    command = [sys.executable, "-c", "\n".join(lines)]

    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert result.stdout == ""
    assert json.loads(result.stderr)["event"] == "version_passed_over"


@pytest.mark.parametrize("arguments", [("nope",), ("--nope",), ("models", "show", "durations")])
def test_wrong_usage_ends_with_2(arguments: tuple[str, ...]) -> None:
    result = gsa(*arguments)

    assert result.returncode == 2
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("typed, meant", [("advize", "advise"), ("modles", "models")])
def test_a_misspelled_command_is_answered_with_the_nearest(typed: str, meant: str) -> None:
    assert f"Did you mean '{meant}'?" in CliRunner().invoke(root.app, [typed]).output


def test_a_command_like_no_other_is_answered_without_a_guess() -> None:
    output = CliRunner().invoke(root.app, ["zzz"]).output

    assert "No such command 'zzz'" in output
    assert "Did you mean" not in output


def test_the_version_is_told() -> None:
    result = CliRunner().invoke(root.app, ["--version"])

    assert (result.exit_code, result.stdout.split()) == (0, ["gpu-slice-advisor", version("gpu-slice-advisor")])


def test_a_new_registry_says_what_to_do_and_its_library_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GSA_STORAGE__HOME", str(tmp_path / "home"))

    result = gsa("models", "list")

    assert result.stderr == ""
    assert "gsa train" in result.stdout
    assert "┃" not in result.stdout


def test_a_form_of_output_is_taken_in_capitals_too(tmp_path: Path) -> None:
    home = {"GSA_STORAGE__HOME": str(tmp_path)}
    result = CliRunner().invoke(root.app, ["history", "status", "--output", "JSON"], env=home)

    assert json.loads(result.stdout)["jobs"] == 0


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("evaluate", "durations", "--split", "nan"), "'nan' was given"),
        (("train", "--split", "0.99"), "'0.99' was given"),
        (("serve", "--port", "99999"), "'99999' was given"),
        (("advise", "--node-gpus", "many"), "'many' was given"),
        (("advise", "--output", "xml"), "'xml' is not one of"),
    ],
)
def test_an_option_that_is_refused_is_named_with_its_value(arguments: tuple[str, ...], said: str) -> None:
    result = CliRunner().invoke(root.app, arguments)

    assert result.exit_code == 2
    message = " ".join(result.output.replace("│", "").split())
    assert arguments[-2] in message
    assert said in message
    assert message.count(arguments[-1]) == 1


@pytest.mark.parametrize(
    "error,code",
    [
        (Refused("gpus", 0, "it must be above 0", "Give one."), 3),
        (Transient("away"), 4),
        (Stale("old"), 4),
        (Defect("broken"), 1),
    ],
)
def test_each_error_of_ours_has_its_exit_code_and_one_sentence(
    error: AdvisorError, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(root, "app", fail)

    with pytest.raises(SystemExit) as ended:
        root.main()

    assert ended.value.code == code
    assert capsys.readouterr().err == f"{error}\n"


def test_a_defect_is_told_in_one_sentence_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> None:
        raise KeyError("surprise")

    monkeypatch.setattr(root, "app", fail)

    with pytest.raises(SystemExit) as ended:
        root.main()

    assert ended.value.code == 1
    assert "--debug" in capsys.readouterr().err
