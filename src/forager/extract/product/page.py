"""A page opened once for everybody who looks for a product in it: readers and site parsers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from selectolax.lexbor import LexborHTMLParser

from forager.errors import InvalidInput
from forager.extract.decode import decode
from forager.extract.kinds import ContentKind, kind_of
from forager.extract.markup import close_self_closed, cut_hostile_markup
from forager.extract.urls import Refusal, Resolver, normalise


@dataclass(frozen=True)
class ProductPage:
    """The address, the text and the tree of a page. The tree is shared: nobody may change it."""

    url: str
    html: str
    tree: LexborHTMLParser

    @cached_property
    def resolver(self) -> Resolver:
        """Makes the links of the page absolute, against its `<base>` if it has one."""
        page = normalise(self.url)
        assert not isinstance(page, Refusal), "checked when the page was opened"
        element = self.tree.css_first("base[href]")
        base = normalise(element.attributes["href"] or "", page) if element else page
        return Resolver(page if isinstance(base, Refusal) else base)

    @cached_property
    def language(self) -> str | None:
        """The language that the page claims, in lower case (en, pt-br)."""
        root = self.tree.root
        claimed = root.attributes.get("lang") if root is not None else None
        return (claimed or "").strip().replace("_", "-").lower()[:16] or None

    @cached_property
    def title(self) -> str | None:
        element = self.tree.css_first("head title")
        return " ".join(element.text().split())[:1000] or None if element else None

    def absolute(self, href: str) -> str | None:
        """The address that a link of this page leads to, or None where it leads nowhere."""
        url = self.resolver.resolve(href.strip())
        return None if isinstance(url, Refusal) else url


def open_page(
    body: bytes,
    url: str,
    content_type: str | None = None,
    headers: Iterable[tuple[str, str]] = (),
) -> ProductPage:
    """Decode and parse, once. Never fails on a body; only on a URL that cannot be crawled."""
    address = normalise(url)
    if isinstance(address, Refusal):
        raise InvalidInput(f"cannot read a product from {url!r}: {address.value}")
    if content_type is None:
        content_type = next((v for name, v in headers if name.lower() == "content-type"), None)
    text, _ = cut_hostile_markup(decode(body, content_type).text)
    if kind_of(body, content_type, address) is ContentKind.XHTML:
        text = close_self_closed(text)
    return ProductPage(address, text, LexborHTMLParser(text))
