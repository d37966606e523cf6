"""A process that reads archived pages with the versions it is asked for; see `sandbox`."""

from __future__ import annotations

import sys
import time
from typing import Any

import orjson

from forager.extract.product.page import open_page
from forager.extract.product.plain import to_plain
from forager.parsers.registry import load_parsers, parse_product
from forager.sandbox.serving import Answer, limit_memory, serve


def answer(request: dict[str, Any], body: bytes) -> Answer:
    started = time.perf_counter()
    page = open_page(body, request["url"], request["content_type"])
    parsed = parse_product(page, request["versions"])
    return {
        "product": to_plain(parsed.product),
        "parser": parsed.parser,
        "version": parsed.version,
        "problems": [f"{problem.field}: {problem.message}" for problem in parsed.problems],
        "seconds": time.perf_counter() - started,
    }, []


def main(argument: str) -> None:
    setup = orjson.loads(argument)
    load_parsers(setup["modules"])
    limit_memory(setup["memory_mb"])
    serve(answer)


if __name__ == "__main__":
    main(sys.argv[1])
