"""What an owner states with a release: added where it is drawn, stored, shown, and recorded."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

import hushsum as hs
from hushsum.declaration import request, setting
from hushsum.errors import FileRefused, UsageError
from hushsum.privacy import ReleaseRequest, Statement
from hushsum.releases import file_bytes, load_function


@request
class Noted(Statement):
    """A statement with a field, as a later version may have."""

    note: str | None = setting(None, "A sentence for readers.")


def tally() -> hs.Tally:
    return hs.grid(hs.GaussianKernel(dim=1, bandwidth=1.0), bounds=(0, 5)).add([[1.0], [2.0]] * 100)


def test_a_statement_is_added_to_what_is_drawn_and_to_the_entry_of_the_ledger() -> None:
    prepared = tally().prepare(ReleaseRequest(epsilon=1.0, statement=Noted(note="as agreed")))
    assert prepared.subject["note"] == "as agreed"
    function = prepared.spend()
    assert function.statement == Noted(note="as agreed")
    assert ("note", "as agreed") in function.describe().facts()
    assert function.describe().as_json()["statement"] == {"note": "as agreed"}
    with pytest.raises(FileRefused):  # the version of today does not know this field
        load_function(io.BytesIO(file_bytes(function)))


def test_steps_of_a_stream_and_merged_functions_keep_it() -> None:
    release = ReleaseRequest(epsilon=1.0, delta=1e-6, statement=Noted(note="as agreed"))
    empty = hs.grid(hs.GaussianKernel(dim=1, bandwidth=1.0), bounds=(0, 5))
    stream = hs.streams.prepare_stream(empty, hs.streams.StreamRequest(release=release, horizon=2)).start()
    assert stream.step().statement == Noted(note="as agreed")
    one, same = (tally().prepare(release).spend() for _ in range(2))
    other = tally().prepare(replace(release, statement=Noted(note="otherwise"))).spend()
    assert hs.merge(one, same).statement == Noted(note="as agreed")
    assert hs.merge(one, other).statement == Statement()


def test_a_statement_is_checked_when_it_is_made_and_when_it_is_read() -> None:
    with pytest.raises(UsageError, match="note"):
        Noted(note=3)  # type: ignore[arg-type]
    assert Noted.from_json({"note": "a"}) == Noted(note="a")
    for stored in ({"other": "a"}, {"note": 3}, {"note": None}, ["note"], None):
        with pytest.raises(ValueError, match=r"statement|note"):
            Noted.from_json(stored)


def test_nothing_is_written_where_nothing_is_stated() -> None:
    function = tally().release(epsilon=1.0)
    assert "statement" not in function.describe().as_json()
    assert b'"statement"' not in file_bytes(function)
