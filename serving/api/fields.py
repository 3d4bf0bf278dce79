"""The types that requests and answers are made of, and the rule that an answer keeps its own promise.

Requests refuse unknown fields, words for numbers and numbers that are not finite. Answers are built
through models as well, so a number that is not finite never leaves as null: it becomes an error.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, TypeVar

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
)

from serving.api.problems import AnswerNotFinite

__all__ = [
    "Answer",
    "AsOf",
    "Ask",
    "Gpus",
    "Name",
    "Nodes",
    "Priority",
    "Reasons",
    "Synthetic",
    "TaskGpus",
    "UtcTime",
    "Version",
    "answered",
]

_MOST_GPUS = 100_000


Body = TypeVar("Body", bound=BaseModel)


def _in_utc(time: datetime) -> datetime:
    try:
        return time.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("the time lies outside the years 1 to 9999 in UTC") from error


def _whole(value: object) -> object:
    # JSON knows one kind of number: 8.0 is a whole one.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _whole_above_one(gpus: float) -> float:
    if gpus > 1 and not gpus.is_integer():
        raise ValueError("above one GPU only whole GPUs can be asked: round up")
    return gpus


Nodes = Annotated[int, Field(ge=1, le=100_000), BeforeValidator(_whole)]
Priority = Annotated[int, Field(ge=-(2**31), le=2**31 - 1), BeforeValidator(_whole)]
Gpus = Annotated[float, Field(ge=0.001, le=_MOST_GPUS)]
TaskGpus = Annotated[
    Gpus,
    AfterValidator(_whole_above_one),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": 0.001, "maximum": 1},
                {"type": "integer", "minimum": 1, "maximum": _MOST_GPUS},
            ]
        }
    ),
]
UtcTime = Annotated[AwareDatetime, AfterValidator(_in_utc)]
# No control characters: a name is something that a person can read in a table or a log line.
Name = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[^\x00-\x1f\x7f]+$")]
Version = Annotated[str | None, Field(description="Version of the model; null where a baseline answers.")]
Reasons = Annotated[list[str], Field(description="Why, in sentences; empty where there is nothing to explain.")]
AsOf = Annotated[UtcTime, Field(description="The moment the answer refers to: nothing later was known to it.")]
Synthetic = Annotated[bool, Field(description="True where the history is a generated workload, not a real cluster's.")]


class Ask(BaseModel):
    """A request body: exactly the fields it names, of exactly their types."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Answer(BaseModel):
    """A response body: every number finite, unknown fields to be expected from later versions."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False, populate_by_name=True, serialize_by_alias=True)


def answered(build: Callable[..., Body], *arguments: object) -> Body:
    """What ``build`` makes of its arguments.

    Raises:
        AnswerNotFinite: a number in it is not finite, or a field is not what the schema promises.
    """
    try:
        return build(*arguments)
    except ValidationError as error:
        where = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:3])
        raise AnswerNotFinite(f"the answer breaks its own schema at {where}") from error
