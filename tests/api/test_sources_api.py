"""Sources over HTTP: declared together, and checked for lost content."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from api.client import Api
from forager.access.caller import Scope
from forager.db.database import Database
from search_corpus import Corpus

Keyed = Callable[..., Awaitable[Api]]

DECLARED: list[dict[str, Any]] = [
    {"name": "flask", "version": "3.1", "url": "https://flask.example/3.1/", "schedule": "1d"},
    {"name": "sqlite", "url": "https://sqlite.example/", "max_pages": 10},
]


async def test_sources_are_applied_once(api: Api) -> None:
    path = "/api/v1/sources/apply"
    planned = (await api.post(path, json={"sources": DECLARED, "dry_run": True})).json["sources"]
    assert [(each["source"], each["action"], each["job_id"]) for each in planned] == [
        ("flask@3.1", "create", None),
        ("sqlite", "create", None),
    ]
    assert (await api.get("/api/v1/sources")).json["items"] == []
    applied = (await api.post(path, json={"sources": DECLARED})).json["sources"]
    assert all(each["job_id"] for each in applied)
    again = (await api.post(path, json={"sources": DECLARED})).json["sources"]
    assert [each["action"] for each in again] == ["keep", "keep"]
    assert [each["job_id"] for each in again] == [each["job_id"] for each in applied]
    changed = [{**DECLARED[1], "max_pages": 20}]
    [sqlite] = (await api.post(path, json={"sources": changed})).json["sources"]
    assert (sqlite["action"], sqlite["changes"]) == ("change", ["max_pages: 10 -> 20"])


@pytest.mark.parametrize(
    ("sources", "said"),
    [
        ([], "sources"),
        ([{"name": "a"}], "url"),
        ([{"name": "a b", "url": "https://a.example/"}], "name"),
        ([{"name": "a", "url": "https://a.example/", "max_pages": "many"}], "max_pages"),
        ([{"name": "a", "url": "https://a.example/", "no_such": 1}], "no_such"),
        ([{"name": "a", "url": "https://a.example/"}] * 2, "a"),
        ([{"name": "a", "url": "http://127.0.0.1/"}], "loopback"),
        ([{"name": "a", "folder": "/etc"}], "source_folders"),
        (["https://a.example/"], "sources"),
        ([{"name": "a\u0000", "url": "https://a.example/"}], "name"),
    ],
)
async def test_wrong_sources_say_what_is_wrong(api: Api, sources: object, said: str) -> None:
    refused = await api.post("/api/v1/sources/apply", json={"sources": sources})
    assert 400 <= refused.status < 500
    assert said in refused.body.decode()
    assert "pydantic" not in refused.body.decode().lower()
    assert (await api.get("/api/v1/sources")).json["items"] == []


async def test_only_admins_declare_sources(keyed: Keyed) -> None:
    operator = await keyed(Scope.OPERATE)
    assert (await operator.post("/api/v1/sources/apply", json={"sources": DECLARED})).status == 403


async def test_a_source_is_checked(api: Api, database: Database) -> None:
    await Corpus(database).publish("docs.example", {"/": [("Home", "Welcome.")]})
    report = (await api.post("/api/v1/sources/docs.example/check")).json
    assert report["ok"] is True
    assert {finding["topic"] for finding in report["findings"]} == {"sources"}
    assert (await api.post("/api/v1/sources/nothing/check")).status == 404
