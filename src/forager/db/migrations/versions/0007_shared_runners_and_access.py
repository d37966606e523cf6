"""Jobs of lost runners, keys that see everything, and limits of timestamps."""

from __future__ import annotations

from forager.db.schema import run_migration

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_migration(__file__, ".sql")


def downgrade() -> None:
    run_migration(__file__, ".down.sql")
