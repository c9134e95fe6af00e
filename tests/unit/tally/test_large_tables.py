"""Large tables: counters of bytes, packed cells and mapped files answer as small tables do, bit for bit."""

from __future__ import annotations

import io
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum import tables
from hushsum._native import CounterTable
from hushsum.errors import FileRefused
from hushsum.files import FileKind, Section, write_container
from hushsum.releases import TableFunction
from hushsum.tables import _hash_rows as hash_rows
from hushsum.tally import load_tally
from tests.property.test_damaged_hush_files import STRANGE, leaves, replaced

RNG = np.random.default_rng(0)
SETS = [RNG.integers(0, 10**6, int(size)).tolist() for size in RNG.integers(0, 20, 300)]
PROMISES: list[dict[str, Any]] = [
    {"epsilon": 1.0},
    {"epsilon": 1.0, "delta": 1e-6},
    {"rho": 0.5, "relation": "replace"},
    {"epsilon": 1.0, "rounded": True},
    {"epsilon": 1.0, "mechanism": "gamma radius"},
    {"epsilon": 1.0, "rows": 7},
]


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table counts as a large one."""
    monkeypatch.setattr(hash_rows, "LARGE_TABLE", 1)
    monkeypatch.setattr(tables, "LARGE_TABLE", 1)


def tally() -> hs.Tally:
    return hs.race(hs.JaccardKernel(), rows=20, width=701, seed=3)


def released(counted: hs.Tally, **promise: Any) -> TableFunction:
    function = counted.release(insecure_noise_seed=5, **promise)
    assert isinstance(function, TableFunction)
    return function


SMALL = tally().add(SETS)


@pytest.mark.parametrize("promise", PROMISES, ids=str)
@pytest.mark.usefixtures("large")
def test_a_large_release_is_the_small_one(promise: dict[str, Any], tmp_path: Path) -> None:
    counted = tally().add(SETS[:200]).merge(tally().add(SETS[200:]))
    assert isinstance(counted._table, CounterTable)
    small, packed = released(SMALL, **promise), released(counted, **promise)
    assert not isinstance(packed.cells, np.ndarray)
    packed.save(tmp_path / "large.hush")
    mapped = hs.load(tmp_path / "large.hush")
    assert isinstance(mapped, TableFunction)
    for function in (packed, mapped, pickle.loads(pickle.dumps(mapped))):
        np.testing.assert_array_equal(function.table, small.table)
        assert function.table.dtype == small.table.dtype
        assert (function.count, function.step, function.claim) == (small.count, small.step, small.claim)
        for estimator in ("mean", "median-of-means"):
            answers = function(SETS[:9], estimator=estimator)
            np.testing.assert_array_equal(answers, small(SETS[:9], estimator=estimator))
        np.testing.assert_array_equal(function.query(SETS).stderr, small.query(SETS).stderr)
        np.testing.assert_array_equal(function.sum(SETS, threads=2), small.sum(SETS, threads=2))
        np.testing.assert_array_equal(function.rounded().table, small.rounded().table)


@pytest.mark.parametrize("key", [None, b"k" * 32])
@pytest.mark.usefixtures("large")
def test_a_large_tally_is_saved_merged_and_changed(key: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "large.tally"
    tally().add(SETS).save(path, encryption_key=key)
    read = load_tally(path, encryption_key=key)
    assert isinstance(read._table, CounterTable)
    read.remove(SETS[:50]).merge(tally().add(SETS[:50]))
    np.testing.assert_array_equal(released(read, epsilon=1.0).table, released(SMALL, epsilon=1.0).table)


@pytest.fixture
def file(large: None) -> bytes:
    stream = io.BytesIO()
    released(tally().add(SETS), epsilon=1.0, rows=20).save(stream)
    return stream.getvalue()


def use(data: bytes) -> None:
    function = hs.load(io.BytesIO(data))
    assert isinstance(function, TableFunction)
    assert function.table.shape == function.basis.shape
    assert np.all(np.isfinite(function.query(SETS[:3]).value))


def test_every_changed_byte_is_refused_when_its_cells_are_used(file: bytes) -> None:
    use(file)
    positions = {*range(300), *range(300, len(file), 37), *range(len(file) - 300, len(file))}
    for position in sorted(positions):
        changed = bytearray(file)
        changed[position] ^= 1 << position % 8
        with pytest.raises(FileRefused):
            use(bytes(changed))


def test_a_damaged_page_is_refused_only_by_those_who_use_it(file: bytes, tmp_path: Path) -> None:
    changed = bytearray(file)
    changed[int.from_bytes(file[12:16], "little") + 24 + 10] ^= 1
    path = tmp_path / "damaged.hush"
    path.write_bytes(changed)
    function = hs.load(path)
    assert isinstance(function, TableFunction)
    assert not isinstance(function.cells, np.ndarray)
    function.cells.native.read_cells(function.cells.size - 100, np.empty(100, np.int64), 1)
    for wrong in (lambda: function.table, lambda: function.save(tmp_path / "copy.hush")):
        with pytest.raises(FileRefused, match="a page of its table"):
            wrong()
    assert not (tmp_path / "copy.hush").exists()


def test_every_truncation_and_extension_is_refused(file: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cut.hush"
    for length in [*range(0, 200, 7), *range(200, len(file), 997), len(file) - 1]:
        path.write_bytes(file[:length])
        with pytest.raises(FileRefused):
            hs.load(path)
    path.write_bytes(file + b"x")
    with pytest.raises(FileRefused):
        hs.load(path)


def test_a_hostile_header_with_right_checksums_is_refused_or_read(file: bytes) -> None:
    length = int.from_bytes(file[12:16], "little")
    header = json.loads(file[24 : 24 + length])
    paged = header.pop("paged")
    body = file[24 + length : -32]
    rest = body[paged : paged + 16 * header["table"]["cells"]["exceptions"]]
    for path in [path for path in leaves(header["table"], ("table",)) if path]:
        for new in [*STRANGE, 2**62, -(2**62), 56, 57, 64]:
            stream = io.BytesIO()
            pages = Section(paged, lambda: [body[:paged]])
            write_container(stream, FileKind.RELEASED, replaced(header, path, new), [rest], paged=pages)
            try:
                use(stream.getvalue())
            except FileRefused:
                continue


def test_a_table_of_two_to_the_24_cells_is_large(tmp_path: Path) -> None:
    counted = hs.race(hs.JaccardKernel(), rows=64, width=1 << 18).add(SETS)
    function = released(counted, epsilon=1.0, rows=64)
    function.save(tmp_path / "large.hush")
    mapped = hs.load(tmp_path / "large.hush")
    np.testing.assert_array_equal(mapped.sum(SETS[:5]), function.sum(SETS[:5]))
    assert (tmp_path / "large.hush").stat().st_size < 10.6 / 8 * (1 << 24)


def test_small_tables_keep_their_form(tmp_path: Path) -> None:
    released(SMALL, epsilon=1.0).save(tmp_path / "small.hush")
    assert b'"paged"' not in (tmp_path / "small.hush").read_bytes()[:2000]
