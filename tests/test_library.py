"""Forager as a library: its how-to runs as it is written, and importing it costs nothing."""

from __future__ import annotations

import asyncio
import inspect
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import forager
from forager.crawl.options import CrawlOptions
from forager.demo.server import demo_site
from forager.errors import DatabaseUnavailable, InvalidInput, NotFound
from forager.jobs.lifecycle import Status
from forager.library import CrawlSettings

HOW_TO = Path(__file__).parent.parent / "docs" / "howto" / "use-as-a-library.md"
EXAMPLES = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def environment(database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FORAGER_DATABASE_URL", database_url)
    monkeypatch.setenv("FORAGER_POLL_INTERVAL", "0.1")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def site() -> Iterator[str]:
    with demo_site() as url:
        yield url


def test_the_examples_of_the_how_to_run(site: str, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"SITE": site}
    printed = []
    for example in EXAMPLES.findall(HOW_TO.read_text(encoding="utf-8")):
        exec(compile(example, str(HOW_TO), "exec"), names)
        printed.append(capsys.readouterr().out)
    first, reading, declaring, starting, explaining, waiting = printed
    assert first.startswith("completed ")
    assert "/guide/polite.html" in first
    assert reading.startswith("#")
    assert reading.endswith("0 added, 0 removed\n")
    assert re.fullmatch(r"[1-9][0-9]* files; problems: \d+\ngeneration 2 published\n", declaring)
    assert starting.splitlines()[0] == "pending"
    assert starting.splitlines()[1].startswith("completed")
    assert explaining.startswith(("fetched", "unchanged"))
    assert waiting.endswith("completed\n")


def test_importing_forager_loads_nothing_else() -> None:
    code = "import sys; before = set(sys.modules); import forager; print(set(sys.modules) - before)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "{'forager'}"


def test_forager_says_what_it_offers() -> None:
    assert {"open", "open_async", "Forager", "AsyncForager", "__version__"} <= set(dir(forager))
    with pytest.raises(AttributeError, match="close"):
        forager.close  # type: ignore[attr-defined]  # noqa: B018


def test_everything_that_is_offered_says_what_it_promises() -> None:
    """What is returned or raised is described in the reference, made of these texts."""
    for name in vars(forager)["__all__"]:
        value = getattr(forager, name)
        if inspect.isclass(value):
            members = [each for each in vars(value) if not each.startswith("_")]
            called = [each for each in members if inspect.isroutine(getattr(value, each))]
            undescribed = [each for each in called if not inspect.getdoc(getattr(value, each))]
            assert not undescribed, f"methods of {name}"


def test_every_option_of_a_crawl_can_be_given() -> None:
    # given by position, and made by Forager itself
    ours = {"urls", "sealed", "granted_pages", "granted_on", "spent_before"}
    assert set(CrawlSettings.__annotations__) == set(CrawlOptions.model_fields) - ours


def test_both_kinds_of_store_have_the_same_calls() -> None:
    calls = [name for name in dir(forager.AsyncForager) if not name.startswith("_")]
    for name in calls:
        one, other = getattr(forager.Forager, name), getattr(forager.AsyncForager, name)
        assert inspect.signature(one) == inspect.signature(other)
        assert inspect.getdoc(one) == inspect.getdoc(other)


def test_sources_are_declared_from_a_list(site: str, tmp_path: Path) -> None:
    declared = [{"name": "guide", "url": site, "allow_private": True, "schedule": "1d"}]
    with forager.open() as store:
        [applied] = store.apply(declared)
        store.wait(applied.job_id)
        assert store.apply(declared) == []
        assert store.export("guide", tmp_path / "pages") > 1
        with pytest.raises(InvalidInput, match="guide: schedule: 'sometimes'"):
            store.apply([{**declared[0], "schedule": "sometimes"}])


def test_versions_are_compared(site: str) -> None:
    with forager.open() as store:
        for version, pages in (("1", 3), ("2", 4)):
            store.crawl(
                site, source=f"demo@{version}", max_pages=pages, delay=0, allow_private=True
            )
        diff = store.diff("demo@2", against="1")
        assert (diff.against, len(diff.added), diff.changed) == ("demo@1", 1, [])
        [added] = diff.added
        assert store.diff("demo@2", against="demo@1", page=added.url).added == [added]


def test_mistakes_are_explained() -> None:
    with forager.open() as store:
        with pytest.raises(InvalidInput, match="max_pages"):
            store.crawl("https://docs.example.org/", max_pages=0)
        with pytest.raises(NotFound):
            store.read("https://docs.example.org/")
        assert store.search("anything").items == []
    with pytest.raises(RuntimeError, match="closed"):
        store.sources()
    store.close()
    with pytest.raises(InvalidInput, match="--database-url"):
        forager.open(database_url="mysql://x")


def test_what_cannot_be_opened_says_why() -> None:
    with pytest.raises(DatabaseUnavailable):
        forager.open(database_url="postgresql://127.0.0.1:1/none")


async def test_a_store_works_where_a_loop_runs_already(site: str) -> None:
    with forager.open() as store:
        report = await asyncio.to_thread(store.crawl, site, allow_private=True, max_pages=2)
        assert report.job.status is Status.COMPLETED
        assert store.report(report.job.id).ledger.pages == report.ledger.pages


def test_closing_gives_a_crawl_back_to_the_queue(site: str) -> None:
    store = forager.open()
    started = store.start_crawl(site, allow_private=True, delay=30)
    errors: list[BaseException] = []

    def wait() -> None:
        try:
            store.wait(started.job.id)
        except BaseException as error:
            errors.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    while store.report(started.job.id).job.status is not Status.PROCESSING:
        pass
    store.close()
    waiting.join(30)
    assert len(errors) == 1
    with forager.open() as later:
        assert later.report(started.job.id).job.status is Status.PENDING


def test_products_are_tracked_and_read(database_url: str) -> None:
    with forager.open(database_url=database_url) as store:
        tracked = store.track("https://shop.example/lamp", priority=2, max_retries=1)
        assert (tracked.added, store.products().items, store.events()) == (1, [], [])
        with pytest.raises(NotFound):
            store.history("https://shop.example/lamp")


def test_every_operation_is_a_call() -> None:
    with forager.open() as store:
        added = store.run("webhooks add", url="https://hooks.example/", kinds=["product.added"])
        assert added.secret
        [listed] = store.run("webhooks list", limit=5).items
        assert (listed.id, listed.kinds) == (added.id, ["product.added"])
        with pytest.raises(InvalidInput, match="webhook_id"):
            store.run("webhooks show", webhook_id=0)
        with pytest.raises(InvalidInput, match="did you mean webhooks list"):
            store.run("webhooks lists")
