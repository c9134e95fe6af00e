"""Counts of graphs that are cancelled and continued: no node is counted twice, and none is left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.methods import count_rows
from hushsum.operations import CheckpointChoice, EdgeColumns, RecordFiles, tally_records
from hushsum.planning import KernelSpec, TableSpec
from hushsum.tables import HashRows
from hushsum.tally import Checkpoint, Tally
from tests.engine_files import counts

ROWS = HashRows(hs.JaccardKernel(), 5, 40, 0)
_ARCS = 13_107
"""What fits into the least memory that an edge list may have."""


class Cancelled(Exception):
    pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("graph")
    ends = np.random.default_rng(3).integers(0, 3000, (2 * _ARCS, 2))
    ends = ends[np.argsort(ends[:, 0], kind="stable")]
    (made / "graph.txt").write_text("".join(f"{a} {b}\n" for a, b in ends))
    return made


def count(folder: Path, checkpoint: Checkpoint | None, progress: Any = None, **kind: Any) -> Tally:
    edges = hs.records.read_edges(folder / "graph.txt", **{"memory": 1 << 20, **kind})
    return count_rows(edges, ROWS, threads=1, progress=progress, checkpoint=checkpoint)


def after(number: int) -> Any:
    """Cancels at the given call."""
    calls = iter(range(number))

    def progress(_: float | None) -> None:
        if next(calls, None) is None:
            raise Cancelled

    return progress


@pytest.mark.parametrize("kind", [{}, {"directed": True}, {"sorted": True}], ids=str)
@pytest.mark.parametrize("key", [None, bytes(32)], ids=["plain", "encrypted"])
def test_a_count_that_is_cancelled_again_and_again(
    folder: Path, tmp_path: Path, kind: dict[str, Any], key: bytes | None
) -> None:
    kept = Checkpoint(tmp_path / "x", {"job": 1}, encryption_key=key)
    whole = count(folder, None, **kind)
    batches, done = len(list(hs.records.read_edges(folder / "graph.txt", memory=1 << 20, **kind))), []
    assert batches > 1
    for calls in range(2 + 2 * batches):
        try:
            filled = count(folder, kept, after(calls), **kind)
        except Cancelled:
            found = kept.load(nodes=int, ids=str)
            done.append(0 if found is None else found[1]["nodes"])
            continue
        assert counts(filled) == counts(whole)
        break
    else:
        pytest.fail("the count never ended")
    assert sorted(done) == done
    assert len(set(done)) > 1


def test_nodes_in_another_order_are_not_taken_for_those_that_were_counted(
    folder: Path, tmp_path: Path
) -> None:
    """As from another version that groups them otherwise: only the digest of their ids can tell."""
    kept = Checkpoint(tmp_path / "x", {"job": 1}, seconds=0.0)
    with pytest.raises(Cancelled):
        count(folder, kept, after(8))
    found = kept.load(nodes=int, ids=str)
    assert found is not None
    tally, done = found
    for changed in (
        {"nodes": done["nodes"], "ids": "0" * 64},
        {"nodes": done["nodes"] + 1, "ids": done["ids"]},
        {"nodes": 10**6, "ids": done["ids"]},
    ):
        kept.save(tally, changed)
        with pytest.raises(UsageError, match="checkpoint must contain the first nodes of this count"):
            count(folder, kept)
    kept.save(tally, done)
    assert counts(count(folder, kept)) == counts(count(folder, None))


def test_the_job_continues_its_own_checkpoint_alone(folder: Path, tmp_path: Path) -> None:
    checkpoint = CheckpointChoice(str(tmp_path / "x.checkpoint"), 0.0)
    calls: list[None] = []

    def job(edges: EdgeColumns, progress: Any = None) -> Tally:
        records = RecordFiles((str(folder / "graph.txt"),), edges=edges)
        size, kernel = TableSpec(rows=5, width=40), KernelSpec(kernel="jaccard")
        output = str(tmp_path / "x.tally")
        tally_records(records, output, kernel=kernel, size=size, progress=progress, checkpoint=checkpoint)
        return hs.load_tally(output)

    def cancel(_: float | None) -> None:
        calls.append(None)
        if Path(checkpoint.path).exists():
            raise Cancelled

    with pytest.raises(Cancelled):
        job(EdgeColumns(), cancel)
    assert len(calls) > 1
    assert not (tmp_path / "x.tally").exists()
    with pytest.raises(UsageError, match="checkpoint must belong to this count"):
        job(EdgeColumns(directed=True))
    assert counts(job(EdgeColumns())) == counts(count(folder, None))
    assert not Path(checkpoint.path).exists()
