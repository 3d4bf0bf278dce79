"""The HTTP page: every route with its request, answer and problems, read from the OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI

from advisor.settings import ServerSettings
from docs.generators.markdown import code, document, plain, table
from serving.api import openapi, routes

__all__ = ["api_page"]

_INTRODUCTION = """# HTTP API

`gsa serve` answers on `127.0.0.1:8080` unless told otherwise; anything but a loopback address is refused, since nothing
asks who is calling. `/openapi.json` is the same in a form for machines. `HEAD` is answered wherever `GET` is.
While 256 requests are being answered, further ones get 503 with `Retry-After`.

Every number in a typed field is finite. What is not known, or does not apply, is `null`, and only where the
tables below say "or null". Durations are in seconds, times in UTC and end in `Z`. Where a generated workload is
behind an answer, `synthetic` is true. Problems are `application/problem+json`; see [errors](errors.md#over-http)."""

Json = dict[str, Any]


def api_page() -> str:
    """The page, in the order of the routes."""
    app = FastAPI()
    app.include_router(routes.v1)
    app.include_router(routes.operations)
    described = openapi.document(app, ServerSettings().batch_limit)
    found = [(path, method, route) for path, methods in described["paths"].items() for method, route in methods.items()]
    summary = [(code(f"{method.upper()} {path}"), route["summary"]) for path, method, route in found]
    schemas = described["components"]["schemas"]
    shapes = [_shape(name, schemas[name]) for name in sorted(schemas) if _is_ours(schemas[name])]
    return document(
        _INTRODUCTION,
        table(("route", "answers"), summary),
        *(_route(method, path, route) for path, method, route in found),
        "## Shapes",
        *shapes,
    )


def _route(method: str, path: str, route: Json) -> str:
    body = route.get("requestBody", {}).get("content", {}).get("application/json", {})
    answers = route["responses"]
    good = answers["200"].get("content", {}).get("application/json", {})
    problems = [(status, answer["description"]) for status, answer in answers.items() if status != "200"]
    return document(
        f"## `{method.upper()} {path}`",
        plain(route.get("description")),
        _parameters(route.get("parameters", [])),
        _exchange("Request", body),
        _exchange("Answer", good),
        table(("status", "when"), problems) if problems else "",
    )


def _parameters(parameters: list[Json]) -> str:
    rows = [(code(p["name"]), p["in"], _type(p["schema"]), _meaning(p) or _meaning(p["schema"])) for p in parameters]
    return table(("parameter", "in", "type", "meaning"), rows) if rows else ""


def _exchange(what: str, content: Json) -> str:
    if not content.get("schema"):
        return ""
    kind = f"{what}: {_type(content['schema'])}"
    if "example" not in content:
        return kind
    return document(f"{kind}, for instance", f"```json\n{json.dumps(content['example'], indent=2)}\n```")


def _is_ours(schema: Json) -> bool:
    # The framework's own error shapes are never answered: problems take their place.
    return schema.get("title") not in {"HTTPValidationError", "ValidationError"}


def _shape(name: str, schema: Json) -> str:
    if "enum" in schema:
        values = ", ".join(code(str(value)) for value in schema["enum"])
        return document(f"### {name}", plain(schema.get("description")), f"One of {values}.")
    required = set(schema.get("required", ()))
    rows = [
        (code(field), _type(kind), _meaning(kind) + ("" if field in required else " (may be left out)"))
        for field, kind in schema.get("properties", {}).items()
    ]
    return document(
        f"### {name}",
        plain(schema.get("description")),
        table(("field", "type", "meaning"), rows) if rows else "",
    )


def _meaning(described: Json) -> str:
    return plain(described.get("description"))


def _type(schema: Json) -> str:
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(choice) for choice in schema["anyOf"]))
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"map of {_type(schema['additionalProperties'])}"
    return " ".join((_plain_type(schema), *_limits(schema)))


def _plain_type(schema: Json) -> str:
    if schema.get("format") == "date-time":
        return "time"
    kind = str(schema.get("type", "anything"))
    return {"string": "text", "integer": "whole number"}.get(kind, kind)


def _limits(schema: Json) -> Iterator[str]:
    words = {"exclusiveMinimum": ">", "minimum": ">=", "exclusiveMaximum": "<", "maximum": "<="}
    yield from (f"{sign} {schema[key]:g}" for key, sign in words.items() if key in schema)
