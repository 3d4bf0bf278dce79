"""The HTTP application: API, dashboard and metrics around one service, with one way to report errors."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from advisor.errors import AdvisorError
from advisor.history.status import HistoryStatus
from advisor.settings import ServerSettings
from dashboards.data import DashboardData
from dashboards.routes import Dashboard
from serving.api import openapi, routes
from serving.api.envelope import Envelope
from serving.api.problems import UNEXPECTED, BodyRefused, Problem, from_error, from_status, from_validation
from serving.api.service import AdvisorService
from serving.metrics import Metrics

__all__ = ["Lifespan", "create_app"]

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]

VERSION = "0.1.0"
_DESCRIPTION = (
    "Durations, demand, slice lengths, allocations and warm capacity for GPU clusters, always as distributions "
    "and with reasons. Errors are application/problem+json."
)
_MACHINE_PATHS = ("/v1/", "/metrics", "/healthz", "/readyz", "/openapi.json")
log = structlog.get_logger(__name__)


def create_app(
    service: AdvisorService,
    pages: DashboardData,
    server: ServerSettings,
    *,
    sources: Callable[[], HistoryStatus] | None = None,
    stale_after_minutes: float = 30.0,
    lifespan: Lifespan | None = None,
) -> FastAPI:
    """The application that answers from ``service`` and shows ``pages``.

    Both must be safe to call from several threads. ``sources`` answers what the metrics tell of where the history
    comes from. ``stale_after_minutes`` is the age from which the dashboard warns that history or advice is old;
    ``lifespan`` runs what lives as long as the app.
    """
    app = FastAPI(
        title="GPU slice advisor",
        version=VERSION,
        summary="Predictive autoscaling advice for GPU clusters.",
        description=_DESCRIPTION,
        # The framework's own documentation pages load their scripts from a CDN.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    dashboard = Dashboard(pages, stale_after_minutes=stale_after_minutes)
    app.state.service = service
    app.state.server = server
    app.state.metrics = Metrics(service, pages, sources)
    app.state.error_page = dashboard.error_page
    for router in (routes.v1, routes.operations, dashboard.router()):
        app.include_router(router)
    _describe(app, server)
    _report_errors(app)
    counted = app.state.metrics.answered
    app.add_middleware(Envelope, body_limit_bytes=server.body_limit_bytes, counted=counted)
    return app


def _describe(app: FastAPI, server: ServerSettings) -> None:
    def document() -> dict[str, Any]:
        return openapi.document(app, server.batch_limit)

    app.openapi = document  # type: ignore[method-assign]  # the way the framework offers


def _report_errors(app: FastAPI) -> None:
    for kind in (AdvisorError, BodyRefused, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _reported)


async def _reported(request: Request, error: Exception) -> Response:
    problem = _problem(request, error)
    if problem.slug in UNEXPECTED:
        log.error("request_failed", request_id=request.state.request_id, path=request.url.path, exc_info=error)
    if _by_a_browser(request):
        page: Response = request.app.state.error_page(problem.status, problem.title, problem.detail)
        page.headers.update(problem.headers)
        return page
    return problem.response(request.state.request_id)


def _problem(request: Request, error: Exception) -> Problem:
    if isinstance(error, AdvisorError):
        return from_error(error)
    if isinstance(error, BodyRefused):
        return from_validation(error.errors)
    if isinstance(error, RequestValidationError):
        return from_validation(error.errors())
    if isinstance(error, HTTPException):
        detail = {404: f"Nothing is at {request.url.path}.", 405: f"{request.method} is not possible here."}
        said = detail.get(error.status_code, error.detail)
        return from_status(error.status_code, said, _with_head(dict(error.headers or {})))
    raise error


def _with_head(headers: dict[str, str]) -> dict[str, str]:
    """What may be asked, HEAD included: it is answered wherever GET is, and no route knows of it."""
    allowed = headers.get("Allow", "").split(", ")
    return {**headers, "Allow": ", ".join([*allowed, "HEAD"])} if "GET" in allowed else headers


def _by_a_browser(request: Request) -> bool:
    path = request.url.path
    return not path.startswith(_MACHINE_PATHS) and "text/html" in request.headers.get("accept", "")
