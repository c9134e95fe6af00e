"""Accounts, tokens, identities, datasets, uploads, tallies, jobs, functions, grants, answers and the log."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_REFUSAL = "the log of the service is append-only"


def _id(name: str = "id", *, primary_key: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.String(40), nullable=False, primary_key=primary_key)


def _text(name: str, size: int, *, nullable: bool = False, unique: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.String(size), nullable=nullable, unique=unique)


def upgrade() -> None:
    """Make the tables, and the triggers that refuse every change of a log line."""
    op.create_table(
        "hushsum_accounts",
        _id(primary_key=True),
        _text("name", 80, unique=True),
        _text("role", 20),
        _text("created", 40),
        sa.Column("disabled", sa.Boolean, nullable=False),
    )
    op.create_table(
        "hushsum_tokens",
        _id(primary_key=True),
        _id("account"),
        _text("hash", 64, unique=True),
        _text("label", 80),
        _text("scopes", 200),
        _text("created", 40),
        _text("expires", 40),
        _text("revoked", 40, nullable=True),
        sa.Column("signed_in", sa.Boolean, nullable=False),
        _text("parent", 40, nullable=True),
    )
    op.create_table(
        "hushsum_identities",
        _id("account", primary_key=True),
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
        _text("hash", 64, unique=True),
        _id("account"),
        _text("expires", 40),
        _text("used", 40, nullable=True),
    )
    op.create_table(
        "hushsum_datasets",
        _id(primary_key=True),
        _id("owner"),
        _text("name", 80),
        _text("created", 40),
        _text("deleted", 40, nullable=True),
        sa.UniqueConstraint("owner", "name", name="hushsum_datasets_names"),
    )
    op.create_table(
        "hushsum_uploads",
        _id(primary_key=True),
        _id("dataset"),
        _text("format", 20),
        sa.Column("size", sa.BigInteger, nullable=False),
        _text("state", 20),
        _text("created", 40),
    )
    op.create_table(
        "hushsum_tallies",
        _id(primary_key=True),
        _id("dataset"),
        sa.Column("cells", sa.BigInteger, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("facts", sa.Text, nullable=False),
        _text("created", 40),
    )
    op.create_table(
        "hushsum_jobs",
        _id(primary_key=True),
        _text("kind", 20),
        _id("dataset"),
        _id("account"),
        _text("key", 100),
        sa.Column("request", sa.Text, nullable=False),
        _text("state", 20),
        sa.Column("progress", sa.Float),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("lease", sa.Float, nullable=False),
        sa.Column("touched", sa.Float, nullable=False),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("before", sa.Float, nullable=False),
        sa.Column("paying", sa.Boolean, nullable=False),
        _text("stop", 20, nullable=True),
        sa.Column("result", sa.Text),
        sa.Column("problem", sa.Text),
        _text("created", 40),
        _text("updated", 40),
        # The same key never makes two jobs, whatever the code above believes.
        sa.UniqueConstraint("dataset", "kind", "key", name="hushsum_jobs_keys"),
    )
    op.create_table(
        "hushsum_functions",
        _id(primary_key=True),
        _id("dataset"),
        _text("name", 80),
        _text("sha256", 64),
        sa.Column("facts", sa.Text, nullable=False),
        _text("created", 40),
    )
    op.create_table(
        "hushsum_grants",
        _id("function", primary_key=True),
        _id("account", primary_key=True),
        sa.Column("download", sa.Boolean, nullable=False),
        _text("created", 40),
    )
    op.create_table(
        "hushsum_served",
        _id("function", primary_key=True),
        sa.Column("number", sa.Integer, nullable=False, primary_key=True, autoincrement=False),
        sa.Column("answers", sa.Integer, nullable=False),
    )
    op.create_table(
        "hushsum_log",
        sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=True),
        _text("at", 40),
        _text("request", 64),
        _id("account"),
        _text("action", 40),
        _text("object", 100),
    )
    for table, column in (
        ("tokens", "account"),
        ("tokens", "parent"),
        ("sign_ins", "account"),
        ("datasets", "owner"),
        ("uploads", "dataset"),
        ("tallies", "dataset"),
        ("jobs", "dataset"),
        ("jobs", "account"),
        ("jobs", "state"),
        ("functions", "dataset"),
    ):
        op.create_index(f"ix_hushsum_{table}_{column}", f"hushsum_{table}", [column])
    _append_only()


def _append_only() -> None:
    if op.get_bind().dialect.name == "sqlite":
        for action in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER hushsum_log_no_{action.lower()} BEFORE {action} ON hushsum_log "
                f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
            )
        return
    op.execute(
        "CREATE FUNCTION hushsum_log_refuse_change() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$"
    )
    op.execute(
        "CREATE TRIGGER hushsum_log_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON hushsum_log "
        "FOR EACH STATEMENT EXECUTE FUNCTION hushsum_log_refuse_change()"
    )
