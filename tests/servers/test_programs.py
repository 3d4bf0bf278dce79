from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.servers.programs.build import CLUSTER, PROGRAMS, build


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_programs_are_kept_in_the_users_cache_each_by_its_version(cache):
    paths = {program.path for program in PROGRAMS.values()}
    assert len(paths) == len(PROGRAMS) >= len(CLUSTER)
    assert all(path.is_relative_to(cache) for path in paths)


def test_one_that_is_there_is_not_built_again(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    path = PROGRAMS["etcd"].path
    path.parent.mkdir(parents=True)
    path.touch()
    assert build(PROGRAMS["etcd"]) == path


@pytest.mark.parametrize("told", [None, "go version go1.19.8 linux/amd64"])
def test_without_a_go_of_use_it_is_said_what_is_missing(told, tmp_path, monkeypatch):
    if told is not None:
        (tmp_path / "go").write_text(f"#!/bin/sh\necho {told}\n")
        (tmp_path / "go").chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path), "/nowhere"]))
    with pytest.raises(SystemExit, match=f"Go 1.21 or newer; here is {told or 'none'}"):
        build(PROGRAMS["etcd"])
