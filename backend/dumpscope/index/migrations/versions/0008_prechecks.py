"""What the pre-check says of nodes of a dump."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "precheck",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("word", sa.SmallInteger(), nullable=False),
        sa.Column("facts", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_precheck")),
    )
    op.create_index(op.f("ix_precheck_word_id"), "precheck", ["word", "id"])


def downgrade() -> None:
    op.drop_index(op.f("ix_precheck_word_id"), table_name="precheck")
    op.drop_table("precheck")
