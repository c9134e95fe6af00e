"""The history of the service's tables."""

from __future__ import annotations

from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

import hushsum.service.store.migrations
from hushsum.service.store import REVISION, VERSION_TABLE, Store, metadata

SCRIPTS = Path(str(hushsum.service.store.migrations.__file__)).parent


def test_the_migrations_are_one_line_and_make_what_the_code_reads(tmp_path: Path) -> None:
    scripts = ScriptDirectory(str(SCRIPTS))
    assert scripts.get_heads() == [REVISION]
    assert all(not each.is_merge_point for each in scripts.walk_revisions())
    with Store.open(str(tmp_path / "x.db"), create=True).database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        changes = compare_metadata(context, metadata)
    assert [each for each in changes if each[0] in ("add_table", "add_column", "remove_column")] == []
