"""Identities at a sign-in provider, proven sign-ins, and tokens that come from them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def _text(name: str, size: int, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.String(size), nullable=nullable)


def upgrade() -> None:
    """Add two tables and a column."""
    op.create_table(
        "hushsum_identities",
        sa.Column("account", sa.String(40), nullable=False, primary_key=True),
        _text("issuer", 500),
        _text("claim", 80),
        _text("subject", 255),
        _text("sub", 255, nullable=True),
        _text("created", 40),
        # Nobody signs in to two accounts, whatever the code above believes.
        sa.UniqueConstraint("issuer", "claim", "subject", name="hushsum_identities_subjects"),
    )
    op.create_table(
        "hushsum_sign_ins",
        sa.Column("flow", sa.String(64), nullable=False, primary_key=True),
        sa.Column("hash", sa.String(64), nullable=False, unique=True),
        _text("account", 40),
        _text("expires", 40),
        _text("used", 40, nullable=True),
    )
    op.create_index("ix_hushsum_sign_ins_account", "hushsum_sign_ins", ["account"])
    op.add_column(
        "hushsum_tokens", sa.Column("signed_in", sa.Boolean, nullable=False, server_default=sa.false())
    )
