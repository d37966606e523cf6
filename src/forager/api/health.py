"""`/healthz`: the process is alive. `/readyz`: it can work. `/metrics`: for Prometheus."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, Field

from forager import __version__
from forager.api.services import Here
from forager.db.schema import readiness
from forager.metrics.scrape import CONTENT_TYPE, Scrape, open_scrape
from forager.services.supervisor import statuses_of_this_process

router = APIRouter(tags=["health"])


class Health(BaseModel):
    status: Literal["alive"]
    version: str


class Ready(BaseModel):
    """Whether requests can be answered; `schema` and `expected_schema` must be the same."""

    ready: bool
    database: bool
    schema_version: str | None = Field(examples=["0002"])
    expected_schema_version: str = Field(examples=["0002"])
    failing_services: list[str] = Field(
        description="Background services of this process that failed several times in a row, or"
        " are stuck.",
        examples=[["scheduler"]],
    )


@router.get("/healthz")
async def alive() -> Health:
    """Is the process alive? Says nothing about the database."""
    return Health(status="alive", version=__version__)


@router.get("/readyz", responses={503: {"model": Ready, "description": "Not ready"}})
async def ready(here: Here, response: Response) -> Ready:
    """Is the database available at the right schema, and do the services of this process run?

    A service that fails because something outside of Forager is unavailable is listed, and does
    not make the process unready. A service whose step never ends does.
    """
    found = await readiness(here.database)
    failing = [each for each in statuses_of_this_process() if each.is_failing]
    is_ready = found.ready and not any(each.is_fault or each.is_stuck for each in failing)
    response.status_code = 200 if is_ready else 503
    return Ready(
        ready=is_ready,
        failing_services=sorted(each.name for each in failing),
        database=found.database,
        schema_version=found.schema,
        expected_schema_version=found.expected_schema,
    )


def _scrape(request: Request, here: Here) -> Scrape:
    """One for the application: it remembers what was dear to read."""
    state = request.app.state
    if not hasattr(state, "scrape"):
        state.scrape = open_scrape(here.database, here.settings)
    scrape: Scrape = state.scrape
    return scrape


@router.get("/metrics", include_in_schema=False)
async def metrics(scrape: Annotated[Scrape, Depends(_scrape)]) -> Response:
    """Counters, histograms and gauges, in Prometheus' text format."""
    return Response(await scrape.text(), headers={"Content-Type": CONTENT_TYPE})
