"""`forager products track`: keep URLs fresh, from the command line or from a file."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

import typer

from forager.cli.options import AsJson, argument, option, switch
from forager.cli.output import counted, note, on_one_line, say, show_json
from forager.cli.running import with_services
from forager.errors import InvalidInput
from forager.settings.crawling import parse_render
from forager.tasks.imports import FileFormat, read_requests
from forager.tasks.service import Tasks
from forager.tasks.task import parse_at, parse_every
from forager.tasks.tracking import Tracked
from forager.tasks.tracking_request import BadLine, BadRow, RequestedTerms, TrackRequest

STDIN = "-"


def track(
    context: typer.Context,
    urls: list[str] | None = argument("Product pages.", metavar="[URL]..."),
    every: str | None = option("Recrawl interval: 30m, 6h, 1d, 1w.", show_default="the domain's"),
    priority: int | None = option("Higher runs first.", min=0, max=9, show_default="5"),
    popularity: float | None = option(
        "Breaks ties between tasks: higher runs first.", show_default="0"
    ),
    at: str | None = option("First visit at this time: 2026-11-16T08:30.", metavar="TIME"),
    retries: int | None = option("Retries of a visit.", min=0, max=1000, show_default="3"),
    render: str | None = option(
        "Render pages in a browser: those without a price (auto), always, or never.",
        metavar="auto|always|never",
        show_default="the domain's",
    ),
    file: str | None = option(
        "A CSV file with a header (url, priority, every, popularity, at, max_retries, render),"
        " JSON lines with these keys, or a list of URLs; # begins a comment, - reads standard"
        " input.",
        "--from",
        metavar="FILE",
    ),
    format_: FileFormat | None = option(
        "Format of the file.", "--format", show_default="by its suffix, else list"
    ),
    errors: Path | None = option("Write all rejected lines to this file.", metavar="FILE"),
    allow_private: bool = switch(
        "Allow private addresses; stored with the domains.", "--allow-private"
    ),
    as_json: AsJson = False,
) -> None:
    """Track product pages. Options also apply to pages that are tracked already."""
    if bool(urls) == (file is not None):
        raise InvalidInput(
            "give URLs, or a file with --from" if not urls else "give URLs or --from, not both"
        )
    terms = RequestedTerms(
        priority,
        None if every is None else parse_every(every),
        popularity,
        None if at is None else parse_at(at),
        retries,
        None if render is None else parse_render(render),
    )
    tracked = with_services(
        context,
        lambda services: _track(
            services.tasks, urls or [], file, format_, errors, terms, allow_private
        ),
    )
    _show(tracked, as_json=as_json, errors=errors, from_file=file is not None)


async def _track(
    tasks: Tasks,
    urls: list[str],
    file: str | None,
    format_: FileFormat | None,
    errors: Path | None,
    terms: RequestedTerms,
    allow_private: bool,
) -> Tracked:
    with ExitStack() as files:
        requests = (
            (TrackRequest(number, url) for number, url in enumerate(urls, start=1))
            if file is None
            else read_requests(files.enter_context(_opened(file)), file, format_)
        )
        refused = files.enter_context(_rejected_to(errors))
        return await tasks.track_requests(
            requests,
            terms=terms,
            allow_private=allow_private,
            found_by="person" if file is None else "file",
            on_bad=refused,
        )


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    if file == STDIN:
        yield sys.stdin.buffer
        return
    try:
        stream = Path(file).open("rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}") from None
    with stream:
        yield stream


@contextmanager
def _rejected_to(path: Path | None) -> Iterator[Callable[[BadLine], None] | None]:
    """A function that writes each rejected line to a file, if one is given.

    Lines of a CSV file keep all their columns, so that they can be corrected and imported again.
    """
    if path is None:
        yield None
        return
    try:
        stream = path.open("w", encoding="utf-8", newline="")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}") from None
    with stream:
        writer = csv.writer(stream)
        columns: list[str] = []

        def write(bad: BadLine) -> None:
            cells = bad.cells if isinstance(bad, BadRow) else {}
            if not columns:
                columns.extend(cells)
                writer.writerow((*columns, "line", "reason", "text"))
            writer.writerow((*map(cells.get, columns), bad.line, bad.reason, bad.text))

        yield write


def _show(tracked: Tracked, *, as_json: bool, errors: Path | None, from_file: bool) -> None:
    if as_json:
        show_json(tracked)
    else:
        say(_summary(tracked))
        _note_bad(tracked, errors, "line" if from_file else "URL")
    if tracked.bad and not tracked.kept:
        first = tracked.first_bad[0]
        raise InvalidInput(f"nothing can be tracked: {on_one_line(first.text)}: {first.reason}")


def _summary(tracked: Tracked) -> str:
    parts = [f"{counted(tracked.added, 'task')} added"]
    if tracked.known:
        changed = f", {tracked.updated} of them changed" if tracked.updated else ""
        parts.append(f"{tracked.known} tracked already{changed}")
    if tracked.bad:
        parts.append(f"{tracked.bad} refused")
    return "; ".join(parts)


def _note_bad(tracked: Tracked, errors: Path | None, what: str) -> None:
    for bad in tracked.first_bad:
        note(f"{what} {bad.line}: {bad.reason}: {on_one_line(bad.text)}")
    more = tracked.bad - len(tracked.first_bad)
    if more and errors is None:
        note(f"and {more} more; --errors FILE writes them all")
    if tracked.bad and errors is not None:
        note(f"all refused lines are in {errors}")
