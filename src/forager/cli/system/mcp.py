"""`forager mcp`: the crawled documentation, for AI agents."""

from __future__ import annotations

from typing import Annotated

import typer

from forager.cli.flags import flags_of
from forager.cli.output import note, write
from forager.cli.running import run
from forager.mcp.clients import Client, client_config

GLOBAL_FLAGS = ("home", "database_url")


def mcp(
    context: typer.Context,
    print_config: Annotated[
        Client | None, typer.Option(help="Print how this client is connected, and exit.")
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Offer no tool that starts a crawl.")
    ] = False,
) -> None:
    """Serve the Model Context Protocol on standard input and output.

    `forager up` serves the same tools over HTTP, at /mcp.
    """
    if print_config is not None:
        given = flags_of(context).given
        named = [(name, given[name]) for name in GLOBAL_FLAGS if name in given]
        flags = [part for name, value in named for part in (f"--{name.replace('_', '-')}", value)]
        place, text = client_config(print_config, [str(part) for part in flags])
        note(f"{place}:")
        return write(f"{text}\n".encode())
    from forager.mcp.transports import serve_stdio

    settings = flags_of(context).load()
    return run(serve_stdio(settings, read_only=read_only))
