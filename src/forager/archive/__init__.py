"""The archive: raw responses as WARC records in segments, on local disk or in an object store."""

from forager.archive.codec import Codec
from forager.archive.errors import ArchiveError, DamagedRecord, SegmentExists, StorageFull
from forager.archive.export import ExportReport, export_warc, write_warc
from forager.archive.reader import (
    ArchivedRecord,
    ArchivedResponse,
    SegmentReport,
    SegmentScan,
    read_record,
    read_response,
    verify_segment,
)
from forager.archive.record import (
    MetadataRecord,
    ResponseRecord,
    RevisitProfile,
    RevisitRecord,
    Truncation,
    digest_of,
    pack,
)
from forager.archive.retention import Plan, Policy, SegmentState, plan_retention
from forager.archive.segment import ArchiveRef, SegmentName, parse_ref, parse_segment_name
from forager.archive.storage import Storage, open_storage
from forager.archive.writer import ArchiveWriter

__all__ = [
    "ArchiveError",
    "ArchiveRef",
    "ArchiveWriter",
    "ArchivedRecord",
    "ArchivedResponse",
    "Codec",
    "DamagedRecord",
    "ExportReport",
    "MetadataRecord",
    "Plan",
    "Policy",
    "ResponseRecord",
    "RevisitProfile",
    "RevisitRecord",
    "SegmentExists",
    "SegmentName",
    "SegmentReport",
    "SegmentScan",
    "SegmentState",
    "Storage",
    "StorageFull",
    "Truncation",
    "digest_of",
    "export_warc",
    "open_storage",
    "pack",
    "parse_ref",
    "parse_segment_name",
    "plan_retention",
    "read_record",
    "read_response",
    "verify_segment",
    "write_warc",
]
