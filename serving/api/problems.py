"""Errors as problem documents (RFC 9457): one table from our errors to what a client is told.

Every failure of the API is ``application/problem+json`` with the fields of :class:`ProblemBody`. Nothing
internal leaves: a defect is logged under the request's id, and the client is given that id.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, Field
from pydantic_core import ErrorDetails
from starlette.responses import Response

from advisor.errors import AdvisorError, Defect, Refused, Stale, Transient, limit_and_remedy
from serving.api.service import Unknown

__all__ = [
    "PROBLEM_TYPE",
    "UNEXPECTED",
    "AnswerNotFinite",
    "BodyRefused",
    "NotReady",
    "Problem",
    "ProblemBody",
    "WrongField",
    "from_error",
    "from_status",
    "from_validation",
]

PROBLEM_TYPE = "application/problem+json"
UNEXPECTED = frozenset({"defect", "no-answer"})
"""Problems that nobody should ever see: what happened is logged, and withheld from the client."""

_TYPE_PREFIX = "urn:problem-type:gpu-slice-advisor:"
_LONGEST_SHOWN = 120
_MOST_FIELDS = 20
_LARGEST_NUMBER = 1e15


class AnswerNotFinite(Defect):
    """An answer holds a number that is not finite, or breaks its schema otherwise; it is withheld."""


class NotReady(Transient):
    """The service cannot answer yet; ``reasons`` say what is missing."""

    def __init__(self, reasons: Sequence[str]) -> None:
        """Keep the reasons one by one."""
        self.reasons = tuple(reasons)
        super().__init__("; ".join(self.reasons) or "the service is not ready")


class BodyRefused(Exception):
    """A body that does not match its schema, as pydantic found it."""

    def __init__(self, errors: Sequence[ErrorDetails]) -> None:
        """Keep what was found."""
        self.errors = errors
        super().__init__(f"{len(errors)} fields are refused")


class WrongField(BaseModel):
    """One field that cannot be accepted."""

    field: str = Field(description="Where it stands, for instance jobs.0.gpus.")
    value: Any = Field(description="What was given, cut if it is long.")
    limit: str = Field(description="What it breaks.")
    remedy: str = Field(description="What to do instead.")


class ProblemBody(BaseModel):
    """A problem document."""

    type: str = Field(description="Which kind of problem, as a URN; match on this, not on the words.")
    title: str = Field(description="The kind in words, the same every time.")
    status: int = Field(description="The HTTP status.")
    detail: str = Field(description="What happened this time.")
    request_id: str = Field(description="Names this request in the server's log.")
    errors: list[WrongField] | None = Field(None, description="The fields refused, where it is about fields.")
    reasons: list[str] | None = Field(None, description="What is missing, where the service is not ready.")


@dataclass(frozen=True, slots=True)
class _Kind:
    slug: str
    status: int
    title: str
    retry_after_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What a client is told, before it is known whether it goes out as JSON or as a page."""

    slug: str
    status: int
    title: str
    detail: str
    headers: dict[str, str] = field(default_factory=dict)
    errors: tuple[dict[str, Any], ...] = ()
    reasons: tuple[str, ...] = ()

    def document(self, request_id: str) -> dict[str, Any]:
        """The fields of :class:`ProblemBody`."""
        body: dict[str, Any] = {
            "type": _TYPE_PREFIX + self.slug,
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "request_id": request_id,
        }
        if self.errors:
            body["errors"] = list(self.errors)
        if self.reasons:
            body["reasons"] = list(self.reasons)
        return body

    def response(self, request_id: str) -> Response:
        """The problem as JSON, in ASCII so that no character of a bad request can break it."""
        content = json.dumps(self.document(request_id), allow_nan=False)
        return Response(content, self.status, media_type=PROBLEM_TYPE, headers=self.headers)


_OF_ERRORS: tuple[tuple[type[AdvisorError], _Kind], ...] = (
    (Unknown, _Kind("unknown", 404, "There is no such thing")),
    (Refused, _Kind("refused", 422, "The request cannot be accepted")),
    (NotReady, _Kind("not-ready", 503, "The service is not ready", 5)),
    (Transient, _Kind("unavailable", 503, "Something needed is unavailable", 5)),
    (Stale, _Kind("stale", 503, "The data are too old to answer from", 30)),
    (AnswerNotFinite, _Kind("no-answer", 503, "No trustworthy answer can be given", 30)),
    (AdvisorError, _Kind("defect", 500, "The service failed")),
)
_OF_STATUSES = {
    400: "malformed",
    404: "unknown",
    405: "method-not-allowed",
    408: "too-slow",
    413: "too-large",
    421: "misdirected",
    503: "busy",
}
_WITHHELD = "A promise inside the service broke; its log says more under this request id."


def from_error(error: AdvisorError) -> Problem:
    """What a client is told of one of our errors."""
    kind = next(kind for of, kind in _OF_ERRORS if isinstance(error, of))
    wrong: tuple[dict[str, Any], ...] = ()
    if isinstance(error, Refused):
        wrong = (_wrong(error.field, error.value, error.limit, error.remedy),)
    return Problem(
        slug=kind.slug,
        status=kind.status,
        title=kind.title,
        detail=_WITHHELD if kind.slug in UNEXPECTED else str(error),
        headers={} if kind.retry_after_seconds is None else {"Retry-After": str(kind.retry_after_seconds)},
        errors=wrong,
        reasons=error.reasons if isinstance(error, NotReady) else (),
    )


def from_status(status: int, detail: str, headers: dict[str, str] | None = None) -> Problem:
    """What a client is told where only an HTTP status is known."""
    slug = _OF_STATUSES.get(status, "defect" if status >= 500 else "refused")
    return Problem(slug=slug, status=status, title=HTTPStatus(status).phrase, detail=detail, headers=headers or {})


def from_validation(errors: Iterable[Mapping[str, Any]]) -> Problem:
    """What a client is told of fields that do not match the schema: 400 if it is no JSON at all, else 422."""
    found = list(errors)
    if any(error["type"] == "json_invalid" for error in found):
        return from_status(400, f"The body is not JSON: {found[0].get('ctx', {}).get('error', 'it cannot be parsed')}.")
    wrong = tuple(_wrong_field(error) for error in found[:_MOST_FIELDS])
    detail = "; ".join(f"{w['field']}: {w['limit']}" for w in wrong[:3])
    more = len(found) - 3
    return Problem(
        slug="refused",
        status=422,
        title="The request cannot be accepted",
        detail=f"{detail}; and {more} more" if more > 0 else detail,
        errors=wrong,
    )


def _wrong_field(error: Mapping[str, Any]) -> dict[str, Any]:
    place = [str(part) for part in error["loc"] if part not in {"body", "query", "path"}]
    return _wrong(".".join(place) or "body", error.get("input"), *limit_and_remedy(error))


def _wrong(where: str, value: object, limit: str, remedy: str) -> dict[str, Any]:
    return {"field": where, "value": _shown(value), "limit": limit, "remedy": remedy}


def _shown(value: object) -> object:
    """The value itself where JSON can carry it and it is short, else as much of its text as a person needs."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float) and abs(value) < _LARGEST_NUMBER:
        return value
    if isinstance(value, int):
        # Python refuses to print an integer of thousands of digits.
        return f"an integer of {value.bit_length()} bits"
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"
