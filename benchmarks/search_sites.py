"""Documentation of Debian packages, crawled once into a database that later runs reuse."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin

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
    # further pages to start at, which no other page links to
    also: tuple[str, ...] = ()


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
# Other generators. Ranking was tuned on the first six sites only; the queries of all twelve were
# written from tables of contents before the first search.
UNSEEN = (
    DocumentationSite(
        "erlang", "erlang-doc", "doc/erlang-doc", "doc/index.html",
        ("--exclude", "re:/lib/(wx|megaco|snmp|diameter|jinterface|odbc|tftp|ftp|et)-"),
    ),
    DocumentationSite(
        "haproxy", "haproxy-doc", "doc/haproxy/html", "configuration.html",
        also=("intro.html", "management.html"),
    ),
    DocumentationSite(
        "swi-prolog", "swi-prolog-doc", "swi-prolog/doc", "Manual/index.html",
        also=("packages/index.html",),
    ),
    DocumentationSite(
        "debian-handbook", "debian-handbook", "doc/debian-handbook/html/en-US"
    ),
    DocumentationSite(
        "gtk", "libgtk-4-doc", "doc/libgtk-4-doc/gtk4",
        options=("--include", "re:(^[^.]*|/(class|iface|enum|func)[.][^/]*|/[a-z-]*"
                 "|/[a-z]+[.](Text|ListView|Widget|Window|Button|Css|Drop|Grid)[^/]*)[.]html$"),
    ),
    DocumentationSite("nim", "nim-doc", "doc/nim/html"),
)  # fmt: skip
UNSEEN_HELD_OUT = (
    DocumentationSite(
        "ghc", "ghc-doc", "doc/ghc-doc/html", "users_guide/index.html",
        ("--include", "re:/(users_guide|libraries/base-[0-9.]*)/[^/]*$", "--include", "/exts/"),
    ),
    DocumentationSite(
        "racket", "racket-doc", "doc/racket",
        options=("--include", "re:/(guide|reference|quick|more|web-server|scribble)/"),
    ),
    DocumentationSite(
        "scipy", "python-scipy-doc", "doc/python-scipy-doc/html",
        options=("--exclude", "re:/generated/scipy[.](special|sparse|ndimage|fft|cluster)"
                 "|/generated/scipy[.]stats[.][^/]*[.][^/]*[.]html|/_modules/"),
    ),
    DocumentationSite("octave", "octave-doc", "doc/octave/octave.html"),
    DocumentationSite("zsh", "zsh-doc", "doc/zsh-common/html"),
    DocumentationSite(
        "eigen", "libeigen3-doc", "doc/libeigen3-dev/html", options=("--max-pages", "700")
    ),
)  # fmt: skip
# further generators; queries were written from lists of files before the first search, which was
# run once, without changes of ranking afterwards
BLIND_AGAIN = (
    DocumentationSite("exim", "exim4-doc-html", "doc/exim4-doc-html/spec_html"),
    DocumentationSite("postfix", "postfix-doc", "doc/postfix/html", "postfix-manuals.html"),
    DocumentationSite("ant", "ant-doc", "doc/ant/manual"),
    DocumentationSite("gimp", "gimp-help-en", "gimp/2.0/help/en"),
    DocumentationSite(
        "lilypond", "lilypond-doc-html", "doc/lilypond/html/Documentation", "notation/index.html"
    ),
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
            also = [urljoin(url, page) for page in site.also]
            done = crawl_with_forager(url, home, ("--source", site.name, *site.options, *also))
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
