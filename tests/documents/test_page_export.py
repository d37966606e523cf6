"""Exports of a source: a folder, JSON lines, llms.txt; hostile names stay inside the folder."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet  # type: ignore[import-untyped]
import pytest
import yaml

from built_site import SOURCE, Crawls, pages
from forager.cli.crawls.export import pages_of
from forager.db.database import Database
from forager.documents.export import (
    MARKER,
    PageFormat,
    export_folder,
    export_parts,
    exported_pages,
    file_name,
    open_export,
)
from forager.documents.reader import ReadPage
from forager.errors import InvalidInput, NotAllowed, NotFound
from forager.extract.markdown.links import LinkStyle
from forager.jobs.queue import Queue
from forager.settings import Settings
from search_corpus import Corpus

SITE = {
    "/": [("Home", "Welcome.")],
    "/guide/start.html": [("Start", "Install it."), ("Next", "Run it.")],
    "/guide/start/": [("Start again", "Folder.")],
    "/guide/start.htm": [("Start thrice", "Twin.")],
    "/guide/start.md/more": [("More", "Below a name that is a file here.")],
}


@pytest.fixture
async def corpus(database: Database) -> Corpus:
    corpus = Corpus(database)
    await corpus.publish("docs.example", SITE)
    return corpus


async def text(database: Database, format_: PageFormat) -> str:
    export = await open_export(database, "docs.example")
    return b"".join([part async for part in export_parts(database, export, format_)]).decode()


async def test_a_folder_has_a_file_for_every_page(
    database: Database, corpus: Corpus, tmp_path: Path
) -> None:
    target = tmp_path / "docs"
    export = await open_export(database, "docs.example")
    assert await export_folder(database, export, target, replace=False) == 5
    files = {str(file.relative_to(target)) for file in target.rglob("*.md")}
    assert files >= {"index.md", "guide/start.md", "guide/start/index.md"}
    assert len(files) == 5
    _, front, markdown = (target / "guide/start.md").read_text().split("---\n", 2)
    about = yaml.safe_load(front)
    assert about["url"].startswith("https://docs.example/guide/start")
    assert (about["source"], about["generation"]) == ("docs.example", 1)
    assert {"heading", "level", "anchor"} == set(about["sections"][0])
    assert markdown.lstrip().startswith("# Start")
    assert list(tmp_path.iterdir()) == [target]


async def test_only_an_export_is_replaced(
    database: Database, corpus: Corpus, tmp_path: Path
) -> None:
    export = await open_export(database, "docs.example")
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "precious.txt").write_text("keep me")
    with pytest.raises(NotAllowed):
        await export_folder(database, export, mine, replace=True)
    assert (mine / "precious.txt").read_text() == "keep me"
    target = tmp_path / "docs"
    await export_folder(database, export, target, replace=False)
    (target / "old.md").write_text("of an earlier export")
    with pytest.raises(NotAllowed):
        await export_folder(database, export, target, replace=False)
    await export_folder(database, export, target, replace=True)
    assert not (target / "old.md").exists()
    assert (target / MARKER).exists()


async def test_names_stay_inside_the_folder(database: Database, corpus: Corpus) -> None:
    export = await open_export(database, "docs.example")
    [page, *_] = [page async for page in exported_pages(database, export)]
    used: set[str] = set()
    names = []
    for path in ("/../../etc/passwd", "/.git/config", "/a:b|c", "/" + "é" * 300, "//", "/A", "/a"):
        document = replace(page.document, path=path, url=f"https://docs.example{path}")
        names.append(file_name(ReadPage(document, page.sections), used))
    assert names[:3] == ["_/_/etc/passwd.md", "_.git/config.md", "a_b_c.md"]
    assert len(names) == len({name.casefold() for name in names})
    for name in names:
        assert not any(step.startswith(".") or len(step.encode()) > 255 for step in name.split("/"))


async def test_lines_and_llms_files(database: Database, corpus: Corpus) -> None:
    records = [json.loads(line) for line in (await text(database, PageFormat.MARKDOWN)).split("\n")
               if line]  # fmt: skip
    assert len(records) == 5
    assert records[0]["markdown"].startswith("# Home")
    listed = await text(database, PageFormat.LLMS)
    assert listed.startswith("# docs.example\n\n> 5 pages crawled from https://docs.example/")
    assert "## guide\n\n- [Start thrice](<https://docs.example/guide/start.htm>)\n" in listed
    full = await text(database, PageFormat.LLMS_FULL)
    assert full.count("\nURL: <https://docs.example/") == 5
    assert "Install it." in full


async def test_llms_files_leave_out_what_all_titles_share(database: Database) -> None:
    corpus = Corpus(database)
    pages = {
        "/a": [("Pumps - Example docs", "- A list\n\n# No\n\nA pump moves [water](/w). More.")],
        "/b": [("Valves - Example docs", "```sh\nvalve --open and --close\n```")],
        "/c": [("Tanks", "A tank holds what\nthe pump moves] (x)")],
    }
    await corpus.publish("docs.example", pages)
    lines = (await text(database, PageFormat.LLMS)).splitlines()[-3:]
    assert lines == [
        "- [Pumps](<https://docs.example/a>): A pump moves water.",
        "- [Valves](<https://docs.example/b>)",
        "- [Tanks](<https://docs.example/c>): A tank holds what the pump moves] (x)",
    ]
    assert "Title: Pumps\n" in await text(database, PageFormat.LLMS_FULL)


async def test_parquet_has_the_markdown(database: Database, corpus: Corpus) -> None:
    export = await open_export(database, "docs.example")
    parts = [part async for part in export_parts(database, export, PageFormat.PARQUET)]
    rows = pyarrow.parquet.read_table(io.BytesIO(b"".join(parts))).to_pylist()
    assert len(rows) == 5
    home = rows[0]
    assert (home["url"], home["title"]) == ("https://docs.example/", "Home")
    assert "Welcome." in home["markdown"]
    assert home["fetched_at"].tzinfo is not None


async def test_an_older_generation_can_be_exported(database: Database, corpus: Corpus) -> None:
    await corpus.publish("docs.example", {"/": [("Home", "Changed.")]})
    first = await open_export(database, "docs.example", 1)
    assert len([page async for page in exported_pages(database, first)]) == 5
    with pytest.raises(NotFound):
        await open_export(database, "docs.example", 9)


async def test_a_job_is_exported_by_its_id(
    database: Database, queue: Queue, settings: Settings
) -> None:
    crawl = await Crawls(database, queue, settings).start()
    await crawl.write(pages({"a": "alpha", "b": "beta"}))
    await crawl.finish()
    job = str(crawl.context.job.id)
    for name in (SOURCE, job, job[:18]):
        export = await pages_of(database, settings, name, None)
        assert (export.source.id, export.generation.number, export.pages) == (SOURCE, 1, 2)
    with pytest.raises(InvalidInput, match="--generation is for a source"):
        await pages_of(database, settings, job, 1)
    with pytest.raises(NotFound, match="no source or job abcdef"):
        await pages_of(database, settings, "abcdef", None)
    with pytest.raises(NotFound, match="no source nothing"):
        await pages_of(database, settings, "nothing", None)


async def test_the_beginning_of_several_job_ids_is_ambiguous(
    database: Database, queue: Queue, settings: Settings
) -> None:
    first, _ = [await Crawls(database, queue, settings, name).start() for name in ("one", "two")]
    shared = str(first.context.job.id)[:4]
    with pytest.raises(InvalidInput, match="several jobs begin with"):
        await pages_of(database, settings, shared, None)


async def test_a_source_that_is_named_like_a_job_lacks_a_generation(
    database: Database, corpus: Corpus, settings: Settings
) -> None:
    await corpus.publish("cafe", {"/": [("Home", "Coffee.")]})
    with pytest.raises(NotFound, match="generation 99"):
        await pages_of(database, settings, "cafe", 99)


async def test_links_are_absolute_or_relative(database: Database) -> None:
    content = "See [next](https://docs.example/guide/next.html#a)."
    await Corpus(database).publish("docs.example", {"/guide/start.html": [("Start", content)]})
    export = await open_export(database, "docs.example")

    for links, written in (
        (LinkStyle.ABSOLUTE, content),
        (LinkStyle.RELATIVE, "See [next](next.html#a)."),
    ):
        [page] = [page async for page in exported_pages(database, replace(export, links=links))]
        assert written in page.markdown
