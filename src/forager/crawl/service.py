"""Requests for crawls by command line, API and library; their secrets are sealed."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any
from uuid import UUID

import orjson

from forager.crawl.options import POOL, CrawlOptions, check_payload
from forager.errors import GiveUp
from forager.extract.hosts import host_of
from forager.fetch.proxies.proxy import ProxySpec
from forager.fetch.response import is_public_header
from forager.jobs.job import NewJob
from forager.jobs.kinds import JobKind, register
from forager.jobs.queue import Enqueued, Queue
from forager.secrets import SecretsUnavailable, Vault

if TYPE_CHECKING:
    from forager.jobs.context import JobContext
    from forager.jobs.kinds import Outcome


KIND = "crawl"


async def request_crawl(
    queue: Queue,
    options: CrawlOptions,
    *,
    source: str | None = None,
    priority: int = 0,
    max_retries: int = 3,
    user_id: UUID | None = None,
    actor: str = "user",
) -> Enqueued:
    """Enqueue a crawl, its secrets sealed; a source that is being crawled answers with that job."""
    sealed = encrypt_secrets(options, Vault(queue.settings))
    job = NewJob(
        kind=KIND,
        payload=sealed.model_dump(mode="json", exclude_defaults=True),
        priority=priority,
        max_retries=max_retries,
        source_id=source or default_source(options),
        user_id=user_id,
    )
    return await queue.enqueue(job, actor=actor)


def default_source(options: CrawlOptions) -> str:
    """The host, because one unit is usually a whole site; the name of a folder or repository."""
    return options.files.name if options.files else host_of(options.seeds[0])


STARS = "***"


def encrypt_secrets(options: CrawlOptions, vault: Vault) -> CrawlOptions:
    """The options as they may be stored and shown; those without secrets as they are."""
    shown = {"headers": _shown_headers(options), "proxy": _shown_proxy(options)}
    given = {"headers": options.headers, "proxy": options.proxy}
    secret = {name: value for name, value in given.items() if value != shown[name]}
    if not secret:
        return options
    sealed = vault.encrypt(orjson.dumps(secret).decode(), sites_of(options))
    return options.model_copy(update={**shown, "sealed": b64encode(sealed).decode()})


def decrypt_secrets(options: CrawlOptions, vault: Vault) -> CrawlOptions:
    """The options as they were given. Without the right key no retry helps."""
    if options.sealed is None:
        return options
    try:
        secret = orjson.loads(vault.decrypt(b64decode(options.sealed), sites_of(options)))
    except SecretsUnavailable as error:
        raise GiveUp(f"headers or proxy of the crawl: {error.message}", hint=error.hint) from None
    return options.model_copy(update={**secret, "sealed": None})


def _shown_headers(options: CrawlOptions) -> dict[str, str]:
    return {
        name: value if is_public_header(name) else STARS for name, value in options.headers.items()
    }


def _shown_proxy(options: CrawlOptions) -> str | None:
    if options.proxy is None or options.proxy == POOL:
        return options.proxy
    spec = ProxySpec.parse(options.proxy)
    return options.proxy if spec.username is None else spec.address


def sites_of(options: CrawlOptions) -> str:
    """What secrets are sealed for: copied into a crawl of other sites, they stay shut."""
    origins = {"/".join(seed.split("/", 3)[:3]) for seed in options.seeds}
    return " ".join(["crawl", *sorted(origins), *filter(None, [options.repository])])


async def _crawl(context: JobContext) -> Outcome:
    from forager.crawl.job import crawl

    return await crawl(context)


def _host(payload: dict[str, Any]) -> str:
    """A crawl belongs to the host of its first URL, though it may meet other hosts."""
    return host_of(payload["urls"][0])


CRAWL = register(JobKind("crawl", _crawl, check_payload, module="forager.crawl.job", host=_host))
