"""The tables as SQLAlchemy models: what migrations are compared with. Queries live in store.py."""

from sqlalchemy import CheckConstraint, Float, Numeric

from forager.db.tables.access import ApiKey, IdempotencyKey, OwnerQuota
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
from forager.db.tables.fetch import (
    Domain,
    DomainPermit,
    Proxy,
    ProxySlot,
    ProxyUsage,
    RobotsFile,
)
from forager.db.tables.index import IndexMessage, SearchIndex
from forager.db.tables.jobs import CrawlJob, CrawlState, JobEvent, Worker
from forager.db.tables.metrics import MetricValue, MetricWriter, ServiceProcessRow
from forager.db.tables.products import (
    CatalogEvent,
    Extraction,
    Image,
    ImageFile,
    OutboxMessage,
    ParseRate,
    ParserRollout,
    PriceChange,
    Product,
    Webhook,
)
from forager.db.tables.tasks import (
    CrawlTask,
    DeadLetter,
    DispatchMessage,
    ErrorLog,
    TaskAttempt,
    TaskControl,
)

__all__ = [
    "ApiKey",
    "ArchiveSegment",
    "Base",
    "CatalogEvent",
    "CrawlJob",
    "CrawlState",
    "CrawlTask",
    "DeadLetter",
    "DispatchMessage",
    "Document",
    "Domain",
    "DomainPermit",
    "ErrorLog",
    "Extraction",
    "FrontierEntry",
    "Generation",
    "GenerationDocument",
    "IdempotencyKey",
    "Image",
    "ImageFile",
    "IndexMessage",
    "JobEvent",
    "LinkSet",
    "MetricValue",
    "MetricWriter",
    "OutboxMessage",
    "OwnerQuota",
    "ParseRate",
    "ParserRollout",
    "PriceChange",
    "Product",
    "Proxy",
    "ProxySlot",
    "ProxyUsage",
    "RobotsFile",
    "SearchIndex",
    "Section",
    "SectionSearch",
    "ServiceProcessRow",
    "Source",
    "TaskAttempt",
    "TaskControl",
    "VisitedUrl",
    "Webhook",
    "Worker",
]

# One NaN or infinite number ends the arithmetic of whatever reads it.
for table in Base.metadata.tables.values():
    for name in [each.name for each in table.columns if isinstance(each.type, (Float, Numeric))]:
        condition = f"{name} > '-Infinity' AND {name} < 'Infinity'"
        table.append_constraint(CheckConstraint(condition, name=f"{name}_finite"))
