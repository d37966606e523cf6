"""Sites of any size, written as files: a tree of small pages that also link across it."""

from __future__ import annotations

import random
from pathlib import Path

from benchmarks.sites import Site

CHILDREN = 10
ACROSS = 5
FOLDER = 1_000  # pages
START = "0/0.html"
WORDS = [
    "archive", "batch", "budget", "claim", "commit", "crawl", "delay", "document", "fetch",
    "frontier", "generation", "heading", "host", "index", "job", "lease", "ledger", "link",
    "manifest", "page", "parser", "queue", "record", "refresh", "robots", "schedule", "search",
    "section", "source", "state", "store", "table", "task", "text", "title", "token", "vector",
    "visit", "worker", "write",
]  # fmt: skip


def generate_site(folder: Path, pages: int) -> Site:
    """Write pages that are reachable from the first within a few links. Reuses an existing site."""
    site = Site(f"generated-{pages}", folder, START)
    if _file(folder, pages - 1).exists():
        return site
    chance = random.Random(pages)
    for first in range(0, pages, FOLDER):
        (folder / str(first // FOLDER)).mkdir(parents=True, exist_ok=True)
        for number in range(first, min(first + FOLDER, pages)):
            _file(folder, number).write_text(_html(number, pages, chance), encoding="utf-8")
    return site


def _file(folder: Path, number: int) -> Path:
    return folder / str(number // FOLDER) / f"{number}.html"


def _html(number: int, pages: int, chance: random.Random) -> str:
    first = number * CHILDREN + 1
    linked = [*range(first, min(first + CHILDREN, pages))]
    linked += [chance.randrange(pages) for _ in range(ACROSS)]
    links = "".join(f'<li><a href="/{n // FOLDER}/{n}.html">Page {n}</a></li>' for n in linked)
    texts = (" ".join(chance.choices(WORDS, k=60)) for _ in range(3))
    sections = "".join(
        f"<h2>{' '.join(chance.sample(WORDS, 3)).capitalize()}</h2><p>{text}.</p>" for text in texts
    )
    return (
        f'<!doctype html><html lang="en"><head><title>Page {number}</title></head><body><main>'
        f"<h1>Page {number}</h1>{sections}<ul>{links}</ul></main></body></html>"
    )
