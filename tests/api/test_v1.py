"""What callers may rely on in version 1 of the API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from api.client import Api
from api.conftest import Keyed
from api.furnished import operations
from forager.db.database import Database

OPERATION_IDS = Path(__file__).with_name("operation_ids.txt")


def test_operation_ids_are_stable(document: dict[str, Any]) -> None:
    found = sorted(f"{op['operationId']} {m} {p}" for m, p, op in operations(document))
    assert found == OPERATION_IDS.read_text().splitlines()


def test_schemas_are_named_without_module_paths(document: dict[str, Any]) -> None:
    names = document["components"]["schemas"].keys()
    assert all(name.isalnum() for name in names)
    assert {"JobList", "CrawlExportFormat", "ProductsExportFormat"} <= names


def test_every_field_and_parameter_is_described(document: dict[str, Any]) -> None:
    for name, schema in document["components"]["schemas"].items():
        for field, described in schema.get("properties", {}).items():
            assert described.get("description"), f"{name}.{field}"
    for method, path, operation in operations(document):
        assert operation["description"], f"{method} {path}"
        assert all(operation["tags"]), f"{method} {path}"
        for parameter in operation.get("parameters", []):
            assert parameter["description"], f"{method} {path} {parameter['name']}"


async def test_aliases_take_the_bodies_of_the_design(api: Api) -> None:
    body = {"url": "https://docs.example.org/", "depth": 2, "strategies": ["site", "sitemap"]}
    started = await api.post("/api/knowledge-items/crawl", body)
    assert (started.status, started.json["source"]) == (202, "docs.example.org")
    job = (await api.get(f"/api/v1/jobs/{started.json['job_id']}")).json
    payload = job["payload"]
    assert (payload["urls"], payload["max_depth"]) == (["https://docs.example.org/"], 2)
    assert payload.get("strategy", "site") == "site"
    progress = await api.get(f"/api/crawl-progress/{started.json['progress_id']}")
    crawl = f"/api/v1/crawls/{started.json['job_id']}"
    assert progress.json == (await api.get(crawl)).json
    listed = (await api.get("/api/v1/crawls")).json["items"]
    assert [each["id"] for each in listed] == [started.json["job_id"]]
    assert (await api.send("DELETE", crawl)).json["status"] == "cancelled"
    nothing = await api.post("/api/knowledge-items/crawl", {"depth": 1})
    assert (nothing.status, nothing.json["errors"][0]["field"]) == (422, "body.urls")


async def test_one_reads_what_one_wrote(api: Api) -> None:
    order = {"host": "shop.example", "delay": 2.5, "concurrency": 2, "active": False,
             "every": "90m", "proxies": True, "min_every": "1h", "region": "eu"}  # fmt: skip
    made = (await api.post("/api/v1/domains", order)).json
    assert made == made | order
    again = {name: made[name] for name in order if name != "host"}
    assert (await api.send("PATCH", "/api/v1/domains/shop.example", again)).json == made | {
        "updated_at": (await api.get("/api/v1/domains/shop.example")).json["updated_at"]
    }


async def test_unknown_parameters_are_refused(api: Api) -> None:
    wrong = await api.get("/api/v1/jobs?limit=1&stauts=failed")
    assert wrong.status == 422
    assert wrong.json["errors"][0]["field"] == "query.stauts"
    assert "status" in wrong.json["errors"][0]["message"]
    assert (await api.get("/api/v1/products?min_price=1&limit=5")).status == 200
    order = {"urls": ["https://docs.example.org/"], "maxpages": 3}
    wrong = await api.post("/api/v1/crawls", order)
    assert wrong.status == 422
    assert wrong.json["errors"] == [
        {"field": "body.maxpages", "message": "unknown; did you mean max_pages?"}
    ]


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/x-www-form-urlencoded"])
async def test_a_body_must_be_declared_as_json(api: Api, content_type: str | None) -> None:
    headers = {} if content_type is None else {"Content-Type": content_type}
    skipped = ["Content-Type"] if content_type is None else []
    sent = await api.send(
        "POST", "/api/v1/crawls", data=b"{}", headers=headers, skip_auto_headers=skipped
    )
    assert (sent.status, sent.is_problem) == (415, True)
    assert "application/json" in sent.json["fix"]


async def test_without_a_key_one_learns_how_to_get_the_first(api: Api, database: Database) -> None:
    made = await api.post("/api/v1/keys", {"name": "first", "scope": "admin"})
    assert made.status == 201
    refused = await api.get("/api/v1/jobs")
    assert refused.status == 401
    assert "`forager keys create NAME --scope admin` on the server" in refused.json["fix"]


async def test_a_job_is_named_by_the_beginning_of_its_id(keyed: Keyed, database: Database) -> None:
    mine, other = await keyed(), await keyed()
    job_id = (await mine.crawl())["job_id"]
    hers = (await other.crawl("https://other.example.org/"))["job_id"]
    again = (await mine.crawl("https://third.example.org/"))["job_id"]
    assert (await mine.get(f"/api/v1/jobs/{job_id[:-1]}")).json["id"] == job_id
    assert (await mine.get(f"/api/v1/crawls/{job_id[:-1]}")).json["job_id"] == job_id
    assert (await mine.post(f"/api/v1/jobs/{job_id[:-1]}/pause")).json["status"] == "paused"
    # jobs of other owners are not there
    assert (await mine.get(f"/api/v1/jobs/{hers[:-1]}")).status == 404
    several = await mine.get("/api/v1/jobs/0")
    assert several.status == 422
    assert job_id in several.json["detail"]
    assert again in several.json["detail"]
    assert hers not in several.json["detail"]
    invalid = await mine.get("/api/v1/jobs/no-job")
    assert invalid.status == 422
    assert "is not a job id" in invalid.json["detail"]
