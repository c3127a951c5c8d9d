"""Comparisons of checkpoints, and a row for each of their tensors."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "checkpoint_diff",
        sa.Column("serial", key, autoincrement=True, nullable=False),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("golden", sa.Text(), nullable=False),
        sa.Column("renames", sa.Text(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("job", sa.String(length=32), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("created", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("serial", name=op.f("pk_checkpoint_diff")),
        sa.UniqueConstraint("id", name=op.f("uq_checkpoint_diff_id")),
    )
    op.create_table(
        "checkpoint_tensor",
        sa.Column("diff", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("state", sa.SmallInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("golden", sa.Text(), nullable=False),
        sa.Column("share", sa.Double(), nullable=False),
        sa.Column("largest", sa.Double(), nullable=False),
        sa.Column("facts", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("diff", "number", name=op.f("pk_checkpoint_tensor")),
    )
    op.create_index(op.f("ix_checkpoint_tensor_diff_state_number"), "checkpoint_tensor", ["diff", "state", "number"])


def downgrade() -> None:
    op.drop_table("checkpoint_tensor")
    op.drop_table("checkpoint_diff")
