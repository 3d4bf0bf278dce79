"""The OpenAPI document. After a deliberate change: ``python -m tests.serving.api.test_openapi`` writes the new one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from serving.api import examples
from serving.api.advice_schema import PoolRecommendationAnswer, RecommendationsAnswer
from serving.api.asks import AllocationsAsk, DurationsAsk
from serving.api.duration_schema import DurationsAnswer
from serving.api.problems import PROBLEM_TYPE, ProblemBody
from serving.api.schemas import AllocationsAnswer, DemandAnswer, ModelsAnswer
from tests.serving.http import an_app, get

SNAPSHOT = Path(__file__).parent.parent / "openapi.json"
UPDATE = "If the change is meant, run: python -m tests.serving.api.test_openapi"


def _document() -> dict:
    document = get(an_app(), "/openapi.json").json()
    document["info"]["version"] = "any"
    return document


def test_the_document_is_the_one_that_clients_were_promised():
    assert _document() == json.loads(SNAPSHOT.read_text(encoding="utf-8")), UPDATE


def test_every_route_has_a_summary_an_example_and_an_error_example():
    for path, operations in _document()["paths"].items():
        for operation in operations.values():
            assert operation["summary"]
            assert operation["description"]
            if path.startswith("/v1/"):
                assert "example" in operation["responses"]["200"]["content"]["application/json"], path
                problems = [r["content"][PROBLEM_TYPE] for s, r in operation["responses"].items() if s != "200"]
                assert problems, path
                assert all("example" in problem for problem in problems), path


@pytest.mark.parametrize("status", ["400", "413", "422", "503"])
def test_every_route_with_a_body_documents_what_can_be_wrong_with_it(status):
    for operations in _document()["paths"].values():
        if "post" in operations:
            assert status in operations["post"]["responses"]


@pytest.mark.parametrize(
    "schema, example",
    [
        (DurationsAsk, examples.DURATIONS_ASK),
        (DurationsAnswer, examples.DURATIONS),
        (DemandAnswer, examples.DEMAND),
        (AllocationsAsk, examples.ALLOCATIONS_ASK),
        (AllocationsAnswer, examples.ALLOCATIONS),
        (ModelsAnswer, examples.MODELS),
        (RecommendationsAnswer, examples.RECOMMENDATIONS),
        (PoolRecommendationAnswer, examples.POOL_RECOMMENDATION),
        *((ProblemBody, problem.document("id")) for problem in examples.PROBLEMS.values()),
    ],
)
def test_every_example_is_what_its_schema_says(schema, example):
    made = schema.model_validate_json(json.dumps(example))

    assert json.loads(made.model_dump_json(exclude_unset=True)) == example


def test_examples_show_what_is_null_as_null():
    """A field left out of an example reads as one that an answer may lack."""
    post = _document()["paths"]["/v1/predictions/durations"]["post"]
    assert post["responses"]["200"]["content"]["application/json"]["example"] == examples.DURATIONS
    assert post["requestBody"]["content"]["application/json"]["example"] == examples.DURATIONS_ASK
    assert None in examples.DURATIONS["predictions"][0].values()


def test_the_batch_limit_of_this_server_is_in_its_document():
    document = get(an_app(batch_limit=7), "/openapi.json").json()

    assert document["components"]["schemas"]["DurationsAsk"]["properties"]["jobs"]["maxItems"] == 7


def test_no_page_loads_scripts_from_elsewhere():
    assert get(an_app(), "/docs").status_code == 404
    assert get(an_app(), "/redoc").status_code == 404


if __name__ == "__main__":
    SNAPSHOT.write_text(json.dumps(_document(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
