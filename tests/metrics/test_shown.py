"""`/metrics` of a live server: who may read it, what it says, and who relies on it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from api.client import Answer, Api
from crawl.crawling import Crawls
from forager.access.caller import Scope
from forager.db.database import Database
from forager.metrics.catalog import METERS
from forager.metrics.meters import take_all
from forager.metrics.scrape import open_scrape
from forager.settings import Settings
from metrics import promql
from servers.site import Site
from support.keys import make_key

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
SUFFIXES = ("_bucket", "_sum", "_count")

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


async def scrape(address: str, key: str | None = None) -> Answer:
    async with Api(address, key=key) as client:
        return await client.get("/metrics")


def samples(answer: Answer) -> Samples:
    assert answer.status == 200, answer.body
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.body.decode())
        for sample in family.samples
    }


def key(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset(labels.items())


async def eventually(address: str, expected: Samples) -> Samples:
    """The server adds what it has recorded by itself, some time after."""
    async with asyncio.timeout(60):
        while True:
            found = samples(await scrape(address))
            if expected.items() <= found.items():
                return found
            await asyncio.sleep(0.1)


async def test_a_crawl_is_seen(
    address: str, database: Database, settings: Settings, site: Site
) -> None:
    take_all(METERS)  # of tests before this one
    await Crawls(database, settings).run(site.url)
    found = await eventually(
        address,
        {
            key("forager_pages_total", outcome="fetched"): 3,
            key("forager_pages_total", outcome="failed"): 1,
            key("forager_errors_total", kind="http_client"): 1,
            key("forager_job_runs_total", outcome="completed"): 1,
            key("forager_extraction_seconds_count", what="page"): 3,
            # the pages and robots.txt
            key("forager_fetch_seconds_count"): 5,
            key("forager_budget_wait_seconds_count"): 5,
            key("forager_jobs", state="completed"): 1,
            key("forager_jobs", state="pending"): 0,
        },
    )
    assert found[key("forager_commit_seconds_count")] > 0
    assert found[key("forager_archive_bytes")] > 0
    assert found[key("forager_database_bytes")] > 1e6


async def test_requests_are_counted_by_route_and_not_by_path(address: str) -> None:
    take_all(METERS)
    async with Api(address) as client:
        for path in ("/api/v1/jobs/xyz", "/api/v1/jobs/uvw", "/nothing/here", "/wp-login.php"):
            await client.get(path)
        await client.send("BREW", "/api/v1/jobs/xyz")
    name, shown = "forager_api_requests_total", "/api/v1/jobs/{job_id}"
    found = await eventually(
        address,
        {
            key(name, route=shown, method="GET", status="422"): 2,
            key(name, route="none", method="GET", status="404"): 2,
            key(name, route=shown, method="other", status="405"): 1,
        },
    )
    routes = {dict(pairs)["route"] for each, pairs in found if each == name}
    assert routes <= {shown, "none", "/metrics"}


async def test_it_needs_a_key_once_there_is_one(address: str, database: Database) -> None:
    assert (await scrape(address)).status == 200
    made = await make_key(database, "prometheus", scope=Scope.READ)
    refused = await scrape(address)
    assert (refused.status, refused.is_problem) == (401, True)
    assert (await scrape(address, made.text)).status == 200


class TestOpened:
    @pytest.fixture
    def api_settings(self, settings: Settings) -> Settings:
        return settings.model_copy(update={"api_port": 0, "metrics_open": True})

    async def test_it_can_be_opened(self, address: str, database: Database) -> None:
        await make_key(database, "someone", scope=Scope.ADMIN)
        assert (await scrape(address)).status == 200
        async with Api(address) as client:
            assert (await client.get("/api/v1/jobs")).status == 401


# --- who relies on it ----------------------------------------------------------------------------


@pytest.fixture
async def labels(address: str, database: Database, settings: Settings) -> dict[str, set[str]]:
    """Every name that a live server exposes, and what it is divided by."""
    text = (await scrape(address)).body.decode()
    exposed = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    families = open_scrape(database, settings).families()
    assert exposed == {family.name for family in families}
    found: dict[str, set[str]] = {"up": set()}
    for family in families:
        names = [family.name]
        if family.bounds:
            names = [family.name + suffix for suffix in SUFFIXES]
        found |= {name: set(family.labels) for name in names}
    return found


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DEPLOY / "grafana/forager.json").read_text("utf-8"))
    return found


def rules() -> Iterator[dict[str, Any]]:
    for group in yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text("utf-8"))["groups"]:
        yield from group["rules"]


async def test_the_dashboard_shows_what_there_is(labels: dict[str, set[str]]) -> None:
    panels = [panel for panel in dashboard()["panels"] if panel["type"] != "row"]
    used: set[str] = set()
    for panel in panels:
        assert panel["targets"], panel["title"]
        for target in panel["targets"]:
            used |= promql.check(target["expr"], labels).metrics
    base = {name.removesuffix("_bucket") for name in used}
    shown = {name.removesuffix("_count") for name in labels if not name.endswith(SUFFIXES[:2])}
    assert shown - {"up"} == base, "every metric has its place on the dashboard"
    assert len({panel["id"] for panel in dashboard()["panels"]}) == len(dashboard()["panels"])


async def test_alerts_watch_what_there_is(labels: dict[str, set[str]]) -> None:
    named = []
    for rule in rules():
        promql.check(rule["expr"], labels)
        named.append(rule["alert"])
        assert rule["labels"]["severity"] in ("info", "warning", "critical")
        assert {"summary", "action"} <= rule["annotations"].keys()
        page, _, section = rule["annotations"]["runbook"].partition("#")
        assert f"\n## {section.replace('-', ' ').capitalize()}\n" in (ROOT / page).read_text()
    assert len(set(named)) == len(named) > 10


async def test_alerts_ask_for_states_that_exist(labels: dict[str, set[str]], address: str) -> None:
    found = samples(await scrape(address))
    for rule in rules():
        for metric, label, operator, wanted in promql.read(rule["expr"]).matchers:
            if operator == "=" and any(name == metric for name, _ in found):
                known = {dict(pairs)[label] for name, pairs in found if name == metric}
                assert wanted in known, rule["alert"]


def test_prometheus_is_configured_with_the_address() -> None:
    config = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text("utf-8"))
    [job] = config["scrape_configs"]
    assert job["metrics_path"] == "/metrics"
    assert job["authorization"]["type"] == "Bearer"
    assert config["rule_files"] == ["alerts.yml"]


@pytest.mark.parametrize(
    "wrong",
    ["sum(rate(x[5m])", "sum)x(", "rat(x[5m])", "x{state}", "x[5m", "sum by state (x)", "x ? y"],
)
def test_mistakes_in_expressions_are_found(wrong: str) -> None:
    with pytest.raises(AssertionError):
        promql.read(wrong)
