"""A digest of the calls of every rank and unit, so that those of a thousand ranks with the same calls are read once."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

TABLES = ("rank_dump", "unit")


def upgrade() -> None:
    for table in TABLES:
        op.add_column(table, sa.Column("calls", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    for table in TABLES:
        with op.batch_alter_table(table) as batch:
            batch.drop_column("calls")
