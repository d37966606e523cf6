"""Single-page documentation sites from npm packages: crawled with `auto`, as their sources say."""

from __future__ import annotations

import statistics
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.render_sites import DocsSite, docsify_site, found_share, served, vue_site
from crawl.crawling import Crawls
from forager.db.database import Database
from forager.settings import Settings
from render.conftest import require_browser


@pytest.mark.parametrize("build", [docsify_site, vue_site])
async def test_every_file_has_its_page_and_text(
    build: Callable[[Path], DocsSite], database: Database, settings: Settings, tmp_path: Path
) -> None:
    crawls = Crawls(database, settings.model_copy(update={"browser": require_browser()}))
    try:
        site = build(tmp_path)
    except (OSError, subprocess.SubprocessError) as error:
        words = getattr(error, "stderr", None) or error
        pytest.skip(f"the packages cannot be obtained from npm: {words}")
    with served(site) as url:
        crawled = await crawls.run(url, source="docs", exclude=["*?id=*"])
    texts = dict(
        await crawls.sql(
            """
            SELECT d.path, d.title || ' ' || string_agg(s.heading || ' ' || s.content, ' ')
              FROM documents_active d JOIN sections s ON s.document_id = d.id
             GROUP BY d.path, d.title
            """
        )
    )
    # some of the packages' own links lead to the files themselves, or nowhere
    assert {path for path in texts if not path.endswith(".md")} == {"/", *site.pages}
    assert set(crawled.ledger["failed_by_reason"]) <= {"soft_404", "http_404"}
    shares = {path: found_share(text, texts[path]) for path, text in site.pages.items()}
    assert min(shares.values()) > 0.8, shares
    assert statistics.mean(shares.values()) > 0.98, shares
