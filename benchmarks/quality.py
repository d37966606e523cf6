"""How good extraction is on real pages: python -m benchmarks.quality CORPORA

CORPORA is a folder with `docs/` (pages with their main content). The report is printed and saved
in `benchmarks/results/`; each page below 0.8 is listed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.quality_docs import report_docs


def main() -> int:
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        print(__doc__, file=sys.stderr)
        return 2
    print(report_docs(Path(sys.argv[1]) / "docs"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
