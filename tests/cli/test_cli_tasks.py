from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

from support.cli import FORAGER, forager

pytestmark = pytest.mark.usefixtures("command_line")


def only_task() -> dict[str, Any]:
    (task,) = forager("tasks", "list", "--json").json["items"]
    return dict(task)


def test_the_life_of_a_task(database_url: str) -> None:
    url = "https://shop.example/lamp"
    done = forager("products", "track", url, "--every", "6h", "--priority", "2")
    assert (done.code, done.out) == (0, "1 task added\n")
    assert "1 tracked already" in forager("products", "track", url).out
    task = only_task()
    assert (task["status"], task["priority"], task["every"]) == ("pending", 2, "6h")
    number = str(task["id"])
    assert "no scheduler runs" in forager("tasks", "show", url).out
    ticked = forager("scheduler", "--once")
    assert "1 handed to the workers" in ticked.out
    assert only_task()["status"] == "queued"
    paused = forager("tasks", "pause", number)
    assert paused.out == (
        "Paused: tasks in progress are finished; due times, retries, products and prices are kept."
        " 1 task returned to the schedule. 1 task on hold.\n"
    )
    assert "paused" in forager("tasks", "list", "--on-hold").out
    recrawled = forager("tasks", "recrawl", number)
    assert recrawled.out == "tasks due now: 1, on hold: 1, in progress: 0\n"
    assert forager("tasks", "resume", number).out == "Resumed. No tasks are on hold.\n"
    assert forager("tasks", "set", number, "--every", "default", "--json").json == {
        "changed": 1,
        "not_found": [],
    }
    assert only_task()["every"] is None
    shown = forager("tasks", "show", number, "--json").json
    assert (shown["effective_every"], shown["attempts"]) == ("1d", [])
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            """
            INSERT INTO task_attempts (task_id, domain_id, stage, lease, attempt, outcome,
                                       http_status, duration_ms, error_message)
            SELECT id, domain_id, 'download', 1, 1, 'retry', 503, 12, 'overloaded' FROM crawl_tasks
            """
        )
    assert "overloaded" in forager("tasks", "show", number).out
    assert "shop.example" in forager("tasks", "stats").out
    assert forager("tasks", "stats", "--json").json["counts"]["pending"] == 1
    asked = forager("tasks", "remove", "--url", "*/lamp")
    assert (asked.code, "Stop tracking 1 task? Products, their" in asked.err) == (2, True)
    assert forager("tasks", "remove", number, "--yes").out == "tasks removed: 1\n"
    assert "There are no such tasks" in forager("tasks", "list").err


@pytest.mark.parametrize("move", ["pause", "stop", "resume", "recrawl", "set", "remove"])
def test_numbers_that_name_no_task(move: str) -> None:
    forager("products", "track", "https://shop.example/lamp")
    number, more = str(only_task()["id"]), {"set": ["--priority", "1"], "remove": ["--yes"]}
    given = more.get(move, [])
    beside = forager("tasks", move, number, "998", "999", *given, "--json")
    assert (beside.code, beside.json["not_found"]) == (2, [998, 999])
    assert "there is no task 998, 999; the others were processed" in beside.err
    alone = forager("tasks", move, "998", "999", *given)
    assert (alone.code, alone.out) == (2, "")
    assert "there is no task 998, 999" in alone.err


def test_lists_say_what_is_held() -> None:
    forager("products", "track", "https://shop.example/lamp", "https://www.shop.example/lamp")
    forager("products", "track", "https://other.example/lamp")
    assert "resume" not in forager("tasks", "list").err
    forager("tasks", "pause", "--domain", "shop.example")
    listed = forager("tasks", "list")
    assert listed.out.count("its domain is paused") == 2
    assert len(forager("tasks", "list", "--not-on-hold", "--json").json["items"]) == 1
    assert "`forager tasks resume --domain shop.example`" in listed.err
    forager("tasks", "stop", "--all")
    listed = forager("tasks", "list")
    assert listed.out.count("all tasks are stopped") == 3
    assert "All tasks are stopped: `forager tasks resume --all`" in listed.err
    assert len(forager("tasks", "list", "--on-hold", "--json").json["items"]) == 3
    first = forager("tasks", "list", "--json").json["items"][0]
    assert (first["all_hold"], first["held_by"]) == ("stopped", "all tasks are stopped")
    assert "all tasks are stopped" in forager("tasks", "show", str(first["id"])).out


def test_failing_tasks_are_listed_before_they_fail_for_good(database_url: str) -> None:
    for name in ("failed", "missed", "fine"):
        forager("products", "track", f"https://shop.example/{name}")
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE crawl_tasks SET status = 'failed' WHERE url LIKE '%failed'")
        connection.execute("UPDATE crawl_tasks SET failing_since = now() WHERE url LIKE '%missed'")
    listed = forager("tasks", "list", "--failing", "--json").json["items"]
    assert {task["url"].rpartition("/")[2] for task in listed} == {"failed", "missed"}
    failed = forager("tasks", "list", "--status", "failed", "--json").json["items"]
    assert [task["url"].rpartition("/")[2] for task in failed] == ["failed"]


def test_a_host_means_those_below_it() -> None:
    forager("products", "track", "https://www.shop.example/lamp", "https://m.shop.example/lamp")
    forager("products", "track", "https://myshop.example/lamp")
    listed = forager("tasks", "list", "--domain", "shop.example", "--json").json["items"]
    assert {task["domain"] for task in listed} == {"www.shop.example", "m.shop.example"}
    assert forager("tasks", "pause", "--domain", "shop.example", "--json").json["changed"] == 2
    assert len(forager("tasks", "list", "--on-hold", "--json").json["items"]) == 2
    assert forager("tasks", "list", "--domain", "example").code == 0
    assert forager("tasks", "list", "--domain", "shop.test").code == 2


def test_files_with_bad_lines(tmp_path: Path) -> None:
    content = (
        "url,article,priority\r\nhttps://shop.example/1,A-1,1\r\nnot a url,A-2,1\r\n"
        "https://shop.example/2,A-3,99"
    )
    Path("list.csv").write_bytes(b"\xef\xbb\xbf" + content.encode())
    done = forager("products", "track", "--from", "list.csv", "--errors", "bad.csv")
    assert (done.code, done.out) == (0, "1 task added; 2 refused\n")
    assert "line 3: not a valid URL" in done.err
    # all columns are kept: the lines can be corrected and imported again
    header, first, second = (tmp_path / "bad.csv").read_text().splitlines()
    assert header == "url,article,priority,line,reason,text"
    assert first == "not a url,A-2,1,3,not a valid URL,not a url"
    assert second.startswith("https://shop.example/2,A-3,99,4,")
    corrected = "\n".join((header, second.replace(",99,", ",9,")))
    Path("corrected.csv").write_text(corrected)
    assert forager("products", "track", "--from", "corrected.csv").out == "1 task added\n"
    again = forager("products", "track", "--from", "list.csv", "--json").json
    assert (again["added"], again["known"], again["bad"]) == (0, 1, 2)
    assert [bad["line"] for bad in again["first_bad"]] == [3, 4]


def test_standard_input() -> None:
    lines = b'{"url": "https://shop.example/1"}\n{"url": "https://shop.example/2"}\n'
    command = ("products", "track", "--from", "-", "--format", "jsonl", "--json")
    assert forager(*command, stdin=lines).json["added"] == 2


def test_lists_by_pages() -> None:
    forager("products", "track", *[f"https://shop.example/{number}" for number in range(3)])
    page = forager("tasks", "list", "--limit", "2", "--json").json
    rest = forager("tasks", "list", "--cursor", page["next_cursor"], "--json").json
    listed = page["items"] + rest["items"]
    assert {task["url"] for task in listed} == {f"https://shop.example/{n}" for n in range(3)}
    numbers = [task["id"] for task in listed]
    assert numbers == sorted(numbers, reverse=True)
    assert "--cursor" in forager("tasks", "list", "--limit", "2").err
    found = forager("tasks", "list", "--url", "*ple/1", "--status", "pending", "--json").json
    assert len(found["items"]) == 1


def test_holds_of_everything_and_of_a_domain() -> None:
    forager("products", "track", "https://a.example/1", "https://b.example/1")
    assert "All tasks are stopped." in forager("tasks", "stop", "--all").out
    assert re.search(r"all hold +stopped", forager("tasks", "stats").out)
    paused = forager("tasks", "pause", "--domain", "a.example", "--json").json
    assert (paused["changed"], paused["held_domains"]) == (1, 1)
    resumed = forager("tasks", "resume", "--all", "--json").json
    assert (resumed["all_hold"], resumed["held_domains"]) == (None, 1)
    assert forager("domains", "show", "a.example", "--json").json["task_hold"] == "paused"
    assert "paused" in forager("domains", "show", "a.example").out


def test_how_a_domain_treats_its_tasks() -> None:
    forager("products", "track", "https://a.example/1")
    [changed] = forager(
        "domains", "set", "a.example", "--every", "6h", "--adaptive", "--min-every", "1h",
        "--max-every", "1w", "--currency", "eur", "--proxies", "--allow-private", "--json",
    ).json["items"]  # fmt: skip
    assert (changed["every"], changed["min_every"], changed["max_every"]) == ("6h", "1h", "1w")
    assert (changed["adaptive"], changed["proxies"], changed["currency"]) == (True, True, "EUR")
    assert changed["allow_private"] is True
    shown = forager("domains", "show", "a.example").out
    assert all(words in shown for words in ("6h", "adaptive", "1h", "1w", "EUR"))
    assert forager("tasks", "show", "https://a.example/1", "--json").json["effective_every"] == "6h"
    [back] = forager(
        "domains", "set", "a.example", "--every", "default", "--currency", "default",
        "--no-adaptive", "--no-proxies", "--json",
    ).json["items"]  # fmt: skip
    assert (back["every"], back["currency"]) == (None, None)
    assert (back["adaptive"], back["proxies"]) == (False, False)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["products", "track"], "give URLs, or a file"),
        (["products", "track", "https://a.example/", "--from", "x.csv"], "not both"),
        (["products", "track", "--from", "nowhere.csv"], "cannot be read"),
        (["products", "track", "https://a.example/", "--every", "soon"], "duration"),
        (["products", "track", "http://localhost:8000/"], "--allow-private"),
        (["products", "track", "what"], "nothing can be tracked"),
        (["tasks", "show", "7"], "there is no task 7"),
        (["tasks", "pause"], "no tasks were selected"),
        (["tasks", "pause", "1", "--all"], "cannot be combined"),
        (["tasks", "recrawl", "7"], "there is no task 7"),
        (["tasks", "set", "1"], "nothing to set"),
        (["tasks", "list", "--cursor", "?"], "cursor"),
        (["tasks", "list", "--domain", "nowhere.example"], "there is no domain"),
        (["domains", "add", "a.example", "--currency", "euros"], "three letters"),
        (["domains", "add", "a.example", "--min-every", "2d", "--max-every", "1d"], "at most"),
    ],
)
def test_mistakes_are_explained(arguments: list[str], words: str) -> None:
    answered = forager(*arguments)
    assert answered.code == 2
    assert words in answered.err


def test_the_scheduler_stops_when_asked(database_url: str, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [FORAGER, "--log-level", "info", "--log-format", "json", "scheduler"],
        env={"FORAGER_DATABASE_URL": database_url, "FORAGER_HOME": str(tmp_path), "PATH": ""},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        assert any("scheduler started" in line for line in process.stderr)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0, sys.version
    finally:
        process.kill()
        process.stderr.close()
        process.wait()
