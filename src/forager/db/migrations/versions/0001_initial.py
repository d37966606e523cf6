"""The whole schema as of the first release, from `0001_initial.sql`."""

from __future__ import annotations

import re
from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

SCHEMA = Path(__file__).with_suffix(".sql").read_text("utf-8")


def upgrade() -> None:
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    # by the driver itself: SQLAlchemy would look for parameters in the text
    driver.execute(SCHEMA)


def downgrade() -> None:
    made = re.findall(r"^CREATE (TABLE|VIEW|TYPE|FUNCTION) (\w+)", SCHEMA, re.MULTILINE)
    for kind, name in reversed(made):
        op.execute(f"DROP {kind} {name}")
