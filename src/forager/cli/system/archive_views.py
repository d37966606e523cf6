"""Output of `forager archive`."""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from forager.amounts import size_in_words
from forager.cli.output import (
    Columns,
    clean,
    counted,
    duration,
    note,
    plain,
    say,
    show_facts,
    write,
)
from forager.errors import InvalidInput

if TYPE_CHECKING:
    from forager.archive.audit import CheckedRecord, Finding
    from forager.archive.deletion import Pruned
    from forager.archive.reader import ArchivedResponse
    from forager.archive.retention import Deletion, Plan, SegmentRow
    from forager.archive.storage import StoredSegment


def show_segment(row: SegmentRow) -> None:
    facts = {
        "segment": row.name,
        "state": _state(row),
        "size": size_in_words(row.bytes),
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
    "size>": lambda row: size_in_words(row.bytes),
    "records>": "records",
    "references>": "references",
    "age": lambda row: duration(max(0.0, (datetime.now(UTC) - row.written_at).total_seconds())),
    "state": _state,
    "job": "job_id",
}


@dataclass(slots=True)
class Audit:
    """What was found, and what was done about it."""

    findings: list[Finding]
    repaired: dict[str, list[str]] = field(default_factory=dict)

    @property
    def repairable(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.can_be_repaired]

    @property
    def failed(self) -> bool:
        """Whether a response that rows refer to, or referred to before a repair, is lost."""
        return any(not finding.ok for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        items = [
            {
                **plain(finding),
                "troubles": [trouble.name.lower() for trouble in finding.troubles],
                "broken": [str(ref) for ref in finding.broken],
                "ok": finding.ok,
                "mended": self.repaired.get(finding.segment, []),
            }
            for finding in self.findings
        ]
        return {"ok": not self.failed, "segments": items}

    def show(self) -> None:
        troubled = [finding for finding in self.findings if finding.troubles]
        for segment, done in self.repaired.items():
            say(f"{segment}: {', '.join(done)}")
        show_findings([finding for finding in troubled if finding.segment not in self.repaired])
        records = sum(finding.records for finding in self.findings)
        segments = counted(len(self.findings), "segment")
        note(f"{segments} with {counted(records, 'record')} read, {len(troubled)} with problems.")
        if self.repairable and not self.repaired:
            note("`forager archive verify --fix` repairs what can be repaired.")


def show_findings(findings: Sequence[Finding]) -> None:
    for finding in findings:
        for trouble in finding.troubles:
            detail = f" ({finding.detail})" if finding.detail and trouble.name == "TORN" else ""
            say(f"{finding.segment}: {trouble.value}{detail}", "" if trouble.harmless else "red")


@dataclass(frozen=True, slots=True)
class Sample:
    """Records that were read."""

    checked: Sequence[CheckedRecord]

    @property
    def failed(self) -> list[CheckedRecord]:
        return [record for record in self.checked if record.problem]

    def as_json(self) -> dict[str, Any]:
        broken = [{"ref": str(record.ref), "problem": record.problem} for record in self.failed]
        return {"ok": not broken, "read": len(self.checked), "broken": broken}

    def show(self) -> None:
        for record in self.failed:
            say(f"{record.ref}: {record.problem}", "red")
        note(f"{counted(len(self.checked), 'record')} read, {len(self.failed)} of them unreadable.")


def repair_question(findings: Sequence[Finding]) -> str:
    lost = sum(len(finding.broken) or finding.references for finding in findings if not finding.ok)
    files = [finding for finding in findings if finding.troubles[0].name == "ORPHAN"]
    size = size_in_words(sum(finding.bytes for finding in files))
    return (
        f"Repair {counted(len(findings), 'segment')}? This deletes"
        f" {counted(len(files), 'file')} ({size}) and {counted(lost, 'reference')}."
    )


@dataclass(slots=True)
class Pruning:
    """What was planned, and what was done unless it was only asked for."""

    plan: Plan
    done: Pruned | None = None
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
        note(f"kept, though {deletion.reason.value}: {_deletion_in_words(deletion)}")
    for deletion in done.spared if done else []:
        note(f"spared, as it is in use now: {deletion.segment.name}")
    for orphan in pruning.orphans:
        say(f"{orphan.name} ({size_in_words(orphan.size)}): unknown to the database")
    freed = [d.segment.bytes for d in deleted] + [orphan.size for orphan in pruning.orphans]
    size = size_in_words(sum(freed))
    verb = "would be deleted" if done is None else "deleted"
    note(f"{counted(len(freed), 'segment')} ({size}) {verb}.")


def show_deletions(deletions: Sequence[Deletion], show: Callable[[str], None] = say) -> None:
    for deletion in deletions:
        show(f"{_deletion_in_words(deletion)}: {deletion.reason.value}")


def loss_question(losses: Sequence[Deletion]) -> str:
    responses = sum(deletion.segment.references for deletion in losses)
    return (
        f"Delete {counted(len(losses), 'segment')} although rows refer to"
        f" {counted(responses, 'response')} in there?"
    )


def orphan_question(orphans: Sequence[StoredSegment]) -> str:
    size = size_in_words(sum(orphan.size for orphan in orphans))
    return f"Delete {counted(len(orphans), 'file')} ({size}) that are unknown to this database?"


def _deletion_in_words(deletion: Deletion) -> str:
    segment = deletion.segment
    references = counted(segment.references, "reference")
    return f"{segment.name} ({size_in_words(segment.bytes)}, {references})"


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
