"""Why a call has no partner. Comparisons stored before have no cause."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("node_pair", sa.Column("leftover", sa.SmallInteger(), nullable=True))
    op.add_column("node_pair", sa.Column("beside", sa.Integer(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("node_pair", schema=None) as batch_op:
        batch_op.drop_column("beside")
        batch_op.drop_column("leftover")
