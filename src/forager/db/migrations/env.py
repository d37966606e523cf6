"""Alembic's entry: runs the migrations on the connection that `forager.db.schema` hands over."""

from __future__ import annotations

from alembic import context

from forager.db.tables import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    compare_type=True,
    compare_server_default=True,
)
context.run_migrations()
