"""Discovery: decide what happens to a URL that is found for the first time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime

from forager.crawl.frontier.entry import FrontierEntry, PageLinks, Via
from forager.crawl.frontier.scope import CrawlScope, ScopeReason
from forager.crawl.frontier.seen import SeenSet
from forager.crawl.ledger import Ledger
from forager.crawl.settlement import Settlement
from forager.crawl.visit.outcomes import excluded
from forager.extract.keys import key_fingerprint
from forager.extract.traps import TrapRule, find_trap, path_shape, query_shape

NOFOLLOW = "nofollow"
TRAP = "trap"
# refusals that a later link may lift: one without nofollow, or one from a page that is nearer
LIFTABLE = (NOFOLLOW, ScopeReason.DEPTH.value)
# URLs refused for these reasons were never counted among the URLs of their shape
REFUSED_ON_SIGHT = frozenset(
    [NOFOLLOW, *(reason.value for reason in ScopeReason), *(f"{TRAP}:{rule}" for rule in TrapRule)]
)

# How many URLs of one shape are crawled: few where every value of a parameter makes a new one,
# many where numbers are simply how a site names its pages.
MANY_PARAMETERS_LIMIT = 1_000
TWO_PARAMETERS_LIMIT = 5_000
ONE_PARAMETER_LIMIT = 50_000
CALENDAR_LIMIT = 1_000
NUMBERS_LIMIT = 20_000
# shapes that are remembered; beyond that, the rarest are forgotten
MAX_SHAPES = 200_000

_CALENDAR = re.compile(
    r"calend|event|agenda|termin|archive|month|week|day|date|year|schedule", re.IGNORECASE
)


@dataclass(slots=True)
class Discovered:
    """New entries for the frontier, and URLs that a rule refused on sight."""

    entries: list[FrontierEntry] = field(default_factory=list)
    excluded: list[Settlement] = field(default_factory=list)
    # keys of URLs that had been refused as nofollow or too deep, and are wanted now
    revived: list[bytes] = field(default_factory=list)


class Discovery:
    """Remembers every URL of a crawl (as hashes), and judges those it has not met before."""

    def __init__(self, scope: CrawlScope, ledger: Ledger, *, next_seq: int = 0) -> None:
        self.scope = scope
        self.next_seq = next_seq
        self._ledger = ledger
        self._seen = SeenSet()
        # refused only because of the links to them so far, by reason; and wanted after all
        self._liftable = {reason: SeenSet() for reason in LIFTABLE}
        self._revived = SeenSet()
        self._shapes: Counter[int] = Counter()

    @property
    def memory_mb(self) -> float:
        """Memory taken by known URLs."""
        sets = (self._seen, self._revived, *self._liftable.values())
        return sum(each.nbytes for each in sets) / 2**20

    def knows(self, key: bytes) -> bool:
        """Whether the crawl has met a URL; a false positive is improbable."""
        return key_fingerprint(key) in self._seen

    def remember_keys(self, keys: Iterable[bytes]) -> None:
        """Take in pending URLs of an earlier run; `remember` follows for each."""
        self._seen.add_many(map(key_fingerprint, keys))

    def remember(self, key: bytes, url: str, reason: str | None, *, pending: bool = False) -> None:
        """Take in a URL of an earlier run; a settled one that is known already changes nothing."""
        fingerprint = key_fingerprint(key)
        if not self._seen.add(fingerprint) and not pending:
            return
        if reason in LIFTABLE:
            self._liftable[reason].add(fingerprint)
        if reason not in REFUSED_ON_SIGHT:
            self._count_shape(url)

    def reserve(self, capacity: int) -> None:
        """Make room at once for the URLs of an earlier run."""
        self._seen = SeenSet(capacity)

    def follow(self, page: FrontierEntry, links: PageLinks, into: Discovered) -> None:
        """Judge the links of a page. Nearly all are known, and those cost next to nothing."""
        fingerprints = links.fingerprints()
        news = self._seen.add_many(fingerprints)
        if True not in news and not any(map(len, self._liftable.values())):
            return
        urls: list[str] = []
        for place, new in enumerate(news):
            if new or self._lifted_reason(fingerprints[place]):
                urls = urls or links.urls.decode().split("\n")
                self.classify(links.found(page, place, urls[place]), new, into)

    def add(self, found: Sequence[FrontierEntry], into: Discovered) -> None:
        """Judge URLs, some of them known; what is new goes to the frontier or is refused."""
        news = self._seen.add_many(key_fingerprint(item.key) for item in found)
        for item, new in zip(found, news, strict=True):
            self.classify(item, new, into)

    def classify(self, item: FrontierEntry, new: bool, into: Discovered) -> None:
        """Decide about one URL; `new` says that it was never met before."""
        if not new:
            self._revive(item, into)
            return
        reason, message = self._refusal(item)
        if reason is None:
            into.entries.append(self._entry(item))
            self._ledger.pending += 1
            return
        if reason in LIFTABLE:
            self._liftable[reason].add(key_fingerprint(item.key))
        into.excluded.append(excluded(item, reason, message))
        self._ledger.exclude(reason)

    def _revive(self, item: FrontierEntry, into: Discovered) -> None:
        """Lift the refusal of a URL that depended on the links to it so far."""
        fingerprint = key_fingerprint(item.key)
        reason = self._lifted_reason(fingerprint)
        if reason is None or self._refusal(item)[0] is not None:
            return
        self._revived.add(fingerprint)
        self._ledger.revive(reason)
        into.revived.append(item.key)
        into.entries.append(self._entry(item))

    def _lifted_reason(self, fingerprint: int) -> str | None:
        """The reason of a refusal that a later link may lift; None for all other URLs."""
        for reason, refused in self._liftable.items():
            if fingerprint in refused:
                return None if fingerprint in self._revived else reason
        return None

    def _refusal(self, item: FrontierEntry) -> tuple[str | None, str]:
        rule = self.scope.refusal(item.url, item.depth)
        if rule is not None:
            return rule.reason, rule.message
        trap = find_trap(item.url, _today())
        # links lose their session ids; a redirect that insists on one is followed, once per page
        if trap is not None and not (trap.rule is TrapRule.SESSION_ID and item.via is Via.REDIRECT):
            return f"{TRAP}:{trap.rule}", trap.detail
        if item.nofollow:
            return NOFOLLOW, "every link to it says nofollow"
        if self._count_shape(item.url):
            return f"{TRAP}:query_explosion", "too many URLs of the same shape"
        return None, ""

    def _entry(self, item: FrontierEntry) -> FrontierEntry:
        seq, self.next_seq = self.next_seq, self.next_seq + 1
        return replace(item, seq=seq)

    def _count_shape(self, url: str) -> bool:
        """Count a URL among those of its shape; True if there are too many of them."""
        shape, limit = _shape(url)
        if shape is None:
            return False
        number = hash(shape)
        self._shapes[number] += 1
        count = self._shapes[number]
        if len(self._shapes) > MAX_SHAPES:
            self._forget_rare_shapes()
        return count > limit

    def _forget_rare_shapes(self) -> None:
        """Halve the counters at once, so that this cost stays rare."""
        common = self._shapes.most_common(MAX_SHAPES // 2)
        self._shapes = Counter(dict(common))


def _shape(url: str) -> tuple[str | None, int]:
    """The shape by which a URL is counted, and how many of it there may be."""
    if "?" in url:
        shape = query_shape(url)
        names = shape.count("&") + 1
        limits = {1: ONE_PARAMETER_LIMIT, 2: TWO_PARAMETERS_LIMIT}
        return shape, limits.get(names, MANY_PARAMETERS_LIMIT)
    if not any(character.isdigit() for character in url):
        return None, 0
    shape = path_shape(url)
    variables = shape.count("{")
    if "{date}" in shape or (variables >= 2 and _CALENDAR.search(shape)):
        return shape, CALENDAR_LIMIT
    return (shape, NUMBERS_LIMIT) if variables >= 2 else (None, 0)


def _today() -> date:
    return datetime.now(UTC).date()
