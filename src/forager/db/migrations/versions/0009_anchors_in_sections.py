"""Anchors in the text of sections."""

from __future__ import annotations

from forager.db.schema import run_migration

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_migration(__file__, ".sql")


def downgrade() -> None:
    run_migration(__file__, ".down.sql")
