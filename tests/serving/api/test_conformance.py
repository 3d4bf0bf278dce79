"""The whole API against its own OpenAPI document, with generated requests."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings

from tests.serving.http import an_app, running

schema = schemathesis.openapi.from_dict(an_app().openapi())


@pytest.fixture(scope="module")
def base():
    """A real server, so that requests pass through the real HTTP parser."""
    with running(an_app()) as address:
        yield address


@schema.parametrize()
@settings(
    max_examples=25,
    derandomize=True,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_no_request_gets_an_answer_that_the_document_does_not_promise(base, case):
    """Valid requests are accepted, invalid ones refused, and every answer is as documented."""
    case.call_and_validate(base_url=base)
