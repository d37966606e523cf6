"""`forager sources` and `forager read`, from the command to the tables."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from built_site import BASE, SOURCE, Crawls
from forager.db.database import Database
from forager.jobs.queue import Queue
from forager.settings import Settings
from support.cli import forager

pytestmark = pytest.mark.usefixtures("command_line")


@pytest.fixture
def site(database_url: str, settings: Settings) -> Site:
    return Site(database_url, settings)


@dataclass(frozen=True, slots=True)
class Site:
    """Crawls a site without an event loop around: commands start their own."""

    url: str
    settings: Settings
    source: str = SOURCE

    def crawl(self, *versions: Mapping[str, str | None]) -> None:
        asyncio.run(self._crawl(versions))

    async def _crawl(self, versions: tuple[Mapping[str, str | None], ...]) -> None:
        async with Database(self.url) as database:
            crawls = Crawls(database, Queue(database, self.settings), self.settings)
            crawls.source = self.source
            for version in versions:
                await crawls.crawl(version)


OLD: dict[str, str | None] = {"same": "same", "edit": "before", "old": "moved", "gone": "gone"}
NEW: dict[str, str | None] = {"same": "same", "edit": "after", "new": "moved", "come": "come"}


def test_sources_are_listed_and_shown(site: Site) -> None:
    assert "There are no sources" in forager("sources", "list").err
    site.crawl(OLD, NEW)
    [listed] = forager("sources", "list", "--json").json["items"]
    assert (listed["id"], listed["pages"], listed["published_number"]) == (SOURCE, 4, 2)
    assert SOURCE in forager("sources", "list").out
    shown = forager("sources", "show", SOURCE)
    assert "published number  2 " in shown.out
    assert "english" in shown.out
    assert forager("sources", "show", SOURCE, "--json").json["base_url"] == BASE


def test_pages_of_a_source(site: Site) -> None:
    site.crawl(OLD)
    page = forager("sources", "pages", SOURCE, "--limit", "3", "--json").json
    assert [item["path"] for item in page["items"]] == ["/edit", "/gone", "/old"]
    rest = forager("sources", "pages", SOURCE, "--cursor", page["next_cursor"])
    assert rest.out.splitlines()[1].startswith(f"{BASE}same")


def test_generations_publish_and_rollback(site: Site) -> None:
    site.crawl(OLD, NEW, {"same": "same"})
    listed = forager("sources", "generations", SOURCE, "--json").json["items"]
    assert [(item["number"], item["state"]) for item in listed] == [
        (3, "held_back"), (2, "published"), (1, "superseded")
    ]  # fmt: skip
    assert listed[0]["note"] == "pages fell from 4 to 1"
    assert "held back" in forager("sources", "generations", SOURCE).out

    refused = forager("sources", "publish", SOURCE)
    assert (refused.code, "--force" in refused.err) == (4, True)
    forced = forager("sources", "publish", SOURCE, "--force")
    assert forced.out == f"{SOURCE}: generation 3 is published (pages: 1)\n"
    assert forager("sources", "rollback", SOURCE, "--json").json["number"] == 2
    assert forager("sources", "rollback", SOURCE, "1").code == 0
    assert forager("sources", "rollback", SOURCE).code == 4
    assert forager("sources", "rollback", "elsewhere").code == 2


def test_a_generation_that_is_held_back_says_so_everywhere(site: Site) -> None:
    site.crawl(OLD, {"same": "same"})
    command = f"forager sources publish {SOURCE} --force"
    for shown in (
        forager("sources", "list"),
        forager("sources", "show", SOURCE),
        forager("jobs", "list"),
        forager("doctor"),
    ):
        assert "held back" in shown.out + shown.err
        assert "pages fell from 4 to 1" in shown.out
    [job, earlier] = forager("jobs", "list", "--json").json["items"]
    assert (job["generation"]["state"], earlier["generation"]["state"]) == (
        "held_back",
        "published",
    )
    details = forager("jobs", "show", job["id"])
    assert '"state": "held_back"' in details.out
    for shown in (forager("sources", "show", SOURCE), details, forager("doctor")):
        assert command in shown.out + shown.err
    assert command in forager("sources", "list").err
    explained = forager("explain", f"{BASE}same")
    assert "published in generation 1; the version in generation 2 is held back" in explained.out
    assert command in explained.out
    assert forager("sources", "publish", SOURCE, "--force").code == 0
    assert "held back" not in forager("jobs", "list").out
    assert forager("jobs", "show", job["id"], "--json").json["generation"]["state"] == "published"


def test_a_source_is_exported_by_its_pages(site: Site) -> None:
    site.crawl(OLD)
    refused = forager("export", SOURCE)
    assert refused.code == 2
    assert f"`forager export {SOURCE} --format markdown` exports its pages" in refused.err
    # the only version, as in a search
    replace(site, source="cpp@17").crawl(OLD)
    exported = forager("export", "cpp", "--format", "llms")
    assert (exported.code, BASE in exported.out) == (0, True)
    replace(site, source="cpp@20").crawl(OLD)
    assert "cpp has several versions: cpp@17, cpp@20" in forager("export", "cpp", "-f", "llms").err


def test_differences(site: Site) -> None:
    site.crawl(OLD, NEW)
    found = forager("sources", "diff", SOURCE, "--json").json
    assert [page["url"] for page in found["added"]] == [f"{BASE}come"]
    assert [page["url"] for page in found["removed"]] == [f"{BASE}gone"]
    assert [page["url"] for page in found["changed"]] == [f"{BASE}edit"]
    assert found["renamed"] == [{"old_url": f"{BASE}old", "new_url": f"{BASE}new"}]
    shown = forager("sources", "diff", SOURCE)
    assert shown.out.splitlines() == [
        f"R {BASE}old -> {BASE}new", f"A {BASE}come", f"D {BASE}gone", f"C {BASE}edit"
    ]  # fmt: skip
    assert "1 added, 1 removed, 1 changed, 1 renamed" in shown.err
    with_sections = forager("sources", "diff", SOURCE, "1", "2", "--sections").out
    assert "    -before\n    +after\n" in with_sections


def test_differences_of_two_versions(site: Site) -> None:
    replace(site, source="tool@1").crawl(OLD)
    replace(site, source="tool@2").crawl(NEW)
    shown = forager("sources", "diff", "tool@2", "--against", "1")
    assert shown.out.splitlines() == [
        f"R {BASE}old -> {BASE}new", f"A {BASE}come", f"D {BASE}gone", f"C {BASE}edit"
    ]  # fmt: skip
    assert "tool@1 (generation 1) to tool@2 (1): 1 added" in shown.err
    page = ("sources", "diff", "tool@2", "--against", "tool@1", "--page", "/edit")
    assert "    -before\n    +after\n" in forager(*page, "--section", "Details").out
    [changed] = forager(*page, "--section", "details", "--json").json["changed"]
    assert [section["heading"] for section in changed["sections"]] == ["Details"]
    missing = forager("sources", "diff", "tool@2", "--against", "3")
    assert "no source has version 3" in missing.err
    assert "Versions: 1" in missing.err


def test_a_schedule_is_set_shown_and_ended(site: Site) -> None:
    site.crawl(OLD)
    assert "either `every` or `cron`" in forager("sources", "schedule", SOURCE).err
    assert forager("sources", "schedule", SOURCE, "--every", "1d").code == 0
    assert "every 1d" in forager("sources", "list").out
    found = forager("sources", "schedule", SOURCE, "--cron", "0 4 * * 1", "--json").json
    assert (found["every"], found["cron"]) == (None, "0 4 * * 1")
    assert "cron 0 4 * * 1 (UTC)" in forager("sources", "list").out
    assert forager("sources", "schedule", SOURCE, "--every", "1d", "--cron", "0 4 * * 1").code == 2
    assert forager("sources", "schedule", SOURCE, "--every", "soon").code == 2
    off = forager("sources", "unschedule", SOURCE, "--json").json
    assert off["next_refresh_at"] is None


def test_limits_are_set_one_by_one(site: Site) -> None:
    site.crawl(OLD)
    forager("sources", "set", SOURCE, "--keep", "2")
    found = forager("sources", "set", SOURCE, "--max-shrink", "0.9", "--json").json
    assert (found["keep"], found["max_shrink"], found["max_failed"]) == (2, 0.9, 0.1)
    site.crawl({"same": "same"})
    assert forager("sources", "show", SOURCE, "--json").json["published_number"] == 2
    assert "nothing to set was given" in forager("sources", "set", SOURCE).err
    assert forager("sources", "set", SOURCE, "--max-failed", "2").code == 2
    assert forager("sources", "set", "elsewhere", "--keep", "2").code == 2


def test_a_refresh_is_asked_for_once(site: Site) -> None:
    site.crawl(OLD)
    first = forager("sources", "refresh", SOURCE, "--json").json
    again = forager("sources", "refresh", SOURCE, "--json").json
    assert (first["created"], again["created"]) == (True, False)
    assert first["job_id"] == again["job_id"]
    assert "already" in forager("sources", "refresh", SOURCE).out
    busy = forager("sources", "delete", SOURCE, "--yes")
    assert (busy.code, first["job_id"] in busy.err) == (4, True)


def test_a_queued_crawl_is_not_called_running(site: Site) -> None:
    site.crawl(OLD)
    first = forager("sources", "refresh", SOURCE, "--json").json
    [listed] = forager("sources", "list", "--json").json["items"]
    assert (listed["activity"], listed["state"]) == ("queued", "published")
    assert "queued" in forager("sources", "list").out
    assert "queued" in forager("sources", "delete", SOURCE, "--yes").err
    forager("jobs", "pause", first["job_id"])
    assert "crawl paused" in forager("sources", "list").out


def test_a_short_name_works_in_every_command(site: Site) -> None:
    replace(site, source="guide@2").crawl(OLD, NEW)
    for command in (
        ("sources", "show", "guide"),
        ("sources", "generations", "guide"),
        ("sources", "pages", "guide"),
        ("sources", "diff", "guide"),
        ("sources", "check", "guide"),
        ("sources", "refresh", "guide"),
        ("search", "text", "--source", "guide"),
        ("read", f"{BASE}same", "--source", "guide"),
        ("export", "guide", "--format", "llms"),
        ("events", "list", "--source", "guide"),
    ):
        assert forager(*command).code == 0, command
    assert forager("jobs", "list", "--source", "guide", "--json").json["items"]
    assert forager("jobs", "list", "--source", "guid", "--json").json["items"] == []


def test_a_source_is_deleted_after_confirmation(site: Site) -> None:
    site.crawl(OLD, NEW)
    asked = forager("sources", "delete", SOURCE)
    assert (asked.code, "--yes" in asked.err) == (2, True)
    gone = forager("sources", "delete", SOURCE, "--yes")
    assert gone.out == f"deleted {SOURCE}\n"
    assert forager("sources", "show", SOURCE).code == 2


def test_a_page_and_a_section_are_read(site: Site) -> None:
    site.crawl({"a": "alpha \x1b[31mred"})
    read = forager("read", f"{BASE}a")
    assert read.out.startswith("# Guide\n\nAbout alpha \N{REPLACEMENT CHARACTER}[31mred.")
    details = forager("read", f"{BASE}a", "--source", SOURCE, "--section", "details")
    assert details.out.startswith("## Details\n\nFirst line\n")
    as_json = forager("read", f"{BASE}a", "--json").json
    assert (as_json["document"]["title"], len(as_json["sections"])) == (
        "Title of alpha \x1b[31mred",
        2,
    )
    assert forager("read", f"{BASE}b").code == 2
    assert forager("read", f"{BASE}a", "--section", "nowhere").code == 2


def test_a_source_is_checked(site: Site) -> None:
    site.crawl(OLD)
    answer = forager("sources", "check", SOURCE)
    assert answer.code == 0
    assert f"0 pages of {SOURCE} checked; not in the archive: 4" in answer.out
    assert "9 checks in" in answer.err
    found = forager("sources", "check", SOURCE, "--json").json
    assert {each["topic"] for each in found["findings"]} == {"sources"}
    counts = {each["check"]: each["count"] for each in found["findings"]}
    assert (found["ok"], counts["pages"], counts["empty_pages"]) == (True, 4, 0)
    assert forager("sources", "check", "unknown").code != 0
