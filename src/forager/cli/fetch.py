"""`forager fetch`: one response, as the crawler sees it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forager.cli.crawl import checked_options
from forager.cli.crawl_flags import parse_headers
from forager.cli.flags import flags_of
from forager.cli.options import AsJson
from forager.cli.output import say, show_json, write

if TYPE_CHECKING:
    from forager.crawl.explain.probe import Probe
    from forager.crawl.options import CrawlOptions
    from forager.settings import Settings


def fetch(
    context: typer.Context,
    url: Annotated[str, typer.Argument(help="What to fetch.")],
    *,
    user_agent: Annotated[
        str | None, typer.Option(help="How to name the crawler.", show_default="setting")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option(help="Send a header, 'Name: value' (repeatable).")
    ] = None,
    proxy: Annotated[
        str | None, typer.Option(help="Fetch through http://, https:// or socks5:// proxy.")
    ] = None,
    allow_private: Annotated[
        bool, typer.Option("--allow-private", help="Allow private and loopback addresses.")
    ] = False,
    body: Annotated[bool, typer.Option("--body", help="Print the body and nothing else.")] = False,
    as_json: AsJson = False,
) -> None:
    """Fetch one URL and show what the crawler sees: headers, timing, robots verdict, redirects."""
    options = checked_options(
        {
            "urls": [url],
            "strategy": "single",
            "user_agent": user_agent,
            "headers": parse_headers(header or []),
            "proxy": proxy,
            "allow_private": allow_private,
        }
    )
    settings = flags_of(context).load()
    result = asyncio.run(_fetch(settings, options))
    if body:
        write(result.response.body)
    elif as_json:
        show_json(_as_json(result))
    else:
        _show(result)


async def _fetch(settings: Settings, options: CrawlOptions) -> Probe:
    from forager.crawl.explain.probe import probe
    from forager.db.database import open_database

    async with open_database(settings, name="forager fetch") as database:
        return await probe(database, settings, options)


def _as_json(result: Probe) -> dict[str, Any]:
    response, facts = result.response, result.facts
    answer: dict[str, Any] = {
        "url": response.url,
        "status": response.status,
        "problem": result.problem,
        "redirects": [{"url": hop.url, "status": hop.status} for hop in result.hops],
        "robots": result.robots,
        "headers": [list(pair) for pair in response.headers.items()],
        "timing": response.timing,
        "peer": response.peer,
        "http_version": response.http_version,
        "size": len(response.body),
        "wire_size": response.wire_size,
    }
    if facts is not None:
        answer["page"] = {
            "kind": facts.kind,
            "encoding": facts.encoding,
            "title": facts.title,
            "language": facts.language,
            "canonical": facts.canonical,
            "noindex": facts.directives.noindex,
            "nofollow": facts.directives.nofollow,
            "links": len(facts.outlinks.links),
            "needs_javascript": facts.needs_javascript,
            "soft_error": facts.soft_error,
            "truncated": facts.truncated,
        }
    return answer


def _show(result: Probe) -> None:
    response, timing = result.response, result.response.timing
    for hop in result.hops:
        say(f"{hop.status} {hop.url}")
    say(f"{response.status} {response.reason} {response.url}", "bold")
    if result.problem:
        say(f"problem: {result.problem}")
    robots = "allowed" if result.robots.allowed else "not allowed"
    say(f"robots.txt: {robots} ({result.robots.reason})")
    connected = "" if timing.connect is None else f"connected in {timing.connect * 1000:.0f} ms, "
    say(
        f"{connected}first byte after {timing.first_byte * 1000:.0f} ms,"
        f" complete after {timing.total * 1000:.0f} ms; {len(response.body):,} bytes"
        f" ({response.wire_size:,} on the wire) from {response.peer}, HTTP/{response.http_version}"
    )
    for name, value in response.headers.items():
        say(f"  {name}: {value}")
    page = _as_json(result).get("page", {})
    if page:
        say("page", "bold")
    for name, value in page.items():
        if value not in (None, False, ()):
            say(f"  {name.replace('_', ' ')}: {value}")
