"""Locks of a home: who may hold it beside whom, and what the other is told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from advisor.errors import Refused, Transient
from serving.cli.alone import home_alone, home_shared, training_alone

MINE = f"process {os.getpid()}"
GONE = 2**22 + 1
"""A number that no process has here."""


def refusal_of_a_demo(home: Path) -> str:
    with pytest.raises(Transient) as told, home_alone(home, "gsa demo"):
        pass
    return str(told.value)


def test_a_home_is_served_by_several_and_filled_by_none_meanwhile(tmp_path: Path) -> None:
    with home_shared(tmp_path, "gsa serve"), home_shared(tmp_path, "gsa serve"):
        told = refusal_of_a_demo(tmp_path)

    assert f"{tmp_path} is in use by gsa serve ({MINE})" in told
    with home_alone(tmp_path, "gsa demo"):
        pass


def test_a_home_that_is_being_filled_is_neither_served_nor_filled_again_until_it_is_shared(tmp_path: Path) -> None:
    with home_alone(tmp_path, "gsa demo") as hold:
        for other in (home_shared, home_alone):
            with pytest.raises(Transient, match=rf"by gsa demo \({MINE}\)"), other(tmp_path, "another"):
                pass
        hold.share()
        with home_shared(tmp_path, "gsa serve"):
            pass
        with pytest.raises(Transient, match="gsa demo"), home_alone(tmp_path, "gsa demo"):
            pass


def test_a_training_and_a_server_do_not_hinder_each_other(tmp_path: Path) -> None:
    with home_shared(tmp_path, "gsa serve"), training_alone(tmp_path), home_shared(tmp_path, "gsa serve"):
        pass


def test_a_second_training_is_told_of_the_first(tmp_path: Path) -> None:
    told = pytest.raises(Transient, match=rf"another training runs on .* \({MINE}\)")
    with training_alone(tmp_path), told, training_alone(tmp_path):
        pass


def test_who_has_ended_without_a_word_is_not_named(tmp_path: Path) -> None:
    (tmp_path / "home.lock").write_text(f"{GONE} gsa serve\n", encoding="utf-8")

    with home_shared(tmp_path, "gsa serve"):
        told = refusal_of_a_demo(tmp_path)

    assert str(GONE) not in told
    assert MINE in told


def test_a_home_that_can_be_no_folder_may_be_served_and_not_filled(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    home = tmp_path / "file" / "home"

    with home_shared(home, "gsa serve"):
        pass
    with pytest.raises(Refused, match="cannot be written"), home_alone(home, "gsa demo"):
        pass
