"""Past one machine: what the larger parts need that are switched on by settings."""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

OBJECT_STORAGE = """
ALTER TABLE archive_segments ADD COLUMN moved_to text, ADD COLUMN keep_until timestamptz;
ALTER TABLE image_files ADD COLUMN moved_to text;
"""
NO_OBJECT_STORAGE = """
ALTER TABLE image_files DROP COLUMN moved_to;
ALTER TABLE archive_segments DROP COLUMN keep_until, DROP COLUMN moved_to;
"""


def upgrade() -> None:
    for statements in (OBJECT_STORAGE,):
        op.execute(statements)


def downgrade() -> None:
    for statements in (NO_OBJECT_STORAGE,):
        op.execute(statements)
