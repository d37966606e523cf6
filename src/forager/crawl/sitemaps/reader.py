"""Streaming reader of sitemaps: XML, indexes, plain text, RSS and Atom, gzipped or not."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from forager.crawl.sitemaps.content import BrokenSitemap, Unpacker, text_decoder
from forager.crawl.sitemaps.formats import (
    MAX_FIELD,
    RawEntry,
    Reader,
    SitemapKind,
    TextReader,
    XmlReader,
)
from forager.extract.urls import NormalisedUrl, Refusal, normalise

MAX_BYTES = 200_000_000
"""Decompressed. The protocol says 50 MB, and sites exceed it."""
MAX_ENTRIES = 250_000
"""The protocol says 50,000."""

# enough to see a byte order mark, an encoding and the first character that is not a blank
_HEAD = 1024
_PARTIAL_DATE = re.compile(r"(\d{4})(?:-(\d{1,2}))?")
_LONG_FRACTION = re.compile(r"(\.\d{6})\d+")


@dataclass(frozen=True, slots=True)
class SitemapEntry:
    """A page, or another sitemap (`is_sitemap`). How deep indexes may nest, the caller decides."""

    url: NormalisedUrl
    is_sitemap: bool = False
    modified: datetime | None = None
    alternates: tuple[NormalisedUrl, ...] = ()


class SitemapParser:
    """Feed it chunks as they come and use up what it yields; then read what it says of itself.

    It never raises. `error` says why reading ended early, and entries before that point are good.
    """

    def __init__(
        self, url: str, *, max_bytes: int = MAX_BYTES, max_entries: int = MAX_ENTRIES
    ) -> None:
        self.error: str | None = None
        self.entries = 0
        self.skipped = 0
        self._url = url
        self._max_entries = max_entries
        self._unpacker = Unpacker(max_bytes)
        self._head = b""
        self._decoder: codecs.IncrementalDecoder | None = None
        self._reader: Reader | None = None

    @property
    def kind(self) -> SitemapKind | None:
        """What it turned out to be; None while that is not known."""
        return self._reader.kind if self._reader else None

    def feed(self, chunk: bytes) -> Iterator[SitemapEntry]:
        """The entries that this chunk completes. A generator: nothing happens until it is used."""
        return self._guarded(self._read(self._unpacker.feed(chunk)))

    def close(self) -> Iterator[SitemapEntry]:
        """The entries that only the end completes; after them, `error` is final."""
        yield from self._guarded(self._read(self._unpacker.close()))
        yield from self._guarded(self._finish())
        if self.error is None and not self.entries and self.kind in (None, SitemapKind.TEXT):
            self.error = "there is no URL in it"

    def _guarded(self, batches: Iterator[list[RawEntry]]) -> Iterator[SitemapEntry]:
        if self.error is not None:
            return
        try:
            for batch in batches:
                yield from self._entries(batch)
        except BrokenSitemap as error:
            self.error = error.message

    def _read(self, pieces: Iterator[bytes]) -> Iterator[list[RawEntry]]:
        for piece in pieces:
            if self._decoder is None:
                self._head += piece
                if len(self._head) >= _HEAD:
                    yield from self._begin()
            else:
                yield from self._decode(piece)

    def _begin(self) -> Iterator[list[RawEntry]]:
        self._decoder = text_decoder(self._head)
        return self._decode(self._head)

    def _finish(self) -> Iterator[list[RawEntry]]:
        if self._decoder is None:
            yield from self._begin()
        yield from self._decode(b"", final=True)
        if self._reader is not None:
            yield from _whole(self._reader, self._reader.close)

    def _decode(self, data: bytes, *, final: bool = False) -> Iterator[list[RawEntry]]:
        assert self._decoder is not None
        text = self._decoder.decode(data, final)
        if self._reader is None:
            text = text.lstrip("\ufeff \t\r\n")
            if not text:
                return
            self._reader = XmlReader() if text.startswith("<") else TextReader()
        reader = self._reader
        yield from _whole(reader, lambda: reader.feed(text))

    # --- raw entries to entries -------------------------------------------------------------

    def _entries(self, batch: list[RawEntry]) -> Iterator[SitemapEntry]:
        for raw in batch:
            entry = self._entry(raw)
            if entry is None:
                self.skipped += 1
                continue
            if self.entries == self._max_entries:
                raise BrokenSitemap(f"it has more than {self._max_entries:,} entries")
            self.entries += 1
            yield entry

    def _entry(self, raw: RawEntry) -> SitemapEntry | None:
        url = self._address(raw.location)
        if url is None:
            return None
        alternates = filter(None, map(self._address, raw.alternates))
        return SitemapEntry(url, raw.tag == "sitemap", parse_date(raw.modified), tuple(alternates))

    def _address(self, location: str) -> NormalisedUrl | None:
        if not location or len(location) > MAX_FIELD:
            return None
        if self.kind is SitemapKind.TEXT and not location.startswith(("http://", "https://")):
            return None
        # escaped twice, or escaped inside CDATA: no page has "&amp;" in its address
        url = normalise(location.replace("&amp;", "&"), self._url)
        return None if isinstance(url, Refusal) else url


def _whole(reader: Reader, step: Callable[[], list[RawEntry]]) -> Iterator[list[RawEntry]]:
    """What a step finds, also when it breaks off in the middle."""
    try:
        yield step()
    except BrokenSitemap:
        yield reader.take()
        raise


def parse_date(text: str) -> datetime | None:
    """A W3C or RFC 822 date, also a sloppy one; UTC where it names no zone."""
    text = text.strip()[:64]
    if not text:
        return None
    for parse in (_iso_date, _partial_date, parsedate_to_datetime):
        try:
            moment = parse(text)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return None


def _iso_date(text: str) -> datetime:
    return datetime.fromisoformat(_LONG_FRACTION.sub(r"\1", text))


def _partial_date(text: str) -> datetime:
    match = _PARTIAL_DATE.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return datetime(int(match[1]), int(match[2] or 1), 1, tzinfo=UTC)
