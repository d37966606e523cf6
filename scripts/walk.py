"""Count the modules whose functions run for one page of a crawl, and for one tracked product.

`python scripts/walk.py` crawls a page with `forager crawl`, tracks a product under `forager up`,
and notes in each process which modules of Forager have a function that runs. Functions that only
run while a module is imported do not count. `--source DIR` measures another checkout, and `--list`
prints the modules. It needs the virtual environment to itself: while it runs, a file in
`site-packages` adds the observer to each process.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = b"""<!doctype html><title>Lamp</title>
<main><h1>Lamp</h1><p>A lamp that shines for many hours.</p>
<script type="application/ld+json">{"@type": "Product", "name": "Lamp", "sku": "L-1",
"offers": {"price": "49.90", "priceCurrency": "EUR", "availability": "InStock"}}</script></main>"""
OBSERVER = """
import os, sys, threading

CO_OPTIMIZED = 1
seen = set()


def note(frame, event, _):
    code = frame.f_code
    if event != "call" or id(code) in seen:
        return
    name = code.co_filename
    if "/forager/" not in name or not code.co_flags & CO_OPTIMIZED:
        return
    caller = frame.f_back
    while caller is not None:
        if caller.f_code.co_name == "<module>" and caller.f_globals.get("__name__") != "__main__":
            return
        caller = caller.f_back
    seen.add(id(code))
    kept.append(code)
    file = os.open(OUTPUT, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o666)
    os.write(file, name.rpartition("/forager/")[2].encode() + b"\\n")
    os.close(file)


kept = []  # so that no other code gets the same id
threading.setprofile(note)
sys.setprofile(note)
"""


class Shop(BaseHTTPRequestHandler):
    """Every address is the page of the product."""

    def do_GET(self) -> None:
        found = self.path != "/robots.txt"
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@contextmanager
def observed(folder: Path) -> Iterator[Path]:
    """Observe all Python processes of this environment; yields the file with the modules."""
    output = folder / "modules"
    output.unlink(missing_ok=True)
    (folder / "forager_walk.py").write_text(f"OUTPUT = {str(output)!r}\n{OBSERVER}")
    hook = Path(sysconfig.get_path("purelib")) / "forager_walk.pth"
    hook.write_text(f"import sys; sys.path.append({str(folder)!r}); import forager_walk\n")
    try:
        yield output
    finally:
        hook.unlink()


def modules_of(output: Path) -> set[str]:
    return set(output.read_text().split())


def forager(*given: str, home: Path, source: Path) -> subprocess.Popen[bytes]:
    environment = os.environ | {"FORAGER_HOME": str(home), "PYTHONPATH": str(source / "src")}
    command = [sys.executable, "-m", "forager", *given]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)


def run(*given: str, home: Path, source: Path) -> bytes:
    answer, _ = forager(*given, home=home, source=source).communicate(timeout=120)
    return answer


def measure(source: Path, folder: Path) -> tuple[set[str], set[str]]:
    home = folder / "home"
    run("jobs", "list", home=home, source=source)  # starts the database
    try:
        with served() as url, observed(folder) as output:
            run(
                "crawl",
                f"{url}/lamp",
                "--max-pages",
                "1",
                "--allow-private",
                home=home,
                source=source,
            )
            crawled = modules_of(output)
        with served() as url, observed(folder) as output:
            run("products", "track", f"{url}/lamp", "--allow-private", home=home, source=source)
            server = forager("up", "--port", "0", home=home, source=source)
            deadline = time.monotonic() + 90
            while "products/store/writes.py" not in modules_of(output):
                if time.monotonic() > deadline:
                    raise TimeoutError("the product was not stored")
                time.sleep(1)
            time.sleep(5)
            server.terminate()
            server.communicate(timeout=60)
            tracked = modules_of(output)
    finally:
        run("db", "stop", home=home, source=source)
    return crawled, tracked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, default=ROOT)
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        crawled, tracked = measure(given.source.resolve(), Path(folder))
    print(f"URL {len(crawled)}, product {len(tracked)}, both {len(crawled & tracked)}")
    if given.list:
        for name, found in (("URL", crawled), ("product", tracked)):
            packages = Counter(module.partition("/")[0] for module in found)
            print(f"\n{name}: {dict(packages.most_common())}", *sorted(found), sep="\n  ")


if __name__ == "__main__":
    main()
