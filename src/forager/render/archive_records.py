"""Archive records of a rendered page: its static response, its resources, and the page itself.

These records, and a picture of the page if one was requested, follow one another and have one
reference, so that whatever copies, exports or keeps the page does so with all of them. Read as a
response, they are the rendered page.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from multidict import CIMultiDict, CIMultiDictProxy

from forager.archive.reader import parse_response, read_records
from forager.archive.segment import ArchiveRef
from forager.archive.storage import Storage
from forager.archive.warc_record import DerivedRecord, MetadataRecord, Record, pack
from forager.extract.kinds import MARKDOWN_TYPE, media_type
from forager.fetch.response import Response, Timing
from forager.render.renderer import RENDERED_TYPE, RenderedPage

MAX_LISTED = 200
# headers that still hold for the rendered page: directives, and validators of what it is made from
_KEPT = frozenset({"x-robots-tag", "link", "content-language", "etag", "last-modified"})
_NO_TIME = Timing(None, None, 0.0, 0.0)


def rendered_response(response: Response, page: RenderedPage) -> Response:
    """The rendered page in place of the static body."""
    kept = {name: value for name, value in response.headers.items() if name.lower() in _KEPT}
    headers = CIMultiDictProxy(CIMultiDict({**kept, "Content-Type": RENDERED_TYPE}))
    return replace(response, headers=headers, body=page.html)


def pack_page(url: str, page: RenderedPage, static: bytes) -> bytes:
    """The packed records of a page; `static` is the packed record of its static response."""
    now = datetime.now(UTC)
    records: list[Record] = [MetadataRecord(url, now, _listed(page))]
    if page.screenshot:
        records.append(DerivedRecord("resource", url, now, page.screenshot, "image/png"))
    records.append(DerivedRecord("conversion", url, now, page.html, RENDERED_TYPE))
    return b"".join((static, *map(pack, records)))


async def read_static(storage: Storage, ref: ArchiveRef) -> Response | None:
    """The static response of a page that was rendered; None if it was not."""
    records = await read_records(storage, ref)
    is_markdown = media_type(records[-1].fields.get("content-type")) == MARKDOWN_TYPE
    if len(records) == 1 or records[0].kind != "response" or is_markdown:
        return None
    stored = parse_response(records[0])
    return Response(
        url=stored.url,
        status=stored.status,
        reason=stored.reason,
        headers=CIMultiDictProxy(CIMultiDict(stored.headers)),
        body=stored.body,
        wire_size=0,
        timing=_NO_TIME,
        peer=stored.ip or "",
        http_version=(stored.protocol or "http/1.1").removeprefix("http/"),
    )


def _listed(page: RenderedPage) -> dict[str, str]:
    fields = {"render-seconds": f"{page.seconds:.3f}", "render-requests": str(page.requests)}
    for number, each in enumerate(page.resources[:MAX_LISTED], start=1):
        result = f"refused ({each.refused})" if each.refused else f"{each.status} {each.size}"
        cached = " cached" if each.cached else ""
        fields[f"resource-{number}"] = f"{result}{cached} {each.type} {each.url}"
    return fields
