"""How differences went on inside a unit, so that what inherits a call's difference can be told."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("flow", sa.Column("spread", sa.LargeBinary(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("flow") as batch:
        batch.drop_column("spread")
