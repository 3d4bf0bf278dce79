"""The tutorial runs: every shell block, in order, in an empty folder, with the installed command."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from serving.cli.root import app
from tests.docs.json_shapes import differences, documented
from tests.docs.markdown_pages import DOCS, Block, blocks

TEXT = (DOCS / "tutorial.md").read_text(encoding="utf-8")
_LINES = str.maketrans("┃│━─┏┓┗┛┡┩┌┐└┘╇┳┻┴┬┼", "                    ")


class Step(NamedTuple):
    """One shell block and what the tutorial shows of its output, if it does."""

    commands: str
    shown: list[str]


def _steps() -> list[Step]:
    steps: list[Step] = []
    before: Block | None = None
    for block in blocks(TEXT):
        if block.info == "sh":
            steps.append(Step(block.body, []))
        elif block.info == "text" and before is not None and before.info == "sh":
            steps[-1].shown.extend(line for line in block.body.splitlines() if line.strip() not in {"", "..."})
        before = block
    return steps


def _environment(home: Path) -> dict[str, str]:
    """A terminal of a new user: the installed command, no settings, a wide window."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GSA_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    return {**kept, "PATH": path, "HOME": str(home), "COLUMNS": "160", "NO_COLOR": "1"}


def _run(commands: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=folder,
        env=_environment(folder),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def _words(text: str) -> str:
    return " ".join(text.translate(_LINES).split())


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """The folder of somebody who has typed everything."""
    folder = tmp_path_factory.mktemp("tutorial")
    for step in _steps():
        done = _run(step.commands, folder)
        assert done.returncode == 0, f"{step.commands}\n{done.stdout}\n{done.stderr}"
        printed = _words(done.stdout)
        for line in step.shown:
            assert _words(line) in printed, f"{line!r} is not printed by {step.commands}\n{done.stdout}"
    return folder


def test_every_block_runs_and_prints_what_the_tutorial_shows(finished):
    assert (finished / ".gsa").is_dir()


@pytest.fixture
def new_user(finished, monkeypatch) -> Path:
    """The finished folder as the place to be, and no setting of whoever runs the tests."""
    _forget_settings(monkeypatch)
    monkeypatch.chdir(finished)
    return finished


def _forget_settings(monkeypatch) -> None:
    for name in [name for name in os.environ if name.startswith("GSA_")]:
        monkeypatch.delenv(name)


def test_the_advice_is_as_the_json_page_describes_it(finished):
    advice = json.loads((finished / "advice.json").read_text(encoding="utf-8"))
    assert differences(documented("gsa advise"), advice) == []


@pytest.mark.usefixtures("new_user")
@pytest.mark.parametrize(
    "words",
    [
        "ingest trace jobs.csv --format table --mapping mapping.toml",
        "history status",
        "evaluate durations",
        "train",
        "models list",
        "models show demand 1",
        "models promote durations 1",
    ],
)
def test_documents_are_as_the_json_page_describes_them(words):
    done = CliRunner().invoke(app, [*words.split(), "--output", "json"])
    assert done.exit_code == 0, done.stderr
    assert differences(documented(f"gsa {' '.join(words.split()[:2])}"), json.loads(done.stdout)) == []


def test_the_tutorial_tells_apart_what_runs_and_what_does_not():
    untested = [block for block in blocks(TEXT) if block.info not in {"sh", "text", "console", "toml"}]
    assert untested == []
    assert all(re.search(r"gsa serve|make |export PATH|curl ", b.body) for b in blocks(TEXT) if b.info == "console")


def test_a_demand_evaluation_is_as_the_json_page_describes_it(tmp_path, monkeypatch):
    _forget_settings(monkeypatch)
    rows = [f"{300 * at},{8 * (at // 12 % 3)},0" for at in range(12 * 24 * 4)]
    (tmp_path / "demand.csv").write_text("\n".join(["seconds,running,pending", *rows]), encoding="utf-8")
    mapping = '[series]\ntime = "seconds"\nkind = "unix"\nrunning = "running"\npending = "pending"\n'
    (tmp_path / "series.toml").write_text(mapping, encoding="utf-8")
    files = ["--series", str(tmp_path / "demand.csv"), "--mapping", str(tmp_path / "series.toml")]
    done = CliRunner().invoke(app, ["evaluate", "demand", *files, "--horizons", "10", "--output", "json"])
    assert done.exit_code == 0, done.stderr
    assert differences(documented("gsa evaluate demand"), json.loads(done.stdout)) == []
