"""Crawl templates, and the responses of webhooks."""

from __future__ import annotations

from forager.db.schema import run_migration

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_migration(__file__, ".sql")


def downgrade() -> None:
    run_migration(__file__, ".down.sql")
