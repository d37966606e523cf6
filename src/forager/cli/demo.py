"""`forager demo`: crawl the small site that comes with Forager."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from forager.cli.crawl import crawl_in_foreground
from forager.cli.flags import flags_of
from forager.cli.options import AsJson
from forager.cli.output import note

SOURCE = "demo"


def demo(
    context: typer.Context,
    serve: Annotated[
        bool, typer.Option("--serve", help="Only serve the site, until Ctrl-C.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on loopback; 0 takes a free one.")
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Crawl a small documentation site that comes with Forager, served on loopback."""
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
    raise typer.Exit(code)


async def _until_interrupted() -> None:
    await asyncio.Event().wait()
