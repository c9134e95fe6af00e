"""Links by which anybody may query a function."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table; services of the earlier version do not look at it."""
    op.create_table(
        "hushsum_shares",
        sa.Column("id", sa.String(40), nullable=False, primary_key=True),
        sa.Column("function", sa.String(40), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False, unique=True),
        sa.Column("label", sa.String(80), nullable=False),
        sa.Column("origins", sa.Text, nullable=False),
        sa.Column("download", sa.Boolean, nullable=False),
        sa.Column("created", sa.String(40), nullable=False),
        sa.Column("expires", sa.String(40)),
        sa.Column("revoked", sa.String(40)),
    )
    op.create_index("ix_hushsum_shares_function", "hushsum_shares", ["function"])
