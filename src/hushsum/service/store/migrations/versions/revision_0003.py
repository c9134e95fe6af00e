"""How many answers each served function has told."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a table."""
    op.create_table(
        "hushsum_served",
        sa.Column("function", sa.String(40), nullable=False, primary_key=True),
        sa.Column("number", sa.Integer, nullable=False, primary_key=True, autoincrement=False),
        sa.Column("answers", sa.Integer, nullable=False),
    )
