"""Access: API keys, what each owner may use, and answers that are given again."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, Index, SmallInteger, text
from sqlalchemy.orm import Mapped, mapped_column

from forager.db.tables.base import NOW, Base


class ApiKey(Base):
    """A key: its public half, and the hash of its secret half."""

    __tablename__ = "api_keys"
    __table_args__ = (
        CheckConstraint("scope IN ('read', 'operate', 'admin')", name="scope"),
        CheckConstraint("octet_length(secret_hash) = 32", name="secret_hash"),
        Index("api_keys_created_idx", "created_at", "id"),
        Index("api_keys_user_idx", "user_id"),
        {"postgresql_with": {"fillfactor": "70"}},
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    secret_hash: Mapped[bytes]
    name: Mapped[str]
    # the owner of what is made with it
    user_id: Mapped[UUID]
    scope: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    # within some minutes: a write per request would cost more than the request
    last_used_at: Mapped[datetime | None]


class OwnerQuota(Base):
    """How much an owner may use; NULL means no limit but the settings' own."""

    __tablename__ = "owner_quotas"
    __table_args__ = (
        CheckConstraint(
            "active_jobs >= 0 AND pages_per_job >= 1 AND pages_per_day >= 0"
            " AND requests_per_minute >= 1",
            name="amounts",
        ),
    )

    user_id: Mapped[UUID] = mapped_column(primary_key=True)
    active_jobs: Mapped[int | None]
    pages_per_job: Mapped[int | None] = mapped_column(BigInteger)
    pages_per_day: Mapped[int | None] = mapped_column(BigInteger)
    requests_per_minute: Mapped[int | None]
    updated_at: Mapped[datetime] = mapped_column(server_default=NOW)


class IdempotencyKey(Base):
    """A request that was answered, and its answer; written with what the request made."""

    __tablename__ = "idempotency_keys"
    __table_args__ = (Index("idempotency_keys_created_idx", "created_at"),)

    user_id: Mapped[UUID] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    request_hash: Mapped[bytes]
    # NULL only inside the transaction that makes the answer
    status: Mapped[int | None] = mapped_column(SmallInteger)
    answer: Mapped[bytes | None]
    # an answer that holds a secret is stored encrypted
    sealed: Mapped[bool] = mapped_column(server_default=text("false"))
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
