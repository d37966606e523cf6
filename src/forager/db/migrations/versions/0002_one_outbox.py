"""One outbox instead of three, and what rendering, search and tracking have learned to store."""

from __future__ import annotations

from forager.db.schema import run_migration

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_migration(__file__, ".sql")


def downgrade() -> None:
    run_migration(__file__, ".down.sql")
