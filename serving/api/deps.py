"""What a handler is given: named dependencies, so that its signature reads like a sentence."""

from __future__ import annotations

from typing import Annotated, TypeVar

from fastapi import Depends, Query, Request
from pydantic import ValidationError

from advisor.errors import Refused
from serving.api.asks import AllocationsAsk, DemandQuery, DurationsAsk
from serving.api.fields import Ask
from serving.api.problems import BodyRefused
from serving.api.service import AdvisorService

__all__ = ["AskedAllocations", "AskedDemand", "AskedDurations", "Service"]

Body = TypeVar("Body", bound=Ask)


async def _service(request: Request) -> AdvisorService:
    service: AdvisorService = request.app.state.service
    return service


async def _body(request: Request, schema: type[Body]) -> Body:
    # The bytes are parsed and checked in one pass, in JSON mode; letting the framework parse first
    # costs a third more time for one prediction and loses the difference between "1" and 1.
    try:
        return schema.model_validate_json(await request.body())
    except ValidationError as error:
        raise BodyRefused(error.errors(include_url=False)) from error


def _within(request: Request, jobs: int) -> None:
    limit: int = request.app.state.server.batch_limit
    if jobs > limit:
        raise Refused("jobs", jobs, f"at most {limit} jobs a request", "Split them over several requests.")


async def _durations(request: Request) -> DurationsAsk:
    asked = await _body(request, DurationsAsk)
    _within(request, len(asked.jobs))
    return asked


async def _allocations(request: Request) -> AllocationsAsk:
    asked = await _body(request, AllocationsAsk)
    _within(request, len(asked.jobs))
    return asked


Service = Annotated[AdvisorService, Depends(_service)]
AskedDurations = Annotated[DurationsAsk, Depends(_durations)]
AskedAllocations = Annotated[AllocationsAsk, Depends(_allocations)]
AskedDemand = Annotated[DemandQuery, Query()]
