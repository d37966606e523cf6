"""Command-line flags of a crawl, and of a single request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from forager.cli.model_flags import ModelFlags, given_values, parse_headers
from forager.cli.options import AllowPrivate, option
from forager.crawl.options import CrawlChoices

# the options of a crawl that were given, by name
GivenOptions = Annotated[
    dict[str, Any],
    ModelFlags(
        CrawlChoices,
        to=given_values,
        headers=typer.Option("--header", help="Send a header, 'Name: value' (repeatable)."),
        documents=typer.Option(
            "--no-documents", help="Keep only the archive and the ledger: no sections, no search."
        ),
    ),
]


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """Options of a single request."""

    user_agent: str | None = option("User agent to send.", show_default="setting")
    header: list[str] | None = option("Send a header, 'Name: value' (repeatable).")
    proxy: str | None = option("Fetch through this http://, https:// or socks5:// proxy.")
    allow_private: AllowPrivate = False

    def payload(self, url: str) -> dict[str, Any]:
        """The options of a crawl of this URL alone."""
        return {
            "urls": [url],
            "strategy": "single",
            "user_agent": self.user_agent,
            "headers": parse_headers(self.header or []),
            "proxy": self.proxy,
            "allow_private": self.allow_private,
        }
