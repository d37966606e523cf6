"""A sandboxed process that reads products from pages: `python -m forager.parsers.reader SETUP`.

Pages are hostile and parsers may be third-party code: both get a time and a memory limit, and a
page that breaks one is a failed page.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Mapping
from typing import Any

import orjson

from forager.errors import error_with_type
from forager.extract.product.page import ProductPage, open_page
from forager.extract.product.places import LearnedPlace
from forager.extract.product.product import to_plain
from forager.parsers.parser import ParserTimedOut
from forager.parsers.pattern import GENERIC_VERSION
from forager.parsers.registry import chosen_parser, load_parsers, parse_product, registry
from forager.processes.serving import Response, limit_memory, serve

MAX_ERROR = 2_000
MAX_TRACE = 20_000
# of the visible text for a model
MAX_TEXT = 12_000


def read(request: Mapping[str, Any], body: bytes) -> dict[str, Any]:
    began = time.perf_counter()
    page = open_page(body, request["url"], request["content_type"])
    answer = _parse(
        page, request["versions"], LearnedPlace(**request["place"]), request.get("seconds")
    )
    if request.get("with_text") and _lacks_name_or_price(answer):
        answer["text"] = "\n".join(text for *_, text in page.elements.texts)[:MAX_TEXT]
    return {
        "language": page.language,
        "canonical": next(filter(None, map(page.absolute, page.elements.canonicals[:1])), None),
        **answer,
        "seconds": time.perf_counter() - began,
    }


def _lacks_name_or_price(answer: Mapping[str, Any]) -> bool:
    known = answer.get("product")
    return known is not None and not {"name", "price"} <= set(known["evidence"])


def _parse(
    page: ProductPage, versions: Mapping[str, str], place: LearnedPlace, seconds: float | None
) -> dict[str, Any]:
    try:
        parsed = parse_product(page, versions, place, seconds=seconds)
    except MemoryError:
        raise
    # a parser that breaks is a failed page, and must be named
    except (Exception, ParserTimedOut) as error:
        parser, version = used_parser(page.url, versions)
        message = error_with_type(error)[:MAX_ERROR]
        trace = "".join(traceback.format_exception(error))[-MAX_TRACE:]
        hung = isinstance(error, ParserTimedOut)
        answer = {"parser": parser, "version": version, "error": message, "stack_trace": trace}
        return {**answer, "broke": hung}
    return {
        "parser": parsed.parser,
        "version": parsed.version,
        "product": to_plain(parsed.product),
        "problems": [[each.field, each.message, each.stack_trace] for each in parsed.problems],
        "fallbacks": parsed.fallbacks,
    }


def used_parser(url: str, versions: Mapping[str, str]) -> tuple[str, str]:
    """Name and version of the parser for a URL."""
    name = chosen_parser(url, versions)
    parser = registry().in_version(name, versions.get(name))
    return name, GENERIC_VERSION if parser is None else parser.version


def main() -> None:
    setup = orjson.loads(sys.argv[1])
    limit_memory(setup["memory_mb"])
    load_parsers(setup["parser_modules"])

    def answer(request: dict[str, Any], body: bytes) -> Response:
        return read(request, body), []

    serve(answer)


if __name__ == "__main__":
    main()
