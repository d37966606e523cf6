"""Crawl templates: named start URLs and options, which CLI, API and dashboard start crawls from.

A template belongs to the owner that saved it. Admins also see the templates of other owners; their
own take precedence where names are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from pydantic import Field

from forager.access.caller import Caller
from forager.crawl.options import MAX_SEEDS, CrawlOptions, CrawlTemplate, crawl_options
from forager.crawl.service import secret_parts
from forager.crawl.store import templates as store
from forager.db.cursor import Page, page_of
from forager.db.database import Database
from forager.errors import InvalidInput, NotAllowed, NotFound
from forager.hints import Hint, action

MAX_NAME = 100
MAX_TEMPLATES = 1000
MAX_SIZE = 1_000_000


class TemplateOptions(CrawlOptions):
    """The options of a crawl; start URLs are optional."""

    urls: tuple[str, ...] = Field(default=(), max_length=MAX_SEEDS)


@dataclass(frozen=True, slots=True)
class SavedTemplate:
    """A template, and the secret values that were not stored with it."""

    template: CrawlTemplate
    omitted: Sequence[str]


async def save_template(
    database: Database, caller: Caller, name: str, options: dict[str, Any]
) -> SavedTemplate:
    """Create or replace the caller's template of this name, without secret headers and proxies."""
    name = _checked_name(name)
    checked = crawl_options(options, TemplateOptions)
    omitted = secret_parts(checked)
    kept = checked.model_copy(
        update={
            "headers": {key: value for key, value in checked.headers.items() if key not in omitted},
            "proxy": None if "proxy" in omitted else checked.proxy,
        }
    )
    payload = kept.model_dump(mode="json", exclude_defaults=True)
    if len(orjson.dumps(payload)) > MAX_SIZE:
        raise InvalidInput(f"a template has at most {MAX_SIZE:,} bytes of URLs and options")
    async with database.transaction() as connection:
        await store.upsert_template(connection, caller.user_id, name, payload)
        if await store.count_templates(connection, caller.user_id) > MAX_TEMPLATES:
            raise NotAllowed(
                f"there are {MAX_TEMPLATES:,} crawl templates already",
                hint=Hint("{} deletes templates.", action("templates delete")),
            )
    return SavedTemplate(await get_template(database, caller, name), omitted)


async def list_templates(
    database: Database, caller: Caller, *, cursor: str | None = None, limit: int = 100
) -> Page[CrawlTemplate]:
    """The templates that the caller may use, by name; the cursor is the last name."""
    found = await database.run(
        store.select_templates,
        owner=caller.user_id,
        sees_only=caller.sees_only,
        after=cursor,
        limit=limit + 1,
    )
    return page_of(found, limit, lambda template: template.name)


async def list_names(database: Database, caller: Caller) -> list[str]:
    """The names of the templates that the caller may use."""
    return await database.run(store.select_names, sees_only=caller.sees_only, limit=MAX_TEMPLATES)


async def get_template(database: Database, caller: Caller, name: str) -> CrawlTemplate:
    found = await database.run(
        store.select_templates,
        owner=caller.user_id,
        sees_only=caller.sees_only,
        name=name,
        limit=1,
    )
    if not found:
        raise NotFound(
            f"crawl template {name[:MAX_NAME]!r} not found",
            hint=Hint("{} lists templates.", action("templates list")),
        )
    return found[0]


async def delete_template(database: Database, caller: Caller, name: str) -> CrawlTemplate:
    found = await get_template(database, caller, name)
    await database.run(store.delete_template, found.id)
    return found


def _checked_name(name: str) -> str:
    name = " ".join(name.split())
    if not name.isprintable() or "/" in name or not 1 <= len(name) <= MAX_NAME:
        raise InvalidInput(
            f"a template name has 1 to {MAX_NAME} printable characters and no slash",
            hint="For example: nightly docs",
        )
    return name
