"""Search rows of up to a page are stored as they are."""

from __future__ import annotations

from forager.db.schema import run_migration

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_migration(__file__, ".sql")


def downgrade() -> None:
    run_migration(__file__, ".down.sql")
