"""The tables as SQLAlchemy models: what migrations are compared with. Queries live in store.py."""

from forager.db.tables.base import Base
from forager.db.tables.jobs import CrawlJob, CrawlState, JobEvent, Worker

__all__ = ["Base", "CrawlJob", "CrawlState", "JobEvent", "Worker"]
