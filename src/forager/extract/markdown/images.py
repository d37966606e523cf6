"""Images: their alternative text and where they are."""

from __future__ import annotations

from forager.extract.markdown.escape import escape_text
from forager.extract.markdown.links import Links
from forager.extract.markdown.tags import Attributes
from forager.extract.text import collapse

_DOT = frozenset({"0", "1", "2", "0px", "1px"})  # the sizes of pictures that only count readers
_SOURCES = ("src", "data-src", "data-original", "data-lazy-src")
MAX_ALT = 2_000


def image_markdown(attributes: Attributes, links: Links) -> str:
    """The image, only its text where it has no address, or nothing where it is decoration."""
    alt = collapse(attributes.get("alt", ""))[:MAX_ALT]
    if "alt" in attributes and not alt:  # decoration, by the page's own word
        return ""
    if attributes.get("width") in _DOT or attributes.get("height") in _DOT:
        return ""
    url = links.absolute(_source(attributes))
    if url is None:
        return escape_text(alt)
    return f"![{alt.replace('[', '(').replace(']', ')')}]({url})"


def _source(attributes: Attributes) -> str | None:
    sources = (attributes.get(name) for name in _SOURCES)
    return next((source for source in sources if source and not source.startswith("data:")), None)
