"""Quality of extraction on real pages: python -m benchmarks.quality CORPORA [SITE ...]

CORPORA is a folder with `docs/` (pages with their main content) and `products/` (pages with the
fields of their products). The reports are printed and saved in `benchmarks/results/`, with a list
of all errors. Each SITE is a folder of HTML pages that is audited as a whole. Losses by generator
are counted on the pages of about 30 Debian packages, which are downloaded once.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.quality_docs import report_docs
from benchmarks.quality_packages import report_packages
from benchmarks.quality_products import report_products


def main() -> int:
    if len(sys.argv) < 2 or not all(Path(folder).is_dir() for folder in sys.argv[1:]):
        print(__doc__, file=sys.stderr)
        return 2
    corpora = Path(sys.argv[1])
    print(report_docs(corpora / "docs", list(map(Path, sys.argv[2:]))))
    print(report_packages(corpora=corpora))
    print(report_products(corpora / "products"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
