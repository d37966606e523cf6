"""The tables as SQLAlchemy models: what migrations are compared with. Queries live in store.py."""

from forager.db.tables.base import Base
from forager.db.tables.crawl import ArchiveSegment, FrontierEntry, VisitedUrl
from forager.db.tables.documents import (
    Document,
    Generation,
    GenerationDocument,
    LinkSet,
    Section,
    SectionSearch,
    Source,
)
from forager.db.tables.fetch import Domain, DomainPermit, Proxy, ProxySlot, RobotsFile
from forager.db.tables.jobs import CrawlJob, CrawlState, JobEvent, Worker

__all__ = [
    "ArchiveSegment",
    "Base",
    "CrawlJob",
    "CrawlState",
    "Document",
    "Domain",
    "DomainPermit",
    "FrontierEntry",
    "Generation",
    "GenerationDocument",
    "JobEvent",
    "LinkSet",
    "Proxy",
    "ProxySlot",
    "RobotsFile",
    "Section",
    "SectionSearch",
    "Source",
    "VisitedUrl",
    "Worker",
]
