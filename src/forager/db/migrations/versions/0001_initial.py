"""The whole schema as of the first release."""

from __future__ import annotations

import re
from pathlib import Path

from alembic import op

from forager.db.schema import run_migration

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_migration(__file__, ".sql")


def downgrade() -> None:
    schema = Path(__file__).with_suffix(".sql").read_text("utf-8")
    made = re.findall(r"^CREATE (TABLE|VIEW|TYPE|FUNCTION) (\w+)", schema, re.MULTILINE)
    for kind, name in reversed(made):
        op.execute(f"DROP {kind} {name}")
