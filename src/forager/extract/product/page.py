"""A page that is parsed once for all readers of its product and for site parsers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode, SelectolaxError

from forager.errors import InvalidInput
from forager.extract.decode import utf8_of
from forager.extract.hosts import registrable_domain
from forager.extract.kinds import ContentKind, kind_of
from forager.extract.markup import close_self_closed, cut_hostile_source
from forager.extract.product.annotated import MICRODATA, Item, read_annotations
from forager.extract.product.currency import country_hints
from forager.extract.product.elements import Elements, collect_elements
from forager.extract.product.json_ld import read_json_ld
from forager.extract.product.wording import code_key
from forager.extract.urls import LinkResolver, Refusal, normalize

_MAX_META = 400


@dataclass(frozen=True)
class ProductPage:
    """The URL, the text and the tree of a page. The tree is shared and must not be changed.

    `source` is the text in UTF-8, which is searched much faster than `html`.
    """

    url: str
    source: bytes
    tree: LexborHTMLParser

    @cached_property
    def html(self) -> str:
        return self.source.decode("utf-8", "replace")

    @cached_property
    def elements(self) -> Elements:
        """The elements that may describe a product, found in one walk of the tree."""
        return collect_elements(self.tree)

    @cached_property
    def by_id(self) -> dict[str, list[LexborNode]]:
        """The elements that have an id; some pages give one to several."""
        found: dict[str, list[LexborNode]] = {}
        for node in self.tree.css("[id]"):
            if identifier := node.attributes.get("id"):
                found.setdefault(identifier, []).append(node)
        return found

    @cached_property
    def linked_data(self) -> list[dict[str, Any]]:
        """The items of the page's JSON-LD."""
        return read_json_ld(self.elements)

    @cached_property
    def microdata(self) -> tuple[list[Item], Item]:
        """The items of the page's microdata, and the properties without an item."""
        return read_annotations(self.elements.microdata, MICRODATA)

    @cached_property
    def metas(self) -> dict[str, list[str]]:
        """The contents of `<meta>` elements, by their names in lower case."""
        metas: dict[str, list[str]] = {}
        for element in self.elements.metas[:_MAX_META]:
            attributes = element.attributes
            name = attributes.get("property") or attributes.get("name")
            if name and (content := attributes.get("content")):
                metas.setdefault(name.strip().lower(), []).append(content)
        return metas

    @cached_property
    def currency_hints(self) -> tuple[str, ...]:
        """The currencies of the countries that the page's address and language point to."""
        parts = urlsplit(self.url)
        return country_hints(parts.hostname or "", parts.path, self.language)

    @cached_property
    def resolver(self) -> LinkResolver:
        """Makes the links of the page absolute, against its `<base>` if it has one."""
        page = normalize(self.url)
        assert not isinstance(page, Refusal), "checked when the page was opened"
        bases = (element.attributes.get("href") for element in self.elements.bases)
        href = next((href for href in bases if href), None)
        base = normalize(href, page) if href else page
        return LinkResolver(page if isinstance(base, Refusal) else base)

    @cached_property
    def language(self) -> str | None:
        """The language that the page claims, in lower case (en, pt-br)."""
        root = self.tree.root
        claimed = root.attributes.get("lang") if root is not None else None
        return (claimed or "").strip().replace("_", "-").lower()[:16] or None

    @cached_property
    def title(self) -> str | None:
        head = self.tree.head
        element = head.css_first("title") if head is not None else None
        return " ".join(element.text().split())[:1000] or None if element else None

    @cached_property
    def titles(self) -> tuple[str, ...]:
        """The names that the page has: its heading, its OpenGraph title, its title."""
        headings = (element.node.text(separator=" ") for element in self.elements.headings[:3])
        shared = self.metas.get("og:title", ())
        named = (" ".join(text[:2000].split()) for text in (*headings, *shared, self.title or ""))
        return tuple(dict.fromkeys(text[:500] for text in named if text))

    @cached_property
    def shop_names(self) -> frozenset[str]:
        """The names of the shop, by its host and by the page, without blanks and punctuation."""
        host = registrable_domain(urlsplit(self.url).hostname or "").partition(".")[0]
        named = (
            *self.metas.get("og:site_name", ())[:1],
            *self.metas.get("application-name", ())[:1],
        )
        return frozenset(code_key(name) for name in (host, *named) if name)

    @cached_property
    def addresses(self) -> frozenset[str]:
        """The URLs of the page itself, without their queries."""
        urls = [self.url, *(self.absolute(href) for href in self.elements.canonicals[:2])]
        return frozenset(url.partition("?")[0] for url in urls if url)

    def absolute(self, href: str) -> str | None:
        """The absolute URL of a link of this page, or None if it is not one."""
        url = self.resolver.resolve(href.strip())
        return None if isinstance(url, Refusal) else url


def open_page(
    body: bytes, url: str, content_type: str | None = None, headers: Iterable[tuple[str, str]] = ()
) -> ProductPage:
    """Decode and parse, once. Never fails on a body; only on a URL that cannot be crawled."""
    address = normalize(url)
    if isinstance(address, Refusal):
        raise InvalidInput(f"cannot read a product from {url!r}: {address.value}")
    if content_type is None:
        content_type = next((v for name, v in headers if name.lower() == "content-type"), None)
    source, _ = cut_hostile_source(utf8_of(body, content_type))
    if kind_of(body, content_type, address) is ContentKind.XHTML:
        source = close_self_closed(source.decode("utf-8", "replace")).encode()
    # events would update copies of selected options, which are not read here
    try:
        tree = LexborHTMLParser(source, options=LexborDocumentOptions.WO_EVENTS)
    except SelectolaxError as error:
        # the parser accepts every text: it has reached the memory limit of the process
        raise MemoryError("the parser got no more memory") from error
    return ProductPage(address, source, tree)
