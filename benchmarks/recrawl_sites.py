"""Crawl documentation sites twice and list changes in the second generation; there should be none.

    python -m benchmarks.recrawl_sites [SITE ...]

The server sends no validators, so that every page is read again. Packages are downloaded and
unpacked into the cache of `make quality-search`; the database is temporary.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.crawls import crawl_with_forager
from benchmarks.quality_search import CACHE
from benchmarks.search_sites import BLIND, DEVELOPMENT, HELD_OUT, DocumentationSite, unpacked
from benchmarks.sites import Site, served

SITES = tuple(
    site
    for site in (*DEVELOPMENT, *HELD_OUT, *BLIND)
    if site.name not in ("django", "git", "postgresql", "sqlalchemy")
)


def recrawl(site: DocumentationSite, home: Path) -> str:
    """Pages of the second crawl, and how many of them it added, removed, changed or renamed."""
    folder = unpacked(CACHE, site.package) / "usr/share" / site.folder
    options = ("--source", site.name, *site.options)
    with served(Site(site.package, folder, site.start), validators=False) as url:
        crawl_with_forager(url, home, options)
        second = crawl_with_forager(url, home, options)
    program = Path(sys.executable).parent / "forager"
    command = [str(program), "--home", str(home), "sources", "diff", site.name]
    diff = subprocess.run([*command, "1", "2", "--json"], check=True, capture_output=True)
    found = json.loads(diff.stdout)
    return f"{site.name}: {second.pages} pages, {json.dumps(found)[:2000]}"


def main() -> int:
    names = sys.argv[1:] or [site.name for site in SITES]
    with TemporaryDirectory(prefix="forager-recrawl-") as folder:
        for site in SITES:
            if site.name in names:
                print(recrawl(site, Path(folder)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
