"""RenderStats of rendering: which pages gain from it, learned per URL shape and stored."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from forager.db.database import Database
from forager.render import store
from forager.render.store import ShapeStats, StatsOwner

# after this many pages of a shape in a row that did not gain, the others are not rendered
WASTED = -2
# one page in this many is treated the other way, because a site may have changed
RECHECK_EVERY = 50
LONGEST_STREAK = 1000
MAX_SHAPES = 500
MAX_SEGMENTS = 6
MAX_SEGMENT = 40
_VARIABLE = re.compile(r"\d")


def shape_of(url: str) -> str:
    """The URL without what differs between pages of one kind: `/item/*/*?id`."""
    parts = urlsplit(url)
    *folders, last = parts.path.split("/")[1:]
    kept = ["*" if _VARIABLE.search(name) else name[:MAX_SEGMENT] for name in folders]
    names = sorted({name[:MAX_SEGMENT] for name, _ in parse_qsl(parts.query)})[:MAX_SEGMENTS]
    path = "/".join(kept[:MAX_SEGMENTS])
    query = f"?{'&'.join(names)}" if names else ""
    return f"{parts.netloc}/{path}{'/' if path else ''}{'*' if last else ''}{query}"


@dataclass(slots=True)
class RenderStats:
    """The render stats of one source, or of the tasks of one domain, by URL shape."""

    owner: StatsOwner
    known: dict[str, ShapeStats] = field(default_factory=dict)

    @classmethod
    async def load(cls, database: Database, owner: StatsOwner) -> RenderStats:
        rows = await database.run(store.select_shape_stats, owner, limit=MAX_SHAPES)
        return cls(owner, {row.shape: row for row in rows})

    def gains(self, url: str) -> bool:
        """Whether the last page of this shape gained from rendering."""
        shape_stats = self.known.get(shape_of(url))
        return shape_stats is not None and shape_stats.streak > 0

    def is_wasted(self, url: str) -> bool:
        """Whether rendering is known to be useless; a re-check is due now and then."""
        shape_stats = self.known.get(shape_of(url))
        if shape_stats is None or shape_stats.streak > WASTED:
            return False
        return not _is_recheck(shape_stats)

    def is_recheck_due(self, url: str) -> bool:
        """Whether a page that needs a browser is due for a visit without one."""
        shape_stats = self.known.get(shape_of(url))
        return shape_stats is not None and _is_recheck(shape_stats)

    def left(self, url: str) -> ShapeStats:
        """The stats to store for a page that is left to a worker with a browser."""
        shape = shape_of(url)
        return ShapeStats(shape, max(0, self.known[shape].streak) if shape in self.known else 0, 0)

    def learn(self, url: str, *, gained: bool) -> ShapeStats | None:
        """The stats to store with a page; None if the site has too many shapes."""
        shape = shape_of(url)
        shape_stats = self.known.get(shape)
        if shape_stats is None:
            if len(self.known) >= MAX_SHAPES:
                return None
            shape_stats = self.known[shape] = ShapeStats(shape, 0, 0)
        if gained:
            shape_stats.streak = min(max(shape_stats.streak, 0) + 1, LONGEST_STREAK)
        else:
            shape_stats.streak = max(min(shape_stats.streak, 0) - 1, -LONGEST_STREAK)
        return shape_stats


def _is_recheck(shape_stats: ShapeStats) -> bool:
    shape_stats.skipped += 1
    return shape_stats.skipped % RECHECK_EVERY == 0
