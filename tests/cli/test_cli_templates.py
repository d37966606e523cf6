from __future__ import annotations

from functools import partial

import pytest

from forager.demo.server import demo_site
from support import cli

pytestmark = pytest.mark.usefixtures("command_line")

forager = partial(cli.forager, "templates")


def test_a_template_is_saved_shown_and_deleted() -> None:
    assert "no crawl templates" in forager("list").err
    saved = forager(
        "save", "docs", "a.example", "--strategy", "sitemap", "--max-pages", "5", "--header",
        "Cookie: secret=1", "--json",
    )  # fmt: skip
    assert (saved.code, saved.json["omitted"]) == (0, ["Cookie"])
    assert saved.json["options"] == {
        "urls": ["https://a.example/"],
        "strategy": "sitemap",
        "max_pages": 5,
    }
    assert "max-pages" in forager("list").out
    assert "sitemap" in forager("show", "docs").out
    refused = forager("save", "docs", "--include", "re:(")
    assert (refused.code, "--include" in refused.err) == (2, True)
    assert forager("delete", "docs").code == 0
    assert forager("show", "docs").code == 2


def test_a_crawl_starts_from_a_template_and_its_flags_replace_values() -> None:
    with demo_site(0) as url:
        forager("save", "demo", url, "--strategy", "single", "--allow-private", "--max-depth", "9")
        command = ("crawl", "--template", "demo", "--detach", "--json", "--source")
        one = cli.forager(*command, "one")
        other = cli.forager(*command, "two", "--strategy", "site", "--max-depth", "1")
    shown = [
        cli.forager("jobs", "show", each.json["job_id"], "--json").json for each in (one, other)
    ]
    assert [each["payload"].get("strategy", "site") for each in shown] == ["single", "site"]
    assert [each["payload"]["max_depth"] for each in shown] == [9, 1]
    assert shown[0]["payload"]["urls"] == [url]
    assert cli.forager("crawl", "--template", "gone").code == 2
