"""Parsers of sitemap formats: XML sitemaps, feeds, and lists of URLs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol
from xml.parsers import expat

from forager.crawl.sitemaps.content import BrokenSitemap

MAX_FIELD = 8192
MAX_ALTERNATES = 500
_MAX_DEPTH = 64
# expat holds a whole tag or comment in memory; no honest one is this long
_MAX_TOKEN = 1024 * 1024


class SitemapKind(StrEnum):
    URLSET = "urlset"
    INDEX = "sitemapindex"
    RSS = "rss"
    ATOM = "atom"
    TEXT = "text"


@dataclass(slots=True)
class RawEntry:
    """An entry as written; `tag` is the element it came from."""

    tag: str
    location: str = ""
    permalink: str = ""
    modified: str = ""
    alternates: list[str] = field(default_factory=list)


class Reader(Protocol):
    kind: SitemapKind | None

    def feed(self, text: str) -> list[RawEntry]:
        """The entries that are complete; those before a fault are kept for `take`."""

    def close(self) -> list[RawEntry]: ...

    def take(self) -> list[RawEntry]: ...


class TextReader:
    """One URL per line."""

    kind: SitemapKind | None = SitemapKind.TEXT

    def __init__(self) -> None:
        self._rest = ""

    def feed(self, text: str) -> list[RawEntry]:
        *lines, rest = re.split(r"[\r\n]+", self._rest + text)
        # one character too many still marks the line as too long; the others need not be kept
        self._rest = rest[: MAX_FIELD + 1]
        return [RawEntry("url", line.strip()) for line in lines if line.strip()]

    def close(self) -> list[RawEntry]:
        return self.feed("\n")

    def take(self) -> list[RawEntry]:
        return []


_ROOTS = {
    "urlset": SitemapKind.URLSET,
    "sitemapindex": SitemapKind.INDEX,
    "rss": SitemapKind.RSS,
    "rdf": SitemapKind.RSS,
    "feed": SitemapKind.ATOM,
}
_ITEMS = frozenset({"url", "sitemap", "item", "entry"})
_LOCATIONS = {"url": ("loc",), "sitemap": ("loc",), "item": ("link", "guid"), "entry": ()}
_DATES = frozenset({"lastmod", "pubdate", "date", "updated", "published"})
# Everything but the five entities of XML and character numbers: people forget to escape "&".
_STRAY_AMPERSAND = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9A-Fa-f]{1,6});)")
_LONGEST_REFERENCE = 10
_CONTROL = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


class XmlReader:
    """Sitemaps, sitemap indexes, RSS and Atom, on expat, which keeps no tree.

    Nothing can be expanded or fetched: a document type with declarations is refused,
    and a reference to any other entity is taken as text.
    """

    def __init__(self) -> None:
        self.kind: SitemapKind | None = None
        self._found: list[RawEntry] = []
        self._held = ""
        self._fed = 0
        self._depth = 0
        self._entry: RawEntry | None = None
        self._entry_depth = 0
        self._field: str | None = None
        self._text: list[str] = []
        self._length = 0
        self._parser = self._make_parser()

    def _make_parser(self) -> expat.XMLParserType:
        # No namespaces: sitemaps use prefixes they never declared, which would be an error.
        parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        return parser

    def feed(self, text: str) -> list[RawEntry]:
        text = self._held + text
        ampersand = text.rfind("&", -_LONGEST_REFERENCE)
        cut = ampersand if ampersand >= 0 else len(text)
        self._held = text[cut:]
        self._parse(text[:cut], final=False)
        return self.take()

    def close(self) -> list[RawEntry]:
        self._parse(self._held, final=True)
        return self.take()

    def take(self) -> list[RawEntry]:
        found, self._found = self._found, []
        return found

    def _parse(self, text: str, *, final: bool) -> None:
        data = _repaired(text).encode()
        self._fed += len(data)
        try:
            self._parser.Parse(data, final)
        except expat.ExpatError as error:
            said = expat.ErrorString(error.code)
            raise BrokenSitemap(f"line {error.lineno}: broken XML ({said})") from None
        if self._fed - self._parser.CurrentByteIndex > _MAX_TOKEN:
            raise BrokenSitemap(f"a tag or comment is longer than {_MAX_TOKEN:,} bytes")

    # --- what expat calls -------------------------------------------------------------------

    def _doctype(self, _name: str, _system: object, _public: object, has_subset: bool) -> None:
        if has_subset:
            raise BrokenSitemap("it declares entities or attributes, which is refused")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = _local(name)
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise BrokenSitemap(f"its elements are nested deeper than {_MAX_DEPTH}")
        if self.kind is None:
            self.kind = _kind(tag)
        elif self._entry is None:
            if tag in _ITEMS:
                self._entry, self._entry_depth = RawEntry(tag), self._depth
        # only direct children count: an <image:loc> is not the page's
        elif self._depth == self._entry_depth + 1:
            self._start_field(self._entry, tag, attributes)

    def _start_field(self, entry: RawEntry, tag: str, attributes: dict[str, str]) -> None:
        if tag == "link" and attributes.get("href"):
            _link(entry, attributes)
        elif tag in _DATES or (
            tag in _LOCATIONS[entry.tag] and attributes.get("isPermaLink", "true") == "true"
        ):
            self._field, self._text, self._length = tag, [], 0

    def _characters(self, text: str) -> None:
        if self._field is not None and self._length <= MAX_FIELD:
            self._text.append(text)
            self._length += len(text)

    def _end(self, _name: str) -> None:
        self._depth -= 1
        if self._entry is None:
            return
        if self._depth < self._entry_depth:
            self._entry.location = self._entry.location or self._entry.permalink
            self._found.append(self._entry)
            self._entry = None
        elif self._depth == self._entry_depth and self._field is not None:
            self._end_field(self._entry, self._field)

    def _end_field(self, entry: RawEntry, tag: str) -> None:
        text = "".join(self._text).strip()
        if tag in _DATES:
            entry.modified = entry.modified or text
        elif tag == "guid":
            # often no address at all, whatever its attribute says
            entry.permalink = text if text.startswith(("http://", "https://")) else ""
        else:
            entry.location = entry.location or text
        self._field = None


def _local(name: str) -> str:
    return name.rpartition(":")[2].lower()


def _kind(root: str) -> SitemapKind:
    if root not in _ROOTS:
        raise BrokenSitemap(f"it is no sitemap: it begins with <{root[:40]}>")
    return _ROOTS[root]


def _link(entry: RawEntry, attributes: dict[str, str]) -> None:
    """The page's own address in Atom, its other languages in a sitemap, nothing in RSS."""
    if attributes.get("rel", "alternate") != "alternate":
        return
    if entry.tag == "entry":
        entry.location = entry.location or attributes["href"]
    elif entry.tag == "url" and len(entry.alternates) < MAX_ALTERNATES:
        entry.alternates.append(attributes["href"])


def _repaired(text: str) -> str:
    if "&" in text:
        text = _STRAY_AMPERSAND.sub("&amp;", text)
    return _CONTROL.sub("", text)
