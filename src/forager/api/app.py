"""The application: endpoints, and what stands before all of them."""

from __future__ import annotations

from fastapi import APIRouter, Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from forager import __version__
from forager.access.permits import Permits
from forager.api import health, reference
from forager.api.actions import API
from forager.api.authentication import Authentication, Origins, names_of
from forager.api.limits import BodyLimit, RequestLimit
from forager.api.observation import Conditional, Observation, RequestIds
from forager.api.paging import refuse_unknown_query
from forager.api.problems import answer_with_problem
from forager.api.reference import describe
from forager.api.routes import (
    crawls,
    documents,
    errors,
    jobs,
    keys,
    network,
    parsers,
    products,
    sources,
    tasks,
    webhooks,
)
from forager.api.services import Services
from forager.api.streams import ProgressHub
from forager.db.database import Database
from forager.errors import ForagerError
from forager.index.engine import Engine
from forager.jobs.kinds import load_kinds
from forager.settings import Settings

DESCRIPTION = (
    "Crawl sites into a searchable, versioned store. Errors are `application/problem+json`. A list"
    " has `items` and, if there are more, a `next_cursor`. Answers to GET have an ETag; a POST that"
    " creates takes an Idempotency-Key. Unknown fields and parameters are refused."
)

# every module of endpoints; a new one is added here
ROUTERS: tuple[APIRouter, ...] = (
    crawls.router,
    jobs.router,
    sources.router,
    documents.router,
    products.router,
    tasks.router,
    errors.router,
    parsers.router,
    products.analytics_router,
    webhooks.router,
    network.router,
    keys.router,
)


def create_app(settings: Settings, database: Database, engine: Engine | None = None) -> FastAPI:
    """The whole API over a database, and perhaps a search engine, that are open."""
    load_kinds(settings.job_modules)
    app = FastAPI(
        title="Forager",
        version=__version__,
        description=DESCRIPTION,
        openapi_url=None,  # the reference has it, made beside the requests of others
        docs_url=None,
        redoc_url=None,
        middleware=_middleware(settings, database),
        redirect_slashes=False,
        generate_unique_id_function=_operation_id,
    )
    app.state.services = Services(database, settings, engine=engine)
    app.state.hub = ProgressHub(database)
    for error in (ForagerError, RequestValidationError, HTTPException):
        app.add_exception_handler(error, answer_with_problem)
    app.include_router(health.router)
    app.include_router(reference.router, prefix="/api")
    checks = [Depends(refuse_unknown_query)]
    for router in ROUTERS:
        app.include_router(router, prefix=API, dependencies=checks)
    app.include_router(crawls.aliases, prefix="/api", dependencies=checks)
    app.openapi = lambda: describe(app)  # type: ignore[method-assign]
    return app


def _operation_id(route: APIRoute) -> str:
    """Stable: the tag and the name of the function."""
    return "_".join([*map(str, route.tags[-1:]), route.name]).replace(" ", "_")


def _middleware(settings: Settings, database: Database) -> list[Middleware]:
    """From the outside in: each may refuse what the next then never sees."""
    return [
        Middleware(Observation),
        Middleware(RequestIds),
        Middleware(RequestLimit, max_requests=settings.api_max_requests),
        Middleware(Origins, names=names_of(settings)),
        Middleware(
            Authentication,
            database=database,
            metrics_open=settings.metrics_open,
            permits=Permits(database, settings.api_requests_per_minute),
        ),
        Middleware(BodyLimit, max_bytes=int(settings.api_max_body_mb * 1_000_000)),
        Middleware(Conditional),
    ]
