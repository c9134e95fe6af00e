"""The names of uploaded files."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; earlier uploads have no name."""
    op.add_column("hushsum_uploads", sa.Column("name", sa.String(255)))
