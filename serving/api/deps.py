"""What a handler is given, by name, so that its signature reads like a sentence."""

from __future__ import annotations

from typing import Annotated, TypeVar

from fastapi import Depends, Query, Request
from pydantic import ValidationError

from advisor.errors import Refused
from serving.api.asks import AllocationsAsk, DemandQuery, DurationsAsk
from serving.api.problems import BodyRefused
from serving.api.service import AdvisorService

__all__ = ["AskedDemand", "Service", "asked", "service_of"]

Body = TypeVar("Body", DurationsAsk, AllocationsAsk)


def service_of(request: Request) -> AdvisorService:
    """The service behind this app."""
    service: AdvisorService = request.app.state.service
    return service


async def asked(request: Request, schema: type[Body]) -> Body:
    """The body of the request, as ``schema`` and within the batch limit.

    Called by the handlers with a body themselves: as a declared dependency it would cost one prediction a
    tenth of its time. The bytes are parsed and checked in one pass, in JSON mode, where "1" is not 1.

    Raises:
        BodyRefused: it does not match the schema, or is no JSON at all.
        Refused: too many jobs.
    """
    try:
        body = schema.model_validate_json(await request.body())
    except ValidationError as error:
        raise BodyRefused(error.errors(include_url=False)) from error
    limit: int = request.app.state.server.batch_limit
    if len(body.jobs) > limit:
        remedy = "Split them over several requests."
        raise Refused("jobs", len(body.jobs), f"at most {limit} jobs a request", remedy)
    return body


async def _service(request: Request) -> AdvisorService:
    return service_of(request)


Service = Annotated[AdvisorService, Depends(_service)]
AskedDemand = Annotated[DemandQuery, Query()]
