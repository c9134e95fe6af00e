"""The history of the service's tables."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

import hushsum.service.store.migrations
from hushsum.ledger.database import connect
from hushsum.service.store import Accounts, Actor, Store
from hushsum.service.store.accounts import hash_of
from hushsum.service.store.schema import REVISION, VERSION_TABLE, metadata

SCRIPTS = Path(str(hushsum.service.store.migrations.__file__)).parent


def test_the_migrations_are_one_line_and_make_what_the_code_reads(tmp_path: Path) -> None:
    scripts = ScriptDirectory(str(SCRIPTS))
    assert scripts.get_heads() == [REVISION]
    assert all(not each.is_merge_point for each in scripts.walk_revisions())
    with Store.open(str(tmp_path / "x.db"), create=True).database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        changes = compare_metadata(context, metadata)
    assert [each for each in changes if each[0] in ("add_table", "add_column", "remove_column")] == []


def test_tokens_of_the_first_version_go_on_working(tmp_path: Path) -> None:
    place = str(tmp_path / "x.db")
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    with connect(place, create=True).writing() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        connection.execute(
            sa.text("INSERT INTO hushsum_accounts VALUES ('acc_1', 'olga', 'owner', '2026', false)")
        )
        connection.execute(
            sa.text(
                "INSERT INTO hushsum_tokens (id, account, hash, label, scopes, created, expires) "
                "VALUES ('tok_1', 'acc_1', :hash, '', 'query', '2026', '2999')"
            ),
            {"hash": hash_of("secret")},
        )
    accounts = Accounts(Store.open(place, create=True).database)
    found = accounts.authenticate("secret")
    assert found is not None
    assert not found[1].signed_in
    assert accounts.issue("acc_1", scopes=("query",), days=1, label="", actor=Actor("x"))[0]
