"""One stream for each open page, with the parts that have changed.

A stream loads the page about once a second and sends only the parts that differ. A page in a hidden
tab has no stream: its script closes it, and opens another when the tab is visible again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from hashlib import blake2b

import orjson
import psycopg

from forager.access.caller import Forbidden, Unauthorised
from forager.errors import DatabaseUnavailable, NotFound
from forager.logs import get_logger
from forager.web.rendering import Page, live_blocks
from forager.web.visit import Visit

log = get_logger("web")

INTERVAL = 1.0
MAX_STREAMS = 200  # of one process
RETRY_MS = 2000


async def stream(visit: Visit, load: Callable[[], Awaitable[Page]]) -> AsyncIterator[bytes]:
    """Messages for the page's script: `part`, `look`, `trouble` and `gone`."""
    state = visit.request.app.state
    sent: dict[str, bytes] = {}
    shown: str | None = None
    with state.streams.taken():
        yield f"retry: {RETRY_MS}\n\n".encode()
        while not state.hub.closing:
            try:
                await visit.check()
                page = await load()
                if shown not in (None, page.template):  # another page altogether: load it
                    yield _message("gone", {})
                    return
                shown, parts = page.template, live_blocks(visit, page)
            except (Unauthorised, Forbidden, NotFound):
                yield _message("gone", {})
                return
            except (DatabaseUnavailable, psycopg.Error) as error:
                log.warning("a page cannot be kept up to date", reason=str(error))
                yield _message("trouble", {"text": "the database does not answer"})
            else:
                for name, html in _changed(parts, sent):
                    yield _message("part", {"id": name, "html": html})
                yield _message("look", {"at": time.time()})
            await asyncio.sleep(INTERVAL)


def _changed(parts: Mapping[str, str], sent: dict[str, bytes]) -> Iterator[tuple[str, str]]:
    """The parts that differ from those sent before, which are updated."""
    for name, html in parts.items():
        digest = blake2b(html.encode(), digest_size=16).digest()
        if sent.get(name) != digest:
            sent[name] = digest
            yield name, html


def _message(kind: str, data: Mapping[str, object]) -> bytes:
    # JSON has no raw line breaks, so one data line holds all of it
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), orjson.dumps(data))
