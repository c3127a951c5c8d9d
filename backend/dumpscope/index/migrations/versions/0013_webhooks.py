"""Webhooks, and what was or is to be sent to them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "webhook",
        sa.Column("serial", key, autoincrement=True, nullable=False),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("home", sa.Text(), nullable=False),
        sa.Column("kinds", sa.Text(), nullable=False),
        sa.Column("states", sa.Text(), nullable=False),
        sa.Column("subject", sa.String(length=32), nullable=True),
        sa.Column("created", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("serial", name=op.f("pk_webhook")),
        sa.UniqueConstraint("id", name=op.f("uq_webhook_id")),
    )
    op.create_table(
        "delivery",
        sa.Column("serial", key, autoincrement=True, nullable=False),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("webhook", sa.BigInteger(), nullable=False),
        sa.Column("event", sa.String(length=32), nullable=False),
        sa.Column("job", sa.String(length=32), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("body", sa.Text(), nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("due", sa.Double(), nullable=True),
        sa.Column("reply_status", sa.Integer(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("said", sa.Text(), nullable=True),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("finished", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("serial", name=op.f("pk_delivery")),
        sa.UniqueConstraint("id", name=op.f("uq_delivery_id")),
    )
    op.create_index(op.f("ix_delivery_webhook_serial"), "delivery", ["webhook", "serial"])
    op.create_index(op.f("ix_delivery_due"), "delivery", ["due"])


def downgrade() -> None:
    op.drop_table("delivery")
    op.drop_table("webhook")
