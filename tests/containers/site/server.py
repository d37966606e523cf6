"""A site of 60 linked pages, a page that needs a browser, and a shop with one product."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGES = 60
LAMP = (
    '<title>Lamp</title><h1>Lamp</h1><script type="application/ld+json">{"@context":'
    '"https://schema.org","@type":"Product","name":"Lamp","sku":"L1","offers":{"@type":"Offer",'
    '"price":"19.90","priceCurrency":"EUR","availability":"https://schema.org/InStock"}}</script>'
)
APP = """<title>App</title><div id="app"></div><script>
document.getElementById("app").textContent = ["rendered", "by", "a", "script"].join(" ")</script>"""


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        page = self.path.strip("/").removesuffix(".html")
        if page == "lamp":
            self.answer(LAMP)
        elif page == "app":
            self.answer(APP)
        elif not page or (page.isdigit() and int(page) < PAGES):
            links = "".join(f'<a href="/{n}.html">Page {n}</a> ' for n in range(PAGES))
            text = f"Page {page or 'one'} describes the container of the heron. " * 5
            self.answer(
                f"<title>Page {page}</title><main><h1>Page {page}</h1><p>{text}</p>{links}</main>"
            )
        else:
            self.send_error(404)

    def answer(self, body: str) -> None:
        content = f"<!doctype html><html lang=en>{body}</html>".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


if __name__ == "__main__":
    ThreadingHTTPServer(("", 8000), Handler).serve_forever()
