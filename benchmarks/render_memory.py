"""Memory of a renderer over thousands of pages, which must stay constant."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import psutil

from benchmarks.report import Report
from forager.fetch.client import Client, ClientOptions
from forager.fetch.guard import GuardPolicy
from forager.fetch.response import Request
from forager.render.finding import browser_path
from forager.render.limits import RenderLimits
from forager.render.renderer import Renderer
from forager.render.resources import ResourceLoader
from forager.settings import Settings

AGENT = "ForagerBench/1"
WORDS = "A sentence that a script has put into this page, so that there is something to read. "
SAMPLES = 10


@dataclass(frozen=True, slots=True)
class Sample:
    """Memory in MB, processes, open files and processor seconds after a number of pages."""

    pages: int
    runner_mb: float
    browser_mb: float
    processes: int
    files: int
    cpu_seconds: float


def report_memory(report: Report, pages: int) -> None:
    began = time.perf_counter()
    samples = asyncio.run(_measure(pages))
    report.heading(f"Memory over {pages:,} pages")
    report.table(
        ["pages", "runner MB", "browser MB", "processes", "open files", "CPU ms/page"],
        [
            [
                f"{each.pages:,}",
                f"{each.runner_mb:.0f}",
                f"{each.browser_mb:.0f}",
                str(each.processes),
                str(each.files),
                f"{1000 * each.cpu_seconds / each.pages:.0f}",
            ]
            for each in samples
        ],
    )
    per_browser = RenderLimits.of(Settings()).pages_per_browser
    report.text(
        f"A single renderer without a crawl, {(time.perf_counter() - began) / 60:.0f} minutes."
        " Each page is an app shell with a script of 50 kB that loads 5 kB of data. Browser"
        " memory is the proportional set size of its processes at the time of the sample; a"
        f" browser is replaced after {per_browser} pages."
    )


async def _measure(pages: int) -> list[Sample]:
    limits = RenderLimits.of(Settings())
    options = ClientOptions(user_agent=AGENT, guard=GuardPolicy(allow_private=True))
    samples: list[Sample] = []
    numbers = iter(range(pages))
    spent = _Spent()
    with _site() as url:
        async with (
            Client(options) as client,
            Renderer(browser_path(Settings()), limits) as renderer,
        ):
            loader = ResourceLoader.of(client, _allow, limits, user_agent=AGENT)
            done = 0

            async def work() -> None:
                nonlocal done
                for number in numbers:
                    document = await client.fetch(Request(f"{url}/page/{number}"))
                    page = await renderer.render(document, loader)
                    assert f"Page {number}<".encode() in page.html
                    done += 1
                    spent.look()
                    if done % (pages // SAMPLES) == 0:
                        samples.append(_sample(done, spent))

            await asyncio.gather(*(work() for _ in range(limits.pages)))
    return samples


class _Spent:
    """Processor time of this process and of all browsers, also those that have ended."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, float], float] = {}

    def look(self) -> float:
        for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                self._seen[process.pid, process.create_time()] = times.user + times.system
        return sum(self._seen.values())


def _sample(pages: int, spent: _Spent) -> Sample:
    browser, processes = 0.0, 0
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            browser += process.memory_full_info().pss / 2**20
            processes += 1
    runner = psutil.Process().memory_info().rss / 2**20
    files = sum(1 for _ in Path("/proc/self/fd").iterdir())
    return Sample(pages, runner, browser, processes, files, spent.look())


async def _allow(url: str) -> None:
    """Every URL may be fetched."""


@contextmanager
def _site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


_SCRIPT = (
    "const number = location.pathname.split('/').pop();"
    "fetch(`/data/${number}`).then((r) => r.json()).then((data) => {"
    " document.title = data.title; const app = document.getElementById('app');"
    " app.innerHTML = `<h1>${data.title}</h1>`;"
    " for (const text of data.texts) { const p = document.createElement('p');"
    " p.textContent = text; app.append(p) } });"
    f"/* {'x' * 50_000} */"
)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        kind, _, number = self.path[1:].partition("/")
        if kind == "app.js":
            self._answer("text/javascript", _SCRIPT)
        elif kind == "data":
            texts = ", ".join(f'"{WORDS}{n}"' for n in range(50))
            self._answer("application/json", f'{{"title": "Page {number}", "texts": [{texts}]}}')
        else:
            self._answer(
                "text/html",
                '<!DOCTYPE html><title>App</title><div id="app"></div><script src="/app.js">'
                "</script>",
            )

    def _answer(self, kind: str, body: str) -> None:
        data = body.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""
