"""Pages that look empty and gain nothing from a browser: python -m benchmarks.render_gains

One site has 300 pages that ask for JavaScript and show the same without it, the other 45 pages
without content whose script never stops loading. Both are spread over ten folders.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.crawls import crawl_with_forager
from benchmarks.report import Report
from benchmarks.sites import Site, served

FOLDERS = 10
COMPLETE = """<!doctype html><title>Symbol {0}</title><script src="/app.js"></script>
<body><noscript>You need to enable JavaScript to run this app.</noscript>
<div id="app"><h1>Symbol {0}</h1><p>Symbol {0} has this short and complete description.</p></div>"""
EMPTY = """<!doctype html><title>Page {0}</title><script src="/app.js"></script>
<div id="app"></div>"""
SETTLES = "addEventListener('load', () => { document.documentElement.dataset.ready = 1 })"
NEVER_SETTLES = "setInterval(() => { fetch('/app.js?' + Math.random()) }, 100)"
SITES = (
    ("the same without a browser", COMPLETE, SETTLES, 300),
    ("without content", EMPTY, NEVER_SETTLES, 45),
)


def main() -> None:
    report = Report("Rendering: Forager and Crawlee's PlaywrightCrawler")
    with TemporaryDirectory(prefix="forager-bench-") as folder:
        report_useless(report, Path(folder))
    print(report.write("render.md", keep=True))


def report_useless(report: Report, folder: Path) -> None:
    """Crawl both sites with and without a browser."""
    report.heading("Pages that gain nothing")
    rows = []
    for number, (name, page, script, count) in enumerate(SITES):
        root = folder / str(number)
        _write(root, page, script, count)
        with served(Site(name, root, "index.html")) as url:
            for mode in ("never", "auto"):
                options = ("--render", mode, "--source", f"{number} {mode}")
                crawl = crawl_with_forager(url, folder / "home", options)
                rendered = json.loads(crawl.usage.output)["ledger"]["rendered_by_reason"]
                times = [f"{crawl.seconds:.1f}", f"{sum(rendered.values())}"]
                rows.append([f"{count} pages {name}, `--render {mode}`", *times])
    report.table(["", "seconds", "rendered"], rows)
    report.text(
        "The pages are in ten folders. A crawl stops rendering pages of a template after two that"
        " gained nothing; a page whose script never stops loading takes about ten seconds."
    )


def _write(root: Path, page: str, script: str, count: int) -> None:
    places = [f"folder{number % FOLDERS}/page{number}.html" for number in range(count)]
    for number, place in enumerate(places):
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text(page.format(number), encoding="utf-8")
    (root / "app.js").write_text(script, encoding="utf-8")
    links = "".join(f'<li><a href="{place}">{place}</a>' for place in places)
    (root / "index.html").write_text(f"<title>Pages</title><h1>Pages</h1><ul>{links}</ul>")


if __name__ == "__main__":
    main()
