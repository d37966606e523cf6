"""Export of a generation: markdown as files or JSON lines, and llms.txt."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, cast
from uuid import UUID, uuid4
from zipfile import ZIP_DEFLATED, ZipFile

import orjson

from forager.db.database import Database
from forager.documents.generation import Generation, Source
from forager.documents.publication import existing_source, readable_generation
from forager.documents.reader import INDEXED_PATH, ReadPage
from forager.documents.search.store import select_published
from forager.documents.store import generations, reads
from forager.errors import ForagerError, InvalidInput, NotAllowed
from forager.extract.markdown.escape import escape_text
from forager.extract.markdown.links import LinkStyle
from forager.extract.markdown.scan import plain_heading
from forager.extract.text import clip, collapse, storable
from forager.hints import Hint, Option
from forager.permissions import PRIVATE_FOLDER
from forager.row_files import CountingFile, DrainableFile, file_parts

AT_ONCE = 100
# the directory at the end of a zip file is kept in memory
MAX_ZIPPED = 100_000
# in every exported folder: only such a folder is ever replaced
MARKER = ".forager-export.json"
LONGEST_NAME = 120
_UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"\\|?*]')
_PAGE_SUFFIX = re.compile(r"\.(?:x?html?|md|txt|php|aspx?)$", re.IGNORECASE)


class PageFormat(StrEnum):
    """The format of an export of pages."""

    MARKDOWN = "markdown"  # one JSON object per line; the command line also writes a folder
    PARQUET = "parquet"  # one row per page, with its markdown
    LLMS = "llms"  # llms.txt: a list of links
    LLMS_FULL = "llms-full"  # llms-full.txt: everything in one text


@dataclass(frozen=True, slots=True)
class PageExport:
    """The pages of one generation, by path."""

    source: Source
    generation: Generation
    links: LinkStyle = LinkStyle.ABSOLUTE

    @property
    def pages(self) -> int:
        return self.generation.pages


async def find_source(database: Database, name: str) -> str | None:
    """The source of this name, or its only published version (`cpp@17` for `cpp`)."""
    async with database.connection() as connection:
        if await generations.select_source(connection, name) is not None:
            return name
        found = [each.source_id for each in await select_published(connection, name, None)]
    if len(found) > 1:
        raise InvalidInput(
            f"source {name} has several versions: {', '.join(sorted(found))}",
            hint="Name one of them.",
        )
    return found[0] if found else None


async def open_export(
    database: Database,
    source_id: str,
    number: int | None = None,
    links: LinkStyle = LinkStyle.ABSOLUTE,
) -> PageExport:
    """A generation of a source by its number; by default the published one."""
    async with database.connection() as connection:
        source = await existing_source(connection, source_id)
        generation = await readable_generation(connection, source, number)
        return PageExport(source, generation, links)


async def job_export(database: Database, job_id: UUID) -> PageExport:
    """The pages of the generation that a job has completed."""
    async with database.connection() as connection:
        found = (await generations.select_generations_of_jobs(connection, [job_id])).get(job_id)
        if found is None or not found.is_complete:
            raise NotAllowed(
                f"job {job_id} has no pages to export as markdown: it is not complete, it keeps no"
                " documents, or its generation was deleted"
            )
        return PageExport(await existing_source(connection, found.source_id), found)


async def exported_pages(database: Database, export: PageExport) -> AsyncIterator[ReadPage]:
    """All pages with their sections. Memory does not grow with the source."""
    generation_id, after = export.generation.id, ("", 0)
    while True:
        async with database.connection() as connection:
            rows = await reads.select_documents(
                connection, export.source.id, generation_id, after=after, prefix="", limit=AT_ONCE
            )
            sections = await reads.select_sections(connection, [row.id for row in rows])
            if not await generations.generation_is_readable(connection, generation_id):
                raise InvalidInput("the generation was deleted meanwhile", hint="Export again.")
        for row in rows:
            yield ReadPage(row, sections.get(row.id, [])).with_links(export.links)
        if len(rows) < AT_ONCE:
            return
        after = (rows[-1].path[:INDEXED_PATH], rows[-1].id)


async def export_parts(
    database: Database, export: PageExport, format_: PageFormat
) -> AsyncIterator[bytes]:
    """One file, a part at a time."""
    if format_ is PageFormat.PARQUET:
        async for part in file_parts(format_, _COLUMNS, _rows(database, export)):
            yield part
        return
    render, head = _RENDERERS[format_]
    yield head(export).encode()
    folder = ""
    suffix = await _common_suffix(database, export) if format_ is not PageFormat.MARKDOWN else ""
    async for each in exported_pages(database, export):
        page = _without_suffix(each, suffix)
        if format_ is PageFormat.LLMS and folder != (folder := _folder(page)):
            yield f"\n## {escape_text(folder)}\n\n".encode()
        yield render(page).encode("utf-8", "replace")


_COLUMNS = {
    "url": "string",
    "title": "string",
    "language": "string",
    "source": "string",
    "generation": "int32",
    "fetched_at": "timestamp",
    "content_hash": "string",
    "markdown": "string",
}


async def _rows(database: Database, export: PageExport) -> AsyncIterator[list[dict[str, Any]]]:
    rows: list[dict[str, Any]] = []
    async for page in exported_pages(database, export):
        record = page_record(page) | {"markdown": storable(page.markdown)}
        rows.append({name: record[name] for name in _COLUMNS})
        if len(rows) == AT_ONCE:
            yield rows
            rows = []
    yield rows


async def zip_parts(
    database: Database, export: PageExport, progress: Callable[[int], None] = lambda _: None
) -> AsyncIterator[bytes]:
    """The files of `export_folder` as one zip file, a part at a time."""
    if export.generation.pages > MAX_ZIPPED:
        raise InvalidInput(
            f"a zip file has at most {MAX_ZIPPED:,} pages, and these are"
            f" {export.generation.pages:,}",
            hint="Export JSON lines instead.",
        )
    written, used = DrainableFile(), set[str]()
    file = cast("BinaryIO", CountingFile(written))
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        async for page in exported_pages(database, export):
            text = as_file(page).encode("utf-8", "replace")
            await asyncio.to_thread(archive.writestr, file_name(page, used), text)
            progress(1)
            yield written.take()
    yield written.take()


def page_record(page: ReadPage) -> dict[str, Any]:
    """The metadata of a page; a section is at `url#anchor`."""
    document = page.document
    return {
        "url": document.url,
        "title": document.title,
        "language": document.language,
        "source": document.source_id,
        "generation": document.generation_number,
        "fetched_at": document.fetched_at,
        "content_hash": document.content_hash.hex(),
        "sections": [
            {"heading": section.heading, "level": section.level, "anchor": section.anchor}
            for section in page.sections
            if section.heading
        ],
    }


def _json(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_UTC_Z).decode("utf-8", "replace")


def _json_line(page: ReadPage) -> str:
    return _json(page_record(page) | {"markdown": page.markdown}) + "\n"


def as_file(page: ReadPage) -> str:
    """Markdown behind front matter; JSON values are YAML as well."""
    lines = [f"{name}: {_json(value)}" for name, value in page_record(page).items()]
    return "\n".join(["---", *lines, "---", "", page.markdown])


def _title(page: ReadPage) -> str:
    return escape_text(collapse(page.document.title or page.document.path))


def _folder(page: ReadPage) -> str:
    """The first segment of a page's path, under which llms.txt lists it."""
    first, slash, _ = page.document.path.lstrip("/").partition("/")
    return first if slash and first else "Pages"


def _head(export: PageExport) -> str:
    generation = export.generation
    return (
        f"# {escape_text(export.source.id)}\n\n> {export.pages} pages crawled from"
        f" {export.source.base_url}, generation {generation.number} of"
        f" {generation.created_at:%Y-%m-%d}.\n"
    )


def _link(page: ReadPage) -> str:
    described = f": {text}" if (text := _description(page)) else ""
    return f"- [{_title(page)}](<{page.document.url}>){described}\n"


# the name of a site behind a title, which most of its titles share
_SUFFIX = re.compile(r".(\s+[-|:·•»«/\u2013\u2014]\s+[^|·•»«]{1,100})$")
SUFFIX_SAMPLE = 200
SUFFIX_SHARE = 0.5


async def _common_suffix(database: Database, export: PageExport) -> str:
    """The text at the end of most titles, such as " - Example docs"; empty if there is none."""
    async with database.connection() as connection:
        rows = await reads.select_documents(
            connection,
            export.source.id,
            export.generation.id,
            after=("", 0),
            prefix="",
            limit=SUFFIX_SAMPLE,
        )
    found = Counter(match[1] for row in rows if (match := _SUFFIX.search(row.title or "")))
    [(suffix, count)] = found.most_common(1) or [("", 0)]
    return suffix if count > 1 and count > SUFFIX_SHARE * len(rows) else ""


def _without_suffix(page: ReadPage, suffix: str) -> ReadPage:
    title = page.document.title
    if not suffix or title is None or not title.endswith(suffix):
        return page
    return replace_fields(page, document=replace_fields(page.document, title=title[: -len(suffix)]))


_SENTENCE = re.compile(r"(.+?[.!?。](?=\s|$))", re.DOTALL)
_NO_PROSE = re.compile(r"[#>|`*+\-~!<\[]|\d+[.)]\s|\s{4}")
MAX_DESCRIPTION = 200
LEAST_DESCRIPTION = 20  # characters


def _description(page: ReadPage) -> str:
    """The first sentence of a page, as plain text; empty if it has none."""
    for section in page.sections[:5]:
        for block in section.content[:20_000].split("\n\n"):
            text = collapse(plain_heading(block))
            if _NO_PROSE.match(block) or len(text) < LEAST_DESCRIPTION:
                continue
            sentence = _SENTENCE.match(text)
            return escape_text(clip(sentence[1] if sentence else text, MAX_DESCRIPTION)[0])
    return ""


def _full(page: ReadPage) -> str:
    return f"\n---\n\nURL: <{page.document.url}>\nTitle: {_title(page)}\n\n{page.markdown}"


_RENDERERS: dict[PageFormat, tuple[Callable[[ReadPage], str], Callable[[PageExport], str]]] = {
    PageFormat.MARKDOWN: (_json_line, lambda _: ""),
    PageFormat.LLMS: (_link, _head),
    PageFormat.LLMS_FULL: (_full, _head),
}


# --- a folder ----------------------------------------------------------------------------------


async def export_folder(
    database: Database,
    export: PageExport,
    target: Path,
    *,
    replace: bool,
    progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Write one markdown file per page, in the folders of the site; return their number.

    The target appears when it is complete.
    """
    used: set[str] = set()
    with _whole_folder(target, replace=replace) as folder:
        about = {"source": export.source.id, "generation": export.generation.number}
        _write_file(folder / MARKER, _json(about))
        async for page in exported_pages(database, export):
            _write_file(folder / file_name(page, used), as_file(page))
            progress(1)
    return len(used)


@contextmanager
def _whole_folder(target: Path, *, replace: bool) -> Iterator[Path]:
    """Write beside the target, and put it in place when the block ends without an error."""
    _refuse(target, replace)
    part = target.with_name(f".{target.name[:100]}.{uuid4().hex[:8]}.part")
    old = part.with_suffix(".old")
    try:
        part.mkdir(mode=PRIVATE_FOLDER)
        yield part
        _refuse(target, replace)
        if target.exists():
            target.rename(old)
        part.rename(target)
    except OSError as error:
        raise ForagerError(f"{target} cannot be written: {error.strerror or error}") from error
    finally:
        for left in (part, old):
            shutil.rmtree(left, ignore_errors=True)


def _write_file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", errors="replace")


def _refuse(target: Path, replace: bool) -> None:
    if not target.parent.is_dir():
        raise InvalidInput(f"the folder {target.parent} does not exist", hint="Make it first.")
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not (target / MARKER).is_file():
        raise NotAllowed(f"{target} exists and is not an export", hint="Name another folder.")
    if not replace:
        raise NotAllowed(
            f"{target} exists already", hint=Hint("Use {} to replace it.", Option("force"))
        )


def file_name(page: ReadPage, used: set[str]) -> str:
    """The file of a page in the folder: safe on every file system, and never used twice."""
    steps = [_step(step) for step in page.document.path.split("/") if step]
    if page.document.path.endswith("/") or not steps:
        steps.append("index")
    *folders, last = steps
    # a folder of this name would conflict with a file
    folders = [f"{step}_" if step.casefold().endswith(".md") else step for step in folders]
    name = "/".join([*folders, _PAGE_SUFFIX.sub("", last) or "index"])
    if "?" in page.document.url or f"{name}.md".casefold() in used:
        name += "-" + _digest(page.document.url)
    used.add(f"{name}.md".casefold())
    return f"{name}.md"


def _step(text: str) -> str:
    """One folder or file: no hidden ones, no reserved characters, not too long."""
    safe = _UNSAFE.sub("_", text).rstrip(". ") or "_"
    if len(safe.encode("utf-8", "replace")) > LONGEST_NAME:
        safe = safe.encode("utf-8", "replace")[:80].decode("utf-8", "ignore") + "-" + _digest(text)
    return f"_{safe}" if safe.startswith(".") else safe


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
