"""Chat and push channels: events as messages to Slack, Discord, Teams, Telegram, ntfy and others.

Apprise knows their URLs and sends the messages, in a process of its own whose connections pass the
same guard as those of crawls. A URL of a channel contains secrets, so it is encrypted, and lists
show it without them.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Mapping
from hashlib import sha256
from importlib.util import find_spec
from typing import Any

from forager.errors import ForagerError, GiveUp, InvalidInput, NotAllowed, error_text
from forager.extract.text import readable
from forager.fetch.guard import GuardPolicy
from forager.processes.calls import call_limited
from forager.processes.sandbox import SandboxLimits
from forager.webhooks.message_text import lines_of, subject_of
from forager.webhooks.posting import PostOutcome

INSTALL = "pip install 'forager-crawler[notify]'"
LIMITS = SandboxLimits(seconds=30.0, memory_mb=768)
# services and devices of the machine itself, and what needs its files; requests that webhooks make,
# and mail that `mailto:` sends
_REFUSED = frozenset(
    [
        "syslog",
        "rsyslog",
        "dbus",
        "qt",
        "kde",
        "glib",
        "gnome",
        "macosx",
        "windows",
        "blink1",
        "vapid",
        "json",
        "jsons",
        "xml",
        "xmls",
        "form",
        "forms",
        "mailto",
        "mailtos",
    ]
)
MAX_TEXT = 4000
_MENTION = re.compile(r"@(?=(?:everyone|here|channel|all|room)\b)", re.IGNORECASE)


class ChatUnavailable(NotAllowed):
    """Messages to chat channels cannot be sent, because the extra is not installed."""


def is_channel(url: str) -> bool:
    """Whether the URL names a service for Apprise, such as slack:// or ntfy://."""
    scheme, mark, _ = url.strip().partition("://")
    return bool(mark) and scheme.lower() not in ("http", "https", "mailto") and scheme.isalnum()


async def checked_channel(url: str) -> str:
    """A channel as lists show it, without its secrets; raises InvalidInput for other URLs."""
    check_installed()
    shown = await call_limited(describe, url, limits=LIMITS)
    if shown is None:
        raise InvalidInput(
            "this is not a URL of a channel that can be used",
            hint="For example slack://TOKEN_A/TOKEN_B/TOKEN_C/#alerts or ntfy://HOST/TOPIC",
        )
    # two channels may look the same without their secrets
    return f"{shown}#{sha256(url.encode()).hexdigest()[:8]}"


async def send_to_channel(
    url: str, content: Mapping[str, Any], *, allow_private: bool
) -> PostOutcome:
    """Send one event; errors are returned as the outcome."""
    began = time.perf_counter()
    title = _plain(" ".join(readable(subject_of(content)).split()))
    text = _plain("\n".join(readable(line) for line in lines_of(content))[:MAX_TEXT])
    try:
        error = await call_limited(notify, url, title, text, allow_private, limits=LIMITS)
    except ForagerError:
        error = "the process that sends the message failed or took too long"
    return PostOutcome(None, error, time.perf_counter() - began)


def _plain(text: str) -> str:
    """The text without words that notify everyone in a channel: a page may contain them."""
    return _MENTION.sub("@\N{WORD JOINER}", text)


def check_installed() -> None:
    """Raise ChatUnavailable without the extra."""
    if find_spec("apprise") is None:
        raise ChatUnavailable("chat channels need Apprise", hint=INSTALL)


def describe(url: str) -> str | None:
    """The URL without secrets; None if Apprise does not know it, or it is refused."""
    plugin = _plugin(url)
    return None if plugin is None else str(plugin.url(privacy=True)).partition("?")[0]


def notify(url: str, title: str, text: str, allow_private: bool) -> str | None:
    """Send a message, in a process of its own; returns what failed."""
    import apprise

    _guard_connections(GuardPolicy(allow_private=allow_private))
    plugin = _plugin(url)
    if plugin is None:
        return "the URL of the channel is not valid"
    try:
        return _notify(apprise, plugin, title, text)
    except Exception as error:  # its text may contain the URL
        return f"the service failed: {type(error).__name__}"


def _notify(apprise: Any, plugin: Any, title: str, text: str) -> str | None:
    channel = apprise.Apprise(plugin)
    with apprise.LogCapture(level=apprise.logging.WARNING, fmt="%(message)s") as log:
        # text of pages is not markup of the service
        if channel.notify(body=text, title=title, body_format=apprise.NotifyFormat.TEXT):
            return None
        return " ".join(log.getvalue().split())[:500] or "the message was not accepted"


def _plugin(url: str) -> Any:
    import apprise

    plugin = apprise.Apprise.instantiate(url, suppress_exceptions=True)
    if plugin is None:
        return None
    kind = type(plugin)
    schemes = {*_schemes(kind.protocol), *_schemes(kind.secure_protocol)}
    return None if schemes & _REFUSED or _names_a_file(plugin) else plugin


def _names_a_file(plugin: Any) -> bool:
    """Whether the URL names a template or key that would be read, and sent: any file it may be."""
    import apprise

    values = vars(plugin).values()
    return any(isinstance(each, apprise.AppriseAttachment) and len(each) > 0 for each in values)


def _schemes(given: Any) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given or ())


def _guard_connections(policy: GuardPolicy) -> None:
    """Let no connection of this process reach an address that the guard refuses."""
    plain_connect = socket.socket.connect

    def connect(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            try:
                policy.check_address(address[0], address[0])
            except GiveUp as refused:
                raise ConnectionRefusedError(error_text(refused)) from None
        plain_connect(self, address)

    socket.socket.connect = connect  # type: ignore[method-assign, assignment]
    socket.socket.connect_ex = _refuse_connect_ex  # type: ignore[method-assign, assignment]


def _refuse_connect_ex(_socket: socket.socket, _address: Any) -> int:
    raise ConnectionRefusedError("connections are made by connect")
