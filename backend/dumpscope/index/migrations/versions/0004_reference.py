"""An absolute reference beside target and golden: whose dump it is, and how far both sides are from it."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def _columns() -> tuple[sa.Column[Any], ...]:
    return (
        sa.Column("target_distance", sa.Double(), nullable=True),
        sa.Column("golden_distance", sa.Double(), nullable=True),
        sa.Column("distance_measure", sa.SmallInteger(), nullable=True),
        sa.Column("ratio", sa.Double(), server_default="-1", nullable=False),
        sa.Column("inverse", sa.Double(), nullable=True),
    )


def upgrade() -> None:
    op.add_column("comparison", sa.Column("reference", sa.BigInteger(), nullable=True))
    with op.batch_alter_table("comparison", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_comparison_reference"), ["reference"], unique=False)
    for column in _columns():
        op.add_column("node_pair", column)
    op.create_table(
        "distance",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("target_bulk", sa.Double(), nullable=True),
        sa.Column("target_peak", sa.Double(), nullable=True),
        sa.Column("golden_bulk", sa.Double(), nullable=True),
        sa.Column("golden_peak", sa.Double(), nullable=True),
        sa.Column("golden_score", sa.Double(), nullable=True),
        sa.Column("measure", sa.SmallInteger(), nullable=False),
        sa.Column("ratio", sa.Double(), nullable=True),
        sa.Column("inverse", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_distance")),
    )


def downgrade() -> None:
    op.drop_table("distance")
    with op.batch_alter_table("node_pair", schema=None) as batch_op:
        for column in reversed(_columns()):
            batch_op.drop_column(column.name)
    with op.batch_alter_table("comparison", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_comparison_reference"))
        batch_op.drop_column("reference")
