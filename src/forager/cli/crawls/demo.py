"""`forager demo`: crawl the small site that comes with Forager."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from forager.cli.crawls.crawl import crawl_in_foreground
from forager.cli.crawls.search import find, show_hits
from forager.cli.failures import OK
from forager.cli.flags import flags_of
from forager.cli.options import AsJson
from forager.cli.output import note, say
from forager.demo import PORT

if TYPE_CHECKING:
    from forager.settings import Settings

SOURCE = "demo"
EXAMPLE = "ledger balance"


def demo(
    context: typer.Context,
    serve: Annotated[
        bool, typer.Option("--serve", help="Only serve the site, until Ctrl-C.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on loopback; a free one if it is taken.")
    ] = PORT,
    as_json: AsJson = False,
) -> None:
    """Crawl the small documentation site bundled with Forager, served on loopback."""
    from forager.crawl.options import crawl_options
    from forager.demo.server import demo_site

    settings = flags_of(context).load()
    with demo_site(port) as url:
        note(f"serving the bundled site at {url}")
        if serve:
            asyncio.run(_until_interrupted())
            return
        options = crawl_options({"urls": [url], "allow_private": True})
        code = asyncio.run(
            crawl_in_foreground(settings, options, source=SOURCE, priority=0, as_json=as_json)
        )
    if code == OK and not as_json:
        _show_search(settings)
    raise typer.Exit(code)


def _show_search(settings: Settings) -> None:
    """What the crawl was for: its pages can be searched."""
    from forager.documents.search import SearchRequest

    say(f'\n$ forager search "{EXAMPLE}" --source {SOURCE}', "bold")
    request = SearchRequest(query=EXAMPLE, source=SOURCE, limit=3)
    show_hits(asyncio.run(find(settings, request)))


async def _until_interrupted() -> None:
    await asyncio.Event().wait()
