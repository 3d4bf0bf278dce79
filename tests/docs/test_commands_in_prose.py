"""What the pages tell people to type exists: make targets and variables, commands and their options."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess

import pytest

from advisor.telemetry.synthetic import synthetic_workload
from docs.generators.commands import commands
from serving.cli.root import COMMANDS
from tests.builders import NOON
from tests.docs.markdown_pages import ROOT, blocks, inline_codes, markdown_files

PAGES = markdown_files()
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def _typed(text: str) -> list[str]:
    """Every line that a page offers for typing."""
    lines = list(inline_codes(text))
    for block in blocks(text):
        if block.info in {"sh", "console"}:
            lines += block.body.replace("\\\n", " ").splitlines()
    return [line.split(" #")[0].strip() for line in lines]


def _targets(line: str) -> list[str]:
    return [word for word in line.split()[1:] if re.fullmatch(r"[a-z][a-z-]*", word)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_make_targets_and_variables_exist(page):
    for line in _typed(page.read_text(encoding="utf-8")):
        if line.startswith("make "):
            for target in _targets(line):
                assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE), line
            for variable in re.findall(r"\b([A-Z]+)=", line):
                assert re.search(rf"^{variable} \?=", MAKEFILE, re.MULTILINE), line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_and_their_options_exist(page):
    for line in _typed(page.read_text(encoding="utf-8")):
        if re.match(r"(gsa|gpu-slice-advisor) [a-z-]", line):
            _check(line)


def _check(line: str) -> None:
    words = shlex.split(re.split(r" [|><&]", line)[0])[1:]
    if words[0].startswith("-"):
        return
    assert words[0] in COMMANDS, f"{line}: there is no such command"
    known = [command for command in commands() if list(command.words) == words[: len(command.words)]]
    if not known:
        # A group named alone, such as `gsa models`, is no command but may be spoken of.
        assert any(command.words[: len(words)] == tuple(words) for command in commands()), line
        return
    options = {word.split("=")[0] for word in words if word.startswith("-")}
    assert options <= known[0].option_names, line


@pytest.mark.parametrize(
    "given, passed",
    [
        ((), ""),
        (("DATA=x.csv", "FORMAT=philly"), " --data x.csv --format philly"),
        (("DATA=x.csv", "MAPPING=m.toml"), " --data x.csv --format table --mapping m.toml"),
    ],
)
def test_make_run_echoes_one_whole_line(given, passed):
    # As a person types it, not as the make that may be running these tests passes itself on.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "-n", "run", *given]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == f".venv/bin/gsa demo --serve --host 127.0.0.1 --port 8080{passed}"


def test_the_readme_asks_about_work_that_the_synthetic_workload_knows():
    """Or else whoever tries it is answered from no history at all."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    asked = [json.loads(found) for found in re.findall(r"-d '(.*)'", text)]
    (job,) = [job for document in asked for job in document["jobs"]]

    known = [one for one in synthetic_workload(1, NOON).jobs if (one.user, one.name) == (job["user"], job["name"])]

    assert len(known) > 20
    assert {one.gpus for one in known} == {float(job["gpus"])}


def test_the_readme_calls_the_command_in_one_way_and_says_once_how_it_is_found():
    typed = [
        line for block in blocks((ROOT / "README.md").read_text(encoding="utf-8")) for line in block.body.splitlines()
    ]
    found = [place for place, line in enumerate(typed) if ".venv/bin" in line]
    assert [typed[place] for place in found] == ['export PATH="$PWD/.venv/bin:$PATH"']
    assert all(place > found[0] for place, line in enumerate(typed) if re.search(r"\bgsa ", line))


def test_the_readme_begins_with_both_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    typed = [block.body.splitlines()[0] for block in blocks(text) if block.info == "sh"]
    assert "make run" in typed
    assert "make test" in typed
