"""``gsa advise``: how it ends, and what it prints however it ends."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from advisor.domain.plans import Advice, PoolWithoutAdvice
from serving.cli import root
from serving.live import LiveAdvisor
from tests.serving.fake_values import a_pool, an_advice

WHOLE = an_advice(a_pool("a100"))
WANTING = replace(WHOLE, without_advice=(PoolWithoutAdvice("h100", "its samples are of another step. Fit it anew."),))


@pytest.fixture
def advised(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    def run(advice: Advice, *arguments: str):
        monkeypatch.setattr(LiveAdvisor, "refresh", lambda _: 60.0)
        monkeypatch.setattr(LiveAdvisor, "advice", lambda _: advice)
        home = {"GSA_STORAGE__HOME": str(tmp_path), "COLUMNS": "100"}
        return CliRunner().invoke(root.app, ["advise", *arguments], env=home)

    return run


def test_a_pool_without_advice_is_named_the_others_are_printed_and_the_command_leaves_with_4(advised) -> None:
    table, document = advised(WANTING), advised(WANTING, "--output", "json")

    assert (table.exit_code, document.exit_code) == (4, 4)
    assert "no advice for pool h100: its samples are of another step. Fit it anew." in table.stdout
    assert "a100" in table.stdout
    whole = json.loads(document.stdout)
    assert [pool["pool"] for pool in whole["pools"]] == ["a100"]
    assert [one["pool"] for one in whole["without_advice"]] == ["h100"]


def test_advice_on_every_pool_leaves_with_0(advised) -> None:
    assert advised(WHOLE).exit_code == 0
