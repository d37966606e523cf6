"""Serves the bundled site on loopback, with redirects, a sitemap and a shop."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import as_file, files
from itertools import chain, repeat
from pathlib import Path

from forager.demo import PORT

MOVED = {"/guide/begin.html": "/guide/start.html"}
# product pages that nothing links to: tutorials track them; the price falls at the second visit
SHOP = {"/shop/lamp.html": ("Lamp", "49.90", "39.90"), "/shop/desk.html": ("Desk", "249", "219")}
PRODUCT = """<!doctype html><html lang="en"><title>{name}</title>
<script type="application/ld+json">{{"@context": "https://schema.org", "@type": "Product",
"name": "{name}", "sku": "{name}-1", "offers": {{"@type": "Offer", "price": "{price}",
"priceCurrency": "EUR", "availability": "https://schema.org/InStock"}}}}</script>
<h1>{name}</h1><p>€{price}, in stock</p></html>"""


class _Site(SimpleHTTPRequestHandler):
    """The files of the site, without a log on standard error."""

    protocol_version = "HTTP/1.1"
    prices: dict[str, Iterator[str]]

    def do_GET(self) -> None:
        if self.path == "/sitemap.xml":
            self._send_sitemap()
        elif self.path in SHOP:
            name, price = SHOP[self.path][0], next(self.prices[self.path])
            self._send(PRODUCT.format(name=name, price=price), "text/html; charset=utf-8")
        elif self.path in MOVED:
            self.send_response(HTTPStatus.MOVED_PERMANENTLY)
            self.send_header("Location", MOVED[self.path])
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            super().do_GET()

    def _send_sitemap(self) -> None:
        """Sitemaps need whole URLs, and the port is known only now."""
        host = self.headers.get("Host", "")
        text = (Path(self.directory) / "sitemap.xml").read_text(encoding="utf-8")
        self._send(text.replace("<loc>", f"<loc>http://{host}/"), "application/xml")

    def _send(self, text: str, content_type: str) -> None:
        body = text.encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def _listening(port: int, handler: partial[_Site]) -> ThreadingHTTPServer:
    """At the same address each time, so that a second crawl is a refresh; else at a free one."""
    try:
        return ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError:
        return ThreadingHTTPServer(("127.0.0.1", 0), handler)


@contextmanager
def demo_site(port: int = PORT) -> Iterator[str]:
    """The site on a port of loopback, for as long as the block runs; the URL of its home page."""
    with as_file(files("forager.demo") / "site") as folder:
        prices = {path: chain(prices[:1], repeat(prices[1])) for path, (_, *prices) in SHOP.items()}
        site = type("_ServedSite", (_Site,), {"prices": prices})
        handler = partial(site, directory=str(folder))
        with _listening(port, handler) as server:
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            try:
                yield f"http://127.0.0.1:{server.server_port}/index.html"
            finally:
                server.shutdown()
                thread.join()
