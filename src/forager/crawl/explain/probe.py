"""One response as the crawler sees it: headers, timing, robots verdict, redirects, facts."""

from __future__ import annotations

from dataclasses import dataclass

from forager.crawl.options import CrawlOptions
from forager.crawl.visit.gate import open_gate
from forager.db.database import Database
from forager.extract.page import PageFacts, extract_page
from forager.fetch.failure import classify_status
from forager.fetch.redirects import Hop, follow, page_url
from forager.fetch.response import Request, Response, agent_header
from forager.fetch.robots.gate import RobotsVerdict
from forager.fetch.robots.rules import product_token
from forager.render.finding import browser_path
from forager.render.limits import RenderLimits
from forager.render.renderer import RENDERED_TYPE, RenderedPage, Renderer
from forager.render.resources import ResourceLoader
from forager.settings import Settings


@dataclass(frozen=True, slots=True)
class Probe:
    """A response, and how the crawler would treat it."""

    response: Response
    hops: tuple[Hop, ...]
    robots: RobotsVerdict
    # None for answers that have no page
    facts: PageFacts | None
    # the meaning of the status for the crawl; None if the response can be used
    problem: str | None
    # the page as its scripts left it, on request
    rendered: RenderedPage | None = None


async def probe(
    database: Database,
    settings: Settings,
    options: CrawlOptions,
    *,
    body: bool = True,
    render: bool = False,
    screenshot: bool = False,
) -> Probe:
    """Fetch one URL like a crawl would, within the host's budget; robots.txt is only reported.

    With `render` its facts are those of the page in a browser; robots.txt holds for what it loads.
    """
    url = options.seeds[0]
    agent = agent_header(settings, options.user_agent)
    async with open_gate(database, settings, options) as gate:
        verdict = await gate.verdict(url)
        response, hops = await follow(gate, Request(url), _must_be_a_page)
        failure = classify_status(response.status, response.headers)
        rendered = None
        if render and failure is None:
            limits = RenderLimits.of(settings)
            loader = ResourceLoader.of(gate, gate.check, limits, user_agent=agent)
            async with Renderer(browser_path(settings), limits) as renderer:
                rendered = await renderer.render(response, loader, screenshot=screenshot)
    facts = None
    if body and failure is None and response.body:
        facts = extract_page(
            rendered.html if rendered else response.body,
            response.url,
            RENDERED_TYPE if rendered else response.headers.get("Content-Type"),
            response.headers.items(),
            product_token(agent),
        )
    problem = None if failure is None else failure.message
    return Probe(response, hops, verdict, facts, problem, rendered)


async def _must_be_a_page(url: str) -> None:
    page_url(url)
