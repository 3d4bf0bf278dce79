"""The routes: each parses, calls one service function and shapes the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel
from starlette.responses import Response

from serving.advice_json import advice_document, pool_document
from serving.api import examples
from serving.api.advice_schema import PoolRecommendationAnswer, RecommendationsAnswer
from serving.api.asks import AllocationsAsk, DurationsAsk
from serving.api.deps import AskedDemand, Service, asked, service_of
from serving.api.duration_schema import DurationsAnswer
from serving.api.fields import answered
from serving.api.openapi import answers_with, body_of
from serving.api.problems import NotReady
from serving.api.schemas import AllocationsAnswer, DemandAnswer, Health, ModelsAnswer, Ready
from serving.api.service import AdvisorService, AllocationAsk, DurationAsk, Unknown

__all__ = ["operations", "v1"]

v1 = APIRouter(prefix="/v1")
operations = APIRouter(tags=["operations"])

_JSON = "application/json"
# So few predictions are over before a thread would have woken up; more of them must not hold up the loop.
_FEW = 8


def _answer(build: Callable[..., BaseModel], *arguments: object) -> Response:
    return Response(answered(build, *arguments).model_dump_json(), media_type=_JSON)


def _predictions(service: AdvisorService, asks: Sequence[DurationAsk], *, explain: bool) -> Response:
    return _answer(DurationsAnswer.of, service.synthetic(), service.durations(asks, explain=explain))


def _allocations(service: AdvisorService, asks: Sequence[AllocationAsk]) -> Response:
    return _answer(AllocationsAnswer.of, service.now(), service.synthetic(), service.allocate(asks))


@v1.post(
    "/predictions/durations",
    tags=["forecasts"],
    summary="How long jobs may run",
    response_model=DurationsAnswer,
    responses=answers_with(examples.DURATIONS, 400, 413, 422, 503),
    openapi_extra=body_of(DurationsAsk, examples.DURATIONS_ASK),
)
async def predict_durations(request: Request) -> Response:
    """Predict the duration of each job as a distribution, and what remains of those that run already."""
    body = await asked(request, DurationsAsk)
    asks = body.asks()
    if len(asks) <= _FEW and not body.explain:
        return _predictions(service_of(request), asks, explain=False)
    return await run_in_threadpool(_predictions, service_of(request), asks, explain=body.explain)


@v1.get(
    "/forecasts/demand",
    tags=["forecasts"],
    summary="How many GPUs the pools will want",
    response_model=DemandAnswer,
    responses=answers_with(examples.DEMAND, 404, 422, 503),
)
def forecast_demand(service: Service, query: AskedDemand) -> Response:
    """Forecast each pool's GPUs running and pending at every horizon, with the skill of each."""
    return _answer(DemandAnswer.of, service.now(), service.synthetic(), service.demand(query.pool))


@v1.get(
    "/recommendations",
    tags=["recommendations"],
    summary="The newest advice",
    response_model=RecommendationsAnswer,
    responses=answers_with(examples.RECOMMENDATIONS, 503),
)
def recommend(service: Service) -> Response:
    """Give what `gsa advise` prints: slice lengths, sharing, warm capacity, keep-alive, changes, reasons."""
    return _answer(RecommendationsAnswer.model_validate, advice_document(service.advice()))


@v1.get(
    "/recommendations/{pool:path}",
    tags=["recommendations"],
    summary="The newest advice for one pool",
    response_model=PoolRecommendationAnswer,
    responses=answers_with(examples.POOL_RECOMMENDATION, 404, 422, 503),
)
def recommend_pool(service: Service, pool: str) -> Response:
    """Give one pool's entry of the newest advice, beside the time, mode and models of its cycle."""
    advice = service.advice()
    found = advice.of_pool(pool)
    if found is None:
        raise Unknown("pool", pool, f"known pools are {', '.join(p.pool for p in advice.pools)}", "Use one of them.")
    return _answer(PoolRecommendationAnswer.model_validate, pool_document(advice, found))


@v1.post(
    "/allocations",
    tags=["recommendations"],
    summary="Which slices jobs would get",
    response_model=AllocationsAnswer,
    responses=answers_with(examples.ALLOCATIONS, 400, 413, 422, 503),
    openapi_extra=body_of(AllocationsAsk, examples.ALLOCATIONS_ASK),
)
async def allocate(request: Request) -> Response:
    """Place each job on the cluster as it is now: slices, or when, or why not. Nothing is reserved."""
    asks = (await asked(request, AllocationsAsk)).asks()
    return await run_in_threadpool(_allocations, service_of(request), asks)


@v1.get(
    "/models",
    tags=["models"],
    summary="The registered models",
    response_model=ModelsAnswer,
    responses=answers_with(examples.MODELS, 503),
)
def list_models(service: Service) -> Response:
    """List the registered versions, newest first, with what was measured and which one is served."""
    return _answer(ModelsAnswer.of, service.now(), service.models())


@operations.get("/healthz", summary="Whether the process lives", response_model=Health)
async def health() -> Response:
    """Answer, which is all that a liveness probe asks."""
    return _answer(Health)


@operations.get(
    "/readyz",
    summary="Whether forecasts and advice can be answered",
    response_model=Ready,
    responses=answers_with({"ready": True}, 503),
)
def ready(service: Service) -> Response:
    """Answer 200 where everything needed is there, else 503 with what is missing."""
    readiness = service.readiness()
    if not readiness.ready:
        raise NotReady(readiness.reasons)
    return _answer(Ready)


@operations.get("/metrics", summary="Metrics for Prometheus", response_class=Response)
def metrics(request: Request) -> Response:
    """Expose requests, advice and data in the text format of Prometheus."""
    exposition: bytes = request.app.state.metrics.exposition()
    return Response(exposition, media_type="text/plain; version=0.0.4; charset=utf-8")
