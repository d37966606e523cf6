"""Cost of rendered pages: Forager and Crawlee's PlaywrightCrawler, and `auto` on static sites.

Two single-page sites are built from npm packages, and every page is compared with the file that it
shows. Run it with `make bench-render`; it needs npm, Chromium, and the packages of bench-crawl.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.crawls import Crawl, crawl_with_forager, crawl_with_peer, install_peers
from benchmarks.machine import describe_machine
from benchmarks.render_gains import report_useless
from benchmarks.render_memory import report_memory
from benchmarks.render_sites import (
    DocsSite,
    docsify_site,
    found_share,
    served,
    static_twin,
    vue_site,
)
from benchmarks.report import Report
from benchmarks.sites import SITES
from benchmarks.sites import served as static_site
from forager.db.database import open_database
from forager.render.finding import browser_path
from forager.settings import Settings

# processes by a word of their command lines
PARTS = {
    "forager.jobs": "runner",
    "forager.crawl.extraction.process": "extraction",
    "forager.render.process": "browser",
    "run-driver": "browser",
    "--remote-debugging-pipe": "browser",
    **{f"--type={kind}": "browser" for kind in ("renderer", "zygote", "gpu-process", "utility")},
}
PEER_PARTS = {word: part for word, part in PARTS.items() if part == "browser"}
SOURCE = "rendered"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="crawls of the static site")
    parser.add_argument("--sites", type=int, default=2, help="only the first ones")
    parser.add_argument(
        "--leak-pages", type=int, default=2000, help="pages of the memory run; 0: none"
    )
    options = parser.parse_args()
    install_peers()
    report = Report("Rendering: Forager and Crawlee's PlaywrightCrawler")
    with TemporaryDirectory(prefix="forager-bench-") as name:
        folder = Path(name)
        report.table(["machine", ""], describe_machine(folder))
        for build in (vue_site, docsify_site)[: options.sites]:
            _compare(build(folder / build.__name__), folder, report)
        _static(folder, report, options.rounds)
        report_useless(report, folder / "useless")
    if options.leak_pages:
        report_memory(report, options.leak_pages)
    report.text(
        "Processor time includes all processes, the browser and PostgreSQL. Forager also archives"
        " the static response, the rendered page and a list of its resources, extracts sections"
        " and builds a search index; Crawlee stores the HTML in files."
    )
    print(report.write("render.md"))


def _compare(site: DocsSite, folder: Path, report: Report) -> None:
    report.heading(site.name)
    home = folder / f"home-{site.folder.name}"
    with served(site) as url:
        forager = crawl_with_forager(url, home, ("--source", SOURCE, "--exclude", "*?id=*"), PARTS)
        browser = [browser_path(Settings())]
        crawlee = crawl_with_peer("crawlee_playwright.py", browser, url, folder, PEER_PARTS)
    with served(static_twin(site, folder / f"static-{site.folder.name}")) as url:
        static = crawl_with_forager(url, home, ("--source", "static", "--render", "never"), PARTS)
    rows = [
        _row("Forager, the same pages as static HTML", static),
        _row("Forager, `--render auto`", forager),
        _row("Crawlee, PlaywrightCrawler", crawlee),
    ]
    report.table(["", "pages", "pages/s", "CPU ms/page", "of the browser", "peak MB"], rows)
    shares = _shares(site, home)
    found = [share for share in shares.values() if share is not None]
    report.text(
        f"{len(found)} of {len(shares)} source files have a page; on average, a page shows"
        f" {statistics.mean(found):.1%} of the distinct words of its file, and at least"
        f" {min(found):.1%}."
    )


def _row(name: str, crawl: Crawl) -> list[str]:
    usage = crawl.usage
    browser = usage.parts.get("browser", 0.0)
    # killed processes do not count as ended children of the command
    total = sum(max(0.0, seconds) for seconds in usage.parts.values())
    return [
        name,
        str(crawl.pages),
        f"{crawl.rate:.2f}",
        f"{1000 * total / crawl.pages:.0f}",
        f"{1000 * browser / crawl.pages:.0f}",
        f"{usage.peak_mb:.0f}",
    ]


def _shares(site: DocsSite, home: Path) -> dict[str, float | None]:
    """For each file, the share of its words that its page shows; None without a page."""

    async def read() -> dict[str, str]:
        async with (
            open_database(Settings(home=home)) as database,
            database.connection() as connection,
        ):
            cursor = await connection.execute(
                """
                SELECT d.path, d.title || ' ' || string_agg(s.heading || ' ' || s.content, ' ')
                  FROM documents_active d JOIN sections s ON s.document_id = d.id
                 WHERE d.source_id = %s
                 GROUP BY d.path, d.title
                """,
                (SOURCE,),
            )
            return dict(await cursor.fetchall())

    texts = asyncio.run(read())
    return {
        path: found_share(markdown, texts[path]) if path in texts else None
        for path, markdown in site.pages.items()
    }


def _static(folder: Path, report: Report, rounds: int) -> None:
    """`auto` on a site that needs no browser costs what `never` costs."""
    report.heading("A static site: the PostgreSQL manual")

    def cpu(mode: str, url: str, source: str) -> float:
        options = ("--render", mode, "--source", source)
        crawl = crawl_with_forager(url, folder / "static", options, PARTS)
        return 1000 * sum(max(0.0, each) for each in crawl.usage.parts.values()) / crawl.pages

    with static_site(SITES[0]) as url:
        cpu("never", url, "first")  # the first one also creates the database
        found: dict[str, list[float]] = {"never": [], "auto": []}
        for number in range(rounds):
            for mode in found:
                found[mode].append(cpu(mode, url, f"{mode} {number}"))
    never, auto = (statistics.median(found[mode]) for mode in ("never", "auto"))
    rows = [
        [f"`--render {mode}`", f"{statistics.median(each):.2f}"] for mode, each in found.items()
    ]
    report.table(["", "CPU ms/page"], rows)
    report.text(f"Medians of {rounds}; `auto` takes {auto / never:.3f} times as long as `never`.")


if __name__ == "__main__":
    main()
