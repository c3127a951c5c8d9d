"""What people say of calls, for a pair of dumps."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "note",
        sa.Column("id", key, autoincrement=True, nullable=False),
        sa.Column("pair", sa.LargeBinary(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("standing", sa.String(length=16), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("changed", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_note")),
        sa.UniqueConstraint("pair", "node", name=op.f("uq_note_pair_node")),
    )


def downgrade() -> None:
    op.drop_table("note")
