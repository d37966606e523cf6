"""Reader of sitemaps: XML, indexes, plain text, RSS and Atom, gzipped or not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from xml.parsers import expat

from forager.crawl.sitemaps.content import BrokenSitemap, decode, unpack
from forager.extract.urls import NormalizedUrl, Refusal, normalize

# decompressed; the protocol says 50 MB, and sites exceed it
MAX_BYTES = 200_000_000
# the protocol says 50,000
MAX_ENTRIES = 250_000
MAX_FIELD = 8192
_MAX_DEPTH = 64
# expat holds a whole tag or comment in memory; no honest one is this long
_MAX_TOKEN = 1024 * 1024
_NO_URL = "there is no URL in it"


@dataclass(frozen=True, slots=True)
class SitemapEntry:
    """A page, or another sitemap (`is_sitemap`). How deep indexes may nest, the caller decides."""

    url: NormalizedUrl
    is_sitemap: bool = False


class Sitemap:
    """The entries of one sitemap, read while they are iterated over.

    Iterating never raises. Afterwards `error` says why reading ended early; the entries before
    that point are valid.
    """

    def __init__(
        self, url: str, body: bytes, *, max_bytes: int = MAX_BYTES, max_entries: int = MAX_ENTRIES
    ) -> None:
        self.error: str | None = None
        self._url = url
        self._body = body
        self._max_bytes = max_bytes
        self._max_entries = max_entries

    def __iter__(self) -> Iterator[SitemapEntry]:
        try:
            count = 0
            for raw in _raw_entries(decode(unpack(self._body, self._max_bytes))):
                url = self._address(raw.location or raw.permalink)
                if url is None:
                    continue
                if count == self._max_entries:
                    raise BrokenSitemap(f"it has more than {self._max_entries:,} entries")
                count += 1
                yield SitemapEntry(url, raw.tag == "sitemap")
        except BrokenSitemap as error:
            self.error = error.message

    def _address(self, location: str) -> NormalizedUrl | None:
        if not location or len(location) > MAX_FIELD:
            return None
        # escaped twice, or escaped inside CDATA: no page has "&amp;" in its address
        url = normalize(location.replace("&amp;", "&"), self._url)
        return None if isinstance(url, Refusal) else url


@dataclass(slots=True)
class _RawEntry:
    """An entry as written; `tag` is the element it came from."""

    tag: str
    location: str = ""
    permalink: str = ""


def _raw_entries(texts: Iterator[str]) -> Iterator[_RawEntry]:
    for text in texts:
        if start := text.lstrip("\ufeff \t\r\n"):
            read = _read_xml if start.startswith("<") else _read_text
            return read(chain([start], texts))
    raise BrokenSitemap(_NO_URL)


def _read_text(texts: Iterable[str]) -> Iterator[_RawEntry]:
    """One URL per line."""
    rest, is_empty = "", True
    for text in chain(texts, ["\n"]):
        *lines, rest = re.split(r"[\r\n]+", rest + text)
        # one character too many still marks the line as too long; the others need not be kept
        rest = rest[: MAX_FIELD + 1]
        for line in map(str.strip, lines):
            if line.startswith(("http://", "https://")):
                is_empty = False
                yield _RawEntry("url", line)
    if is_empty:
        raise BrokenSitemap(_NO_URL)


def _read_xml(texts: Iterable[str]) -> Iterator[_RawEntry]:
    reader = _XmlReader()
    try:
        for text in texts:
            reader.feed(text)
            yield from reader.take()
        reader.close()
    except BrokenSitemap:
        yield from reader.take()
        raise
    yield from reader.take()


_ROOTS = frozenset({"urlset", "sitemapindex", "rss", "rdf", "feed"})
# the elements of entries, and those of their children that contain the address
_LOCATIONS = {"url": ("loc",), "sitemap": ("loc",), "item": ("link", "guid"), "entry": ()}
# Everything but the five entities of XML and character numbers: people forget to escape "&".
_STRAY_AMPERSAND = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9A-Fa-f]{1,6});)")
_LONGEST_REFERENCE = 10
_CONTROL = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


class _XmlReader:
    """Sitemaps, sitemap indexes, RSS and Atom, on expat, which keeps no tree.

    Nothing can be expanded or fetched: a document type with declarations is refused,
    and a reference to any other entity is taken as text.
    """

    def __init__(self) -> None:
        self._found: list[_RawEntry] = []
        self._unparsed = ""
        self._fed = 0
        self._depth = 0
        self._entry: _RawEntry | None = None
        self._entry_depth = 0
        self._field: str | None = None
        self._text: list[str] = []
        self._length = 0
        # No namespaces: sitemaps use prefixes they never declared, which would be an error.
        parser = self._parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters

    def feed(self, text: str) -> None:
        text = self._unparsed + text
        ampersand = text.rfind("&", -_LONGEST_REFERENCE)
        cut = ampersand if ampersand >= 0 else len(text)
        self._unparsed = text[cut:]
        self._parse(text[:cut], final=False)

    def close(self) -> None:
        self._parse(self._unparsed, final=True)

    def take(self) -> list[_RawEntry]:
        """The entries that are complete; also those before a fault."""
        found, self._found = self._found, []
        return found

    def _parse(self, text: str, *, final: bool) -> None:
        data = _CONTROL.sub("", _STRAY_AMPERSAND.sub("&amp;", text)).encode()
        self._fed += len(data)
        try:
            self._parser.Parse(data, final)
        except expat.ExpatError as error:
            said = expat.ErrorString(error.code)
            raise BrokenSitemap(f"line {error.lineno}: broken XML ({said})") from None
        if self._fed - self._parser.CurrentByteIndex > _MAX_TOKEN:
            raise BrokenSitemap(f"a tag or comment is longer than {_MAX_TOKEN:,} bytes")

    # --- callbacks of expat -----------------------------------------------------------------

    def _doctype(self, _name: str, _system: object, _public: object, has_subset: bool) -> None:
        if has_subset:
            raise BrokenSitemap("it declares entities or attributes, which is refused")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(":")[2].lower()
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise BrokenSitemap(f"its elements are nested deeper than {_MAX_DEPTH}")
        if self._depth == 1:
            if tag not in _ROOTS:
                raise BrokenSitemap(f"it is not a sitemap: it begins with <{tag[:40]}>")
        elif self._entry is None:
            if tag in _LOCATIONS:
                self._entry, self._entry_depth = _RawEntry(tag), self._depth
        # only direct children count: an <image:loc> is not the page's
        elif self._depth == self._entry_depth + 1:
            self._start_field(self._entry, tag, attributes)

    def _start_field(self, entry: _RawEntry, tag: str, attributes: dict[str, str]) -> None:
        if tag == "link" and attributes.get("href"):
            # the address of the page in Atom; another language, or the feed itself, elsewhere
            if entry.tag == "entry" and attributes.get("rel", "alternate") == "alternate":
                entry.location = entry.location or attributes["href"]
        elif tag in _LOCATIONS[entry.tag] and attributes.get("isPermaLink", "true") == "true":
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
            self._found.append(self._entry)
            self._entry = None
        elif self._depth == self._entry_depth and self._field is not None:
            text = "".join(self._text).strip()
            if self._field != "guid":
                self._entry.location = self._entry.location or text
            elif text.startswith(("http://", "https://")):
                # often no address at all, whatever its attribute says
                self._entry.permalink = text
            self._field = None
