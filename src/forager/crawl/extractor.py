"""An extraction process: reads pages from standard input, writes facts to standard output.

Hostile HTML can cost seconds and gigabytes. Here it costs this process, and that one page.
"""

from __future__ import annotations

import resource
import sys
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import orjson
import zstandard

from forager.archive.record import ResponseRecord, pack
from forager.crawl.frames import encode_frame, read_frame
from forager.crawl.scope import Scope, ScopeMode
from forager.extract.keys import url_key
from forager.extract.page import PageFacts, extract_page
from forager.extract.urls import NormalisedUrl

MAX_KNOWN = 100_000


class Extractor:
    """Everything about one page that needs its bytes: facts, links with keys, archive record."""

    def __init__(self, seeds: list[str], mode: str, agent: str) -> None:
        # only the outer limits are asked here: which host a link leads to
        self._scope = Scope([NormalisedUrl(seed) for seed in seeds], ScopeMode(mode))
        self._agent = agent
        self._compressor = zstandard.ZstdCompressor(level=3)
        # of links met before: their key, and why they are somebody else's
        self._known: dict[str, tuple[bytes, str | None]] = {}

    def answer(self, request: dict[str, Any], body: bytes) -> tuple[dict[str, Any], list[bytes]]:
        headers = [(name, value) for name, value in request["headers"]]
        facts = extract_page(body, request["url"], request["content_type"], headers, self._agent)
        follow, nofollow, outside = self._split_links(facts)
        frame = pack(_record(request, headers, body)) if request["archive"] else b""
        links = "\n".join(follow + nofollow).encode()
        keys = b"".join(self._known[url][0] for url in follow + nofollow)
        header = _header(facts, followed=len(follow), outside=outside)
        return header, [
            facts.content_hash or b"",
            frame,
            links,
            keys,
            self._compressor.compress(links) if links else b"",
        ]

    def _split_links(self, facts: PageFacts) -> tuple[list[str], list[str], Counter[str]]:
        follow: list[str] = []
        nofollow: list[str] = []
        outside: Counter[str] = Counter()
        if len(self._known) > MAX_KNOWN:
            self._known.clear()
        for url, unfollowed in facts.outlinks.links:
            reason = self._reason_outside(url)
            if reason is not None:
                outside[reason] += 1
            elif unfollowed or facts.directives.nofollow:
                nofollow.append(url)
            else:
                follow.append(url)
        return follow, nofollow, outside

    def _reason_outside(self, url: NormalisedUrl) -> str | None:
        known = self._known.get(url)
        if known is None:
            rule = self._scope.outside(url)
            reason = None if rule is None else rule.reason.value
            known = self._known[url] = (url_key(url), reason)
        return known[1]


def _header(facts: PageFacts, *, followed: int, outside: Counter[str]) -> dict[str, Any]:
    return {
        "kind": facts.kind,
        "title": facts.title,
        "language": facts.language,
        "canonical": facts.canonical,
        "refresh": facts.refresh and [facts.refresh.url, facts.refresh.delay],
        "noindex": facts.directives.noindex,
        "needs_javascript": facts.needs_javascript,
        "soft_error": facts.soft_error,
        "text_length": facts.text_length,
        "truncated": facts.truncated,
        "followed": followed,
        "out_of_scope": outside,
    }


def _record(request: dict[str, Any], headers: list[tuple[str, str]], body: bytes) -> ResponseRecord:
    return ResponseRecord(
        url=request["url"],
        date=datetime.fromtimestamp(request["at"], UTC),
        status=request["status"],
        headers=headers,
        body=body,
        reason=request["reason"],
        ip=request["peer"] or None,
        protocol=request["protocol"],
    )


def limit_memory(megabytes: int) -> None:
    limit = megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def main() -> None:
    setup = orjson.loads(sys.argv[1])
    limit_memory(setup["memory_mb"])
    extractor = Extractor(setup["seeds"], setup["scope"], setup["agent"])
    reader, writer = sys.stdin.buffer, sys.stdout.buffer
    while (message := read_frame(reader.read)) is not None:
        request, [body] = message
        try:
            header, blobs = extractor.answer(request, body)
        except MemoryError:
            # whatever the page had built up is still referred to: start again with a clean slate
            raise SystemExit(3) from None
        except Exception as error:  # a page that breaks the code is a failed page, not a failed job
            header, blobs = {"error": f"{type(error).__name__}: {error}"}, []
        writer.write(encode_frame({"id": request["id"], **header}, blobs))
        writer.flush()


if __name__ == "__main__":
    main()
