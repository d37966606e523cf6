"""${message}"""

from __future__ import annotations

from alembic import op

revision = "${up_revision}"
down_revision = "${down_revision}"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("")


def downgrade() -> None:
    op.execute("")
