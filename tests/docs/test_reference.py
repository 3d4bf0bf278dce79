"""The reference says what the code says, and leaves nothing out."""

from __future__ import annotations

from typing import cast

import pytest
from prometheus_client.parser import text_string_to_metric_families

import advisor.errors
from advisor.errors import Transient
from advisor.settings import ServerSettings, Settings
from dashboards.data import DashboardData
from docs.generators.commands import commands
from docs.generators.metrics import METRICS
from docs.generators.pages import PAGES, REFERENCE, stale, write
from serving.api.service import AdvisorService, Readiness
from serving.app import create_app
from serving.metrics import Metrics
from tests.docs.markdown_pages import inline_codes


def _page(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_says_what_the_code_says(name):
    assert _page(name) == PAGES[name](), "run: python -m docs.generators"


def test_a_page_that_is_out_of_date_is_noticed_and_mended(tmp_path, monkeypatch):
    monkeypatch.setattr("docs.generators.pages.REFERENCE", tmp_path)
    monkeypatch.setattr("docs.generators.pages.PAGES", {"one.md": lambda: "now\n", "two.md": lambda: "two\n"})
    (tmp_path / "one.md").write_text("before\n", encoding="utf-8")
    (tmp_path / "two.md").write_text("two\n", encoding="utf-8")
    assert stale() == ["one.md"]
    assert write() == ["one.md"]
    assert stale() == []


def test_every_command_is_documented():
    documented = set(inline_codes(_page("commands.md")))
    assert {" ".join(("gsa", *command.words)) for command in commands()} <= documented


def test_every_setting_is_documented():
    documented = set(inline_codes(_page("settings.md")))
    variables = {"GSA_MODE"}
    for group, field in Settings.model_fields.items():
        if hasattr(field.annotation, "model_fields"):
            variables |= {f"GSA_{group}__{key}".upper() for key in field.annotation.model_fields}
    assert variables <= documented


def test_every_setting_has_a_meaning():
    pieces = [f.annotation for f in Settings.model_fields.values() if hasattr(f.annotation, "model_fields")]
    bare = [key for piece in pieces for key, field in piece.model_fields.items() if not field.description]
    assert bare == []


def test_every_error_is_documented():
    documented = set(inline_codes(_page("errors.md")))
    errors = {name for name in advisor.errors.__all__ if isinstance(getattr(advisor.errors, name), type)}
    assert errors - {"AdvisorError"} <= documented


class _KnowsNothing:
    """A service and its pages before the first cycle."""

    def readiness(self) -> Readiness:
        return Readiness(ready=False)

    def synthetic(self) -> bool:
        return False

    def advice(self):
        raise Transient("no cycle has run yet")

    history = advice


def test_every_route_for_machines_is_documented():
    silent = _KnowsNothing()
    app = create_app(cast("AdvisorService", silent), cast("DashboardData", silent), ServerSettings())
    documented = set(inline_codes(_page("api.md")))
    routes = {f"{method.upper()} {path}" for path, methods in app.openapi()["paths"].items() for method in methods}
    assert routes <= documented


def test_the_labels_of_request_metrics_are_as_documented():
    silent = _KnowsNothing()
    metrics = Metrics(cast("AdvisorService", silent), cast("DashboardData", silent))
    metrics.answered("/healthz", "GET", 200, 0.001)
    documented = {family.name: set(family.labels) for family in METRICS}
    seen = {}
    for family in text_string_to_metric_families(metrics.exposition().decode()):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        if not name.endswith("_created"):
            seen[name] = {label for sample in family.samples for label in sample.labels} - {"le"}
    assert {"gsa_http_requests_total", "gsa_http_request_seconds"} <= set(seen)
    assert seen == {name: documented[name] for name in seen}
