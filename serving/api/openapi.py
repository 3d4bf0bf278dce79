"""The OpenAPI document: what the routes declare, with the request bodies and limits that only we know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute, iter_route_contexts
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from serving.api.asks import AllocationsAsk, DurationsAsk
from serving.api.examples import PROBLEMS
from serving.api.problems import PROBLEM_TYPE, ProblemBody

__all__ = ["answers_with", "body_of", "document"]

_REF = "#/components/schemas/{model}"
_MEANINGS = {
    400: "The body is not JSON.",
    404: "There is no such thing.",
    413: "The body is too large.",
    422: "A field cannot be accepted: its name, value, limit and the remedy are given.",
    503: "Something needed is missing, too old or untrustworthy; Retry-After says when to ask again.",
}


def body_of(schema: type[BaseModel], example: dict[str, Any]) -> dict[str, Any]:
    """``openapi_extra`` of a route whose body is parsed by its own dependency."""
    content = {"schema": {"$ref": _REF.format(model=schema.__name__)}, "example": example}
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


def answers_with(example: dict[str, Any], *problems: int) -> dict[int | str, dict[str, Any]]:
    """``responses`` of a route: an example of its answer, and the problems it may answer with."""
    responses: dict[int | str, dict[str, Any]] = {200: {"content": {"application/json": {"example": example}}}}
    for status in problems:
        shown = {
            "schema": {"$ref": _REF.format(model=ProblemBody.__name__)},
            "example": PROBLEMS[status].document("3f9c2f7a0d1e4b58"),
        }
        responses[status] = {"description": _MEANINGS[status], "content": {PROBLEM_TYPE: shown}}
        if status == 503:
            meaning = {"description": "Seconds until asking again makes sense.", "schema": {"type": "integer"}}
            responses[status]["headers"] = {"Retry-After": meaning}
    return responses


def document(app: FastAPI, batch_limit: int) -> dict[str, Any]:
    """The whole document; made once, since it cannot change while the process lives."""
    if app.openapi_schema is None:
        made = get_openapi(
            title=app.title, version=app.version, summary=app.summary, description=app.description, routes=app.routes
        )
        _with_whole_examples(made, app)
        schemas = made["components"]["schemas"]
        schemas.update(_own_schemas())
        for asked in (DurationsAsk, AllocationsAsk):
            schemas[asked.__name__]["properties"]["jobs"]["maxItems"] = batch_limit
        app.openapi_schema = made
    return app.openapi_schema


def _with_whole_examples(made: dict[str, Any], app: FastAPI) -> None:
    """Put the examples in as they were given: the library leaves out every field that is null, which answers have."""
    for context in iter_route_contexts(app.routes):
        route = context.original_route
        if not isinstance(route, APIRoute) or not route.include_in_schema:
            continue
        for method in route.methods or ():
            operation = made["paths"][context.path_format][method.lower()]
            for status, response in route.responses.items():
                _copy_examples(response, operation["responses"][str(status)])
            _copy_examples((route.openapi_extra or {}).get("requestBody", {}), operation.get("requestBody", {}))


def _copy_examples(given: Mapping[str, Any], made: dict[str, Any]) -> None:
    for kind, content in given.get("content", {}).items():
        if "example" in content:
            made["content"][kind]["example"] = content["example"]


def _own_schemas() -> dict[str, Any]:
    own = [(schema, "validation") for schema in (DurationsAsk, AllocationsAsk, ProblemBody)]
    _, definitions = models_json_schema(own, ref_template=_REF)  # type: ignore[arg-type]  # mode is a literal
    schemas: dict[str, Any] = definitions["$defs"]
    return schemas
