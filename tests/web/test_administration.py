"""What commands can do as well: the doctor, checks, declared sources, proxies, quotas, offers."""

from __future__ import annotations

from uuid import UUID

import pytest

from built_site import SOURCE, Crawls
from forager.access import keys, quotas
from forager.access.caller import Scope
from forager.api import services
from forager.db.database import Database
from forager.documents.sources import get_source
from forager.fetch.proxies.service import Proxies
from forager.products.alerts.rules import AlertKind, list_alerts
from forager.secrets import Vault
from forager.settings import Settings
from products.rows import add_product
from support.sql import execute
from web.visitor import Visitor

DECLARED = """
sources:
  - name: manual
    url: https://docs.example.org/
    schedule: 1d
"""


@pytest.mark.long
async def test_the_doctor_shows_its_findings(visitor: Visitor) -> None:
    page = await visitor.get("/doctor")
    assert page.status == 200
    assert "checks passed" in page.text
    assert "`" not in page.text


async def test_an_audit_leads_to_its_findings(visitor: Visitor) -> None:
    done = await visitor.act("/audit", headers={"HX-Request": "true"})
    assert done.headers["HX-Redirect"] == "/audit"
    assert "Findings" in (await visitor.get("/audit")).text


async def test_a_source_is_checked_against_its_archive(visitor: Visitor, crawls: Crawls) -> None:
    await crawls.crawl({"a": "alpha"})
    assert f"/sources/{SOURCE}/check" in (await visitor.get(f"/sources/{SOURCE}")).text
    page = await visitor.act(f"/sources/{SOURCE}/check")
    assert (page.status, f"Check of {SOURCE}" in page.text) == (200, True)


async def test_checks_of_sources_are_limited(
    visitor: Visitor, crawls: Crawls, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They read crawled pages in the process of the API."""
    await crawls.crawl({"a": "alpha"})
    with services.SOURCE_CHECKS.taken():
        refused = await visitor.act(f"/sources/{SOURCE}/check")
    assert (refused.status, "already in progress" in refused.text) == (429, True)
    monkeypatch.setattr(services, "SOURCE_CHECK_SECONDS", 0.0)
    late = await visitor.act(f"/sources/{SOURCE}/check")
    assert f"sources check {SOURCE}" in late.text
    monkeypatch.undo()
    assert (await visitor.act(f"/sources/{SOURCE}/check")).status == 200


async def test_pasted_sources_are_planned_and_then_applied(
    visitor: Visitor, database: Database
) -> None:
    plan = (await visitor.act("/new-sources", {"text": DECLARED})).text
    assert "Nothing has been changed yet" in plan
    assert "schedule: every 1d" in plan
    assert "No sources yet" in (await visitor.get("/sources")).text
    applied = await visitor.act("/new-sources", {"text": DECLARED, "apply": "yes"})
    assert "1 source applied." in applied.text
    assert (await get_source(database, "manual")).refresh_every == 86400


async def test_the_audit_log_names_the_key_that_applied_sources(
    visitor: Visitor, admin_key: str, database: Database
) -> None:
    await visitor.sign_in(admin_key)
    await visitor.act("/new-sources", {"text": DECLARED, "apply": "yes"})
    [key] = (await keys.list_keys(database)).items
    actors = "SELECT DISTINCT actor FROM job_events WHERE actor IS NOT NULL"
    assert await execute(database, actors) == [(f"key {key.id}",)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sources: [", "not YAML"),
        ("sources:\n  - name: manual\n    url: ftp://a.example", "manual"),
        ("- a", "sources.yaml"),
        ("[" * 5000, "nested too deeply"),
        (DECLARED.replace("docs.example.org", "127.0.0.1"), "private"),
        ("sources:\n  - name: own\n    folder: /etc", "source_folders"),
    ],
)
async def test_what_cannot_be_applied_is_said_below_the_text(
    visitor: Visitor, text: str, message: str
) -> None:
    refused = await visitor.act("/new-sources", {"text": text, "apply": "yes"})
    assert refused.status in (403, 422)
    assert 'id="e-text"' in refused.text
    assert message in refused.text
    assert "No sources yet" in (await visitor.get("/sources")).text


async def test_proxies_are_added_together_and_refused_lines_stay(
    visitor: Visitor, database: Database, web_settings: Settings
) -> None:
    lines = ["http://user@one.example:3128", "ftp://two.example:1", "http://127.0.0.1:1"]
    fields = {"urls": "\n".join(lines), "password": "secret"}
    refused = await visitor.act("/proxies", fields)
    assert refused.status == 422
    assert 'id="e-urls"' in refused.text
    assert "ftp://two.example:1\nhttp://127.0.0.1:1</textarea>" in refused.text
    assert "secret" not in refused.text
    assert len(await Proxies(database, Vault(web_settings)).ids()) == 1
    done = await visitor.act("/proxies", {"urls": "http://a.example:1\nsocks5://b.example:2"})
    assert "2 proxies added or updated." in done.text


async def test_the_quota_of_an_owner_is_set(
    visitor: Visitor, admin_key: str, database: Database
) -> None:
    made = await keys.create_key(database, "import", scope=Scope.OPERATE, owner="team a")
    await visitor.sign_in(admin_key)
    where = f"/keys/{made.key.id}/quota"
    assert where in (await visitor.get("/keys")).text
    page = await visitor.act(where, {"active_jobs": "5", "pages_per_day": "1000"})
    assert "Quota of team a" in page.text
    assert "of 1,000" in page.text
    assert isinstance(made.key.user_id, UUID)
    quota = await quotas.get_quota(database, made.key.user_id)
    assert (quota.active_jobs, quota.pages_per_job, quota.pages_per_day) == (5, None, 1000)
    assert (await visitor.act(where, {"pages_per_job": "0"})).status == 422


async def test_a_product_shows_the_offers_of_other_shops(
    visitor: Visitor, database: Database
) -> None:
    first, second = await add_product(database, 1), await add_product(database, 2)
    page = f"/products/{first}"
    assert "Above the cheapest" not in (await visitor.get(page)).text
    await execute(database, "UPDATE products SET gtin = '4006381333931', price = id * 10")
    shown = (await visitor.get(page)).text
    assert "Above the cheapest" in shown
    assert f'href="/products/{second}"' in shown


@pytest.mark.parametrize("kind", AlertKind)
async def test_an_alert_of_each_kind_is_added(
    visitor: Visitor, database: Database, kind: AlertKind
) -> None:
    fields = {"kind": kind.value, "brand": "Acme"}
    if kind in (AlertKind.PRICE_BELOW, AlertKind.PRICE_ABOVE):
        fields["amount"] = "10"
    if kind in (AlertKind.PRICE_DROP, AlertKind.PRICE_RISE):
        fields["percent"] = "10"
    if kind is AlertKind.NEW_LOW:
        fields["days"] = "30"
    await visitor.act("/alerts", fields)
    assert [rule.kind for rule in (await list_alerts(database)).items] == [kind]
