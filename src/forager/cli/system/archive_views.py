"""Output of `forager archive`."""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from forager.amounts import size_text
from forager.cli.output import Columns, age_text, clean, counted, note, say, show_facts, write
from forager.errors import InvalidInput

if TYPE_CHECKING:
    from forager.archive.audit import AuditedSegment
    from forager.archive.deletion import DeletionResult
    from forager.archive.reader import ArchivedResponse
    from forager.archive.retention import Deletion, RetentionPlan, SegmentRow
    from forager.archive.storage import StoredSegment


def show_segment(row: SegmentRow) -> None:
    facts = {
        "segment": row.name,
        "state": _state(row),
        "size": size_text(row.bytes),
        "records": row.records,
        "references": row.references,
        "job": row.job_id,
        "lease": row.lease,
        "created": row.created_at,
        "written": row.written_at,
        "closed": row.closed_at,
    }
    show_facts(facts)


def _state(row: SegmentRow) -> str:
    if row.going_at is not None:
        return "going"
    return "open" if row.open else "closed"


SEGMENT_COLUMNS: Columns = {
    "segment": "name",
    "size>": lambda row: size_text(row.bytes),
    "records>": "records",
    "references>": "references",
    "age": lambda row: age_text(row.written_at),
    "state": _state,
    "job": "job_id",
}


def repair_question(segments: Sequence[AuditedSegment]) -> str:
    lost = sum(len(each.broken) or each.references for each in segments if not each.ok)
    files = [each for each in segments if each.problems[0].name == "ORPHAN"]
    size = size_text(sum(each.bytes for each in files))
    return (
        f"Repair {counted(len(segments), 'segment')}? This deletes"
        f" {counted(len(files), 'file')} ({size}) and {counted(lost, 'reference')}."
    )


@dataclass(slots=True)
class Pruning:
    """What was planned, and what was done unless it was only asked for."""

    plan: RetentionPlan
    done: DeletionResult | None = None
    orphans: list[StoredSegment] = field(default_factory=list)

    @property
    def losses(self) -> list[Deletion]:
        return [deletion for deletion in self.plan.delete if deletion.drops_references]

    def as_json(self) -> dict[str, Any]:
        planned = self.plan.delete if self.done is None else self.done.deleted
        return {
            "dry_run": self.done is None,
            "deleted": [_deletion_as_json(deletion) for deletion in planned],
            "kept": [_deletion_as_json(deletion) for deletion in self.plan.kept],
            "spared": [d.segment.name for d in self.done.spared] if self.done else [],
            "orphans": [orphan.name for orphan in self.orphans],
            "freed_bytes": sum(deletion.segment.bytes for deletion in planned),
        }


def show_pruning(pruning: Pruning) -> None:
    done = pruning.done
    deleted = pruning.plan.delete if done is None else done.deleted
    show_deletions(deleted)
    for deletion in pruning.plan.kept:
        note(f"kept, though {deletion.reason.value}: {_deletion_text(deletion)}")
    for deletion in done.spared if done else []:
        note(f"spared, as it is in use now: {deletion.segment.name}")
    for orphan in pruning.orphans:
        say(f"{orphan.name} ({size_text(orphan.size)}): unknown to the database")
    freed = [d.segment.bytes for d in deleted] + [orphan.size for orphan in pruning.orphans]
    size = size_text(sum(freed))
    verb = "would be deleted" if done is None else "deleted"
    note(f"{counted(len(freed), 'segment')} ({size}) {verb}.")


def show_deletions(deletions: Sequence[Deletion], show: Callable[[str], None] = say) -> None:
    for deletion in deletions:
        show(f"{_deletion_text(deletion)}: {deletion.reason.value}")


def loss_question(losses: Sequence[Deletion]) -> str:
    responses = sum(deletion.segment.references for deletion in losses)
    return (
        f"Delete {counted(len(losses), 'segment')} although rows refer to"
        f" {counted(responses, 'response')} in there?"
    )


def orphan_question(orphans: Sequence[StoredSegment]) -> str:
    size = size_text(sum(orphan.size for orphan in orphans))
    return f"Delete {counted(len(orphans), 'file')} ({size}) that are unknown to this database?"


def _deletion_text(deletion: Deletion) -> str:
    segment = deletion.segment
    references = counted(segment.references, "reference")
    return f"{segment.name} ({size_text(segment.bytes)}, {references})"


def _deletion_as_json(deletion: Deletion) -> dict[str, Any]:
    segment = deletion.segment
    return {
        "name": segment.name,
        "bytes": segment.bytes,
        "references": segment.references,
        "written_at": segment.written_at,
        "reason": deletion.reason.name.lower(),
    }


def show_response(response: ArchivedResponse, *, only_body: bool) -> None:
    """As it came; on a terminal, without what would steer it."""
    on_terminal = sys.stdout.isatty()
    text = _text(response)
    if on_terminal and text is None:
        raise InvalidInput("the body is not text", hint="Send it to a file: … --body > FILE")
    if not only_body:
        head = "\n".join([f"# {response.url}", f"# {response.date.isoformat()}", *_head(response)])
        write(clean(head).encode() + b"\n\n")
    write(clean(text).encode() if on_terminal and text is not None else response.body)


def response_as_json(response: ArchivedResponse) -> dict[str, Any]:
    text = _text(response)
    body = (
        {"body_base64": base64.b64encode(response.body).decode()}
        if text is None
        else {"body": text}
    )
    return {
        "url": _valid(response.url),
        "date": response.date,
        "status": response.status,
        "reason": _valid(response.reason),
        "headers": [[_valid(name), _valid(value)] for name, value in response.headers],
        "ip": response.ip,
        "protocol": response.protocol,
        "truncated": response.truncated,
        **body,
    }


def _head(response: ArchivedResponse) -> list[str]:
    status = f"HTTP {response.status} {response.reason}".rstrip()
    return [status, *(f"{_valid(name)}: {_valid(value)}" for name, value in response.headers)]


def _text(response: ArchivedResponse) -> str | None:
    from forager.extract.decode import decode
    from forager.extract.kinds import ContentKind, kind_of

    content_type = response.content_type
    if kind_of(response.body, content_type, response.url) is ContentKind.OTHER:
        return None
    return decode(response.body, content_type).text


def _valid(text: str) -> str:
    """Header bytes that were no UTF-8 are kept as lone surrogates, which no output takes."""
    return text.encode("utf-8", "replace").decode()
