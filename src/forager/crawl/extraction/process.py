"""An extraction process: reads pages from standard input, writes facts to standard output.

Hostile HTML can cost seconds and gigabytes. Here it costs this process, and that one page.
"""

from __future__ import annotations

import gc

gc.disable()  # until everything is imported, see `serve`

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple, dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson
import zstandard
from selectolax.lexbor import LexborHTMLParser

from forager.archive.record import ResponseRecord, pack
from forager.crawl.extraction.reading import document_of, pack_document
from forager.crawl.frontier.entry import links_as_text
from forager.crawl.frontier.scope import Scope, ScopeMode
from forager.extract.content.repeated import RepeatedBlocks, blocks_of
from forager.extract.document import Reading, extract_reading
from forager.extract.keys import url_key
from forager.extract.kinds import ContentKind
from forager.extract.page import PageFacts, extract_page, read_page
from forager.extract.traps import without_session
from forager.extract.urls import MAX_URL_LENGTH, NormalisedUrl, Refusal, normalise
from forager.processes.serving import Response, limit_memory, serve

MAX_KNOWN = 100_000


class Extractor:
    """Extracts facts, links with keys and the archive record from the bytes of a page."""

    def __init__(
        self,
        seeds: Iterable[str],
        mode: str,
        agent: str,
        *,
        documents: bool = True,
        products: bool = False,
        repeated: dict[str, Any] | None = None,
    ) -> None:
        # only the outer limits are asked here: which host a link leads to
        self._scope = Scope([NormalisedUrl(seed) for seed in seeds], ScopeMode(mode))
        self._agent = agent
        self._documents = documents
        self._products = products
        self.use_repeated(repeated)
        self._compressor = zstandard.ZstdCompressor(level=3)
        self._known: dict[str, _Link] = {}

    def add_seed(self, seed: str) -> None:
        """The scope has become wider."""
        self._scope.add_seed(NormalisedUrl(seed))
        self._known.clear()

    def use_repeated(self, repeated: dict[str, Any] | None) -> None:
        """Remove repeated blocks of the source from now on."""
        self._repeated = None if repeated is None else RepeatedBlocks.from_json(repeated)
        self._digest = "" if self._repeated is None else self._repeated.digest

    def sample(self, request: dict[str, Any], body: bytes) -> Response:
        """The blocks of a page, from which repeated blocks are learned."""
        from forager.extract.composition import tokens_of

        _, content = read_page(body, request["url"], request["content_type"], (), self._agent)
        tokens = tokens_of(content)[0] if isinstance(content, LexborHTMLParser) else None
        blocks = blocks_of(tokens) if tokens is not None else []
        return {}, [orjson.dumps([astuple(block) for block in blocks])]

    def extract(self, request: dict[str, Any], body: bytes) -> Response:
        headers = [(name, value) for name, value in request["headers"]]
        given = (body, request["url"], request["content_type"], headers, self._agent)
        reading = (
            extract_reading(*given, self._repeated)
            if self._documents
            else Reading(extract_page(*given), None)
        )
        facts = reading.facts
        links = self._split_links(facts, request.get("links", ()))
        urls = "\n".join([*links.follow, *links.nofollow]).encode()
        kept = links_as_text(links.follow, links.nofollow).encode()
        has_document = self._documents and facts.kind is not ContentKind.OTHER
        header = _header(facts, links)
        header["is_product"] = self._products and _is_product_page(facts, body, headers)
        return header, [
            facts.content_hash or b"",
            pack(_record(request, headers, body)) if request["archive"] else b"",
            urls,
            b"".join([*links.follow.values(), *links.nofollow.values()]),
            self._compressor.compress(kept) if urls else b"",
            pack_document(document_of(reading, self._digest)) if has_document else b"",
        ]

    def _split_links(self, facts: PageFacts, more: Iterable[str] = ()) -> _Links:
        links = _Links()
        if len(self._known) > MAX_KNOWN:
            self._known.clear()
        routes = [(url, False) for each in more if (url := _route(each)) is not None]
        for given, unfollowed in (*facts.outlinks.links, *routes):
            url, key, outside = self._known.get(given) or self._meet(given)
            if outside is not None:
                links.outside[outside] += 1
                continue
            links.sessions += url != given
            if unfollowed or facts.directives.nofollow:
                links.nofollow[url] = key
            else:
                links.follow[url] = key
        if links.sessions:  # without them, links may be the same, or the page itself
            for followed in [facts.url, *links.follow]:
                links.nofollow.pop(followed, None)
            links.follow.pop(facts.url, None)
        return links

    def _meet(self, given: NormalisedUrl) -> _Link:
        url = _without_session(given)
        rule = self._scope.outside(url)
        outside = None if rule is None else rule.reason.value
        link = self._known[given] = _Link(url, url_key(url), outside)
        return link


class _Link(NamedTuple):
    """A link as it was first met: without session id, with its key; `outside`: why not ours."""

    url: NormalisedUrl
    key: bytes
    outside: str | None


@dataclass(slots=True)
class _Links:
    """The in-scope links of a page with their keys, in order, and a count of the others."""

    follow: dict[str, bytes] = field(default_factory=dict)
    nofollow: dict[str, bytes] = field(default_factory=dict)
    outside: Counter[str] = field(default_factory=Counter)
    # links that had a session id
    sessions: int = 0


def _route(url: str) -> NormalisedUrl | None:
    """A route that a script knows, in its one spelling; a path behind # is part of it."""
    document, _, path = url.partition("#")
    known = normalise(document)
    if isinstance(known, Refusal):
        return None
    is_route = path.startswith(("/", "!/")) and len(known) + len(path) < MAX_URL_LENGTH
    return NormalisedUrl(f"{known}#{path}") if is_route else known


def _without_session(url: NormalisedUrl) -> NormalisedUrl:
    """The URL itself if it has none, which is nearly always."""
    if "?" not in url and ";" not in url and "(" not in url:
        return url
    plain = without_session(url)
    normalised = url if plain == url else normalise(plain)
    return url if isinstance(normalised, Refusal) else normalised


def _header(facts: PageFacts, links: _Links) -> dict[str, Any]:
    return {
        "kind": facts.kind,
        "title": facts.title,
        "canonical": facts.canonical,
        "refresh": facts.refresh and [facts.refresh.url, facts.refresh.delay],
        "noindex": facts.directives.noindex,
        "needs_javascript": facts.needs_javascript,
        "soft_error": facts.soft_error,
        "text_length": facts.text_length,
        "truncated": facts.truncated,
        "followed": len(links.follow),
        "sessions": links.sessions,
        "out_of_scope": links.outside,
    }


def _is_product_page(facts: PageFacts, body: bytes, headers: list[tuple[str, str]]) -> bool:
    # imported only by crawls that track products
    from forager.extract.product.likeness import is_product
    from forager.extract.product.page import open_page
    from forager.parsers.registry import parse_product

    if facts.kind is not ContentKind.HTML:
        return False
    content_type = next((v for name, v in headers if name.lower() == "content-type"), None)
    page = open_page(body, facts.url, content_type, headers)
    return is_product(parse_product(page).product)


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


def main() -> None:
    setup = orjson.loads(sys.argv[1])
    limit_memory(setup["memory_mb"])
    if setup["documents"]:
        # now, and not while the first page is timed
        import forager.extract.composition  # noqa: F401
    if setup["products"]:
        from forager.parsers.registry import load_parsers

        load_parsers(setup["parser_modules"])
    extractor = Extractor(
        setup["seeds"],
        setup["scope"],
        setup["agent"],
        documents=setup["documents"],
        products=setup["products"],
        repeated=setup["repeated"],
    )

    def handle(request: dict[str, Any], body: bytes) -> Response | None:
        if "seed" in request:
            extractor.add_seed(request["seed"])
            return None
        if "repeated" in request:
            extractor.use_repeated(request["repeated"])
            return None
        if "sample" in request:
            return extractor.sample(request, body)
        return extractor.extract(request, body)

    serve(handle)


if __name__ == "__main__":
    main()
