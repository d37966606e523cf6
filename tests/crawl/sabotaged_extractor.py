"""The extraction process, with pages that do harm where the real code may have a weakness."""

from __future__ import annotations

import os
import signal
from typing import Any

from forager.crawl.extraction import process as extractor
from forager.extract.document import ExtractedPage, extract_reading


def _sabotaged(body: bytes, url: str, *others: Any, **options: Any) -> ExtractedPage:
    if url.endswith("/slow"):
        while True:
            pass
    if url.endswith("/fat"):
        bytes(2**30)
    if url.endswith("/crash"):
        os.kill(os.getpid(), signal.SIGSEGV)
    return extract_reading(body, url, *others, **options)


if __name__ == "__main__":
    vars(extractor)["extract_reading"] = _sabotaged
    extractor.main()
