"""Pages that were just downloaded, kept for the parse stage of the same worker."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import islice

from forager.archive.reader import ArchivedResponse
from forager.archive.segment import ArchiveRef
from forager.extract.product.places import NOTHING_LEARNED, LearnedPlace
from forager.extract.text import scalar_values
from forager.fetch.response import Response

MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class CachedPage:
    """The parts of a response that a parser needs."""

    url: str
    content_type: str | None
    body: bytes = field(repr=False)
    rendered: bool = False
    # where pages of its domain show their price
    place: LearnedPlace = NOTHING_LEARNED


def page_of(response: Response, *, rendered: bool = False) -> CachedPage:
    content_type = scalar_values(response.headers.get("Content-Type", ""))
    return CachedPage(response.url, content_type or None, response.body, rendered)


def archived_page(response: ArchivedResponse) -> CachedPage:
    content_type = scalar_values(response.content_type or "") or None
    return CachedPage(response.url, content_type, response.body, response.rendered)


class PageCache:
    """Pages by task and location in the archive, which changes with each download."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._pages: OrderedDict[int, tuple[ArchiveRef, CachedPage]] = OrderedDict()
        self._domains: dict[int, int] = {}

    def put(self, task_id: int, domain_id: int, ref: ArchiveRef, page: CachedPage) -> None:
        """Keep a page for the parse stage; old ones are dropped when there is no room."""
        self.take(task_id, ref)
        self._pages[task_id] = (ref, page)
        self._domains[task_id] = domain_id
        self._bytes += len(page.body)
        while self._bytes > self._max_bytes:
            self.forget([next(iter(self._pages))])

    def take(self, task_id: int, ref: ArchiveRef) -> CachedPage | None:
        """Remove and return the page, if it is the one at this location."""
        known = self._pages.get(task_id)
        self.forget([task_id])
        return known[1] if known is not None and known[0] == ref else None

    def forget(self, task_ids: list[int]) -> None:
        """Drop pages of tasks."""
        for task_id in task_ids:
            if task_id in self._pages:
                _, page = self._pages.pop(task_id)
                del self._domains[task_id]
                self._bytes -= len(page.body)

    def task_ids(self, limit: int, *, besides: Collection[int] = ()) -> list[int]:
        """The tasks whose pages are cached, oldest first, except those of some domains."""
        found = (id_ for id_ in self._pages if self._domains[id_] not in besides)
        return list(islice(found, limit))

    def __len__(self) -> int:
        return len(self._pages)
