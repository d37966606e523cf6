"""The parts of `make bench`: each is a separate program that writes a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """A program, its arguments in full and quick runs, and its expected duration."""

    name: str
    module: str
    report: str  # the name of its page and of its data
    minutes: float  # on two idle cores; a run may take five times as long
    options: Sequence[str] = ()
    quick: Sequence[str] = ()


PARTS = (
    Part(
        "queue", "bench_queue", "queue", 4, ("--rounds", "3"),
        ("--rows", "5000", "--rounds", "1"),
    ),
    Part("crawl", "bench_crawl", "crawl", 7, (), ("--rounds", "1", "--sites", "1")),
    Part("documents", "bench_documents", "documents", 1, (), ("--pages", "150", "--rounds", "1")),
    Part(
        "sizes", "bench_sizes", "sizes", 6, (),
        ("--sizes", "200,1000", "--full", "1000", "--peers", "200"),
    ),
    Part(
        "commit", "bench_commit", "commit", 4, (), ("--rounds", "20", "--sizes", "1000,10000"),
    ),
    Part(
        "products", "bench_products", "products", 4, ("--queries", "40"),
        ("--products", "2000", "--queries", "5"),
    ),
    Part(
        "scheduler", "bench_scheduler", "scheduler", 2, (),
        ("--tasks", "5000", "--due", "500", "--domains", "20"),
    ),
    Part("search", "bench_search", "search", 3, (), ("--rows", "5000", "--queries", "30")),
    Part(
        "api", "bench_api", "api", 4, ("--seconds", "40"),
        ("--jobs", "2000", "--pages", "5000", "--products", "5000", "--seconds", "5",
         "--post-seconds", "2"),
    ),
)  # fmt: skip


def chosen(names: str) -> list[Part]:
    """The parts with these names, separated by commas; all for an empty text."""
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    known = {part.name: part for part in PARTS}
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise SystemExit(f"no such part: {', '.join(unknown)}; there are {', '.join(known)}")
    return [part for part in PARTS if not wanted or part.name in wanted]
