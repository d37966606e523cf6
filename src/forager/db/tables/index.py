"""The search engine beside PostgreSQL: which indexes it has, and what it has not been told yet."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, CheckConstraint, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from forager.db.tables.base import NOW, Base, RowNumber


class SearchIndex(Base):
    """The index of one kind of rows; while there is a row, what changes is written to the outbox.

    An engine may lose an index and make an empty one of the same name: `uuid` tells them apart.
    """

    __tablename__ = "search_indexes"
    __table_args__ = (
        CheckConstraint("kind IN ('sections', 'products')", name="kind"),
        {"postgresql_with": {"fillfactor": "50"}},
    )

    kind: Mapped[str] = mapped_column(primary_key=True)
    # what searches ask; NULL until one is complete
    name: Mapped[str | None]
    uuid: Mapped[str | None]
    layout: Mapped[int | None]
    complete_since: Mapped[datetime | None]
    # what is being filled, and how far: all rows up to this id are in it
    building: Mapped[str | None]
    building_uuid: Mapped[str | None]
    building_layout: Mapped[int | None]
    filled_to: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    # what was replaced, until it is deleted
    old: Mapped[str | None]
    # when a worker last fed it: if that was long ago, the engine was switched off
    fed_at: Mapped[datetime] = mapped_column(server_default=NOW)


class IndexMessage(Base):
    """Something that the engine must hear of: an id, not a state. Deleted when it was told.

    The id is the version of what is told: rows are changed under a lock, so that of two changes
    the later one has the higher id.
    """

    __tablename__ = "index_outbox"
    __table_args__ = (Index("index_outbox_due_idx", "kind", "next_attempt_at", "id"),)

    id: Mapped[RowNumber]
    kind: Mapped[str]
    # a document or a product
    ref_id: Mapped[int] = mapped_column(BigInteger)
    # of a document that was deleted: how many sections it had
    sections: Mapped[int | None]
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    # also how long whoever took it may work on it
    next_attempt_at: Mapped[datetime] = mapped_column(server_default=NOW)
    attempts: Mapped[int] = mapped_column(server_default=text("0"))
    last_error: Mapped[str | None]
