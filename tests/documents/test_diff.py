"""What changed between two generations is exactly what changed on the site."""

from __future__ import annotations

import pytest

from built_site import BASE, SOURCE, Crawls, document, page, pages
from forager.db.database import Database
from forager.documents.diff import Diff, diff_generations
from forager.documents.publication import roll_back
from forager.errors import NotAllowed, NotFound


def urls(diff: Diff) -> dict[str, list[str]]:
    return {
        "added": [page.url.removeprefix(BASE) for page in diff.added],
        "removed": [page.url.removeprefix(BASE) for page in diff.removed],
        "changed": [page.url.removeprefix(BASE) for page in diff.changed],
        "renamed": [
            f"{page.old_url.removeprefix(BASE)} -> {page.new_url.removeprefix(BASE)}"
            for page in diff.renamed
        ],
    }


async def test_pages_added_changed_removed_and_renamed(crawls: Crawls, database: Database) -> None:
    common: dict[str, str | None] = {f"same/{n}": f"same {n}" for n in range(10)}
    await crawls.crawl(
        {**common, "edit": "before", "gone": "gone", "old-name": "moved", "still": "still"}
    )
    await crawls.crawl(
        {**common, "edit": "after", "come": "come", "new-name": "moved", "still": None}
    )
    diff = await diff_generations(database, SOURCE)
    assert (diff.old, diff.new, diff.truncated) == (1, 2, False)
    assert urls(diff) == {
        "added": ["come"],
        "removed": ["gone"],
        "changed": ["edit"],
        "renamed": ["old-name -> new-name"],
    }


async def test_the_other_way_round(crawls: Crawls, database: Database) -> None:
    await crawls.crawl({"a": "one", "b": "b", "c": "c", "d": "d", "e": "e"})
    await crawls.crawl({"a": "two", "b": "b", "c": "c", "d": "d", "f": "f"})
    assert urls(await diff_generations(database, SOURCE, 2, 1)) == {
        "added": ["e"], "removed": ["f"], "changed": ["a"], "renamed": []
    }  # fmt: skip


async def test_the_published_generation_is_compared_with_what_it_was_built_on(
    crawls: Crawls, database: Database
) -> None:
    for text in ("one", "two", "three"):
        await crawls.crawl({"a": text})
    await roll_back(database, SOURCE)
    diff = await diff_generations(database, SOURCE)
    assert (diff.old, diff.new) == (1, 2)
    assert urls(await diff_generations(database, SOURCE, 2, 2))["changed"] == []


async def test_another_extractor_with_the_same_result_changes_nothing(
    crawls: Crawls, database: Database
) -> None:
    await crawls.crawl({"a": "one"})
    crawl = await crawls.start()
    await crawl.write([page("a", "one", document=document("one", version="2"))])
    await crawl.finish()
    diff = await diff_generations(database, SOURCE)
    assert urls(diff) == {"added": [], "removed": [], "changed": [], "renamed": []}


async def test_changed_sections_as_unified_diffs(crawls: Crawls, database: Database) -> None:
    await crawls.crawl({"a": "one", "b": "same"})
    await crawls.crawl({"a": "two", "b": "same"})
    [changed] = (await diff_generations(database, SOURCE, with_sections=True)).changed
    guide, details = changed.sections
    assert (guide.kind, guide.anchor) == ("changed", "guide")
    assert details.diff.splitlines()[3:] == [
        " ## Details", " First line", "-one", "+two", " last line"
    ]  # fmt: skip


async def test_a_long_list_says_that_it_was_cut(crawls: Crawls, database: Database) -> None:
    await crawls.crawl({"a": "a"})
    crawl = await crawls.start()
    await crawl.write(pages({f"p{n}": f"{n}" for n in range(9)}))
    await crawl.finish()
    diff = await diff_generations(database, SOURCE, limit=5)
    assert diff.truncated
    assert len(diff.added) + len(diff.removed) == 5


async def test_what_cannot_be_compared(crawls: Crawls, database: Database) -> None:
    with pytest.raises(NotFound, match="no source"):
        await diff_generations(database, SOURCE)
    crawl = await crawls.start()
    with pytest.raises(NotAllowed, match="nothing published"):
        await diff_generations(database, SOURCE)
    with pytest.raises(NotAllowed, match="is building"):
        await diff_generations(database, SOURCE, 1, 1)
    await crawl.write(pages({"a": "a"}))
    await crawl.finish()
    with pytest.raises(NotAllowed, match="nothing before it"):
        await diff_generations(database, SOURCE)
    with pytest.raises(NotFound, match="generation 9"):
        await diff_generations(database, SOURCE, 9)
