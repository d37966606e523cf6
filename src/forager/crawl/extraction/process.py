"""An extraction process: reads pages from standard input, writes facts to standard output.

Hostile HTML can cost seconds and gigabytes. Here it costs this process, and that one page.
"""

from __future__ import annotations

import gc

gc.disable()  # until everything is imported, see `serve`

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, NamedTuple

import orjson
import zstandard
from selectolax.lexbor import LexborHTMLParser

from forager.archive.warc_record import ResponseRecord, pack
from forager.crawl.extraction.reading import new_document, pack_document
from forager.crawl.frontier.entry import links_as_text
from forager.crawl.frontier.scope import CrawlScope, ScopeMode
from forager.extract.content.repeated import Block, RepeatedBlocks, blocks_of
from forager.extract.document import ExtractedPage, extract_reading
from forager.extract.keys import url_key
from forager.extract.kinds import ContentKind
from forager.extract.languages import primary_language
from forager.extract.page import PageFacts, extract_page, read_page
from forager.extract.traps import without_session
from forager.extract.urls import MAX_URL_LENGTH, NormalizedUrl, Refusal, normalize
from forager.processes.serving import Response, limit_memory, serve

MAX_KNOWN = 100_000


class Extractor:
    """Extracts facts, links with keys and the archive record from the bytes of a page."""

    def __init__(
        self,
        *,
        seeds: Iterable[str],
        scope: str,
        agent: str,
        documents: bool,
        products: bool,
        language: str | None = None,
    ) -> None:
        # only the outer limits are asked here: which host a link leads to
        self._scope = CrawlScope([NormalizedUrl(seed) for seed in seeds], ScopeMode(scope))
        self._agent = agent
        self._documents = documents
        self._language = language and primary_language(language)
        self.products = products
        self._repeated: RepeatedBlocks | None = None
        self._digest = ""
        self._compressor = zstandard.ZstdCompressor(level=3)
        # links that pages of the crawl have in common
        self.known: dict[str, _Link] = {}

    def add_seed(self, seed: str) -> None:
        """The scope has become wider."""
        self._scope.add_seed(NormalizedUrl(seed))
        self.known.clear()

    def use_repeated(self, repeated: dict[str, Any]) -> None:
        """Remove repeated blocks of the source from now on."""
        self._repeated = RepeatedBlocks.from_json(repeated)
        self._digest = self._repeated.digest

    def sample(self, request: dict[str, Any], body: bytes) -> Response:
        """The blocks of a page, from which repeated blocks are learned."""
        from forager.extract.composition import tokens_of

        _, content = read_page(body, request["url"], request["content_type"], (), self._agent)
        tokens = tokens_of(content)[0] if isinstance(content, LexborHTMLParser) else None
        return {}, [_pack_blocks(blocks_of(tokens) if tokens is not None else [])]

    def extract(self, request: dict[str, Any], body: bytes) -> Response:
        headers = [(name, value) for name, value in request["headers"]]
        given = (body, request["url"], request["content_type"], headers, self._agent)
        blocks: list[Block] = []
        wants_blocks = request.get("blocks", False)
        on_tokens = (lambda tokens: blocks.extend(blocks_of(tokens))) if wants_blocks else None
        reading = (
            extract_reading(*given, self._repeated, on_tokens=on_tokens)
            if self._documents
            else ExtractedPage(extract_page(*given), None)
        )
        if reading.document is not None and (page := request.get("twin_of")) is not None:
            reading = _twin(reading, request["url"], page)
        facts = reading.facts
        links = self._split_links(facts, request.get("links", ()))
        urls = "\n".join([*links.follow, *links.nofollow]).encode()
        kept = links_as_text(links.follow, links.nofollow).encode()
        has_document = self._documents and facts.kind is not ContentKind.OTHER
        header = _header(facts, links)
        header["is_product"] = self.products and _is_product_page(facts, body, headers)
        return header, [
            facts.content_hash or b"",
            pack(_record(request, headers, body)) if request["archive"] else b"",
            urls,
            b"".join([*links.follow.values(), *links.nofollow.values()]),
            self._compressor.compress(kept) if urls else b"",
            pack_document(new_document(reading, self._digest)) if has_document else b"",
            _pack_blocks(blocks) if wants_blocks else b"",
        ]

    def _split_links(self, facts: PageFacts, more: Iterable[str] = ()) -> _Links:
        links = _Links()
        translations: set[NormalizedUrl] = set()
        if self._language is not None:
            # a page may be given for several regions, and for all others
            same = {
                url for url, tag in facts.translations if primary_language(tag) == self._language
            }
            translations = {url for url, _ in facts.translations} - same
        routes = [(url, False) for each in more if (url := _route(each)) is not None]
        for given, unfollowed in (*facts.outlinks.links, *routes):
            if given in translations:
                links.outside["language"] += 1
                continue
            url, key, outside = self.known.get(given) or self._resolve(given)
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

    def _resolve(self, given: NormalizedUrl) -> _Link:
        url = _without_session(given)
        rule = self._scope.outside(url)
        outside = None if rule is None else rule.reason.value
        link = self.known[given] = _Link(url, url_key(url), outside)
        return link


_BLOCK = attrgetter(*(field.name for field in fields(Block)))


def _pack_blocks(blocks: list[Block]) -> bytes:
    # not `astuple`, which copies each value: a page has hundreds of them
    return orjson.dumps([_BLOCK(block) for block in blocks])


class _Link(NamedTuple):
    """A link as it was first met: without session id, with its key; `outside`: why not ours."""

    url: NormalizedUrl
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


def _route(url: str) -> NormalizedUrl | None:
    """A route that a script knows, in its one spelling; a path behind # is part of it."""
    document, _, path = url.partition("#")
    known = normalize(document)
    if isinstance(known, Refusal):
        return None
    is_route = path.startswith(("/", "!/")) and len(known) + len(path) < MAX_URL_LENGTH
    return NormalizedUrl(f"{known}#{path}") if is_route else known


def _without_session(url: NormalizedUrl) -> NormalizedUrl:
    """The URL itself if it has none, which is nearly always."""
    if "?" not in url and ";" not in url and "(" not in url:
        return url
    plain = without_session(url)
    normalized = url if plain == url else normalize(plain)
    return url if isinstance(normalized, Refusal) else normalized


def _header(facts: PageFacts, links: _Links) -> dict[str, Any]:
    return {
        "kind": facts.kind,
        "title": facts.title,
        "canonical": facts.canonical,
        "markdown": facts.markdown,
        "may_have_markdown": facts.may_have_markdown,
        "refresh": facts.refresh and [facts.refresh.url, facts.refresh.delay],
        "language": facts.language,
        "noindex": facts.directives.noindex,
        "asks_password": facts.asks_password,
        "needs_javascript": facts.needs_javascript,
        "soft_error": facts.soft_error,
        "text_length": facts.text_length,
        "truncated": facts.truncated,
        "followed": len(links.follow),
        "sessions": links.sessions,
        "out_of_scope": links.outside,
    }


def _twin(reading: ExtractedPage, url: str, page: dict[str, Any]) -> ExtractedPage:
    from forager.extract.markdown.twin import TwinOf, as_page  # most sites have none

    assert reading.document is not None
    return replace(reading, document=as_page(reading.document, url, TwinOf(**page)))


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


class Extractors:
    """The extractors of all crawls that this process reads pages for."""

    def __init__(self, parser_modules: Sequence[str]) -> None:
        self._parser_modules: Sequence[str] | None = parser_modules
        self._extractors: dict[str, Extractor] = {}
        # at most as many links as all extractors know
        self._known = 0

    def handle(self, request: dict[str, Any], body: bytes) -> Response | None:
        """Change the parameters of a crawl, or read one of its pages."""
        crawl = request["context"]
        if "url" not in request:
            self._change(crawl, request)
            return None
        extractor = self._extractors[crawl]
        if "sample" in request:
            return extractor.sample(request, body)
        if extractor.products:
            self._load_parsers()
        known = len(extractor.known)
        response = extractor.extract(request, body)
        self._limit_known(len(extractor.known) - known)
        return response

    def _limit_known(self, more: int) -> None:
        self._known += more
        if self._known > MAX_KNOWN:
            self._known = 0
            for extractor in self._extractors.values():
                extractor.known.clear()

    def _load_parsers(self) -> None:
        if self._parser_modules is not None:
            from forager.parsers.registry import load_parsers  # only for crawls of products

            load_parsers(self._parser_modules)
            self._parser_modules = None

    def _change(self, crawl: str, change: dict[str, Any]) -> None:
        if "forget" in change:
            self._extractors.pop(crawl, None)
        elif "seed" in change:
            self._extractors[crawl].add_seed(change["seed"])
        elif "repeated" in change:
            self._extractors[crawl].use_repeated(change["repeated"])
        else:
            del change["context"]
            self._extractors[crawl] = Extractor(**change)


def main() -> None:
    setup = orjson.loads(sys.argv[1])
    limit_memory(setup["memory_mb"])
    # now, and not while the first page is timed
    import forager.extract.composition  # noqa: F401

    serve(Extractors(setup["parser_modules"]).handle)


if __name__ == "__main__":
    main()
