"""The dashboard's routes: read what a page needs, build its context, render it or answer it as JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar

from fastapi import APIRouter, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response

from advisor.errors import Stale, Transient
from dashboards.assets import Assets
from dashboards.data import DashboardData
from dashboards.pages import (
    JobPage,
    JobsPage,
    ModelsPage,
    Page,
    PoolPage,
    Seen,
    job_page,
    jobs_page,
    models_page,
    overview_page,
)
from dashboards.pages import pool_page as build_pool_page
from dashboards.render import Renderer, as_json

__all__ = ["Dashboard"]

_RECENT_HOURS = 6.0
_MOST_JOBS = 100
_PROMISE_DAYS = 84
_FOR_EVER = "public, max-age=31536000, immutable"

Read = TypeVar("Read")
Whose = Annotated[str | None, Query(max_length=200, description="The source of the job, where several have its id.")]
Search = Annotated[str, Query(max_length=200, description="What id, user, namespace or name must hold.")]


class Dashboard:
    """Serves the pages of ``data``; every page also answers as ``.json`` with the same context."""

    def __init__(self, data: DashboardData, *, stale_after_minutes: float) -> None:
        """``stale_after_minutes`` is the age from which history and advice are called old."""
        self._data = data
        self._stale_after = stale_after_minutes
        self._assets = Assets()
        self._renderer = Renderer(self._assets)

    def router(self) -> APIRouter:
        """Pages and static files; the JSON twins stand first, since a pool's name may hold anything."""
        router = APIRouter(include_in_schema=False)
        for path, handler in (
            ("/overview.json", self._overview_json),
            ("/jobs.json", self._jobs_json),
            ("/models.json", self._models_json),
            ("/pools/{pool:path}.json", self._pool_json),
            ("/jobs/{job_id:path}.json", self._job_json),
            ("/", self._overview),
            ("/pools", self._to_overview),
            ("/jobs", self._jobs),
            ("/models", self._models),
            ("/pools/{pool:path}", self._pool),
            ("/jobs/{job_id:path}", self._job),
            ("/static/{name}", self._static),
            ("/favicon.ico", self._favicon),
        ):
            router.add_api_route(path, handler, methods=["GET"], response_model=None)
        return router

    def error_page(self, status: int, title: str, detail: str) -> Response:
        """The page that a browser gets where something went wrong."""
        return HTMLResponse(self._renderer.error(status, title, detail), status)

    def _overview(self) -> Response:
        return self._page("overview.html", overview_page(self._seen()))

    def _overview_json(self) -> Response:
        return _json(overview_page(self._seen()))

    def _to_overview(self) -> Response:
        return RedirectResponse("/", 307)

    def _pool(self, pool: str) -> Response:
        return self._page("pool.html", self._pool_page(pool))

    def _pool_json(self, pool: str) -> Response:
        return _json(self._pool_page(pool))

    def _jobs(self, q: Search = "") -> Response:
        return self._page("jobs.html", self._jobs_page(q))

    def _jobs_json(self, q: Search = "") -> Response:
        return _json(self._jobs_page(q))

    def _job(self, job_id: str, source: Whose = None) -> Response:
        return self._page("job.html", self._job_page(job_id, source))

    def _job_json(self, job_id: str, source: Whose = None) -> Response:
        return _json(self._job_page(job_id, source))

    def _models(self) -> Response:
        return self._page("models.html", self._models_page())

    def _models_json(self) -> Response:
        return _json(self._models_page())

    def _static(self, name: str, request: Request) -> Response:
        asset = self._assets.get(name)
        if asset is None:
            raise HTTPException(404)
        headers = {"Cache-Control": _FOR_EVER, "Vary": "Accept-Encoding"}
        if asset.compressed is not None and "gzip" in request.headers.get("accept-encoding", ""):
            return Response(
                asset.compressed, headers={**headers, "Content-Encoding": "gzip"}, media_type=asset.media_type
            )
        return Response(asset.content, headers=headers, media_type=asset.media_type)

    def _favicon(self) -> Response:
        return RedirectResponse(self._assets.url("mark.svg"), 307)

    def _pool_page(self, pool: str) -> PoolPage:
        seen = self._seen()
        if seen.advice is None:
            # Without advice there is nothing to say of a pool, and whoever asks is told why.
            raise Transient("; ".join(seen.troubles))
        found = seen.advice.of_pool(pool)
        if found is None:
            raise HTTPException(404)
        return build_pool_page(seen, found, self._data.recent_demand(pool, _RECENT_HOURS))

    def _jobs_page(self, query: str) -> JobsPage:
        return jobs_page(self._seen(), self._data.jobs(query or None, _MOST_JOBS), query, _MOST_JOBS)

    def _job_page(self, job_id: str, source: str | None) -> JobPage:
        view = self._data.job(job_id, source)
        if view is None:
            raise HTTPException(404)
        return job_page(self._seen(), view)

    def _models_page(self) -> ModelsPage:
        troubles: list[str] = []
        kept = _unless_trouble(lambda: self._data.kept_promises(_PROMISE_DAYS), troubles)
        registered = _unless_trouble(self._data.registered, troubles)
        return models_page(self._seen(troubles), kept, registered)

    def _seen(self, known_troubles: Sequence[str] = ()) -> Seen:
        troubles = list(known_troubles)
        return Seen(
            now=_unless_trouble(self._data.now, troubles),
            stale_after_minutes=self._stale_after,
            advice=_unless_trouble(self._data.advice, troubles),
            history=_unless_trouble(self._data.history, troubles),
            money=_unless_trouble(self._data.money, troubles),
            troubles=tuple(dict.fromkeys(troubles)),
        )

    def _page(self, template: str, context: Page) -> Response:
        return HTMLResponse(self._renderer.page(template, context, type(context)))


def _unless_trouble(read: Callable[[], Read], troubles: list[str]) -> Read | None:
    """What ``read`` gives, or None with the trouble noted: a page shows what it has."""
    try:
        return read()
    except (Transient, Stale) as error:
        troubles.append(str(error))
        return None


def _json(context: Page) -> Response:
    return Response(as_json(context), media_type="application/json")
