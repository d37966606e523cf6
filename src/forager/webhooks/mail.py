"""Mail: events as e-mail messages, sent through the SMTP server of the settings."""

from __future__ import annotations

import asyncio
import hashlib
import smtplib
import ssl
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from email.message import EmailMessage
from email.utils import localtime
from typing import Any
from urllib.parse import unquote, urlsplit

from forager.errors import NotAllowed, error_text
from forager.extract.text import readable
from forager.settings import Settings
from forager.settings.engines import SMTP_STARTTLS, SMTP_TLS
from forager.webhooks.message_text import lines_of, subject_of
from forager.webhooks.posting import SHOWN_BYTES, PostOutcome
from forager.webhooks.webhook import MAILTO

# per step of a connection; a message takes up to a dozen steps
TIMEOUT = 10.0
AT_ONCE = 4
PERMANENT = 500
MAX_SUBJECT = 200
PORTS = {SMTP_TLS: 465, SMTP_STARTTLS: 587}


# a slow mail server must not block other threads
_THREADS = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="mail")


class MailUnavailable(NotAllowed):
    """E-mail cannot be sent, because no SMTP server is configured."""


class Mailer:
    """Sends events by e-mail through the configured server."""

    def __init__(self, settings: Settings) -> None:
        if settings.smtp_url is None or settings.smtp_from is None:
            raise MailUnavailable(
                "no SMTP server is configured", hint="Set FORAGER_SMTP_URL and FORAGER_SMTP_FROM."
            )
        self._server = urlsplit(settings.smtp_url.get_secret_value())
        self._from = settings.smtp_from

    async def send(self, url: str, content: Mapping[str, Any], delivery: str) -> PostOutcome:
        """Send one event to a mailto: URL; the outcome has the reply of the server."""
        address = url.removeprefix(MAILTO)
        loop, began = asyncio.get_running_loop(), time.perf_counter()
        try:
            await loop.run_in_executor(_THREADS, self._send, content, address, delivery)
        except smtplib.SMTPRecipientsRefused as error:
            code, text = error.recipients[address]
            return _refused(code, text, began, is_permanent=code >= PERMANENT)
        except smtplib.SMTPResponseException as error:
            # other refusals, such as that of a login, concern the settings and not the message
            is_permanent = isinstance(error, smtplib.SMTPDataError) and error.smtp_code >= PERMANENT
            is_login = isinstance(error, smtplib.SMTPAuthenticationError)
            did = "refused the user name or password:" if is_login else "answered"
            return _refused(
                error.smtp_code, error.smtp_error, began, did=did, is_permanent=is_permanent
            )
        except Exception as error:  # the cause may end: the message is retried later
            return PostOutcome(None, _failure(error), time.perf_counter() - began)
        return PostOutcome(250, None, time.perf_counter() - began)

    def _send(self, content: Mapping[str, Any], address: str, delivery: str) -> None:
        message = _message(content)
        message["From"] = self._from
        message["To"] = address
        # equal for all attempts, so that mail programs recognize a duplicate
        known = f"{delivery} {content['id']} {content['occurred_at']}"
        name = hashlib.sha256(known.encode()).hexdigest()[:32]
        message["Message-ID"] = f"<{name}@{self._from.rpartition('@')[2].strip('>')}>"
        with closing(self._connection()) as connection:
            if self._server.scheme == SMTP_STARTTLS:
                connection.starttls(context=ssl.create_default_context())
            if self._server.username:
                connection.login(
                    unquote(self._server.username), unquote(self._server.password or "")
                )
            connection.send_message(message, to_addrs=[address])
            with suppress(OSError, smtplib.SMTPException):  # the message was accepted
                connection.quit()

    def _connection(self) -> smtplib.SMTP:
        scheme, host = self._server.scheme, self._server.hostname or ""
        port = self._server.port or PORTS.get(scheme, smtplib.SMTP_PORT)
        if scheme == SMTP_TLS:
            context = ssl.create_default_context()
            return smtplib.SMTP_SSL(host, port, timeout=TIMEOUT, context=context)
        return smtplib.SMTP(host, port, timeout=TIMEOUT)


def _failure(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate of the mail server is not valid: {error.verify_message}"
    if isinstance(error, UnicodeEncodeError):
        return "the user name or password for the mail server has characters other than ASCII"
    return f"the mail server failed: {readable(error_text(error))}"


def _refused(
    code: int, text: bytes | str, began: float, *, did: str = "answered", is_permanent: bool
) -> PostOutcome:
    body = readable(text.decode("utf-8", "replace") if isinstance(text, bytes) else text)
    return PostOutcome(
        code,
        f"the mail server {did} {code}",
        time.perf_counter() - began,
        body=body[:SHOWN_BYTES],
        is_permanent=is_permanent,
    )


def _message(content: Mapping[str, Any]) -> EmailMessage:
    message = EmailMessage()
    message["Subject"] = " ".join(readable(subject_of(content)).split())[:MAX_SUBJECT]
    message["Date"] = localtime()
    message["Auto-Submitted"] = "auto-generated"
    message.set_content("\n".join(readable(line) for line in lines_of(content)) + "\n")
    return message
