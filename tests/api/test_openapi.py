"""Whatever is sent, the answer is one that the description of the API allows."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi import checks

from api.server_process import api_process
from built_site import SOURCE, Crawls
from catalog.product_shop import Shop, lamp
from catalog.stored_image import store_image
from forager.access.keys import create_key
from forager.access.scope import Scope
from forager.catalog.webhooks import NewWebhook, Webhooks
from forager.db.database import Database, open_database
from forager.db.ids import new_id
from forager.fetch.domains import Domains
from forager.fetch.proxies import Proxies
from forager.fetch.proxy import ProxySpec
from forager.jobs.queue import Queue
from forager.secrets import Vault
from forager.settings import Settings

# more, and other ones, on demand
EXAMPLES = int(os.environ.get("FORAGER_TEST_API_EXAMPLES", "12"))
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]


@dataclass(frozen=True, slots=True)
class Target:
    address: str
    key: str
    # ids of things that exist, by the name of the path's parameter
    known: dict[str, str]


@pytest.fixture
def target(settings: Settings, database_url: str, tmp_path: Path) -> Iterator[Target]:
    key, known = asyncio.run(_furnish(settings))
    environment = {"FORAGER_DATABASE_URL": database_url, "FORAGER_LOG_LEVEL": "info"}
    with api_process(tmp_path, **environment) as address:
        yield Target(address, key, known)


async def _furnish(settings: Settings) -> tuple[str, dict[str, str]]:
    async with open_database(settings) as database:
        crawls = Crawls(database, Queue(database, settings), settings)
        await crawls.crawl({"a": "one"})
        await crawls.crawl({"a": "two", "b": "zebra"})
        running = await crawls.start()
        await Domains(database).add("shop.example.org")
        spec = ProxySpec.parse("http://me:secret@proxy.example.org:3128")
        proxy = await Proxies(database, Vault(settings)).add(spec)
        made = await create_key(database, "schemathesis", scope=Scope.ADMIN)
        other = await create_key(database, "other")
        job_id = str(running.context.job.id)
        return made.text, {
            "job_id": job_id,
            "progress_id": job_id,
            "source_id": SOURCE,
            "host": "shop.example.org",
            "proxy_id": str(proxy.id),
            "key_id": other.key.id,
            "user_id": str(made.key.user_id),
            **await _furnish_catalog(database, settings),
        }


async def _furnish_catalog(database: Database, settings: Settings) -> dict[str, str]:
    shop = await Shop(database, settings).open()
    seen = [await shop.visit("lamp", lamp(price)) for price in ("49.90", "44.90", "4490")]
    product_id = seen[0].product_id
    assert product_id is not None
    await store_image(database, settings, product_id)
    [error] = await shop.row(
        """
        INSERT INTO error_logs (crawl_task_id, domain_id, stage, error_type, error_kind,
                                error_message, message_key, job_id)
        SELECT id, domain_id, 'parse', 'parse', 'parse', 'broke', 'broke', %s FROM crawl_tasks
        RETURNING id
        """,
        new_id(),
    )
    [letter] = await shop.row(
        """
        INSERT INTO dead_letters (task_id, domain_id, url, stage, error_type, error_kind,
                                  error_message, message_key, attempts)
        SELECT id, domain_id, url, 'parse', 'parse', 'parse', 'broke', 'broke', 4 FROM crawl_tasks
        RETURNING id
        """
    )
    issued = await Webhooks(database, Vault(settings)).add(NewWebhook("https://hooks.example.org/"))
    return {
        "product_id": str(product_id),
        "position": "0",
        "task_id": str(seen[0].task_id),
        "error_id": str(error),
        "letter_id": str(letter),
        "webhook_id": str(issued.webhook.id),
        "name": "generic",
    }


# asking through a proxy or following a job that goes on takes as long as it takes
SLOW = {
    "/api/proxies/{proxy_id}/test",
    "/api/webhooks/{webhook_id}/test",
    "/api/crawl-progress/{progress_id}/events",
}


@pytest.mark.timeout(1800)
def test_no_answer_is_outside_the_description(target: Target) -> None:
    schema = schemathesis.openapi.from_url(f"{target.address}/api/openapi.json")
    tried = 0
    for result in schema.get_all_operations():
        assert isinstance(result, Ok)
        _try(result.ok(), target)
        tried += 1
    assert tried > 90


def _try(operation: Any, target: Target) -> None:
    modes = st.sampled_from([GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
    cases = modes.flatmap(lambda mode: operation.as_strategy(generation_mode=mode))
    headers = {"Authorization": f"Bearer {target.key}"}

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize="FORAGER_TEST_API_EXAMPLES" not in os.environ,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases, real=st.booleans())
    def send(case: Any, real: bool) -> None:
        if real and operation.path not in SLOW:
            known = {n: v for n, v in target.known.items() if n in (case.path_parameters or {})}
            case.path_parameters = {**(case.path_parameters or {}), **known}
        case.call_and_validate(
            session=session, headers=headers, checks=CHECKS, base_url=target.address
        )

    with requests.Session() as session:
        send()
