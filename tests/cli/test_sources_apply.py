"""Sources declared in a file: planned, applied once, and changed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from forager.crawl.declared import DeclaredSource, apply_plan, plan_sources, read_source_file
from forager.db.database import Database
from forager.settings import Settings
from servers.site import Page, Site, html, text
from support.cli import Finished, forager, running

pytestmark = pytest.mark.usefixtures("command_line")

HOW_TO = Path(__file__).parents[2] / "docs" / "howto" / "give-your-agent-documentation.md"
YAML = """
sources:
  - name: python
    version: 3.10
    url: https://docs.python.example/3.13/
    schedule: 1d
    exclude: ["*/genindex*"]
  - name: sqlite
    url: https://sqlite.example/
    schedule: "30 4 * * 1"
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "sources.yaml"
    path.write_text(YAML)
    return path


def shown(source: str) -> Any:
    return forager("sources", "show", source, "--json").json


def test_a_file_is_applied_once(file: Path) -> None:
    plan = forager("sources", "apply", "--dry-run").out
    assert plan.startswith("+ python@3.10 (create)")
    assert "    schedule: every 1d\n" in plan
    refused = forager("sources", "apply")
    assert (refused.code, "--yes" in refused.err) == (2, True)
    assert forager("sources", "list", "--json").json["items"] == []

    applied = forager("sources", "apply", "--yes", "--json").json
    assert [each["action"] for each in applied] == ["create", "create"]
    python = shown("python@3.10")
    assert python["active_job"] == applied[0]["job_id"]
    assert python["payload"]["exclude"] == ["*/genindex*"]
    assert python["every"] == "1d"
    assert shown("sqlite")["cron"] == "30 4 * * 1"

    again = forager("sources", "apply")
    assert (again.code, again.out.count("(keep)")) == (0, 2)
    assert shown("python@3.10") == python


def test_changes_are_shown_and_made(file: Path) -> None:
    forager("sources", "apply", "--yes")
    file.write_text(YAML.replace("schedule: 1d", "max_pages: 50").replace("*/genindex*", "*/x*"))
    plan = forager("sources", "apply", "--dry-run").out
    assert "~ python@3.10 (change)" in plan
    assert "max_pages: default -> 50" in plan
    assert "exclude: */genindex* -> */x*" in plan
    assert "schedule: every 1d -> off" in plan
    assert "= sqlite (keep)" in plan
    applied = forager("sources", "apply", "--yes").out
    assert "in progress with earlier options" in applied
    python = shown("python@3.10")
    assert (python["payload"]["max_pages"], python["every"]) == (50, None)
    assert python["next_refresh_at"] is None


def test_sources_can_stand_beside_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = 'log_level = "warning"\n[[sources]]\nname = "a"\nurl = "https://a.example/"\n'
    (tmp_path / "forager.toml").write_text(text)
    assert "+ a (create)" in forager("sources", "apply", "--dry-run").out


def test_the_files_of_the_how_to_are_valid(tmp_path: Path) -> None:
    for kind, number in (("yaml", 5), ("toml", 1)):
        [text] = re.findall(rf"^```{kind}\n(.*?)^```", HOW_TO.read_text(), re.M | re.S)
        (tmp_path / f"sources.{kind}").write_text(text)
        assert len(read_source_file(tmp_path / f"sources.{kind}")) == number


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sources:\n- {name: a@b, url: https://a.example/}", "a@b: name must be a name"),
        ("sources:\n- {name: a, url: 'mailto:x'}", "a: urls"),
        ("sources:\n- {name: a, url: https://a.example/, schedule: 5 5 5}", "cron"),
        (
            "sources:\n- {name: a, url: https://a.example/, schedual: 1d}",
            "a: schedual: unknown; did you mean schedule?",
        ),
        ("sources:\n- &a {name: a, url: https://a.example/}\n- *a", "declared twice"),
        (
            "sources:\n- {name: a, url: https://a.example/}\nother: 1",
            "other: unknown; expected: sources",
        ),
        (
            "sources:\n- {name: a, url: https://a.example/, schedule: 2 weeks}",
            "a: schedule: '2 weeks' is not a cron expression\nhint: An interval such as",
        ),
        ("sources: !!python/object/apply:os.getcwd", "sources"),
        ("[" * 5000, "sources.yaml"),
        ("", "sources.yaml"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(file: Path, text: str, said: str) -> None:
    file.write_text(text)
    ended: Finished = forager("sources", "apply", "--yes")
    assert ended.code == 2
    assert said in ended.err


async def test_a_thousand_sources_are_applied_in_one_transaction(
    database: Database, settings: Settings
) -> None:
    declared = [
        DeclaredSource(name=f"site-{number:04}", url=f"https://site-{number:04}.example/")
        for number in range(1000)
    ]
    planned = await plan_sources(database, settings, declared)
    applied = await apply_plan(database, settings, planned)
    assert [each.source_id for each in applied] == [each.source_id for each in declared]
    assert all(each.job_is_new for each in applied)
    async with database.connection() as connection:
        cursor = await connection.execute("SELECT count(*) FROM crawl_jobs GROUP BY created_at")
        assert await cursor.fetchall() == [(1000,)]  # one transaction
    again = await apply_plan(database, settings, planned)
    assert [each.job_id for each in again] == [each.job_id for each in applied]
    assert not any(each.job_is_new for each in again)


def test_a_dry_run_requests_the_start_urls(tmp_path: Path) -> None:
    file = tmp_path / "sources.yaml"
    site = Site({"/": html("Welcome")})
    with site.served():
        urls = {"good": f"{site.url}/", "gone": f"{site.url}/gone"}
        lines = [
            f"- {{name: {name}, url: '{url}', allow_private: true}}" for name, url in urls.items()
        ]
        lines.append(f"- {{name: private, url: '{urls['good']}'}}")
        file.write_text("\n".join(["sources:", *lines]))
        planned = forager("sources", "apply", str(file), "--dry-run")
    assert planned.code == 1
    assert f"gone: {urls['gone']}: the server answered 404 Not Found" in planned.out
    assert "private: " in planned.out
    assert "loopback address" in planned.out
    assert "good: " not in planned.out
    assert forager("sources", "list", "--json").json["items"] == []


def test_waiting_reports_the_result_of_each_source(tmp_path: Path) -> None:
    good = Site({"/": html("Home", ["/a", "/gone"]), "/a": html("A")})
    forbidden = Site({"/": html("Home"), "/robots.txt": text("User-agent: *\nDisallow: /")})
    refused = {f"/{number}": Page(status="403 Forbidden") for number in range(9)}
    broken = Site({"/": html("Home", list(refused)), **refused})
    with good.served(), forbidden.served(), broken.served():
        sites = {"good": good, "forbidden": forbidden, "broken": broken}
        lines = [
            f"- {{name: {name}, url: {site.url}/, allow_private: true}}"
            for name, site in sites.items()
        ]
        file = tmp_path / "sources.yaml"
        file.write_text("\n".join(["sources:", *lines]))
        with running("worker", "--no-tasks"):
            ended = forager("sources", "apply", "--yes", "--wait", "--json")
    assert ended.code == 1
    results = {each["source_id"]: each for each in ended.json}
    assert {name: each["result"] for name, each in results.items()} == {
        "good": "published",
        "forbidden": "failed",
        "broken": "held back",
    }
    assert (results["good"]["pages"], results["good"]["failed_urls"]) == (2, 1)
    assert "robots.txt" in results["forbidden"]["reason"]
    assert "9 of 10 URLs failed (9 × http_403)" in results["broken"]["reason"]
    shown = forager("jobs", "show", results["good"]["job_id"])
    assert "3 URLs discovered = 2 fetched + 1 failed\n  failed: 1 http_404\n" in shown.out
    again = forager("sources", "apply", "--wait")  # nothing is left to do for the first
    assert (again.code, "= good (keep)" in again.out) == (2, True)


def test_secrets_of_a_source_are_compared_and_kept(file: Path) -> None:
    lines = "sources:\n  - name: wiki\n    url: https://wiki.example/\n"
    file.write_text(f"{lines}    headers: {{Cookie: session=monday}}\n")
    forager("sources", "apply", "--yes")
    assert "= wiki (keep)" in forager("sources", "apply", "--dry-run").out
    file.write_text(f"{lines}    headers: {{Cookie: session=tuesday}}\n")
    plan = forager("sources", "apply", "--dry-run").out
    assert "headers: changed (not shown)" in plan
    assert "tuesday" not in plan
    # the file may leave out what `sources login` has set, but not for another site
    said = forager("sources", "login", "wiki", "--header", "Cookie: session=friday").out
    assert "uses them when it runs next" in said
    file.write_text(lines)
    assert "= wiki (keep)" in forager("sources", "apply", "--dry-run").out
    others = (
        lines.replace("wiki.example", "other.example"),
        # the cookie would be sent without encryption, or to the host of the repository
        lines.replace("https:", "http:"),
        f"{lines}    repository: https://git.example/wiki.git\n",
    )
    for other in others:
        file.write_text(other)
        assert "headers:" in forager("sources", "apply", "--dry-run").out
