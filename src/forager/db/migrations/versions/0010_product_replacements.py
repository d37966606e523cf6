"""Other products that the pages of known products show."""

from __future__ import annotations

from forager.db.schema import run_migration

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_migration(__file__, ".sql")


def downgrade() -> None:
    run_migration(__file__, ".down.sql")
