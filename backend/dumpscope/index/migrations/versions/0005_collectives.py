"""Communications with every rank's part. Comparisons stored before get them when they are judged again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "collective",
        sa.Column("id", key, autoincrement=False, nullable=False),
        sa.Column("api", sa.Text(), nullable=False),
        sa.Column("call", sa.Integer(), nullable=False),
        sa.Column("ranks", sa.Text(), nullable=False),
        sa.Column("missing", sa.Text(), nullable=False),
        sa.Column("verdict", sa.SmallInteger(), nullable=False),
        sa.Column("faulty", sa.SmallInteger(), nullable=False),
        sa.Column("first_part", sa.BigInteger(), nullable=False),
        sa.Column("part_count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_collective")),
    )
    op.create_table(
        "collective_part",
        sa.Column("id", key, autoincrement=False, nullable=False),
        sa.Column("unit", sa.BigInteger(), nullable=False),
        sa.Column("node", sa.Integer(), nullable=False),
        sa.Column("gave", sa.SmallInteger(), nullable=True),
        sa.Column("gave_severity", sa.Double(), nullable=False),
        sa.Column("took", sa.SmallInteger(), nullable=True),
        sa.Column("took_severity", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_collective_part")),
    )
    with op.batch_alter_table("collective_part", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_collective_part_unit_node"), ["unit", "node"], unique=False)


def downgrade() -> None:
    op.drop_table("collective_part")
    op.drop_table("collective")
