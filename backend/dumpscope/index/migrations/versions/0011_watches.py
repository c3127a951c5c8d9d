"""Watched folders, the state of the files that a rank was read from, and what a comparison owes to a watch."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

ADDED = (
    ("rank_dump", "stamp", sa.Text()),
    ("rank_dump", "bytes", sa.BigInteger()),
    ("comparison", "watched", sa.SmallInteger()),
    ("comparison", "growing", sa.Text()),
)


def upgrade() -> None:
    key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    for table, name, kind in ADDED:
        op.add_column(table, sa.Column(name, kind, nullable=True))
    op.create_table(
        "watch",
        sa.Column("serial", key, autoincrement=True, nullable=False),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("dump", sa.BigInteger(), nullable=False),
        sa.Column("partner", sa.BigInteger(), nullable=True),
        sa.Column("side", sa.String(length=8), nullable=False),
        sa.Column("options", sa.Text(), nullable=False),
        sa.Column("comparison", sa.BigInteger(), nullable=True),
        sa.Column("compared", sa.Text(), nullable=True),
        sa.Column("begun", sa.Text(), nullable=False),
        sa.Column("seen", sa.Text(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("serial", name=op.f("pk_watch")),
        sa.UniqueConstraint("id", name=op.f("uq_watch_id")),
        sa.UniqueConstraint("dump", name=op.f("uq_watch_dump")),
    )
    op.create_index(op.f("ix_watch_partner"), "watch", ["partner"])


def downgrade() -> None:
    op.drop_table("watch")
    for table, name, _kind in reversed(ADDED):
        with op.batch_alter_table(table) as batch:
            batch.drop_column(name)
