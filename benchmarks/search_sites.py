"""Documentation of Debian packages, crawled once into a database that later runs reuse."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.crawls import crawl_with_forager
from benchmarks.sites import Site, served


@dataclass(frozen=True, slots=True)
class DocumentationSite:
    """A package and its folder in /usr/share; `name` is the source in the database."""

    name: str
    package: str
    folder: str
    start: str = "index.html"
    options: tuple[str, ...] = ()


# the queries of the first three are in the corpora, the others in search_queries.json
DEVELOPMENT = (
    DocumentationSite("python", "python3.11-doc", "doc/python3.11/html"),
    DocumentationSite("sqlite", "sqlite3-doc", "doc/sqlite3"),
    DocumentationSite("apache", "apache2-doc", "doc/apache2-doc/manual", "en/index.html"),
)
HELD_OUT = (
    DocumentationSite("django", "python-django-doc", "doc/python-django-doc/html"),
    DocumentationSite("git", "git-doc", "doc/git-doc"),
    DocumentationSite("postgresql", "postgresql-doc-15", "doc/postgresql-doc-15/html"),
    DocumentationSite("node", "nodejs-doc", "doc/nodejs/api"),
    DocumentationSite("cmake", "cmake-doc", "doc/cmake-data/html"),
)
# their queries were written and run once, after the ranking rules were final
BLIND = (
    DocumentationSite("sqlalchemy", "python-sqlalchemy-doc", "doc/python-sqlalchemy-doc/html"),
    DocumentationSite("linux", "linux-doc-6.1", "doc/linux-doc-6.1/html"),
    # nearly 28,000 pages of Rust's core are processor intrinsics
    DocumentationSite("rust", "rust-doc", "doc/rust-doc/html", options=("--exclude", "/core/")),
)
# other generators: qdoc, the stylesheets of Tomcat, and help texts that are preformatted as a whole
FURTHER = (
    DocumentationSite("qt", "qtbase5-doc-html", "qt5/doc", "qtcore/qtcore-index.html"),
    DocumentationSite("tomcat", "tomcat10-docs", "tomcat10-docs/docs"),
    DocumentationSite("vim", "vim-doc", "doc/vim/html"),
)


def prepare(cache: Path, sites: Sequence[DocumentationSite]) -> Path:
    """Download, unpack and crawl missing sites; return the home of the database."""
    home = cache / "home"
    home.mkdir(parents=True, exist_ok=True)
    for site in sites:
        ready = cache / f"{site.name}.crawled"
        if ready.exists():
            continue
        folder = unpacked(cache, site.package) / "usr/share" / site.folder
        with served(Site(site.package, folder, site.start)) as url:
            done = crawl_with_forager(url, home, ("--source", site.name, *site.options))
        print(f"{site.name}: {done.pages} pages in {done.seconds:.0f} s", file=sys.stderr)
        ready.touch()
    return home


def unpacked(cache: Path, package: str) -> Path:
    """The files of a Debian package, downloaded once."""
    folder = cache / "sites" / package
    if not folder.is_dir():
        debs = cache / "debs"
        debs.mkdir(parents=True, exist_ok=True)
        if not list(debs.glob(f"{package}_*.deb")):
            subprocess.run(["apt-get", "download", package], cwd=debs, check=True)
        (deb,) = debs.glob(f"{package}_*.deb")
        folder.parent.mkdir(exist_ok=True)
        subprocess.run(["dpkg", "-x", os.fspath(deb), os.fspath(folder)], check=True)
    return folder
