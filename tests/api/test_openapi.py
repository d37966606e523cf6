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

from api.furnished import SLOW, furnish, operations
from api.server_process import api_process
from forager.access.caller import Scope
from forager.access.keys import create_key
from forager.db.database import open_database
from forager.settings import Settings

# more, and other ones, on demand
EXAMPLES = int(os.environ.get("FORAGER_TEST_API_EXAMPLES", "6"))
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
        made = await create_key(database, "schemathesis", scope=Scope.ADMIN)
        return made.text, await furnish(database, settings)


# a longer request line is refused by the server itself, in plain text
MAX_HEAD = 16_384


@pytest.mark.timeout(1800)
def test_no_answer_is_outside_the_description(target: Target) -> None:
    document = requests.get(f"{target.address}/api/openapi.json", timeout=60).json()
    schema = schemathesis.openapi.from_dict(document)
    tried = set()
    with requests.Session() as stranger, requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {target.key}"
        for result in schema.get_all_operations():
            assert isinstance(result, Ok)
            operation = result.ok()
            _try(operation, target, session, stranger)
            tried.add((operation.method.upper(), operation.path))
    assert tried >= {(method, path) for method, path, _ in operations(document)}


def _try(
    operation: Any, target: Target, session: requests.Session, stranger: requests.Session
) -> None:
    """Send generated requests; the first one that the server reads also without a key."""
    modes = st.sampled_from([GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
    cases = modes.flatmap(lambda mode: operation.as_strategy(generation_mode=mode))
    refused: list[int] = []

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
        if not refused and (status := _answer(case, target, stranger)) is not None:
            refused.append(status)
        if real and operation.path not in SLOW:
            known = {n: v for n, v in target.known.items() if n in (case.path_parameters or {})}
            case.path_parameters = {**(case.path_parameters or {}), **known}
        _answer(case, target, session)

    send()
    assert refused == [401] or not operation.path.startswith("/api/")


def _answer(case: Any, target: Target, session: requests.Session) -> int | None:
    """The status of the answer, which was checked; None if the server did not read the request."""
    try:
        answer = case.call(session=session, base_url=target.address)
    except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError):
        # the server refuses a head that is too long while it is being sent
        assert len(case.as_curl_command()) > MAX_HEAD
        return None
    if answer.status_code == 400 and len(answer.request.url or "") > MAX_HEAD:
        return None
    case.validate_response(answer, checks=CHECKS)
    return int(answer.status_code)
