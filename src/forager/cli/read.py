"""`forager read`: a page as markdown, or one section of it."""

from __future__ import annotations

from typing import Annotated

import typer

from forager.cli.options import AsJson
from forager.cli.output import note, show_json, write
from forager.cli.running import with_database
from forager.cli.words import clean, short_time


def read(
    context: typer.Context,
    url: Annotated[str, typer.Argument(metavar="URL", help="The URL of a crawled page.")],
    source: Annotated[
        str | None, typer.Option(help="Of this source.", show_default="the one fetched last")
    ] = None,
    section: Annotated[
        str | None,
        typer.Option(help="Only this section and what is below it: its anchor or heading."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the published markdown of a page, or of one of its sections."""
    from forager.documents.reader import as_markdown, read_page, section_of

    page = with_database(context, lambda db, _: read_page(db, url, source_id=source))
    if page.duplicate:
        note(f"{page.duplicate} repeats {page.document.url}: this is that page")
    if page.document.carried_since:
        since = short_time(page.document.carried_since)
        note(f"carried over: the page fails since {since} ({page.document.carried_reason})")
    sections = page.sections if section is None else section_of(page, section)
    markdown = as_markdown(sections)
    if not as_json:
        return write(clean(markdown).encode("utf-8", "replace"))
    return show_json(
        {
            "url": page.document.url,
            "duplicate": page.duplicate,
            "title": page.document.title,
            "language": page.document.language,
            "source_id": page.document.source_id,
            "fetched_at": page.document.fetched_at,
            "markdown": markdown,
            "sections": sections,
        }
    )
