"""Documentation of Debian packages, crawled once into a database that later runs reuse."""

from __future__ import annotations

import gzip
import html
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin

from markdown_it import MarkdownIt

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
# queries were written from lists of files before the first search; MkDocs
# had not been measured before
FRESH = (
    DocumentationSite("flask", "python-flask-doc", "doc/python-flask-doc/html"),
    DocumentationSite(
        "celery", "python-celery-doc", "doc/python-celery-doc/html",
        options=("--exclude", "/_modules/"),
    ),
    DocumentationSite(
        "django-rest-framework", "python-djangorestframework-doc",
        "doc/python3-djangorestframework/html",
    ),
    DocumentationSite("borg", "borgbackup-doc", "doc/borgbackup/html"),
    DocumentationSite(
        "pytest", "python-pytest-doc", "doc/python-pytest-doc/html",
        options=("--exclude", "/_modules/"),
    ),
    DocumentationSite(
        "emscripten", "emscripten-doc", "doc/emscripten-doc/html", "docs/index.html"
    ),
    DocumentationSite("mkdocs", "mkdocs-doc", "doc/mkdocs/html"),
    DocumentationSite("fish", "fish-common", "doc/fish"),
)  # fmt: skip
# queries were written from lists of files before the first search, which was run once, after the
# changes that the misses of the fresh sites led to
LATER = (
    DocumentationSite("buildbot", "buildbot-doc", "doc/buildbot/html"),
    DocumentationSite("valgrind", "valgrind", "doc/valgrind/html"),
    DocumentationSite("libvirt", "libvirt-doc", "doc/libvirt-doc/html"),
    DocumentationSite("ntpsec", "ntpsec-doc", "doc/ntpsec-doc/html"),
    DocumentationSite("sphinx", "sphinx-doc", "doc/sphinx-doc/html"),
)
# queries were written from lists of files before the first search of these sites
LAST = (
    DocumentationSite("rsyslog", "rsyslog-doc", "doc/rsyslog-doc/html"),
    DocumentationSite("slurm", "slurm-wlm-doc", "doc/slurm-wlm/html", "documentation.html"),
    DocumentationSite(
        "tornado", "python-tornado-doc", "doc/python-tornado-doc/html",
        options=("--exclude", "/_modules/"),
    ),
    DocumentationSite("openvswitch", "openvswitch-doc", "doc/openvswitch-doc/html"),
    DocumentationSite(
        "gettext", "gettext-doc", "doc/gettext", "gettext_toc.html",
        also=("FAQ.html", "tutorial.html", "index.html"),
    ),
    DocumentationSite(
        "doxygen", "doxygen-doc", "doc/doxygen/html", options=("--exclude", "/examples/")
    ),
)  # fmt: skip
# their queries were written before the first search too; their misses have not been read
FINAL = (
    DocumentationSite(
        "scrapy", "python-scrapy-doc", "doc/python-scrapy-doc/html",
        options=("--exclude", "/_modules/"),
    ),
    DocumentationSite("knot-resolver", "knot-resolver-doc", "doc/knot-resolver"),
    DocumentationSite(
        "xapian", "xapian-doc", "doc/xapian-doc", options=("--exclude", "/apidoc/")
    ),
    DocumentationSite("psycopg2", "python-psycopg2-doc", "doc/python-psycopg2-doc/html"),
)  # fmt: skip
# stands for a public evaluation over React, FastAPI, Vite and Tailwind, which no package documents:
# short questions, several pages that answer each, and markdown instead of a generator's HTML
PUBLIC = (
    DocumentationSite("next", "npm:next", "dist/docs/01-app"),
    DocumentationSite("bootstrap", "libjs-bootstrap5-doc", "usr/share/doc/libjs-bootstrap5"),
    DocumentationSite("starlette", "pypi:starlette", "docs"),
    DocumentationSite("fastify", "npm:fastify", "docs"),
)


def prepare(cache: Path, sites: Sequence[DocumentationSite]) -> Path:
    """Download, unpack and crawl missing sites; return the home of the database."""
    home = cache / "home"
    home.mkdir(parents=True, exist_ok=True)
    for site in sites:
        ready = cache / f"{site.name}.crawled"
        if ready.exists():
            continue
        folder = folder_of(cache, site)
        with served(Site(site.package, folder, site.start)) as url:
            also = [urljoin(url, page) for page in site.also]
            done = crawl_with_forager(url, home, ("--source", site.name, *site.options, *also))
        print(f"{site.name}: {done.pages} pages in {done.seconds:.0f} s", file=sys.stderr)
        ready.touch()
    return home


def folder_of(cache: Path, site: DocumentationSite) -> Path:
    """The folder of its pages; markdown is rendered, with a page that links to all others."""
    if site not in PUBLIC:
        return unpacked(cache, site.package) / "usr/share" / site.folder
    folder = cache / "rendered" / site.name
    if not folder.is_dir():
        render_markdown(unpacked(cache, site.package) / site.folder, folder)
    return folder


def unpacked(cache: Path, package: str) -> Path:
    """The files of a package of Debian, npm or PyPI, downloaded once."""
    folder = cache / "sites" / package
    if folder.is_dir():
        return folder
    archives = cache / "debs"
    archives.mkdir(parents=True, exist_ok=True)
    kind, _, name = package.rpartition(":")
    pattern, download, unpack = _ARCHIVES[kind]
    if not list(archives.glob(pattern.format(name))):
        subprocess.run([*download, name], cwd=archives, check=True)
    (archive,) = archives.glob(pattern.format(name))
    folder.mkdir(parents=True)
    command = [part.format(archive=archive, folder=folder) for part in unpack]
    subprocess.run(command, check=True)
    return folder


_TAR = ("tar", "xzf", "{archive}", "--strip-components=1", "-C", "{folder}")
# pattern of the archive, command that downloads it, command that unpacks it
_ARCHIVES = {
    "": ("{}_*.deb", ("apt-get", "download"), ("dpkg", "-x", "{archive}", "{folder}")),
    "npm": ("{}-[0-9]*.tgz", ("npm", "pack"), _TAR),
    "pypi": (
        "{}-[0-9]*.tar.gz",
        (sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:"),
        _TAR,
    ),
}


def render_markdown(source: Path, target: Path) -> None:
    markdown = MarkdownIt("commonmark", {"html": True}).enable("table")
    pages = {}
    for file in sorted([*source.rglob("*.md"), *source.rglob("*.md.gz")]):
        opened = gzip.open if file.suffix == ".gz" else open
        with opened(file, "rt", encoding="utf-8") as lines:
            text = _COMMENT.sub("", lines.read())
        front_matter = _FRONT_MATTER.match(text)
        head = (front_matter and front_matter[1]) or ""
        text = _FRONT_MATTER.sub("", text, count=1)
        named = re.search(r"^title: *(.+)$", head, re.MULTILINE) or re.search(r"(?m)^# *(.+)", text)
        title = named[1].strip("\"' ") if named else file.name.split(".")[0]
        path = str(file.relative_to(source)).removesuffix(".gz").removesuffix(".md") + ".html"
        body = markdown.render(_MARKDOWN_LINK.sub(r"\1.html", text))
        heading = f"<h1>{html.escape(title)}</h1>" if head or not named else ""
        pages[path] = title
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_text(
            f"<!doctype html><html lang=en><title>{html.escape(title)}</title>"
            f"<main>{heading}{body}</main></html>",
            encoding="utf-8",
        )
    links = "".join(f'<li><a href="{path}">{html.escape(pages[path])}</a>' for path in pages)
    (target / "index.html").write_text(f"<main><h1>Contents</h1><ul>{links}</ul></main>")


_COMMENT = re.compile(r"\{/\*.*?\*/\}|<!--.*?-->", re.DOTALL)
_FRONT_MATTER = re.compile(r"(?:---\n(.*?)\n---\n)?", re.DOTALL)
_MARKDOWN_LINK = re.compile(r"(\]\([\w./-]+)\.md(?=[)#])")
