"""Single-page documentation sites built from npm packages: docsify, and a Vue router app.

Each shows the markdown files of a package's documentation, so the expected result is known: one
page per file, with the text of that file.
"""

from __future__ import annotations

import json
import re
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

from markdown_it import MarkdownIt

DOCSIFY = ("docsify@4.13.1", "lib/docsify.min.js")
VUE = (
    ("vue@3.5.45", "dist/vue.global.prod.js"),
    ("vue-router@4.6.4", "dist/vue-router.global.prod.js"),
    ("marked@18.2.0", "lib/marked.umd.js"),
)
# where the test servers are kept too
CACHE = Path.home() / ".cache" / "forager-services" / "npm"
WORD = re.compile(r"[A-Za-z]{4,}")


@dataclass(frozen=True, slots=True)
class DocsSite:
    """A built site: `pages` maps each path to the markdown that its page shows."""

    name: str
    folder: Path
    pages: dict[str, str]


def docsify_site(folder: Path) -> DocsSite:
    """The guides and reference of Fastify, shown by docsify with its history router."""
    pages = _write_docs(folder, "fastify@5.12.8", "docs")
    _write_library(folder, *DOCSIFY)
    links = "\n".join(f"- [{path[1:]}]({path})" for path in pages)
    (folder / "_sidebar.md").write_text(links, encoding="utf-8")
    (folder / "README.md").write_text(f"# Fastify\n\nAll pages:\n\n{links}\n", encoding="utf-8")
    (folder / "index.html").write_text(
        '<!DOCTYPE html><html><head><meta charset="utf-8"><title>Fastify</title></head><body>'
        '<div id="app">Please wait...</div><script>window.$docsify = {name: "Fastify",'
        ' routerMode: "history", loadSidebar: "/_sidebar.md", relativePath: true}</script>'
        '<script src="/docsify.min.js"></script></body></html>',
        encoding="utf-8",
    )
    return DocsSite("docsify, Fastify's documentation", folder, pages)


def vue_site(folder: Path) -> DocsSite:
    """The documentation of pino in an app with Vue's history router."""
    pages = _write_docs(folder, "pino@10.4.0", "docs")
    for package, file in VUE:
        _write_library(folder, package, file)
    (folder / "pages.json").write_text(json.dumps(list(pages)), encoding="utf-8")
    (folder / "index.html").write_text(_VUE_APP, encoding="utf-8")
    return DocsSite("Vue router, pino's documentation", folder, pages)


def static_twin(site: DocsSite, folder: Path) -> DocsSite:
    """The same pages, rendered by the server: what the site would cost without scripts."""
    markdown = MarkdownIt("commonmark").enable("table")
    links = "".join(f'<li><a href="{path}.html">{path}</a></li>' for path in site.pages)
    pages = {"/index": f"<h1>{site.name}</h1><ul>{links}</ul>"}
    pages |= {path: markdown.render(text) for path, text in site.pages.items()}
    for path, body in pages.items():
        target = folder / f"{path[1:]}.html"
        target.parent.mkdir(parents=True, exist_ok=True)
        document = (
            f"<!DOCTYPE html><title>{path}</title><nav><ul>{links}</ul></nav><main>{body}</main>"
        )
        target.write_text(document, encoding="utf-8")
    return DocsSite(f"{site.name}, static", folder, site.pages)


@contextmanager
def served(site: DocsSite) -> Iterator[str]:
    """The URL of a server that answers unknown paths with the app, as usual for such sites."""
    handler = partial(_Handler, directory=str(site.folder))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def found_share(markdown: str, text: str) -> float:
    """The share of distinct words of a source that its page shows."""
    prose = re.sub(r"```.*?```|<!--.*?-->|\]\([^)]*\)|<[^>]*>", " ", markdown, flags=re.DOTALL)
    words = set(WORD.findall(prose))
    return len(words & set(WORD.findall(text))) / len(words) if words else 1.0


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def send_head(self):  # type: ignore[no-untyped-def]
        path = Path(self.translate_path(self.path))
        if not path.is_file() and not path.suffix:
            self.path = "/index.html"
        return super().send_head()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def _write_docs(folder: Path, package: str, inside: str) -> dict[str, str]:
    folder.mkdir(parents=True, exist_ok=True)
    pages = {}
    for name, data in _members(package):
        path = Path(name)
        if path.suffix == ".md" and path.parts[0] == inside:
            relative = path.relative_to(inside)
            target = folder / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            pages[f"/{relative.with_suffix('')}"] = data.decode()
    return pages


def _write_library(folder: Path, package: str, file: str) -> None:
    data = next(data for name, data in _members(package) if name == file)
    (folder / Path(file).name).write_bytes(data)


def _members(package: str) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(_tarball(package)) as archive:
        for member in archive:
            if member.isfile() and (file := archive.extractfile(member)) is not None:
                yield member.name.removeprefix("package/"), file.read()


def _tarball(package: str) -> Path:
    """The npm package, downloaded once per user."""
    name, _, version = package.partition("@")
    kept = CACHE / f"{name}-{version}.tgz"
    if not kept.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=CACHE) as folder:
            command = ["npm", "pack", "--silent", "--pack-destination", folder, package]
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
            (Path(folder) / kept.name).replace(kept)
    return kept


_VUE_APP = """<!DOCTYPE html>
<html><head><meta charset="utf-8"><title>pino</title></head><body><div id="app"></div>
<script src="/vue.global.prod.js"></script>
<script src="/vue-router.global.prod.js"></script>
<script src="/marked.umd.js"></script>
<script>
const Page = {
  props: ["path"],
  data: () => ({ html: "" }),
  template: `<article v-html="html"></article>`,
  async mounted() { await this.load(); },
  watch: { path() { this.load(); } },
  methods: { async load() {
    const answer = await fetch(`${this.path}.md`);
    const text = await answer.text();
    this.html = marked.parse(text);
    document.title = text.match(/^#+ (.*)$/m)?.[1] ?? this.path;
  } },
};
fetch("/pages.json").then((answer) => answer.json()).then((pages) => {
  const Home = { data: () => ({ pages }), template: `<main><h1>pino</h1><p>All pages of the
    documentation of pino, a fast logger for Node.js, are listed here and shown by a router in the
    browser. None of them is in the response of the server.</p>
    <ul><li v-for="p in pages"><router-link :to="p">{{ p }}</router-link></li></ul></main>` };
  const routes = [{ path: "/", component: Home },
    ...pages.map((path) => ({ path, component: Page, props: { path } }))];
  const router = VueRouter.createRouter({ history: VueRouter.createWebHistory(), routes });
  Vue.createApp({ template: `<router-view :key="$route.path" />` }).use(router).mount("#app");
});
</script></body></html>
"""
