"""The application: endpoints, middleware, and the health checks."""

from __future__ import annotations

import os
from functools import cache
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from forager import __version__
from forager.access.oidc import TokenVerifier
from forager.access.operations import callers
from forager.access.permits import Permits
from forager.api import oauth, reference
from forager.api.actions import API
from forager.api.authentication import Authentication, Origins, names_of
from forager.api.limits import BodyLimit, RequestLimit, refuse_unknown_query
from forager.api.observation import ConditionalRequests, Observation
from forager.api.operations import router_of
from forager.api.problems import answer_with_problem
from forager.api.reference import describe
from forager.api.routes import crawls, jobs, parsers, products, sources, tasks
from forager.api.services import Services, SharedServices
from forager.api.streams import ProgressHub
from forager.crawl.operations.crawls import aliases
from forager.db.database import Database
from forager.db.schema import readiness
from forager.errors import ForagerError
from forager.index.engine import SearchEngine
from forager.jobs.kinds import load_kinds
from forager.metrics.scrape import CONTENT_TYPE, Scrape, open_scrape
from forager.processes.identity import process_name
from forager.registry import GROUPS
from forager.services.report import statuses_of_process
from forager.services.supervisor import statuses_of_this_process
from forager.settings import Settings

DESCRIPTION = (
    "Crawl sites into a searchable, versioned store. Errors are `application/problem+json`. A list"
    " has `items` and, if there are more, a `next_cursor`. Answers to GET have an ETag; a POST that"
    " creates takes an Idempotency-Key. Unknown fields and parameters are refused."
)

# endpoints written by hand; those of operations are added
ROUTERS: tuple[APIRouter, ...] = (
    crawls.router,
    jobs.router,
    sources.router,
    products.router,
    tasks.router,
    parsers.router,
)


def create_app(
    settings: Settings, database: Database, engine: SearchEngine | None = None
) -> FastAPI:
    """The whole API over a database, and perhaps a search engine, that are open."""
    load_kinds(settings.job_modules)
    verifier = TokenVerifier(database, settings)
    app = FastAPI(
        title="Forager",
        version=__version__,
        description=DESCRIPTION,
        openapi_url=None,  # the reference has it, made beside the requests of others
        docs_url=None,
        redoc_url=None,
        middleware=_middleware(settings, database, verifier),
        redirect_slashes=False,
        generate_unique_id_function=_operation_id,
    )
    app.state.services = Services(database, settings, engine=engine)
    app.state.verifier = verifier
    app.state.hub = ProgressHub(database)
    for error in (ForagerError, RequestValidationError, HTTPException):
        app.add_exception_handler(error, answer_with_problem)
    app.router.routes.extend(_routes())
    app.openapi = lambda: describe(app)  # type: ignore[method-assign]
    return app


@cache
def _routes() -> list[BaseRoute]:
    """All endpoints; their parameters are analyzed once for all applications of a process."""
    root = APIRouter(generate_unique_id_function=_operation_id)
    root.include_router(health_router)
    root.include_router(oauth.router)
    root.include_router(reference.router, prefix="/api")
    checks = [Depends(refuse_unknown_query)]
    for router in (*ROUTERS, *map(router_of, (*GROUPS, callers))):
        root.include_router(router, prefix=API, dependencies=checks)
    for router in (crawls.aliases, router_of(aliases)):
        root.include_router(router, prefix="/api", dependencies=checks)
    return root.routes


def _operation_id(route: APIRoute) -> str:
    """Stable: the tag and the name of the function."""
    return "_".join([*map(str, route.tags[-1:]), route.name]).replace(" ", "_")


def _middleware(
    settings: Settings, database: Database, verifier: TokenVerifier
) -> list[Middleware]:
    """Outermost first; each may reject a request before the next sees it."""
    return [
        Middleware(Observation),
        Middleware(RequestLimit, max_requests=settings.api_max_requests),
        Middleware(Origins, names=names_of(settings)),
        Middleware(
            Authentication,
            database=database,
            settings=settings,
            verifier=verifier,
            permits=Permits(database, settings.api_requests_per_minute),
        ),
        Middleware(BodyLimit, max_bytes=int(settings.api_max_body_mb * 1_000_000)),
        Middleware(ConditionalRequests),
    ]


health_router = APIRouter(tags=["health"])


class Health(BaseModel):
    """The answer while the process responds."""

    status: Literal["alive"] = Field(description="`alive` as long as the process responds.")
    version: str = Field(description="Version of Forager that the server runs.")


class Ready(BaseModel):
    """Whether requests can be answered; `schema` and `expected_schema` must be the same."""

    ready: bool = Field(description="Whether the server can answer requests.")
    database: bool = Field(description="Whether the database is available.")
    schema_version: str | None = Field(
        description="Schema version of the database.", examples=["0002"]
    )
    expected_schema_version: str = Field(
        description="Schema version that this release needs.", examples=["0002"]
    )
    failing_services: list[str] = Field(
        description="Background services of this process, or of the `forager up` that started it,"
        " that failed several times in a row or are stuck; `event loop` if it was blocked.",
        examples=[["scheduler"]],
    )


@health_router.get("/healthz")
async def alive() -> Health:
    """Is the process alive? Says nothing about the database."""
    return Health(status="alive", version=__version__)


@health_router.get("/readyz", responses={503: {"model": Ready, "description": "Not ready"}})
async def ready(services: SharedServices, response: Response) -> Ready:
    """Is the database available at the right schema, and do the services of this process run?

    The services of `forager up` count if it has started this process. A service that fails because
    something outside of Forager is unavailable is listed, and does not make the process unready. A
    service whose step never ends does, and so does an event loop that was blocked in the last
    minute.
    """
    found = await readiness(services.database)
    statuses = [*statuses_of_this_process()]
    if found.ready:
        parent = process_name(os.getppid())
        statuses += await statuses_of_process(services.database, services.settings, parent)
    failing = [each for each in statuses if each.is_failing]
    is_ready = found.ready and not any(each.is_fault or each.is_stuck for each in failing)
    response.status_code = 200 if is_ready else 503
    return Ready(
        ready=is_ready,
        failing_services=sorted({each.name for each in failing}),
        database=found.database,
        schema_version=found.schema,
        expected_schema_version=found.expected_schema,
    )


def _scrape(request: Request, services: SharedServices) -> Scrape:
    """One per application, because it caches expensive gauges."""
    state = request.app.state
    if not hasattr(state, "scrape"):
        state.scrape = open_scrape(services.database, services.settings)
    scrape: Scrape = state.scrape
    return scrape


@health_router.get("/metrics", include_in_schema=False)
async def metrics(scrape: Annotated[Scrape, Depends(_scrape)]) -> Response:
    """Counters, histograms and gauges, in Prometheus' text format."""
    return Response(await scrape.text(), headers={"Content-Type": CONTENT_TYPE})
