"""People at the dashboard are told what to click, not what to type."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import forager.web
from api.test_parity import hints
from forager.api.commands import CALLS, LOCAL
from forager.db.database import Database
from forager.web.clicks import BUTTONS, ELSEWHERE, PAGES, TYPED, in_clicks
from forager.web.navigation import NAVIGATION
from tasks.tasks_at_hand import make_domain, make_task
from web.visitor import Visitor


@pytest.mark.parametrize(
    ("hint", "told"),
    [
        ("`forager jobs list` shows ids.", "“Jobs” shows ids."),
        ("First: forager jobs cancel 12", "First: “Cancel job” (under “Jobs”)"),
        ("`forager tasks resume --all`", "“Resume all” (under “Tasks”)"),
        ("`forager tasks resume 7`", "“Resume” (under “Tasks”)"),
        ("`forager tasks resume --domain a.example`", "“Resume tasks” (under “Domains”)"),
        ("`forager crawl URL` begins one.", "“New crawl” (under “Jobs”) begins one."),
        ("`forager keys create NAME --scope admin`", "“Create key” (under “Keys”)"),
        ("Give --allow-private (`allow_private`) then.", "Give “Allow private” then."),
        ("Run `forager doctor`.", "Run `forager doctor` on the server."),
        ("Wait a while.", "Wait a while."),
    ],
)
def test_a_hint_in_clicks(hint: str, told: str) -> None:
    assert in_clicks(hint) == told


def test_every_hint_of_the_services_can_be_told_in_clicks() -> None:
    for hint in hints():
        for command in re.findall(r"forager ([a-z-]+(?: [a-z-]+)?)", in_clicks(hint)):
            assert {command, command.split()[0]} & (LOCAL | TYPED), hint


def test_what_is_named_is_there() -> None:
    menu = {entry.name for group in NAVIGATION for entry in group.entries}
    assert set(PAGES.values()) <= menu
    typed = {name.partition(" --")[0] for name in {*BUTTONS, *ELSEWHERE}}
    assert typed <= CALLS.keys()
    templates = Path(forager.web.__path__[0]) / "templates"
    shown = "".join(path.read_text() for path in templates.glob("*.html"))
    # some buttons are named by the move that they make
    moves = {"Pause", "Resume", "Retry", "Stop"}
    assert {label for label in BUTTONS.values() if label not in shown} <= moves


async def test_pages_say_what_to_click(visitor: Visitor, database: Database) -> None:
    missing = (await visitor.get("/jobs/0199a5c2-8a00-7000-8000-000000000000")).text
    assert "“Jobs” shows the jobs there are." in missing
    assert "forager jobs" not in missing
    task_id = await make_task(database, await make_domain(database, "shop.example"), hold="paused")
    shown = (await visitor.get(f"/tasks/{task_id}")).text
    assert "“Resume” (under “Tasks”)" in shown
    assert "forager tasks" not in shown
