"""The house's own rules, executable: sizes, names, charters, no machine's paths, no package index in a lock."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("advisor", "training", "serving", "dashboards")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))

MOST_LINES = 400
MOST_BODY_LINES = 40
MOST_PARAMETERS = 6
NAMES_THAT_SAY_NOTHING = {"utils", "util", "helpers", "common", "misc", "manager", "tools"}


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    last = body[-1].end_lineno if body else None
    return 0 if last is None else last - body[0].lineno + 1


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return len([argument for argument in given if argument.arg not in {"self", "cls"}])


def test_no_file_outgrows_one_idea() -> None:
    long = {str(p.relative_to(ROOT)): n for p in MODULES if (n := len(p.read_text().splitlines())) > MOST_LINES}
    assert not long


def test_every_function_fits_on_a_screen() -> None:
    long = {
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}": lines
        for path in MODULES
        for node in _functions(path)
        if (lines := _body_lines(node)) > MOST_BODY_LINES
    }
    assert not long


def test_no_function_takes_more_than_six_parameters() -> None:
    # Commands are exempt: their parameters are the options people type, one each.
    wide = {
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}": count
        for path in MODULES
        if "cli" not in path.parts
        for node in _functions(path)
        if (count := _parameters(node)) > MOST_PARAMETERS
    }
    assert not wide


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert not [path for path in MODULES if path.stem in NAMES_THAT_SAY_NOTHING]


def test_every_package_has_a_charter() -> None:
    packages = {path.parent for path in MODULES}
    bare = []
    for package in sorted(packages):
        charter = package / "__init__.py"
        doc = ast.get_docstring(ast.parse(charter.read_text())) if charter.is_file() else None
        if not doc:
            bare.append(str(package.relative_to(ROOT)))
    assert not bare


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    found = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if found.returncode != 0:
        pytest.skip("not a git checkout, so what belongs to the project is not known")
    return [ROOT / name for name in found.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_nothing_names_a_machines_own_paths(tracked: list[Path]) -> None:
    machine = re.compile(rb"(?<![\w.])/(?:work|root|home/\w+)/")
    assert not [str(p.relative_to(ROOT)) for p in tracked if machine.search(p.read_bytes())]


def test_no_lock_names_an_index(tracked: list[Path]) -> None:
    locks = [path for path in tracked if path.suffix == ".lock"]
    assert locks
    assert not [p.name for p in locks if re.search(r"https?://|--(extra-)?index-url|--find-links", p.read_text())]
    assert not [p.name for p in tracked if p.name in {"uv.lock", "poetry.lock", "package-lock.json"}]


def test_every_locked_package_is_hashed() -> None:
    for lock in ROOT.glob("requirements*.lock"):
        pins = re.findall(r"^[a-z0-9][\w.-]*==.*$", lock.read_text(), flags=re.MULTILINE)
        assert pins
        assert all(pin.rstrip().endswith("\\") for pin in pins), lock.name
