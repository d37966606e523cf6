"""Pages that were just downloaded, kept for the parse stage of the same worker."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from forager.archive.reader import ArchivedResponse
from forager.archive.segment import ArchiveRef
from forager.extract.product.places import NOTHING_LEARNED, LearnedPlace
from forager.extract.text import scalar_values
from forager.fetch.response import Response

MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Page:
    """The parts of a response that a parser needs."""

    url: str
    content_type: str | None
    body: bytes = field(repr=False)
    rendered: bool = False
    # where pages of its domain show their price
    place: LearnedPlace = NOTHING_LEARNED


def page_of(response: Response, *, rendered: bool = False) -> Page:
    content_type = scalar_values(response.headers.get("Content-Type", ""))
    return Page(response.url, content_type or None, response.body, rendered)


def archived_page(response: ArchivedResponse) -> Page:
    content_type = scalar_values(response.content_type or "") or None
    return Page(response.url, content_type, response.body, response.rendered)


class PageCache:
    """Pages by task and location in the archive, which changes with each download."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._pages: OrderedDict[int, tuple[ArchiveRef, Page]] = OrderedDict()

    def put(self, task_id: int, ref: ArchiveRef, page: Page) -> None:
        self.take(task_id, ref)
        self._pages[task_id] = (ref, page)
        self._bytes += len(page.body)
        while self._bytes > self._max_bytes:
            _, (_, oldest) = self._pages.popitem(last=False)
            self._bytes -= len(oldest.body)

    def take(self, task_id: int, ref: ArchiveRef) -> Page | None:
        """Remove and return the page, if it is the one at this location."""
        known = self._pages.pop(task_id, None)
        if known is None:
            return None
        self._bytes -= len(known[1].body)
        return known[1] if known[0] == ref else None

    def forget(self, task_ids: list[int]) -> None:
        for task_id in task_ids:
            known = self._pages.pop(task_id, None)
            if known is not None:
                self._bytes -= len(known[1].body)

    def task_ids(self, limit: int) -> list[int]:
        """The tasks whose pages are cached, oldest first."""
        return [task_id for task_id, _ in zip(self._pages, range(limit), strict=False)]

    def __len__(self) -> int:
        return len(self._pages)
