"""The dashboard renders the actions of hints as places and links."""

from __future__ import annotations

from pathlib import Path

import pytest

import forager.web
from forager.api.actions import forms
from forager.db.database import Database
from forager.hints import Action, Hint, Option, action, render
from forager.web.navigation import PATHS, as_place, linked
from tasks.tasks_at_hand import make_domain, make_task
from web.visitor import Visitor


@pytest.mark.parametrize(
    ("part", "place"),
    [
        (action("jobs list"), "“Jobs”"),
        (action("jobs cancel", 12), "“Jobs › Cancel job”"),
        (action("tasks resume", all=True), "“Tasks › Resume all”"),
        (action("tasks resume", 7), "“Tasks › Resume”"),
        (action("tasks resume", domain="a.example"), "“Domains › Resume”"),
        (action("crawl", "URL"), "“Jobs › New crawl”"),
        (Option("allow_private"), "“Allow private”"),
        (action("doctor"), "`forager doctor` on the server"),
    ],
)
def test_an_action_as_a_place(part: Action | Option, place: str) -> None:
    assert render(Hint("See {}.", part), as_place) == f"See {place}."


def test_a_hint_links_to_its_pages_and_escapes_the_rest() -> None:
    cancel = Hint("{} <b>: {}", "<i>", action("jobs cancel", "a/b"))
    link = '<a href="/jobs/a%2Fb">Jobs › Cancel job</a>'
    assert str(linked(cancel)) == f"&lt;i&gt; &lt;b&gt;: {link}"
    assert str(linked("<b>")) == "&lt;b&gt;"


def test_every_page_and_button_exists() -> None:
    assert {each.page for each in forms().values() if each.page} <= PATHS.keys()
    templates = Path(forager.web.__path__[0]) / "templates"
    shown = "".join(path.read_text() for path in templates.glob("*.html"))
    # some buttons are named by the move that they make
    moves = {"Pause", "Resume", "Retry", "Stop"}
    buttons = {each.button for each in forms().values()}
    assert {button for button in buttons if button not in shown} <= moves


async def test_pages_link_to_what_helps(visitor: Visitor, database: Database) -> None:
    missing = (await visitor.get("/jobs/0199a5c2-8a00-7000-8000-000000000000")).text
    assert '<a href="/jobs">Jobs</a> lists jobs.' in missing
    assert "forager jobs" not in missing
    task_id = await make_task(database, await make_domain(database, "shop.example"), hold="paused")
    shown = (await visitor.get(f"/tasks/{task_id}")).text
    assert f'<a href="/tasks/{task_id}">Tasks › Resume</a>' in shown
    assert "forager tasks" not in shown
