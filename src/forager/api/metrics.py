"""`/metrics`: what Prometheus asks for. One server answers for all processes of an installation."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from forager.api.services import Here
from forager.metrics.scrape import CONTENT_TYPE, Scrape, open_scrape

router = APIRouter(tags=["health"])


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
