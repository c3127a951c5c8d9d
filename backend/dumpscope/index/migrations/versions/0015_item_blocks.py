"""Items of a rank as blocks of columns, and indexes without what nobody looks for. Ranks stored before keep rows in `item`."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "item_block",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("columns", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_item_block")),
    )
    op.drop_index("ix_item_pair_verdict_id", "item_pair")
    op.drop_index("ix_node_pair_golden_name_id", "node_pair")
    there = sa.text("golden_name IS NOT NULL")
    op.create_index(
        "ix_node_pair_golden_name_id",
        "node_pair",
        ["golden_name", "id"],
        sqlite_where=there,
        postgresql_where=there,
    )


def downgrade() -> None:
    op.drop_index("ix_node_pair_golden_name_id", "node_pair")
    op.create_index("ix_node_pair_golden_name_id", "node_pair", ["golden_name", "id"])
    op.create_index("ix_item_pair_verdict_id", "item_pair", ["verdict", "id"])
    op.drop_table("item_block")
