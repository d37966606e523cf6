"""RenderStats of rendering: which pages gain from it, learned per URL shape and stored.

A crawl also learns per template, so that the same kind of page is not tried again in each folder.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from hashlib import sha256
from urllib.parse import parse_qsl, urlsplit

from forager.db.database import Database
from forager.render import store
from forager.render.store import ShapeStats, StatsOwner, upsert_shape_stats

__all__ = ["ShapeStats", "upsert_shape_stats"]

# after this many pages of a shape in a row that did not gain, the others are not rendered
WASTED = -2
# one page in this many is treated the other way, because a site may have changed
RECHECK_EVERY = 50
LONGEST_STREAK = 1000
MAX_SHAPES = 500
MAX_SEGMENTS = 6
MAX_SEGMENT = 40
_VARIABLE = re.compile(r"\d")
# what pages of one template share: their scripts and the elements that scripts fill
_TEMPLATE = re.compile(
    rb"""<script[^>]{0,300}?\bsrc=["']?([^"'\s>?]{1,200})"""
    rb"""|<(div|main|body|section|table)\b([^>]{0,400})""",
    re.IGNORECASE,
)
_CLASS = re.compile(rb"""\bclass=["']?([^"'>]{1,200})""", re.IGNORECASE)
_ID = re.compile(rb"""\bid=["']?([^"'\s>]{1,200})""", re.IGNORECASE)
MAX_IDS = 8  # of containers without a class; further ones are anchors in the text
_TEMPLATE_BYTES = 100_000
_FOLDERS = re.compile(rb"(?:\.\.?/)+")


def shape_of(url: str) -> str:
    """The URL without what differs between pages of one kind: `/item/*/*?id`."""
    parts = urlsplit(url)
    *folders, last = parts.path.split("/")[1:]
    kept = ["*" if _VARIABLE.search(name) else name[:MAX_SEGMENT] for name in folders]
    names = sorted({name[:MAX_SEGMENT] for name, _ in parse_qsl(parts.query)})[:MAX_SEGMENTS]
    path = "/".join(kept[:MAX_SEGMENTS])
    query = f"?{'&'.join(names)}" if names else ""
    return f"{parts.netloc}/{path}{'/' if path else ''}{'*' if last else ''}{query}"


def template_of(body: bytes) -> str:
    """A digest of the names of a page's scripts and containers, without numbers."""
    found: set[bytes] = set()
    ids: list[bytes] = []
    for script, name, container in _TEMPLATE.findall(body[:_TEMPLATE_BYTES]):
        if script:
            found.add(script)
        elif named := _CLASS.search(container):
            found.add(named[1])
        elif name.lower() != b"section" and (named := _ID.search(container)):
            ids.append(named[1])
    found.update(ids[:MAX_IDS])
    parts = sorted({_FOLDERS.sub(b"", re.sub(rb"\d+", b"", part)) for part in found})
    return sha256(b"\n".join(parts)).hexdigest()[:16]


@dataclass(slots=True)
class RenderStats:
    """The render stats of one source, or of the tasks of one domain, by URL shape."""

    owner: StatsOwner
    known: dict[str, ShapeStats] = field(default_factory=dict)
    # by template; not stored, because a crawl learns them again within a few pages
    templates: dict[str, ShapeStats] = field(default_factory=dict)

    @classmethod
    async def load(cls, database: Database, owner: StatsOwner) -> RenderStats:
        rows = await database.run(store.select_shape_stats, owner, limit=MAX_SHAPES)
        return cls(owner, {row.shape: row for row in rows})

    def gains(self, url: str) -> bool:
        """Whether the last page of this shape gained from rendering."""
        shape_stats = self.known.get(shape_of(url))
        return shape_stats is not None and shape_stats.streak > 0

    def has_gained(self, url: str, template: str) -> bool:
        """Whether the last page of this shape or template gained from rendering."""
        stats = self.templates.get(template)
        return self.gains(url) or (stats is not None and stats.streak > 0)

    def is_wasted(self, url: str, template: str = "") -> bool:
        """Whether rendering is known to be useless; a re-check is due now and then.

        A template tells it for all shapes except those that gain.
        """
        stats = self.known.get(shape_of(url))
        if stats is None or (stats.streak <= 0 and stats.streak > WASTED):
            stats = self.templates.get(template)
        if stats is None or stats.streak > WASTED:
            return False
        return not _is_recheck(stats)

    def is_recheck_due(self, url: str) -> bool:
        """Whether a page that needs a browser is due for a visit without one."""
        shape_stats = self.known.get(shape_of(url))
        return shape_stats is not None and _is_recheck(shape_stats)

    def left(self, url: str) -> ShapeStats:
        """The stats to store for a page that is left to a worker with a browser."""
        shape = shape_of(url)
        return ShapeStats(shape, max(0, self.known[shape].streak) if shape in self.known else 0, 0)

    def learn(self, url: str, template: str = "", *, gained: bool) -> ShapeStats | None:
        """The stats to store with a page; None if the site has too many shapes."""
        if template:
            _add(self.templates, template, gained=gained)
        return _add(self.known, shape_of(url), gained=gained)


def _add(known: dict[str, ShapeStats], name: str, *, gained: bool) -> ShapeStats | None:
    """Count a page; None if there are too many names to add one."""
    stats = known.get(name)
    if stats is None:
        if len(known) >= MAX_SHAPES:
            return None
        stats = known[name] = ShapeStats(name, 0, 0)
    if gained:
        stats.streak = min(max(stats.streak, 0) + 1, LONGEST_STREAK)
    else:
        stats.streak = max(min(stats.streak, 0) - 1, -LONGEST_STREAK)
    return stats


def _is_recheck(shape_stats: ShapeStats) -> bool:
    shape_stats.skipped += 1
    return shape_stats.skipped % RECHECK_EVERY == 0
