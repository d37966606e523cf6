"""The examples of the description work: each is sent as it is to a server that has such things."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from api.client import Answer
from api.conftest import Keyed
from api.furnished import add_letter, furnish, operations, parameters, raise_alarm, replace_product
from built_site import Crawls
from forager.access.caller import Scope
from forager.api.reference_page import example_of
from forager.db.database import Database
from forager.jobs.job import NewJob
from forager.jobs.queue import Queue
from forager.settings import Settings
from parsers.archived_kiosk import kiosk_parsers
from support.sql import execute

# what takes something away comes after what needs it
LAST = re.compile(r"/(drop|remove|prune|revoke|rollback|cancel|disable|accept)$")
# what a required parameter of a query means, where its own example names nothing that exists
ASKED = {
    "source": "docs.example.org",
    "path": "/a",
    "url": "https://docs.example.org/a",
    "q": "zebra",
    "which": "1",
}
# what is possible only after a worker has done something: the stored page of a visit, failed URLs
AFTER_WORK = {"/api/v1/tasks/{task_id}/page": 404, "/api/v1/jobs/{job_id}/retry-failed": 409}


def order_of(call: tuple[str, str, dict[str, Any]]) -> tuple[int, bool, int]:
    method, path, operation = call
    creates = method == "POST" and "200" not in operation["responses"]
    rank = 0 if creates else ["POST", "GET", "PUT", "PATCH", "LAST", "DELETE"].index(method) + 1
    # a part of something is deleted before the whole
    depth = -path.count("/") if method == "DELETE" else 0
    return (5 if LAST.search(path) else rank, "{" in path, depth)


class Examples:
    def __init__(self, database: Database, queue: Queue, known: dict[str, str]) -> None:
        self.database = database
        self.queue = queue
        self.known = known
        self.jobs = 0

    async def job(self, status: str) -> str:
        """A new job in this state."""
        self.jobs += 1
        made = await self.queue.enqueue(NewJob(kind="selftest", source_id=f"job-{self.jobs}"))
        ended = status in ("failed", "completed")
        await execute(
            self.database,
            """
            UPDATE crawl_jobs SET status = %s::job_status,
                   completed_at = CASE WHEN %s THEN now() END
             WHERE id = %s RETURNING 1
            """,
            status,
            ended,
            made.job.id,
        )
        return str(made.job.id)

    async def prepare(self, method: str, path: str) -> dict[str, str]:
        """What the call is about, in the state in which it can be made."""
        states = {"resume": "paused", "retry": "failed", "pause": "pending", "cancel": "pending"}
        verb = path.rpartition("/")[2]
        if path.startswith("/api/v1/jobs/{job_id}/") and verb in states:
            return {"job_id": await self.job(states[verb])}
        if "{crawl_id}" in path:
            return {"crawl_id": await self.job("pending" if method == "DELETE" else "completed")}
        if path.startswith("/api/v1/dead-letters/") and method in ("POST", "DELETE"):
            return {"letter_id": str(await add_letter(self.database))}
        if path == "/api/v1/domains/{host}/alarm":
            await raise_alarm(self.database, self.known["host"])
        if path == "/api/v1/products/{product_id}/accept":
            await replace_product(self.database, self.known["product_id"])
        if path == "/api/v1/sources/{source_id}/login":
            await execute(
                self.database,
                "INSERT INTO sources (id, base_url, kind, payload)"
                " VALUES ('signed-in', 'https://docs.example.org/', 'crawl', %s) RETURNING 1",
                Jsonb({"urls": ["https://docs.example.org/"]}),
            )
            return {"source_id": "signed-in"}
        if (method, path) == ("DELETE", "/api/v1/sources/{source_id}"):
            await self.queue.cancel(UUID(self.known["job_id"]))
        return {}


def target_of(document: dict[str, Any], path: str, operation: dict[str, Any], known: Any) -> str:
    needed = {
        name: str(ASKED.get(name) or parameter["schema"]["examples"][0])
        for name, parameter in parameters(operation, "query").items()
        if parameter.get("required")
    }
    if "by-url" in path:
        needed["url"] = known["product_url"]
    query = "&".join(f"{name}={value}" for name, value in needed.items())
    return path.format_map(known) + (f"?{query}" if query else "")


async def test_every_example_works(
    keyed: Keyed, database: Database, queue: Queue, settings: Settings, crawls: Crawls
) -> None:
    known = await furnish(database, settings)
    [(known["product_url"],)] = await execute(database, "SELECT url FROM products LIMIT 1")
    admin = await keyed(Scope.ADMIN)
    document = (await admin.get("/api/openapi.json")).json
    examples = Examples(database, queue, known)
    failed: list[tuple[str, str, Answer]] = []
    with kiosk_parsers():
        known["name"] = "kiosk"
        for method, path, operation in sorted(operations(document), key=order_of):
            assert operation["description"].strip(), f"{method} {path} is not described"
            body = example_of(document, operation)
            assert (body is not None) == ("requestBody" in operation), f"{path} has no example"
            there = {**known, **await examples.prepare(method, path)}
            target = target_of(document, path, operation, there)
            answer = await admin.send(method, target, body)
            expected = AFTER_WORK.get(path)
            if answer.status != expected if expected else answer.status // 100 != 2:
                failed.append((method, target, answer))
    assert not failed, "\n".join(f"{m} {p} {a.status} {a.body!r}" for m, p, a in failed)
