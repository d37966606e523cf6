"""What a batch of pages means for a generation: new documents, documents used again, counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from forager.documents.page import ExtractedDocument, NewPage, PreviousPage

LINK_SET_HASH = 16


@dataclass(slots=True)
class Counts:
    """How a generation differs from its base."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    carried_over: int = 0

    @property
    def pages(self) -> int:
        return self.added + self.changed + self.unchanged + self.carried_over


@dataclass(frozen=True, slots=True)
class ManifestPage:
    """A page with its document: an existing one by its id, or a new one."""

    page: NewPage
    link_set: bytes | None
    document_id: int | None = None


@dataclass(slots=True)
class Plan:
    """What one commit writes. `copied` pages answered 304 or failed: the base's line is copied."""

    new: list[ManifestPage] = field(default_factory=list)
    reused: list[ManifestPage] = field(default_factory=list)
    copied: list[NewPage] = field(default_factory=list)
    link_sets: dict[bytes, bytes] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)


def make_plan(pages: Sequence[NewPage], previous: Mapping[bytes, PreviousPage]) -> Plan:
    plan = Plan()
    for page in pages:
        before = previous.get(page.key)
        if page.document is None:
            _copy(plan, page, before)
        else:
            _place(plan, page, page.document, before)
    return plan


def _copy(plan: Plan, page: NewPage, before: PreviousPage | None) -> None:
    if before is None:
        raise ValueError(f"{page.url} has no document, and was not there before")
    plan.copied.append(page)
    if page.carried_reason is None:
        plan.counts.unchanged += 1
    else:
        plan.counts.carried_over += 1


def _place(
    plan: Plan, page: NewPage, document: ExtractedDocument, before: PreviousPage | None
) -> None:
    links = _link_set(plan, page, before)
    same_content = before is not None and before.content_hash == document.content_hash
    if before is None:
        plan.counts.added += 1
    elif same_content:
        plan.counts.unchanged += 1
    else:
        plan.counts.changed += 1
    if before and same_content and before.extractor_version == str(document.extractor_version):
        plan.reused.append(ManifestPage(page, links, before.document_id))
    else:
        plan.new.append(ManifestPage(page, links))


def _link_set(plan: Plan, page: NewPage, before: PreviousPage | None) -> bytes | None:
    if page.outlinks is None:
        return None
    digest = sha256(page.outlinks).digest()[:LINK_SET_HASH]
    if before is None or before.link_set != digest:
        plan.link_sets[digest] = page.outlinks
    return digest
