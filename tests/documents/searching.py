"""What a search in the corpus of a test answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from forager.documents.search import Hit, SearchPage
from search_corpus import Page

Look = Callable[..., Awaitable[SearchPage]]


def headings(page: SearchPage) -> list[str]:
    return [hit.heading for hit in page.items]


def marked(hit: Hit) -> list[str]:
    return [hit.snippet[start:end] for start, end in hit.highlights]


def numbered(first: int, last: int, word: str = "needle") -> dict[str, Page]:
    """Pages of which every third has the word in its heading, some with equal ranks."""
    return {
        f"/{number}": Page(
            [(f"{word if number % 3 == 0 else 'page'} {number}", f"{word} " * (number % 4 + 1))]
        )
        for number in range(first, last)
    }
