"""Crawls requested with an API key: whether they are allowed, and how many pages.

Everything that makes a job run for an owner with a quota comes through here: a new crawl, a refresh
by hand or by schedule, a retry, a resume.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from uuid import UUID

from forager.access.caller import LOCAL, Caller, QuotaExceeded, Scope, caller_of
from forager.access.quotas import (
    admit_job,
    get_quota,
    grant_pages,
    lack_of_room,
    lock_owner,
    readmit_job,
    taken,
)
from forager.crawl.ledger import state_from
from forager.crawl.options import POOL, CrawlOptions, crawl_options
from forager.crawl.service import (
    KIND,
    decrypt_secrets,
    default_source,
    encrypt_secrets,
    request_crawl,
)
from forager.crawl.settlement import Outcome
from forager.crawl.store import state as state_rows
from forager.crawl.store import visited as visited_rows
from forager.db.database import Connection, Database
from forager.db.transactions import InTransaction
from forager.documents import publication
from forager.documents.generation import Source
from forager.documents.sources import enqueue_refresh, merge_options
from forager.errors import GiveUp, NotAllowed, NotPermitted
from forager.extract.hosts import host_name, host_of
from forager.fetch.guard import GuardPolicy
from forager.fetch.proxies.proxy import ProxySpec
from forager.hints import Hint, Option
from forager.jobs.job import Job, Move
from forager.jobs.lifecycle import ACTIVE, Status
from forager.jobs.queue import Enqueued, Queue, no_such_job
from forager.operations.operation import Context
from forager.operations.slots import Slots
from forager.secrets import Vault
from forager.settings import Settings

if TYPE_CHECKING:
    from forager.crawl.preview import CrawlPreview

PREVIEWS = Slots(2, "a preview")


async def start_crawl(
    context: Context, options: CrawlOptions, *, source: str | None = None, priority: int = 0
) -> Enqueued:
    """Enqueue a crawl for its caller, within the caller's rights and quota.

    Raises NotPermitted for options that need another scope, and QuotaExceeded.
    """
    caller = caller_of(context)
    check_addresses(options, caller, context.settings)
    source_id = source or default_source(options)

    async def enqueue(queue: Queue, pages: int | None) -> Enqueued:
        return await request_crawl(
            queue,
            options.model_copy(update={"granted_pages": pages}),
            source=source_id,
            priority=priority,
            max_retries=context.settings.max_retries,
            user_id=caller.user_id,
            actor=caller.actor,
        )

    return await _admit(context, source_id, enqueue)


async def preview(context: Context, options: CrawlOptions) -> CrawlPreview:
    """Preview the first URLs of a crawl, within the caller's rights. Starts nothing."""
    from forager.crawl.preview import preview_crawl

    check_addresses(options, caller_of(context), context.settings)
    with PREVIEWS.taken():
        return await preview_crawl(context.database, context.settings, options)


async def start_refresh(context: Context, source: Source, *, actor: str | None = None) -> Enqueued:
    """Crawl a source again as it was crawled last, within the caller's quota."""

    async def enqueue(queue: Queue, pages: int | None) -> Enqueued:
        granted = source
        if pages is not None and source.kind == KIND:
            granted = replace(source, payload={**source.payload, "granted_pages": pages})
        return await enqueue_refresh(queue, granted, actor=actor or caller_of(context).actor)

    return await _admit(context, source.id, enqueue)


async def start_due_refresh(database: Database, settings: Settings, source: Source) -> Enqueued:
    """Start a scheduled refresh, within the quota of the source's owner."""
    owner = LOCAL
    if source.user_id is not None:
        quota = await get_quota(database, source.user_id)
        owner = Caller(source.user_id, Scope.OPERATE, quota=quota)
    return await start_refresh(Context(database, settings, caller=owner), source, actor="schedule")


async def lack_for_refresh(database: Database, source: Source) -> QuotaExceeded | None:
    """The reason why a refresh of this source would be put off if it were due now."""
    if source.user_id is None or source.next_refresh_at is None:
        return None
    return await lack_of_room(database, source.user_id)


async def replace_headers(
    context: Context, source: Source, headers: Mapping[str, str]
) -> Job | None:
    """Give a source and its active crawl other headers, sealed; that crawl, if there is one."""
    queue = Queue(context.database, context.settings)
    active = await queue.list_jobs(source_id=source.id, statuses=list(ACTIVE), limit=1)
    vault = Vault(context.settings)

    def replaced(payload: dict[str, Any]) -> dict[str, Any]:
        options = decrypt_secrets(crawl_options(payload), vault)
        changed = crawl_options(
            options.model_dump(exclude_defaults=True) | {"headers": {**options.headers, **headers}}
        )
        sealed = encrypt_secrets(changed, vault).model_dump(mode="json", exclude_defaults=True)
        return {name: sealed[name] for name in ("headers", "sealed") if name in sealed}

    if source.kind != KIND:
        raise NotAllowed(f"source {source.id} is no crawl: it sends no headers")
    async with context.database.transaction() as connection:
        await merge_options(connection, source.id, replaced(source.payload))
        for job in active.items:
            await queue.merge_payload(connection, job.id, replaced(job.payload))
    return next(iter(active.items), None)


async def get_job(context: Context, job_id: UUID) -> Job:
    """A job that the caller sees; raises NotFound."""
    job = await Queue(context.database, context.settings).get(job_id)
    if not caller_of(context).sees(job.user_id):
        raise no_such_job(job_id)
    return job


async def move_job(context: Context, job_id: UUID, move: Move, reason: str | None = None) -> Job:
    """Pause, resume, cancel or retry a job that the caller sees.

    A caller's job continues only within the quota.
    """
    database, settings, caller = context.database, context.settings, caller_of(context)
    job = await get_job(context, job_id)
    goes_on = move in (Move.RESUME, Move.RETRY)
    # an admin may resume a job of another owner beyond that owner's quota
    if not goes_on or job.user_id != caller.user_id or not caller.quota.limits_pages_or_jobs:
        return await _move(Queue(database, settings), caller, job_id, move, reason)
    async with database.transaction() as connection:
        await lock_owner(connection, caller)
        queue = Queue(InTransaction(database, connection), settings)
        moved = await _move(queue, caller, job_id, move, reason)
        # one that was still pausing has its pages, and never stopped counting
        if moved.status is Status.PENDING:
            await _grant_again(connection, caller, moved)
        return await queue.get(job_id)


@dataclass(frozen=True, slots=True)
class RetriedUrls:
    """A job that runs again, and how many failed URLs it got back."""

    job: Job
    urls: int


async def retry_failed(context: Context, job_id: UUID, reasons: Sequence[str] = ()) -> RetriedUrls:
    """Fetch failed URLs of a finished crawl again: those with these reasons, or all.

    The job continues with them and publishes a generation that also has its other pages.
    """
    database, settings, caller = context.database, context.settings, caller_of(context)
    await get_job(context, job_id)
    async with database.transaction() as connection:
        if caller.quota.limits_pages_or_jobs:
            await lock_owner(connection, caller)
        queue = Queue(InTransaction(database, connection), settings)
        message = f"failed URLs: {', '.join(reasons) or 'all'}"
        before = await queue.get(job_id)
        job = await queue.retry_failed(job_id, actor=caller.actor, reason=message)
        keys = await _requeue(connection, job_id, reasons)
        if not keys:
            raise NotAllowed(
                f"job {job_id} has no failed URLs" + (" with this reason" if reasons else "")
            )
        if before.status is Status.COMPLETED and job.source_id is not None:
            await publication.reopen(connection, job.source_id, job_id, without=keys)
        if job.user_id == caller.user_id and caller.quota.limits_pages_or_jobs:
            await _grant_again(connection, caller, job)
        return RetriedUrls(await queue.get(job_id), len(keys))


async def _requeue(connection: Connection, job_id: UUID, reasons: Sequence[str]) -> list[bytes]:
    """Move failed URLs into the frontier and correct the ledger; their keys."""
    row = await state_rows.select_state(connection, job_id)
    if row is None:
        return []
    state = state_from(row)
    wanted = reasons or [reason for reason, _ in state.ledger.reasons_of(Outcome.FAILED)]
    moved = await visited_rows.requeue_failed(connection, job_id, wanted, first_seq=state.next_seq)
    for _, reason, carried_over in moved:
        state.ledger.requeue_failed(reason, carried_over=carried_over)
    state.next_seq += len(moved)
    await state_rows.update_state(connection, job_id, state.values())
    return [key for key, _, _ in moved]


async def _move(queue: Queue, caller: Caller, job_id: UUID, move: Move, reason: str | None) -> Job:
    act = {
        Move.PAUSE: queue.pause,
        Move.RESUME: queue.resume,
        Move.CANCEL: queue.cancel,
        Move.RETRY: queue.retry,
    }[move]
    return await act(job_id, actor=caller.actor, reason=reason)


async def _grant_again(connection: Connection, caller: Caller, job: Job) -> None:
    grant = await readmit_job(connection, caller, job.id)
    if grant is not None and job.kind == KIND:
        await grant_pages(connection, job.id, grant)


def check_addresses(options: CrawlOptions, caller: Caller, settings: Settings) -> None:
    """Private addresses are for admins. What a name resolves to is checked when it is fetched."""
    if options.allow_private:
        caller.require(Scope.ADMIN, "allow_private")
    if options.files is not None:
        _check_files(options, caller, settings)
        hosts = set()
        if options.repository is not None and (site := urlsplit(options.repository).hostname):
            hosts = {f"[{site}]" if ":" in site else site}
    else:
        hosts = {host_name(host_of(url)) for url in options.seeds}
    if options.proxy is not None and options.proxy != POOL:
        hosts.add(ProxySpec.parse(options.proxy).host)
    guard = GuardPolicy(allow_private=options.allow_private)
    try:
        for host in hosts:
            guard.check_unresolved(host)
    except GiveUp as refused:
        raise GiveUp(
            refused.message,
            kind=refused.kind,
            hint=Hint("An admin may set {}.", Option("allow_private")),
        ) from None


def _check_files(options: CrawlOptions, caller: Caller, settings: Settings) -> None:
    """Files of the server are for admins, and only in folders that the settings name."""
    local = options.folder
    if options.repository is not None and options.repository.startswith("file:"):
        local = unquote(urlsplit(options.repository).path)
    if local is None:
        return
    caller.require(Scope.ADMIN, "folder")
    place = Path(local).resolve()
    if not any(place.is_relative_to(Path(each).resolve()) for each in settings.source_folders):
        raise NotPermitted(
            f"{local} is in none of the folders that the setting source_folders names",
            hint="The command line and the library read any folder.",
        )


async def _admit(
    context: Context, source_id: str, enqueue: Callable[[Queue, int | None], Awaitable[Enqueued]]
) -> Enqueued:
    """Enqueue a job with the pages that the caller's quota grants, or find the active one."""
    database, settings, caller = context.database, context.settings, caller_of(context)
    async with AsyncExitStack() as stack:
        active: Sequence[Job] = ()
        if caller.quota.limits_jobs:
            # counting and adding are one transaction; the job that the source has is the answer
            # also when no room is left
            connection = await stack.enter_async_context(database.transaction())
            database = InTransaction(database, connection)
            running = Queue(database, settings).list_jobs(
                source_id=source_id, statuses=list(ACTIVE), limit=1
            )
            active = (await running).items
        if active:
            asked = Enqueued(active[0], created=False)
        else:
            pages = await database.run(admit_job, caller, source_id)
            asked = await enqueue(Queue(database, settings), pages)
    if not asked.created and not caller.sees(asked.job.user_id):
        raise taken(source_id)
    return asked
