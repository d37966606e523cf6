"""`/healthz`: the process answers. `/readyz`: and it can do its work."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from forager import __version__
from forager.api.services import Here
from forager.db.readiness import readiness

router = APIRouter(tags=["health"])


class Health(BaseModel):
    status: Literal["alive"]
    version: str


class Ready(BaseModel):
    """Whether requests can be answered; `schema` and `expected_schema` must be the same."""

    ready: bool
    database: bool
    schema_version: str | None = Field(examples=["0001"])
    expected_schema_version: str = Field(examples=["0001"])


@router.get("/healthz")
async def alive() -> Health:
    """Is the process alive? Says nothing about the database."""
    return Health(status="alive", version=__version__)


@router.get("/readyz", responses={503: {"model": Ready, "description": "Not ready"}})
async def ready(here: Here, response: Response) -> Ready:
    """Is the database there, and at the schema that this Forager needs?"""
    found = await readiness(here.database)
    response.status_code = 200 if found.ready else 503
    return Ready(
        ready=found.ready,
        database=found.database,
        schema_version=found.schema,
        expected_schema_version=found.expected_schema,
    )
