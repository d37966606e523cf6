"""What the command palette finds: sources, jobs, hosts, products and settings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from typing import Annotated
from urllib.parse import quote

from fastapi import Query
from starlette.responses import JSONResponse, Response

from forager.documents.source_lookup import names_with
from forager.errors import InvalidInput
from forager.jobs.history import find_jobs
from forager.jobs.job import Move
from forager.products.filters import Filters
from forager.products.search import list_or_search
from forager.settings.loading import shown_settings
from forager.web.formats import short_id
from forager.web.job_view import moves_of
from forager.web.page import new_router
from forager.web.visit import ReaderVisit, WebVisit

router = new_router()

# of each kind
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Entry:
    """Something to go to, or an action with the fields of its form."""

    name: str
    href: str
    fields: dict[str, str] | None = None


@router.get("/palette/file", response_model=None)
async def find(visit: ReaderVisit, q: Annotated[str, Query(max_length=200)] = "") -> Response:
    """Names and paths of what contains the words."""
    text = q.strip()
    found = [entry async for entry in _found(visit, text)] if text else []
    return JSONResponse([asdict(entry) for entry in found])


async def _found(visit: WebVisit, text: str) -> AsyncIterator[Entry]:
    owner = visit.caller.sees_only
    for name in await names_with(visit.database, text, user_id=owner, limit=SHOWN):
        path = f"/sources/{quote(name, safe='')}"
        yield Entry(f"Source {name}", path)
        if visit.may_operate:
            yield Entry(f"Refresh {name} now", f"{path}/refresh", {})
    for job in await find_jobs(visit.database, text, user_id=owner, limit=SHOWN):
        name = f"Job of {job.source_id or job.kind}, {job.shown_status}, …{short_id(job.id)}"
        yield Entry(name, f"/jobs/{job.id}")
        for move in moves_of(job) if visit.may_operate else ():
            if move in (Move.PAUSE, Move.RESUME):
                words = f"{move.capitalize()} job of {job.source_id or job.kind}"
                yield Entry(words, f"/jobs/{job.id}/move", {"move": move.value})
    if visit.may_operate:
        for host in (await visit.domains.list_domains(text=text, limit=SHOWN)).items:
            path = f"/domains/{quote(host.domain_name, safe='')}"
            yield Entry(f"Host {host.domain_name}", path)
            traffic = "resume" if host.task_hold or host.traffic_delay is not None else "pause"
            words = f"{traffic.capitalize()} all work at {host.domain_name}"
            yield Entry(words, f"{path}/traffic", {"traffic": traffic})
    async for entry in _products(visit, text):
        yield entry
    if visit.may_administer:
        for name in _settings(visit, text):
            yield Entry(f"Setting {name}", f"/settings#s-{name}")


async def _products(visit: WebVisit, text: str) -> AsyncIterator[Entry]:
    try:
        found = await list_or_search(
            visit.database, text, Filters(), cursor=None, limit=SHOWN, engine=visit.engine
        )
    except InvalidInput:
        return
    for product in found.items:
        yield Entry(f"Product {product.name[:100]}, {product.domain}", f"/products/{product.id}")


def _settings(visit: WebVisit, text: str) -> list[str]:
    words = text.lower().replace("_", " ").split()
    names = (each.name for each in shown_settings(visit.settings))
    return [n for n in names if all(word in n.replace("_", " ") for word in words)][:SHOWN]
