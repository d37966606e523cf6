"""An official client gets the answers to questions in one call each, within the budget."""

from __future__ import annotations

import pytest

from forager.demo.server import demo_site
from forager.mcp.text import BYTES_PER_TOKEN, SEARCH_TOKENS
from mcp_server.conftest import Connect, text_of
from support.cli import forager

QUESTIONS = {
    "How do I continue a crawl after Ctrl-C?": "forager resume",
    "Which pattern restricts a crawl to one folder?": "--include",
    "How can I find out why a URL is missing?": "forager explain URL",
    "How are raw responses exported?": "--format warc",
    "How do I crawl a list of URLs and no others?": "fetches the given URLs",
}


@pytest.fixture
def guide(command_line: None) -> None:
    """The bundled site, crawled."""
    with demo_site(0) as url:
        done = forager("crawl", url, "--allow-private", "--json")
    assert done.code == 0, done.err


@pytest.mark.usefixtures("guide")
async def test_questions_are_answered_in_one_call(connect: Connect) -> None:
    answered = []
    async with connect() as client:
        for question, answer in QUESTIONS.items():
            found = text_of(await client.call_tool("search_docs", {"query": question}))
            assert len(found) <= SEARCH_TOKENS * BYTES_PER_TOKEN
            answered += [question] if answer in found else []
    # one shares no word with its answer, and needs search by meaning
    assert len(answered) >= 4
