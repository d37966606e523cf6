"""Two versions of a tool are two sources: their pages, or one page or section, are compared."""

from __future__ import annotations

import pytest

from documents.searching import Look
from forager.db.database import Database
from forager.db.ids import new_id
from forager.documents import diff as differences
from forager.documents.diff import Diff, Roots, diff_generations, matching_roots
from forager.documents.reader import read_page
from forager.documents.sources import get_other_source, get_source
from forager.errors import InvalidInput, NotFound
from search_corpus import Corpus, Page

OLD, NEW = "tool@3.12", "tool@3.13"


def url(source: str, path: str) -> str:
    return f"https://{source}{path}"


def pages(version: str, **changed: str) -> dict[str, Page]:
    """A site below /VERSION/ whose links and titles name the version."""
    texts = {"index": "Start here.", "json": "Reads JSON.", "ast": "Trees.", **changed}
    return {
        f"/{version}/library/{name}.html": Page(
            [
                ("", "Part of it."),
                ("Reading", f"{text} See [start](https://tool@{version}/{version}/library/)."),
                ("Limits", "Up to 10 MB."),
            ],
            title=f"{name} - Tool {version}",
        )
        for name, text in texts.items()
    }


@pytest.fixture
async def versions(corpus: Corpus) -> None:
    await corpus.publish(OLD, pages("3.12", gone="Old."))
    await corpus.publish(NEW, pages("3.13", json="Reads and writes JSON.", new="New."))


def names(diff: Diff) -> dict[str, list[str]]:
    listed = {"added": diff.added, "removed": diff.removed, "changed": diff.changed}
    return {
        kind: [page.url.rpartition("/")[2].removesuffix(".html") for page in found]
        for kind, found in listed.items()
    }


@pytest.mark.usefixtures("versions")
async def test_pages_are_matched_below_the_version(database: Database) -> None:
    diff = await diff_generations(database, NEW, against=OLD)
    assert names(diff) == {"added": ["new"], "removed": ["gone"], "changed": ["json"]}
    assert (diff.against, diff.source_id, diff.old, diff.new) == (OLD, NEW, 1, 1)
    assert diff.changed[0].old_url == url(OLD, "/3.12/library/json.html")
    assert diff.changed[0].sections == []


@pytest.mark.usefixtures("versions")
async def test_sections_without_links_and_titles_that_name_the_version(database: Database) -> None:
    diff = await diff_generations(database, NEW, against=OLD, with_sections=True)
    [section] = diff.changed[0].sections
    assert (section.kind, section.heading) == ("changed", "Reading")
    assert section.diff.splitlines()[4:] == [
        "-Reads JSON. See [start](/library/).",
        "+Reads and writes JSON. See [start](/library/).",
    ]


@pytest.mark.usefixtures("versions")
@pytest.mark.parametrize("version", ["3.12", "3.13"])
async def test_one_page_is_named_by_its_path_in_either_source(
    database: Database, version: str
) -> None:
    page = f"/{version}/library/json.html"
    diff = await diff_generations(database, NEW, against=OLD, page=page)
    assert names(diff) == {"added": [], "removed": [], "changed": ["json"]}
    assert [each.heading for each in diff.changed[0].sections] == ["Reading"]


@pytest.mark.parametrize("page", ["https://old.example/json#part-1", "new.example/json"])
async def test_one_page_is_named_by_its_url(corpus: Corpus, database: Database, page: str) -> None:
    await corpus.publish("old.example", {"/json": [("JSON", "text"), ("Reading", "one")]})
    await corpus.publish("new.example", {"/json": [("JSON", "text"), ("Reading", "two")]})
    diff = await diff_generations(database, "new.example", against="old.example", page=page)
    assert [each.heading for each in diff.changed[0].sections] == ["Reading"]


@pytest.mark.usefixtures("versions")
async def test_one_section(database: Database) -> None:
    page = "/3.13/library/json.html"
    changed = await diff_generations(database, NEW, against=OLD, page=page, section="Reading")
    assert [each.heading for each in changed.changed[0].sections] == ["Reading"]
    same = await diff_generations(database, NEW, against=OLD, page=f"{page}#part-2")
    assert names(same) == {"added": [], "removed": [], "changed": []}


@pytest.mark.usefixtures("versions")
async def test_pages_and_sections_that_do_not_exist(database: Database) -> None:
    with pytest.raises(NotFound, match="no page /json"):
        await diff_generations(database, NEW, against=OLD, page="/json")
    with pytest.raises(NotFound, match="no section 'Writing'") as error:
        await diff_generations(
            database, NEW, against=OLD, page="/3.13/library/json.html", section="Writing"
        )
    assert "Reading" in str(error.value.hint)
    with pytest.raises(InvalidInput, match="belongs to a page"):
        await diff_generations(database, NEW, against=OLD, section="Reading")
    # a page without differences exists
    same = await diff_generations(database, NEW, against=OLD, page="/3.13/library/ast.html")
    assert same.changed == []


async def test_one_page_of_two_generations(corpus: Corpus, database: Database) -> None:
    await corpus.publish(NEW, pages("3.13"))
    await corpus.publish(NEW, pages("3.13", json="Reads and writes JSON.", ast="Other trees."))
    diff = await diff_generations(database, NEW, 1, 2, page="/3.13/library/json.html")
    assert names(diff) == {"added": [], "removed": [], "changed": ["json"]}
    assert len(diff.changed[0].sections) == 1
    assert diff.changed[0].old_url is None


@pytest.mark.usefixtures("versions")
async def test_another_version_is_named_by_its_number(database: Database) -> None:
    source = await get_source(database, NEW)
    assert (await get_other_source(database, source, "3.12")).id == OLD
    assert (await get_other_source(database, source, OLD)).id == OLD
    assert (await get_other_source(database, source, "<3.13")).id == OLD
    assert (await get_other_source(database, source, "3.x")).id == OLD
    with pytest.raises(InvalidInput, match=f"{NEW} is {NEW} itself"):
        await get_other_source(database, source, NEW)
    with pytest.raises(NotFound, match=r"no source tool@3\.9") as error:
        await get_other_source(database, source, "tool@3.9")
    assert error.value.hint == "Versions: 3.12, 3.13"
    with pytest.raises(NotFound, match=r"no source has version 3\.9") as error:
        await get_other_source(database, source, "3.9")
    assert error.value.hint == "Versions: 3.12"


@pytest.mark.usefixtures("versions")
async def test_reading_and_searching_a_missing_version_list_those_that_exist(
    database: Database, look: Look
) -> None:
    with pytest.raises(NotFound) as error:
        await look("reading", source="tool@3.9")
    assert error.value.hint == "Versions: 3.12, 3.13"
    with pytest.raises(NotFound) as error:
        await read_page(database, url(NEW, "/3.13/library/json.html"), source_id="tool@3.9")
    assert error.value.hint == "Versions: 3.12, 3.13"


@pytest.mark.usefixtures("versions")
async def test_two_sources_with_more_differences_than_are_compared(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not (await diff_generations(database, NEW, against=OLD)).truncated
    # all pages differ by the links of their version, so that few of these are left
    monkeypatch.setattr(differences, "MAX_CHANGES", 2)
    assert (await diff_generations(database, NEW, against=OLD)).truncated


async def test_a_source_of_another_owner_is_as_unknown_as_no_source(
    corpus: Corpus, database: Database
) -> None:
    ours, theirs = new_id(), new_id()
    await corpus.publish("theirs.example@1", {"/a": [("A", "text")]}, owner=theirs)
    await corpus.publish("ours.example", {"/a": [("A", "text")]}, owner=ours)
    source = await get_source(database, "ours.example", owner=ours)
    for name in ("theirs.example@1", "theirs.example", "nothing.example"):
        with pytest.raises(NotFound, match=f"there is no source {name}"):
            await read_page(database, "https://ours.example/a", source_id=name, user_id=ours)
        with pytest.raises(NotFound, match=f"there is no source {name}"):
            await get_other_source(database, source, name, owner=ours)
    with pytest.raises(NotFound, match=r"there is no page .* in theirs\.example@1"):
        await read_page(
            database, "https://x.example/", source_id="theirs.example@1", user_id=theirs
        )


def test_the_part_of_the_urls_that_differs() -> None:
    old = ["https://a/v1/x/one", "https://a/v1/two", "https://a/v1/x/three"]
    new = ["https://a/v2/x/one", "https://a/v2/x/three", "https://a/v2/x/v1/two"]
    assert matching_roots(old, new) == Roots("https://a/v1/", "https://a/v2/")
    assert matching_roots(old, old) == Roots("", "")
    # the same pages at another place of another host
    moved = [each.replace("https://a/v1/", "http://b/") for each in old]
    assert matching_roots(old, moved) == Roots("https://a/v1/", "http://b/")
    assert matching_roots(["https://a/1/"], ["https://b/2/"]) == Roots(
        "https://a/1/", "https://b/2/"
    )
    assert matching_roots([], new) == Roots("", "")
