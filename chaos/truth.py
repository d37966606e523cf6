"""The pages of a site and the expected outcome of each, generated from one seed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from random import Random

from chaos.randomness import generator_for

FANOUT = 6
CROSS_LINKS = 3
# kinds of pages with links, and of pages without
INNER = {"plain": 70, "slow": 4, "flaky": 5, "changing": 11, "tagged": 10}
LEAVES = {**INNER, "gone": 4, "broken": 1, "unavailable": 1, "moved": 4, "forbidden": 3}
WORDS = (
    "index",
    "query",
    "table",
    "commit",
    "lease",
    "ledger",
    "frontier",
    "page",
    "crawl",
    "batch",
    "segment",
    "archive",
    "reader",
    "writer",
    "cursor",
    "source",
    "worker",
    "queue",
    "signal",
    "socket",
    "budget",
    "host",
    "retry",
    "delay",
    "order",
    "price",
    "stock",
)


class Kind(StrEnum):
    PLAIN = "plain"
    SLOW = "slow"
    FLAKY = "flaky"  # answers 500 to the first requests of each crawl
    CHANGING = "changing"  # has different content in each crawl
    TAGGED = "tagged"  # answers 304 to a conditional request
    GONE = "gone"
    BROKEN = "broken"
    UNAVAILABLE = "unavailable"  # always answers 503, while the rest of its host works
    MOVED = "moved"
    FORBIDDEN = "forbidden"


# the outcome of a URL in the ledger; `page` means fetched or unchanged
PAGE = "page"
OUTCOMES = {
    Kind.GONE: "failed:http_404",
    Kind.BROKEN: "failed:http_500",
    Kind.UNAVAILABLE: "failed:http_503",
    Kind.MOVED: "duplicate:redirect",
    Kind.FORBIDDEN: "excluded:robots",
}


@dataclass(frozen=True, slots=True)
class PageTruth:
    """One page of a site with documents."""

    path: str
    kind: Kind
    title: str
    text: str
    links: tuple[str, ...] = ()
    moved_to: str = ""

    @property
    def outcome(self) -> str:
        return OUTCOMES.get(self.kind, PAGE)


def make_pages(seed: int, name: str, count: int) -> dict[str, PageTruth]:
    """The pages of one host by path. All of them can be reached from `/`."""
    chance = generator_for(seed, name)
    inner = max(1, count // FANOUT + 1)
    kinds = [_kind(chance, INNER if n < inner else LEAVES) for n in range(count)]
    kinds[0] = Kind.PLAIN
    paths = [_path(n, kind) for n, kind in enumerate(kinds)]
    pages = {}
    for n, (path, kind) in enumerate(zip(paths, kinds, strict=True)):
        children = paths[n * FANOUT + 1 : (n + 1) * FANOUT + 1]
        others = chance.sample(paths, min(CROSS_LINKS, count))
        pages[path] = PageTruth(
            path,
            kind,
            title=f"{name} {n}",
            text=" ".join(chance.choices(WORDS, k=60)),
            links=(*children, *others),
            moved_to=paths[chance.randrange(inner)],
        )
    return pages


def _kind(chance: Random, weights: dict[str, int]) -> Kind:
    return Kind(chance.choices(list(weights), list(weights.values()))[0])


def _path(number: int, kind: Kind) -> str:
    if number == 0:
        return "/"
    folder = "private" if kind is Kind.FORBIDDEN else "docs"
    return f"/{folder}/{number}"
