"""Kinds of sources, items across shops, and events about crawls."""

from __future__ import annotations

from forager.db.schema import run_migration

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_migration(__file__, ".sql")


def downgrade() -> None:
    run_migration(__file__, ".down.sql")
