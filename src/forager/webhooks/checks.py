"""Check of webhooks."""

from __future__ import annotations

from datetime import UTC, datetime

from forager.amounts import counted
from forager.checks import Result, Topic, check, warn
from forager.db.database import Database
from forager.secrets import Vault
from forager.settings import Settings
from forager.webhooks.service import Webhooks

LISTED = 1000


@check("webhooks", Topic.WORK, "Messages wait, and are given up after three days.")
async def check_webhooks(database: Database, settings: Settings) -> Result:
    webhooks = (await Webhooks(database, Vault(settings)).page(limit=LISTED)).items
    if not webhooks:
        return "none"
    now = datetime.now(UTC)
    waiting = sum(webhook.waiting for webhook in webhooks)
    message = f"{len(webhooks)}, {counted(waiting, 'message')} waiting"
    active = [webhook for webhook in webhooks if webhook.is_active]
    mail = [webhook.url for webhook in active if webhook.is_mail]
    if mail and settings.smtp_url is None:
        return warn(
            f"{message}; e-mail to {mail[0]} cannot be sent: no SMTP server is configured",
            "Set FORAGER_SMTP_URL and FORAGER_SMTP_FROM.",
        )
    if paused := [each for each in active if each.retries_at and each.retries_at > now]:
        return warn(
            f"{message}; paused after failures",
            f"See forager webhooks deliveries {paused[0].id}; forager webhooks test sends one now.",
            found=[f"{each.url} ({each.failures} failures)" for each in paused],
        )
    return message
