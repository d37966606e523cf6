"""The kinds of export; apart from the exports, so that a command line can name them at no cost."""

from __future__ import annotations

from enum import StrEnum


class ExportFormat(StrEnum):
    WARC = "warc"
    JSONL = "jsonl"
    PARQUET = "parquet"
