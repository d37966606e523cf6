from __future__ import annotations

import asyncio
from functools import partial

import pytest

from forager.db.database import Database
from search_corpus import Corpus
from support import cli

pytestmark = pytest.mark.usefixtures("command_line")

forager = partial(cli.forager, "search")


@pytest.fixture
def published(database_url: str) -> None:
    async def publish() -> None:
        async with Database(database_url) as database:
            corpus = Corpus(database)
            await corpus.publish(
                "docs.example",
                {
                    "/locks": [("Row locks", "A row is locked when it is updated.")],
                    "/git/hooks": [("Hooks", "Skip them: `git commit --no-verify` \x1b[31m")],
                },
            )
            await corpus.publish("other.example", {"/x": [("Other", "rows and locks")]})

    asyncio.run(publish())


@pytest.mark.usefixtures("published")
def test_answers_for_people_and_programs() -> None:
    answered = forager("row", "locks")
    assert answered.code == 0
    lines = answered.out.splitlines()
    assert lines[0].startswith("Row locks")
    assert lines[1] == "https://docs.example/locks#part-0"
    assert lines[2] == "A row is locked when it is updated."
    assert "2 of 2 results" in answered.err
    page = forager("row locks", "--json").json
    hit = page["items"][0]
    assert {"url", "title", "heading", "snippet", "score", "source"} <= hit.keys()
    assert [hit["snippet"][a:b] for a, b in hit["highlights"]] == ["row", "locked"]
    assert page["next_cursor"] is None
    assert page["capped"] is False


@pytest.mark.usefixtures("published")
def test_filters_pages_and_identifiers() -> None:
    assert "other.example" in forager("locks", "--source", "other.example").out
    assert "docs.example" not in forager("locks", "--source", "other.example").out
    assert forager("locks", "--path", "/git/", "--json").json["items"] == []
    first = forager("locks", "--limit", "1", "--json").json
    assert "--cursor" in forager("locks", "--limit", "1").err
    second = forager("locks", "--limit", "1", "--cursor", first["next_cursor"], "--json").json
    assert first["items"][0]["url"] != second["items"][0]["url"]
    found = forager("--", "--no-verify")
    assert "https://docs.example/git/hooks#part-0" in found.out
    assert "\x1b" not in found.out


@pytest.mark.usefixtures("published")
def test_what_cannot_be_answered_is_explained() -> None:
    nothing = forager("the")
    assert (nothing.code, nothing.out) == (0, "")
    assert "too common" in nothing.err
    assert "no results\n" in nothing.err
    assert "See `forager search --help`." in forager().err
    # a query that begins with the name of a command
    assert (found := forager("reindex", "locks", "rows")).code == 0
    assert "https://other.example/x#part-0" in found.out
    assert forager("x", "--source", "nowhere").code == 2
    assert forager("x", "--limit", "0").code == 2
    wrong = forager("x", "--cursor", "y")
    assert wrong.code == 2
    assert "cursor" in wrong.err
