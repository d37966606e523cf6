"""The installation: versions, who can reach it, its keys, and where it reports to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from urllib.parse import urlsplit

from forager import __version__, tracing
from forager.access.caller import Scope
from forager.access.key import ApiKey, KeyState
from forager.access.keys import list_keys
from forager.db.database import Database
from forager.doctor.check import Check, ok, warn
from forager.fetch.budgets.budget import is_loopback
from forager.jobs import workers
from forager.listening import listening_addresses
from forager.settings import Settings
from forager.settings.values import masked_url

SOON = timedelta(days=7)
LOOKED_AT = 1000
NAMED = 3


async def check_versions(database: Database, _settings: Settings) -> Check:
    async with database.connection() as connection:
        found = await workers.select_workers(connection)
    others = sorted({worker.version for worker in found} - {__version__})
    if others:
        return warn(
            "versions",
            f"Forager {__version__} here, and workers of {', '.join(others)}",
            "Update and restart them; docs/howto/operate.md says in which order.",
        )
    return ok("versions", f"Forager {__version__}, and so are all workers")


async def check_keys(database: Database, _settings: Settings) -> Check:
    keys = (await list_keys(database, limit=LOOKED_AT)).items
    active = [key for key in keys if key.state is KeyState.ACTIVE]
    admins = sum(key.scope is Scope.ADMIN for key in active)
    finding = f"{len(active)} active, {admins} of them admin" if keys else "none"
    ending = [key for key in active if _ends_soon(key)]
    if ending:
        advice = "Make new ones before: forager keys create NAME."
        return warn("keys", f"{finding}; end within a week: {_names(ending)}", advice)
    if keys and not active:
        advice = "No key can use the API: forager keys create NAME --scope admin"
        return warn("keys", "all have expired or were revoked", advice)
    return ok("keys", finding)


def check_exposure(settings: Settings) -> Check:
    addresses = listening_addresses(settings.home)
    if addresses:
        where = f"the API listens on {', '.join(addresses)}"
        hosts = [urlsplit(address).netloc for address in addresses]
    else:
        where = f"no API runs here; it would listen on {settings.api_host}:{settings.api_port}"
        hosts = [settings.api_host]
    if all(is_loopback(host) for host in hosts):
        return ok("exposure", where)
    opened = ", and /metrics needs no key" if settings.metrics_open else ""
    return warn(
        "exposure",
        f"{where} without TLS{opened}",
        "Put a proxy with TLS before it, and let the API listen on loopback.",
    )


def check_traces(settings: Settings) -> Check:
    if not tracing.is_wanted(settings):
        return ok("traces", "not asked for")
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
        return warn("traces", "OpenTelemetry is not installed", tracing.INSTALL)
    place = masked_url(settings.traces_url or "OTEL_EXPORTER_OTLP_ENDPOINT")
    return ok("traces", f"are sent to {place}")


def _ends_soon(key: ApiKey) -> bool:
    return key.expires_at is not None and key.expires_at < datetime.now(UTC) + SOON


def _names(keys: list[ApiKey]) -> str:
    return ", ".join(f"{key.name} ({key.id})" for key in keys[:NAMED])
