"""Meanings of columns, corrected by the code that writes them."""

from __future__ import annotations

from forager.db.schema import run_migration

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_migration(__file__, ".sql")


def downgrade() -> None:
    run_migration(__file__, ".down.sql")
