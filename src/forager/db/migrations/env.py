"""Alembic's entry: runs the migrations on the connection that `forager.db.schema` passes in."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
