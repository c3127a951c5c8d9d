"""The phrases behind stored sentences, so that they can be said in another language."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

TABLES = ("item_error", "job", "task")


def upgrade() -> None:
    for table in TABLES:
        op.add_column(table, sa.Column("said", sa.Text(), nullable=True))


def downgrade() -> None:
    for table in TABLES:
        with op.batch_alter_table(table) as batch:
            batch.drop_column("said")
