"""The pages about telemetry name what is there: costs as the doctor tells them, modules and tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from advisor.domain.ingest import LeftOut, Rejection
from advisor.settings import DcgmSettings
from advisor.telemetry.dcgm.names import QUANTITIES
from advisor.telemetry.prometheus.kube_queries import (
    JOB_READINGS,
    NODE_LABELS,
    NODE_READINGS,
    POD_READINGS,
    label_column,
    label_reading,
)
from tests.docs.markdown_pages import DOCS, ROOT, inline_codes

PROMETHEUS = (DOCS / "reference" / "prometheus.md").read_text(encoding="utf-8")
CASES = (DOCS / "reference" / "telemetry-cases.md").read_text(encoding="utf-8")
SITUATIONS = 35
READINGS = (*POD_READINGS, *NODE_READINGS, *JOB_READINGS, label_reading(()))


def _rows(page: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("| \n").split(" | ")] for line in page.splitlines() if line[:1] == "|"]


def test_every_metric_whose_absence_costs_something_is_listed_with_what_the_doctor_says():
    told = {row[0].strip("`"): row[1] for row in _rows(PROMETHEUS) if row[0].startswith("`kube_")}
    assert told == {reading.metric: reading.costs for reading in READINGS if reading.costs is not None}


@pytest.mark.parametrize("page", ["prometheus", "kubernetes"])
def test_each_reason_says_what_it_counts(page: str):
    text = (DOCS / "reference" / f"{page}.md").read_text(encoding="utf-8").split("## What is left out\n", 1)[1]
    told = {code: row[1] for row in _rows(text.split("\n## ")[0]) for code in inline_codes(row[0])}
    assert len(told) > 5
    assert told == {code: Rejection(reason=code, count=1, example="").of for code in told}


def test_a_row_of_a_file_counts_as_a_job():
    text = (DOCS / "reference" / "mappings.md").read_text(encoding="utf-8")
    rows = _rows(text.split("## Reasons for leaving a row out\n", 1)[1].split("\n## ")[0])
    told = [code for row in rows for code in inline_codes(row[0])]
    assert "unreadable_row" in told
    assert {Rejection(reason=code, count=1, example="").of for code in told} == {LeftOut.JOBS}


def test_the_allow_list_has_every_label_of_nodes_that_is_read():
    found = re.search(r"nodes=\[(.*?)\]", PROMETHEUS)
    assert found is not None
    assert {label_column(label) for label in found[1].split(",")} == set(NODE_LABELS)


def test_the_metrics_of_the_exporter_that_are_named_are_read():
    named = {code for code in inline_codes(PROMETHEUS) if code.startswith("DCGM_FI_")}
    assert len(named) > 6
    assert named <= set(QUANTITIES)


def test_every_pin_is_shown():
    shown = PROMETHEUS.split("[dcgm]\n", 1)[1].split("```", 1)[0]
    assert set(re.findall(r"^(\w+) =", shown, flags=re.MULTILINE)) == set(DcgmSettings.model_fields)


def test_every_module_and_test_of_the_cases_exists():
    codes = [code for row in _rows(CASES) for code in inline_codes(" | ".join(row))]
    modules = {code for code in codes if code.startswith("advisor/")}
    tests = {code for code in codes if code.startswith("test_")}
    written = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert len(modules) > 15
    assert [module for module in modules if not Path(ROOT / module).is_file()] == []
    assert [test for test in tests if f"\ndef {test}(" not in written] == []


def test_every_case_has_a_test_or_says_that_nothing_is_done():
    situations = _rows(CASES)[2:]
    assert len(situations) == SITUATIONS
    for situation in situations:
        assert len(situation) == 4, situation
        assert "`test_" in situation[3] or (situation[3] == "—" and situation[1].startswith("Does not apply"))
