"""What every endpoint owes its callers, asked of each one that the description names.

Nothing here lists endpoints: a new one is asked as well, and fails if it forgot something.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from api.client import Answer, Api
from api.conftest import Keyed
from api.furnished import OWNED, SHARED, SLOW, furnish, operations, parameters
from forager.access.caller import Scope
from forager.access.keys import revoke_key
from forager.api.limits import MAX_LIST
from forager.api.reference_page import example_of
from forager.db.database import Database
from forager.settings import Settings
from support.keys import make_key
from support.sql import execute

JSON = "application/json"
# SQL, HTML, templates, paths, control characters, other directions: all of it is only text
NASTY = (
    "'; DROP TABLE crawl_jobs; --",
    "<img src=x onerror=alert(1)>",
    "{{7*7}}${7*7}%s%n",
    "../../../../etc/passwd",
    "a\x1b[31m\u202e\ud7ff\U0001f993\r\nX-Evil: 1",
)
# lists that grow with what is installed or what a page has, and not with what is stored
SHORT_LISTS = {
    f"/api/v1/{each}"
    for each in (
        "parsers",
        "sections",
        "analytics",
        "proxies/costs",
        "products/changes",
        "products/offers",
        "products/{product_id}/offers",
        "items/index",
    )
}

Calls = list[tuple[str, str, dict[str, Any]]]


LARGEST_BODY = 20_000


@pytest.fixture
def api_settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"api_port": 0, "api_max_body_mb": LARGEST_BODY / 1e6})


@pytest.fixture
def calls(document: dict[str, Any]) -> Calls:
    found = operations(document)
    assert len(found) > 90
    return found


def schema_of(document: dict[str, Any], operation: dict[str, Any]) -> dict[str, Any]:
    """The schema of what a call answers when it was done."""
    done = next(answer for status, answer in operation["responses"].items() if status[0] == "2")
    return resolved(document, done.get("content", {}).get(JSON, {}).get("schema", {}))


def resolved(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    return document["components"]["schemas"][name] if name else schema


@dataclass(frozen=True, slots=True)
class Place:
    """A server that has one of everything."""

    known: dict[str, str]
    document: dict[str, Any]

    def path(self, path: str) -> str:
        return path.format_map(self.known)

    def without(self, name: str) -> Place:
        """The same, with an id that nothing has."""
        nothing = "nobody.example" if name == "source_id" else str(UUID(int=0))
        return Place({**self.known, name: nothing}, self.document)

    def query(self, operation: dict[str, Any], **values: str) -> dict[str, str]:
        """What must be given, and these."""
        needed = {
            name: "docs.example.org" if name == "source" else "https://docs.example.org/a"
            for name, parameter in parameters(operation, "query").items()
            if parameter.get("required")
        }
        return needed | values

    async def send(self, client: Api, call: tuple[str, str, dict[str, Any]], **how: Any) -> Answer:
        method, path, operation = call
        how.setdefault("params", self.query(operation))
        body = how.pop("body", None) or example_of(self.document, operation)
        return await client.send(method, self.path(path), body, **how)


# --- conventions -------------------------------------------------------------------------------


def test_every_call_is_described(calls: Calls, document: dict[str, Any]) -> None:
    for method, path, operation in calls:
        assert operation.get("description", "").strip(), (method, path)
        assert operation["tags"], (method, path)
        assert "default" in operation["responses"], (method, path)
        assert operation["security"], (method, path)
    assert {"/healthz", "/readyz"} <= document["paths"].keys()


def test_every_list_continues_by_a_cursor_and_has_a_limit(
    calls: Calls, document: dict[str, Any]
) -> None:
    lists = 0
    for method, path, operation in calls:
        fields = schema_of(document, operation).get("properties", {})
        if method != "GET" or path in SHORT_LISTS or "items" not in fields:
            continue
        asked = parameters(operation, "query")
        assert {"limit", "cursor"} <= asked.keys(), path
        assert asked["limit"]["schema"]["maximum"] <= MAX_LIST, path
        assert "default" in asked["limit"]["schema"], path
        assert "next_cursor" in fields, path
        lists += 1
    assert lists > 15


def test_no_list_that_comes_in_is_without_a_limit(document: dict[str, Any]) -> None:
    for method, path, operation in operations(document):
        body = operation.get("requestBody", {}).get("content", {}).get(JSON, {}).get("schema", {})
        for where, schema in fields_of(document, body):
            if schema.get("type") == "array":
                assert "maxItems" in schema, (method, path, where)
        for name, parameter in parameters(operation, "query").items():
            given = alternatives(parameter["schema"])
            number = any(schema.get("type") == "number" for schema in given)
            for schema in given:
                if schema.get("type") == "array":
                    assert "maxItems" in schema, (method, path, name)
                if schema.get("type") == "string" and "enum" not in schema and not number:
                    assert "maxLength" in schema or "format" in schema, (method, path, name)


def test_every_post_that_creates_may_be_sent_again(calls: Calls) -> None:
    for method, path, operation in calls:
        creates = method == "POST" and {"201", "202"} & operation["responses"].keys()
        takes = "Idempotency-Key" in parameters(operation, "header")
        assert takes or not creates, f"POST {path} needs `OnlyOnce`"


async def test_every_answer_has_an_id_and_every_read_an_etag(
    keyed: Keyed, database: Database, settings: Settings, calls: Calls, document: dict[str, Any]
) -> None:
    place = Place(await furnish(database, settings), document)
    admin = await keyed(Scope.ADMIN)
    await admin.post("/api/v1/products/audit")
    tagged = 0
    for call in calls:
        method, path, operation = call
        # a heartbeat may change the list of services between two requests
        if method != "GET" or path in {*SLOW, "/api/v1/services"}:
            continue
        answer = await place.send(admin, call)
        assert answer.headers["X-Request-Id"], path
        if JSON in operation["responses"]["200"].get("content", {}) and answer.status == 200:
            etag = answer.headers["ETag"]
            again = await place.send(admin, call, headers={"If-None-Match": etag})
            assert (again.status, again.body) == (304, b""), path
            tagged += 1
    assert tagged > 35


# --- who may -----------------------------------------------------------------------------------


async def test_no_call_is_answered_without_a_good_key(
    api: Api, database: Database, settings: Settings, calls: Calls, document: dict[str, Any]
) -> None:
    place = Place(await furnish(database, settings), document)
    good, other = await make_key(database, "good"), await make_key(database, "other")
    revoked = await make_key(database, "revoked", scope=Scope.ADMIN)
    await revoke_key(database, revoked.key.id)
    expired = await make_key(database, "expired", scope=Scope.ADMIN, expires_in=3600)
    await execute(
        database, "UPDATE api_keys SET expires_at = now() WHERE id = %s RETURNING 1", expired.key.id
    )
    wrong = f"fgr_{good.key.id}_{other.text.rpartition('_')[2]}"
    for call in calls:
        for headers in (
            {},
            {"Authorization": f"Bearer {wrong}"},
            {"Authorization": f"Bearer {revoked.text}"},
            {"X-API-Key": expired.text},
            # a cookie of the dashboard or of another site grants nothing here
            {"Cookie": f"forager_session={good.text}; session={good.text}; key={good.text}"},
        ):
            answer = await place.send(api, call, headers=headers)
            assert (answer.status, answer.is_problem) == (401, True), (call[:2], headers)


async def test_a_page_of_another_site_changes_nothing(
    keyed: Keyed, database: Database, settings: Settings, calls: Calls, document: dict[str, Any]
) -> None:
    place = Place(await furnish(database, settings), document)
    admin = await keyed(Scope.ADMIN)
    for call in calls:
        if call[0] == "GET":
            continue
        for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            answer = await place.send(admin, call, headers=headers)
            assert (answer.status, answer.is_problem) == (403, True), call[:2]
            assert "Access-Control-Allow-Origin" not in answer.headers


def test_of_every_id_it_is_known_whose_it_is(calls: Calls) -> None:
    names = {name for _, _, operation in calls for name in parameters(operation, "path")}
    assert names == OWNED | SHARED


async def test_what_is_of_another_owner_is_not_there_whatever_is_called(
    keyed: Keyed, database: Database, settings: Settings, calls: Calls, document: dict[str, Any]
) -> None:
    mine, other = await keyed(), await keyed()
    place = Place(await furnish(database, settings, mine.owner), document)
    tried = 0
    for call in calls:
        method, path, operation = call
        owned = OWNED & parameters(operation, "path").keys()
        asked = parameters(operation, "query").keys() & {"job_id"}
        named = (
            {"source"}
            if parameters(operation, "query").get("source", {}).get("required")
            else set()
        )
        if not owned | asked | named:
            continue
        params = place.query(operation, **{name: place.known[name] for name in asked})
        refused = await place.send(other, call, params=params)
        assert (refused.status, refused.is_problem) == (404, True), (method, path, refused.body)
        for name in owned:
            # as if it had never been: the same words as for what is not there at all
            missing = await place.without(name).send(other, call, params=params)
            there, not_there = place.known[name], place.without(name).known[name]
            assert refused.json["detail"].replace(there, not_there) == missing.json["detail"]
        tried += 1
    assert tried > 15
    jobs = await execute(database, "SELECT status::text FROM crawl_jobs ORDER BY created_at")
    assert [status for (status,) in jobs] == ["completed", "completed", "processing"]
    assert (await mine.get(f"/api/v1/jobs/{place.known['job_id']}")).status == 200


# --- bad input ---------------------------------------------------------------------------------


def alternatives(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [inner for each in schema.get("anyOf", []) for inner in alternatives(each)] or [schema]


def fields_of(
    document: dict[str, Any], schema: dict[str, Any], *way: str | int
) -> list[tuple[tuple[str | int, ...], dict[str, Any]]]:
    """Every field that a body may have, with the way to it; the first item stands for a list."""
    found = []
    for each in alternatives(schema):
        whole = resolved(document, each)
        if way:
            found.append((way, whole))
        for name, inner in whole.get("properties", {}).items():
            found += fields_of(document, inner, *way, name)
        if "items" in whole:
            found += fields_of(document, whole["items"], *way, 0)
        if isinstance(whole.get("additionalProperties"), dict):
            found += fields_of(document, whole["additionalProperties"], *way, "X-Name")
    return found


def put(body: Any, way: tuple[str | int, ...], value: Any) -> Any:
    """The body with a value at this place, and as much around it as that needs."""
    first, rest = way[0], way[1:]
    if isinstance(first, int):
        items = list(body) if isinstance(body, list) else []
        inner = put(items[0] if items else None, rest, value) if rest else value
        return [inner, *items[1:]]
    fields = dict(body) if isinstance(body, dict) else {}
    fields[first] = put(fields.get(first), rest, value) if rest else value
    return fields


async def test_sql_and_html_are_only_text_in_every_field(
    keyed: Keyed, database: Database, settings: Settings, calls: Calls, document: dict[str, Any]
) -> None:
    place = Place(await furnish(database, settings), document)
    admin = await keyed(Scope.ADMIN)
    tried = 0
    for call in calls:
        method, path, operation = call
        if path in SLOW or path.endswith(("/backtest", "/audit")):
            continue
        body = operation.get("requestBody", {}).get("content", {}).get(JSON, {}).get("schema", {})
        texts = [way for way, schema in fields_of(document, body) if schema.get("type") == "string"]
        example = example_of(document, operation)
        for number, way in enumerate(dict.fromkeys(texts)):
            text = NASTY[number % len(NASTY)]
            answer = await place.send(admin, call, body=put(example, way, text))
            assert_only_text(call, way, answer)
            tried += 1
        for number, name in enumerate(parameters(operation, "query")):
            text = NASTY[(number + 1) % len(NASTY)]
            answer = await place.send(admin, call, params=place.query(operation, **{name: text}))
            assert_only_text(call, name, answer)
            tried += 1
        for name in parameters(operation, "path"):
            for text in ("'; DROP TABLE crawl_jobs; --", "%3Cscript%3E", "..%2F..%2Fetc%2Fpasswd"):
                there = place.known | {name: text}
                answer = await admin.send(method, path.format_map(there), example)
                assert_only_text(call, name, answer)
                tried += 1
    assert tried > 300
    assert len(await execute(database, "SELECT 1 FROM crawl_jobs")) >= 3


def assert_only_text(call: Any, where: object, answer: Answer) -> None:
    assert answer.status < 500, (call[:2], where, answer.body)
    assert "X-Evil" not in answer.headers
    assert not answer.headers.get("Content-Type", "").startswith("text/html"), (call[:2], where)
    if answer.status >= 400:
        assert answer.is_problem, (call[:2], where, answer.body)


MALFORMED = (b"{", b"\xff\xfe", b"null", b"[]", b'"text"', b'{"a":' * 2000, b"{}{}")


async def test_malformed_bodies_are_refused_everywhere(
    keyed: Keyed, database: Database, settings: Settings, calls: Calls, document: dict[str, Any]
) -> None:
    place = Place(await furnish(database, settings), document)
    admin = await keyed(Scope.ADMIN)
    tried = 0
    for method, path, operation in calls:
        if "requestBody" not in operation or path in SLOW:
            continue
        needed = operation["requestBody"].get("required", False)
        for body in MALFORMED:
            answer = await admin.session.request(
                method, place.path(path), data=body, headers={"Content-Type": JSON}
            )
            async with answer:
                # nothing is nothing, where nothing need be said
                fine = body == b"null" and not needed
                assert answer.status in ((400, 422) if not fine else range(200, 500)), (path, body)
                assert fine or answer.content_type == "application/problem+json"
            tried += 1
    assert tried > 150


async def test_bodies_that_are_too_large_are_refused_everywhere(
    keyed: Keyed, database: Database, settings: Settings, calls: Calls, document: dict[str, Any]
) -> None:
    place = Place(await furnish(database, settings), document)
    admin = await keyed(Scope.ADMIN)
    for method, path, _ in calls:
        if method == "GET":
            continue
        body = b" " * (LARGEST_BODY + 1)
        answer = await admin.send(
            method, place.path(path), data=body, headers={"Content-Type": JSON}
        )
        assert (answer.status, answer.is_problem) == (413, True), path
        assert "20,000 bytes" in answer.json["detail"]
