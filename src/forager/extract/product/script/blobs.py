"""JSON values inside scripts: whole scripts, values assigned or pushed, and attributes."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

from forager.extract.product.json_ld import lenient_json
from forager.extract.product.page import ProductPage

# characters that may be tried as JSON on one page, failures included
_BUDGET = 3_000_000
_MAX_SCRIPT = 2_000_000
_MAX_STARTS = 60
# looked for one by one: any of them is found faster than all of them together
_MENTIONS = ("rice", "PRICE", '"sku', "'sku", "Sku", "prix")
_STARTS = re.compile(r"[=(:]\s{0,20}(?=[{\[]\s{0,40}[\"{\[])")
_PARSED = re.compile(r"JSON\.parse\(\s{0,5}(?=[\"'])")
_DECODER = json.JSONDecoder(strict=False)
# the innermost objects of JavaScript that is not JSON
_LITERAL = re.compile(r"\{[^{}]{20,2000}+\}")
_PAIR = re.compile(
    r"(?<![\w$])[\"']?([A-Za-z_]\w{1,30})[\"']?\s{0,5}:\s{0,5}"
    r"(?:\"([^\"\\\n]{0,300})\"|'([^'\\\n]{0,300})'|(\d[\d.]{0,14}|true|false)(?=\s{0,20}[,}\n]))"
)
_MAX_LITERALS = 40


def blobs_of(
    page: ProductPage, marks: Collection[str], mentions: Collection[str] = ("",)
) -> Iterator[Any]:
    """The values of scripts that mention a price, and one of the marks of the page's product.

    They also have one of the other `mentions`.
    """
    budget = _BUDGET
    for text in page.elements.json_attributes:
        if _holds_any(text, mentions) and (value := lenient_json(text)) is not None:
            yield value
    for element in page.elements.scripts:
        kind = element.names
        text = "" if "ld+json" in kind else element.node.text()
        if not 40 < len(text) < _MAX_SCRIPT or budget < len(text) or element.attributes.get("src"):
            continue
        if not all(_holds_any(text, words) for words in (marks, mentions, _MENTIONS)):
            continue
        budget -= len(text)
        if "json" in kind or "magento" in kind:
            yield lenient_json(text)
        else:
            yield from _assigned(text)


def _holds_any(text: str, words: Collection[str]) -> bool:
    return any(word in text for word in words)


def _assigned(text: str) -> Iterator[Any]:
    """Values in a script; values inside of others are skipped."""
    end = tried = 0
    spent = 0
    found = False
    for start in _STARTS.finditer(text):
        if start.end() < end:
            continue
        tried += 1
        if tried > _MAX_STARTS or spent > 2 * len(text):
            break
        try:
            value, end = _DECODER.raw_decode(text, start.end())
        except json.JSONDecodeError as error:
            spent += max(0, error.pos - start.end())
            continue
        except RecursionError:
            return
        found = True
        yield value
    yield from _embedded(text)
    if not found:
        yield from _literals(text)


def _embedded(text: str) -> Iterator[Any]:
    """JSON that is written as a string of JavaScript."""
    for start in _PARSED.finditer(text[:_MAX_SCRIPT]):
        quote = text[start.end()]
        try:
            if quote == '"':
                inner, _ = _DECODER.raw_decode(text, start.end())
            else:
                stop = text.index("'", start.end() + 1)
                inner = text[start.end() + 1 : stop].replace('\\"', '"').replace("\\\\", "\\")
        except (ValueError, RecursionError):
            continue
        if isinstance(inner, str) and (value := lenient_json(inner)) is not None:
            yield value


def _literals(text: str) -> Iterator[dict[str, Any]]:
    for count, found in enumerate(_LITERAL.finditer(text)):
        if count > _MAX_LITERALS:
            return
        if "rice" in found[0]:
            pairs = _PAIR.findall(found[0])
            yield {name: double or single or bare for name, double, single, bare in reversed(pairs)}
