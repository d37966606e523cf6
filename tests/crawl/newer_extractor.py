"""The extraction process of a later Forager, which reads the same pages in another way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from forager.crawl.extraction import process as extractor
from forager.extract.document import ExtractedPage, extract_reading

VERSION = "1000000"


def _read(body: bytes, url: str, *others: Any, **options: Any) -> ExtractedPage:
    reading = extract_reading(body, url, *others, **options)
    assert reading.document is not None
    return replace(reading, document=replace(reading.document, extractor_version=VERSION))


if __name__ == "__main__":
    vars(extractor)["extract_reading"] = _read
    extractor.main()
