"""Every field of a page is documented, shown by its template, and answered as JSON."""

from __future__ import annotations

import dataclasses
import json

import pytest

from dashboards.assets import Assets
from dashboards.fields import explanations
from dashboards.pages import (
    JobPage,
    JobsPage,
    ModelsPage,
    OverviewPage,
    PoolPage,
    jobs_page,
    models_page,
    overview_page,
)
from dashboards.render import Renderer, as_json
from tests.dashboards.recording import recorded
from tests.dashboards.worlds import a_job_page, a_pool_page, of_two_sources, seen, stale, unread
from tests.serving.fake_service import FakePages

JOBS = FakePages().jobs(None, 100)
PAGES = {
    "overview.html": (OverviewPage, [overview_page(world) for world in (seen(), stale(), unread())]),
    "pool.html": (PoolPage, [a_pool_page(0), a_pool_page(1)]),
    "jobs.html": (JobsPage, [jobs_page(of_two_sources(), JOBS, "train", 100), jobs_page(seen(), (), "", 100)]),
    "models.html": (
        ModelsPage,
        [models_page(seen(), FakePages().kept, FakePages().models), models_page(unread(), None, None)],
    ),
    "job.html": (JobPage, [a_job_page(view.job.id) for view in JOBS]),
}


@pytest.mark.parametrize("template", PAGES)
def test_every_field_of_a_page_is_shown_by_its_template(template):
    kind, contexts = PAGES[template]
    read: set[tuple[str, str]] = set()
    renderer = Renderer(Assets())

    for context in contexts:
        renderer.page(template, recorded(context, read), kind)

    declared = {(name, field) for name, texts in explanations(kind).items() for field in texts}
    assert declared - read == set()


@pytest.mark.parametrize("kind", [OverviewPage, PoolPage, JobsPage, ModelsPage, JobPage])
def test_every_field_of_a_page_is_explained_in_a_sentence(kind):
    for name, texts in explanations(kind).items():
        for field, text in texts.items():
            assert text[:1].isupper() or text.startswith(("consolidateAfter", "1 -")), f"{name}.{field}: {text!r}"
            assert text.endswith("."), f"{name}.{field}: {text!r}"


@pytest.mark.parametrize("template", PAGES)
def test_the_same_context_answers_as_json(template):
    _, contexts = PAGES[template]

    for context in contexts:
        document = json.loads(as_json(context))
        assert list(document) == [field.name for field in dataclasses.fields(context)]


@pytest.mark.parametrize("template", PAGES)
def test_the_explanations_stand_on_the_page(template):
    kind, contexts = PAGES[template]

    page = Renderer(Assets()).page(template, contexts[0], kind)

    for text in explanations(kind)[kind.__name__].values():
        assert text.replace("&", "&amp;").replace("'", "&#39;") in page
