"""Sources declared in a file: parsed, compared with the existing ones, and applied."""

from __future__ import annotations

import asyncio
import os
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import orjson
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from forager.access.caller import LOCAL
from forager.crawl.options import CrawlChoices, CrawlOptions, crawl_options
from forager.crawl.preview import address_problems
from forager.crawl.service import KIND, decrypt_secrets, encrypt_secrets, sites_of
from forager.db.database import Database
from forager.db.transactions import InTransaction
from forager.documents import sources
from forager.documents.generation import (
    Schedule,
    Source,
    SourceDeclaration,
    parse_cron,
    parse_every,
)
from forager.errors import GiveUp, InvalidInput, error_text
from forager.jobs.queue import Queue
from forager.operations.models import interval_text
from forager.secrets import Vault
from forager.settings import Settings
from forager.settings.values import PlainText
from forager.validation import matches, message_of, name_of, sentence

MAX_SOURCES = 1000
SOURCES_AT_ONCE = 8  # whose addresses are checked
MAX_FILE_BYTES = 1_000_000
# differ from one sealing to the next, or belong to one job
NOT_COMPARED = {"sealed"}

_NAME = matches(r"^[^@\s]+$", "a name without spaces and without @")
Label = Annotated[PlainText, Field(min_length=1, max_length=200, pattern=_NAME)]


_SCHEDULES = (
    "An interval such as 12h, 1d or 1w, or a cron expression such as '30 4 * * 1-5' in UTC."
)


class DeclaredSource(CrawlChoices):
    """A source of the file: a name, where to start, and any option of a crawl."""

    name: Label
    # may be missing for a folder or repository
    url: PlainText | list[PlainText] = Field(default_factory=list)
    version: Label | None = None
    # an interval such as 1d, or a cron expression in UTC
    schedule: PlainText | None = None

    @property
    def source_id(self) -> str:
        """The name of the source, with its version."""
        return self.name if self.version is None else f"{self.name}@{self.version}"

    def options(self) -> CrawlOptions:
        """The options of its crawls; raises InvalidInput."""
        own = {"name", "url", "version", "schedule"}
        urls = [self.url] if isinstance(self.url, str) else self.url
        return crawl_options({"urls": urls, **self.model_dump(exclude=own, exclude_unset=True)})

    def refreshes(self) -> Schedule:
        """When it is refreshed; an empty schedule: only by hand."""
        if self.schedule is None:
            return Schedule()
        parse = parse_cron if len(self.schedule.split()) > 1 else parse_every
        try:
            return parse(self.schedule)
        except InvalidInput as error:
            raise InvalidInput(f"schedule: {error.message}", hint=_SCHEDULES) from None


class SourceFile(BaseModel):
    """A file of sources; other keys are errors."""

    model_config = ConfigDict(extra="forbid")

    sources: list[DeclaredSource] = Field(max_length=MAX_SOURCES)

    @model_validator(mode="after")
    def _names_differ(self) -> SourceFile:
        names = [source.source_id for source in self.sources]
        twice = next((name for name, times in Counter(names).items() if times > 1), None)
        if twice is not None:
            raise ValueError(f"{twice} is declared twice")
        return self


def read_source_file(path: Path) -> list[DeclaredSource]:
    """The sources that a TOML, YAML or JSON file declares under `sources`."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_FILE_BYTES + 1)
        if len(text) > MAX_FILE_BYTES:
            raise InvalidInput(f"{path} is larger than {MAX_FILE_BYTES:,} bytes")
        content = _parse(path.suffix, text)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise InvalidInput(f"{path} cannot be read: {error_text(error)}") from None
    except RecursionError:
        raise InvalidInput(f"{path} is nested too deeply") from None
    return _checked(content, path)


def declared_sources(given: Path | str | Sequence[dict[str, Any]]) -> list[DeclaredSource]:
    """The sources of a file, or of a list of their values."""
    if isinstance(given, Path | str):
        return read_source_file(Path(given))
    return _checked({"sources": list(given)}, Path("sources"))


def parse_sources(text: str) -> list[DeclaredSource]:
    """The sources of a YAML text, as a file `sources.yaml` would declare them."""
    try:
        content = _parse(".yaml", text.encode())
    except yaml.YAMLError as error:
        raise InvalidInput(f"this is not YAML: {error_text(error)}") from None
    except RecursionError:
        raise InvalidInput("this is nested too deeply") from None
    return _checked(content, Path("sources.yaml"))


def _checked(content: Any, path: Path) -> list[DeclaredSource]:
    if path.suffix == ".toml":  # forager.toml holds the settings as well
        content = {name: value for name, value in content.items() if name == "sources"}
    try:
        declared = SourceFile.model_validate(content).sources
    except ValidationError as error:
        raise InvalidInput("\n".join([f"{path}:", *_explained(error, content)])) from None
    declared = [_with_folder(path, source) for source in declared]
    for source in declared:
        _check(path, source)
    return declared


def _with_folder(path: Path, source: DeclaredSource) -> DeclaredSource:
    """A relative folder is relative to the file."""
    if source.folder is None:
        return source
    folder = os.path.abspath(path.absolute().parent / Path(source.folder).expanduser())  # noqa: PTH100 - keeps links
    return source.model_copy(update={"folder": folder})


def _explained(error: ValidationError, content: Any) -> Iterator[str]:
    """What is wrong, with the names of the sources."""
    for problem in error.errors():
        match problem["loc"]:
            case ("sources", int(position), *place):
                declared = content["sources"][position]
                name = declared.get("name") if isinstance(declared, dict) else None
                message = message_of(problem, DeclaredSource.model_fields)
                yield f"{name or f'source {position + 1}'}: {sentence(name_of(place), message)}"
            case place:
                yield sentence(name_of(place), message_of(problem, SourceFile.model_fields))


def _parse(suffix: str, text: bytes) -> Any:
    if suffix == ".toml":
        return tomllib.loads(text.decode())
    if suffix == ".json":
        return orjson.loads(text)
    # every value as text, so that the version 3.10 does not become the number 3.1
    return yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - it makes nothing but text


def _check(path: Path, source: DeclaredSource) -> None:
    try:
        source.options()
        source.refreshes()
    except InvalidInput as error:
        raise InvalidInput(
            f"{path}: {source.source_id}: {error.message}", hint=error.hint
        ) from None


class SourceAction(StrEnum):
    """What applying a declared source does."""

    CREATE = "create"
    CHANGE = "change"
    # declared before, but nothing of it is published yet
    CRAWL = "crawl"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class PlannedSource:
    """The effect of a file on one source; `changes` lists each value before and after."""

    action: SourceAction
    declared: DeclaredSource
    changes: Sequence[str] = ()
    # the job that is crawling it already
    active_job: UUID | None = None


@dataclass(frozen=True, slots=True)
class AppliedSource:
    """A source as it is declared now, and the job that crawls it.

    A job that was in progress before keeps the options that it was started with.
    """

    source_id: str
    action: SourceAction
    job_id: UUID
    job_is_new: bool


@dataclass(frozen=True, slots=True)
class AddressProblem:
    """A start URL or folder of a source that cannot be crawled."""

    source_id: str
    problem: str


async def check_addresses(
    database: Database, settings: Settings, planned: Sequence[PlannedSource]
) -> list[AddressProblem]:
    """Request the start URLs of the sources that would be crawled, once each."""
    at_once = asyncio.Semaphore(SOURCES_AT_ONCE)

    async def check(declared: DeclaredSource) -> list[AddressProblem]:
        async with at_once:
            problems = await address_problems(database, settings, declared.options())
        return [AddressProblem(declared.source_id, problem) for problem in problems]

    todo = [each.declared for each in planned if each.action is not SourceAction.KEEP]
    return [problem for found in await asyncio.gather(*map(check, todo)) for problem in found]


async def plan_sources(
    database: Database, settings: Settings, declared: Sequence[DeclaredSource]
) -> list[PlannedSource]:
    """Compare; changes nothing. Sources that are not in the file are left as they are."""
    found = await sources.find_sources(database, [each.source_id for each in declared])
    return [_plan(settings, each, found.get(each.source_id)) for each in declared]


def _plan(settings: Settings, declared: DeclaredSource, found: Source | None) -> PlannedSource:
    if found is None:
        schedule = [f"schedule: {_when(declared.refreshes())}"] if declared.schedule else []
        values = _values(_payload(declared, settings))
        return PlannedSource(SourceAction.CREATE, declared, [*values, *schedule])
    declared = _with_login(declared, found, settings)
    changes = _differences(found, declared, settings)
    if changes:
        return PlannedSource(SourceAction.CHANGE, declared, changes, found.active_job)
    waits = found.published_number is None and found.active_job is None
    action = SourceAction.CRAWL if waits else SourceAction.KEEP
    return PlannedSource(action, declared, active_job=found.active_job)


def _with_login(declared: DeclaredSource, found: Source, settings: Settings) -> DeclaredSource:
    """The source with the headers of `sources login`, which no file should contain."""
    known = _known_secrets(found, settings)
    if known is None or declared.headers or sites_of(declared.options()) != sites_of(known):
        return declared
    return declared.model_copy(update={"headers": known.headers})


def _known_secrets(found: Source, settings: Settings) -> CrawlOptions | None:
    """The options of a source with its secrets; None if it has none, or they cannot be read."""
    if "sealed" not in found.payload:
        return None
    try:
        return decrypt_secrets(crawl_options(found.payload), Vault(settings))
    except GiveUp:
        return None


def _payload(declared: DeclaredSource, settings: Settings) -> dict[str, Any]:
    sealed = encrypt_secrets(declared.options(), Vault(settings))
    return sealed.model_dump(mode="json", exclude_defaults=True)


def _values(payload: dict[str, Any]) -> list[str]:
    return [f"{name}: {_text(payload[name])}" for name in payload if name not in NOT_COMPARED]


def _differences(found: Source, declared: DeclaredSource, settings: Settings) -> list[str]:
    wanted, known = _payload(declared, settings), found.payload
    names = [name for name in {**known, **wanted} if name not in NOT_COMPARED]
    changes = [
        f"{name}: {_text(known.get(name))} -> {_text(wanted.get(name))}"
        for name in names
        if known.get(name) != wanted.get(name)
    ]
    known_secrets = _known_secrets(found, settings)
    if known_secrets is not None:
        options = declared.options()
        changes += [
            f"{name}: changed (not shown)"
            for name in ("headers", "proxy")
            if known.get(name) == wanted.get(name)
            and getattr(known_secrets, name) != getattr(options, name)
        ]
    before, now = Schedule(found.refresh_every, found.refresh_cron), declared.refreshes()
    if before != now:
        changes.append(f"schedule: {_when(before)} -> {_when(now)}")
    return changes


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "default" if value is None else str(value)


def _when(schedule: Schedule) -> str:
    return schedule.cron or (f"every {interval_text(schedule.every)}" if schedule.every else "off")


async def apply_plan(
    database: Database,
    settings: Settings,
    planned: Sequence[PlannedSource],
    *,
    actor: str = LOCAL.actor,
) -> list[AppliedSource]:
    """Do what was planned, in one transaction; applying again changes nothing."""
    todo = [each for each in planned if each.action is not SourceAction.KEEP]
    async with database.transaction() as connection:
        transaction = InTransaction(database, connection)
        found = await sources.declare_sources(
            transaction, [_declaration(each, settings) for each in todo]
        )
        declared = [found[each.declared.source_id] for each in todo]
        queue = Queue(transaction, settings)
        asked = await sources.enqueue_refreshes(queue, declared, actor=actor)
    return [
        AppliedSource(each.declared.source_id, each.action, started.job.id, started.created)
        for each, started in zip(todo, asked, strict=True)
    ]


def _declaration(planned: PlannedSource, settings: Settings) -> SourceDeclaration:
    declared = planned.declared
    return SourceDeclaration(
        id=declared.source_id,
        base_url=declared.options().seeds[0],
        kind=KIND,
        payload=_payload(declared, settings),
        schedule=declared.refreshes(),
    )
