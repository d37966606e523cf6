"""The links of a page: absolute, normalized, in order, each once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from forager.extract.urls import LinkResolver, NormalizedUrl, Refusal

MAX_LINKS = 50_000


class Link(NamedTuple):
    """A link of a page."""

    url: NormalizedUrl
    nofollow: bool  # every link to this URL says nofollow, ugc or sponsored


@dataclass(frozen=True, slots=True)
class LinkSet:
    """The links of a page, without those that cannot be crawled."""

    links: tuple[Link, ...] = ()
    dropped: int = 0  # links beyond MAX_LINKS, which were not read


NO_LINKS = LinkSet()

# href -> nofollow
Hrefs = dict[str, bool]

_NOFOLLOW = re.compile(r"(?<!\S)(?:nofollow|ugc|sponsored)(?!\S)", re.IGNORECASE)
_NOT_PAGES = ("javascript:", "mailto:", "tel:", "data:", "sms:", "blob:", "about:")


def add_href(hrefs: Hrefs, href: str | None, rel: str | None = None) -> None:
    """Add one link. A URL that is linked with and without nofollow may be followed."""
    if href is None:
        return
    path, mark, _ = href.partition("#")
    # pages link to many places of one page; but blanks before "#" belong to the path
    if mark and path == path.rstrip():
        href = path
    nofollow = bool(rel and _NOFOLLOW.search(rel))
    hrefs[href] = nofollow and hrefs.get(href, True)


_LINK_RELS = frozenset({"next", "prev", "previous"})


def is_page_link(attributes: Mapping[str, str | None]) -> bool:
    """Whether a link element leads to another page rather than to a style sheet or an icon."""
    rels = (attributes.get("rel") or "").lower().split()
    if "alternate" in rels:
        return "hreflang" in attributes and "stylesheet" not in rels
    return not _LINK_RELS.isdisjoint(rels)


def resolve_links(hrefs: Hrefs, resolver: LinkResolver, page: str) -> LinkSet:
    """Resolve every link once; links to the page itself do not count."""
    found: dict[NormalizedUrl, bool] = {}
    dropped = 0
    for index, (href, nofollow) in enumerate(hrefs.items()):
        if len(found) >= MAX_LINKS:
            dropped = len(hrefs) - index
            break
        if not href.startswith(_NOT_PAGES):
            url = resolver.resolve(href)
            if not isinstance(url, Refusal):
                found[url] = nofollow and found.get(url, True)
    found.pop(NormalizedUrl(page), None)
    return LinkSet(tuple(map(Link, found.keys(), found.values())), dropped)


# --- links in markdown and plain text -------------------------------------------------------

# Destinations hold no blanks and, as in CommonMark, at most one level of parentheses. All loops
# are possessive or bounded, so that no text costs more than a scan.
_MARKDOWN_LINK = re.compile(
    r"""
      \]\(\s*+ (?: <([^<>\n]++)> | ((?:[^\s()<>]++|\([^\s()]*+\))+) )   # [text](url "title")
    | ^[ ]{0,3}+\[[^\]\n]{1,999}+\]:[ \t]*+ <?([^\s<>]++)>?            # [name]: url
    | <(https?://[^\s<>]++)>                                           # <url>
    | (?<![\w("'<=\[/])(https?://[^\s<>()\[\]"'`]++)                    # bare, as GitHub links it
    """,
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)
_FENCE = re.compile(r"^[ ]{0,3}(```+|~~~+).*?(?:^[ ]{0,3}\1|\Z)", re.MULTILINE | re.DOTALL)


def links_in_text(text: str, resolver: LinkResolver, page: str) -> LinkSet:
    """The links of a markdown or plain text page, without those in fenced code."""
    hrefs: Hrefs = {}
    for href in _hrefs_in_text(_FENCE.sub("", text)):
        add_href(hrefs, href)
    return resolve_links(hrefs, resolver, page)


def _hrefs_in_text(text: str) -> Iterator[str]:
    for match in _MARKDOWN_LINK.finditer(text):
        bare = match[5]
        yield bare.rstrip(".,;:!?*_~") if bare else match[match.lastindex or 0]
