"""An operation answers with the same JSON on the command line and over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from pydantic import BaseModel, TypeAdapter

from api.conftest import Keyed
from api.furnished import SLOW, furnish, raise_alarm, replace_product
from forager.api.actions import API
from forager.cli.main import app
from forager.db.database import Database
from forager.operations.operation import Operation, Scope
from forager.registry import operations
from forager.settings import Settings
from parsers.archived_kiosk import kiosk_parsers
from support import cli
from support.sql import execute

# what ends the existence of something comes after what needs it
LAST = ("remove", "delete", "revoke", "drop", "disable")

# its values change from one call to the next
MOVING = {"workers services"}

# they name actions in the terms of the adapter
WORDED = ("why",)

# the state that a job must have for an operation
NEEDED_STATUS = {"jobs resume": "paused", "jobs retry": "failed", "sources delete": "cancelled"}

# they need a crawl with failed URLs, as in tests/crawl/test_retry_failed.py, or one that sends
# headers, as in tests/crawl/test_logins.py, or read a file
ELSEWHERE = {"jobs retry-failed", "sources login", "items rates", "items own-prices"}

# values with parts are typed as text
TYPED = {"cost": "3.50 EUR/GB"}


@pytest.fixture(autouse=True)
def home(command_line: None, monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    monkeypatch.setenv("FORAGER_HOME", str(settings.home))


def declared(*methods: str) -> list[Operation]:
    found = [each for each in operations() if each.method in methods and each.command]
    return sorted(found, key=lambda each: [each.name.endswith(word) for word in LAST])


async def typed(operation: Operation, given: dict[str, Any]) -> Any:
    arguments = [*operation.name.split(), *_words(operation, given), "--json"]
    if operation.confirm:
        arguments.append("--yes")
    done = await asyncio.to_thread(cli.forager, *arguments)
    assert done.code == 0, f"{arguments}: {done.err}"
    return done.json


def _words(operation: Operation, given: dict[str, Any]) -> Iterator[str]:
    """The inputs as a person types them."""
    command: Any = typer.main.get_command(app)
    for name in operation.name.split():
        command = command.commands[name]
    for parameter in command.params:
        value = given.get(parameter.name)
        if isinstance(value, bool):
            yield (parameter.opts if value else parameter.secondary_opts)[0]
        elif value is not None:
            value = TYPED.get(parameter.name, value)
            for each in value if isinstance(value, list) else [value]:
                yield from ([] if parameter.param_type_name == "argument" else [parameter.opts[0]])
                yield str(each)


def _example(model: type[BaseModel] | None) -> dict[str, Any]:
    extra: Any = {} if model is None else model.model_config.get("json_schema_extra", {})
    found: dict[str, Any] = extra["examples"][0] if extra else {}
    return found


def _needed(operation: Operation, known: dict[str, Any]) -> dict[str, Any]:
    """Values for all required inputs."""
    known = {"source": known["source_id"], "query": "price-changes", **known}
    known["which"] = known["product_id"]
    fields = operation.values.model_fields.items()
    return {name: known[name] for name, each in fields if each.is_required()}


def _names(document: Any) -> Any:
    """A document without the values."""
    if isinstance(document, dict):
        return {name: _names(value) for name, value in document.items()}
    return [*map(_names, document)] if isinstance(document, list) else None


def _without_actions(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in WORDED}


async def test_what_is_read_is_the_same(
    keyed: Keyed, database: Database, settings: Settings
) -> None:
    known = await furnish(database, settings)
    await raise_alarm(database, known["host"])
    api = await keyed(Scope.ADMIN)
    for operation in declared("GET"):
        given = _needed(operation, known)
        query = {name: each for name, each in given.items() if name not in operation.path_names}
        answer = await api.get(API + operation.path.format_map(given), params=query)
        assert answer.status == 200, operation.name
        same = _names if operation.name in MOVING else _without_actions
        assert same(await typed(operation, given)) == same(answer.json), operation.name


@pytest.mark.parametrize("command", ["read", "explain", "search"])
async def test_commands_with_their_own_output_have_the_same_json(
    keyed: Keyed, database: Database, settings: Settings, command: str
) -> None:
    await furnish(database, settings)
    given = {"q": "zebra"} if command == "search" else {"url": "https://docs.example.org/b"}
    operation = next(each for each in operations() if each.name == command)
    answer = await (await keyed(Scope.ADMIN)).get(API + operation.path, params=given)
    done = await asyncio.to_thread(cli.forager, command, *given.values(), "--json")
    assert (answer.status, done.json) == (200, answer.json)


async def test_what_is_changed_has_the_described_json(
    database: Database, settings: Settings
) -> None:
    known = await furnish(database, settings)
    await raise_alarm(database, known["host"])
    await replace_product(database, known["product_id"])
    known["name"] = "kiosk"
    with kiosk_parsers():
        for operation in declared("POST", "PUT", "PATCH", "DELETE"):
            if API + operation.path in SLOW or operation.name in ELSEWHERE:
                continue
            if (status := NEEDED_STATUS.get(operation.name)) is not None:
                moved = "UPDATE crawl_jobs SET status = %s WHERE id = %s OR %s RETURNING 1"
                await execute(database, moved, status, known["job_id"], status == "cancelled")
            given = {name: known[name] for name in operation.path_names} | _example(operation.body)
            answer = await typed(operation, given)
            described = TypeAdapter(operation.answer)
            again = described.dump_python(described.validate_python(answer), mode="json")
            assert again == answer, operation.name
