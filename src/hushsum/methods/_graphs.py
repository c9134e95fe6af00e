"""The tally of a graph, given as a list of edges, with its kind of edge."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import TYPE_CHECKING

from hushsum.errors import Parameter, UsageError
from hushsum.kernels import JaccardKernel, Kernel
from hushsum.tables import AdjacencyRows, HashRows
from hushsum.tally import Checkpoint, Tally

from ._hash_rows import DEFAULT_ROWS, DEFAULT_WIDTH

if TYPE_CHECKING:
    from hushsum.records import EdgeList

__all__ = ["count_graph", "count_rows"]

# So many rows are counted in about the time that reading and sorting the edges takes.
_ROWS_LIKE_READING = 1000.0


def count_graph(
    edges: EdgeList,
    kernel: Kernel | None = None,
    *,
    rows: int = DEFAULT_ROWS,
    width: int = DEFAULT_WIDTH,
    seed: int = 0,
    threads: int | None = None,
    progress: Callable[[float | None], None] | None = None,
) -> Tally:
    """Count all nodes of a graph, each as the set of its neighbours, into a new tally.

    Parameters
    ----------
    edges : EdgeList
        What :func:`hushsum.records.read_edges` returned. All files of a graph must be read by one call: the
        rows of two halves of an edge list do not add up to the rows of the graph.
    kernel : HashableKernel, optional
        A kernel of sets. Default: ``JaccardKernel()``.
    rows, width, seed : int
        As for :func:`hushsum.race`.
    threads : int, optional
        Default: all cores this process may use. The result does not depend on it.
    progress : callable, optional
        Called with the fraction of the work that is done, None where the size of the files is not known;
        what it raises ends the count.

    Returns
    -------
    Tally
        It takes no further records. It merges with the tally of another graph of the same kind.

    Raises
    ------
    DataRefused, UsageError
        if a file is refused; there is no tally then.

    Privacy
    -------
    ``tally.release(..., unit="adjacency row")``, the default, protects the list of neighbours of one node;
    ``unit="edge"`` (of a directed graph ``unit="directed edge"``) protects whether one edge exists, with
    more noise. The tally knows from ``edges`` how many rows one edge changes. :class:`AdjacencyRows
    <hushsum.tables.AdjacencyRows>` has the bounds and their proof.

    Examples
    --------
    >>> from pathlib import Path
    >>> import hushsum as hs
    >>> _ = Path("friends.txt").write_text("0 1\\n1 2\\n")
    >>> tally = hs.methods.count_graph(hs.records.read_edges("friends.txt"), rows=50)
    >>> tally.release(epsilon=1.0, unit="edge").claim.unit
    'edge'
    """
    basis = HashRows(JaccardKernel() if kernel is None else kernel, rows, width, seed)
    return count_rows(edges, basis, threads=threads, progress=progress)


def count_rows(
    edges: EdgeList,
    rows: HashRows,
    *,
    threads: int | None,
    progress: Callable[[float | None], None] | None,
    checkpoint: Checkpoint | None = None,
) -> Tally:
    """Count a graph by given hash functions.

    The nodes that a checkpoint contains are grouped again and left out. Its journal has a digest of their
    ids, so that no node is counted twice, and none is missing, where they come in another order.
    """
    from hushsum.records import EdgeList, EdgeProgress

    if not isinstance(edges, EdgeList):
        raise UsageError(
            "edges",
            "must be what hs.records.read_edges returned",
            got=type(edges).__name__,
            remedy="read the files with it",
        )
    basis = AdjacencyRows.of(rows, edges.graph)
    tally, counted, expected = Tally(basis), 0, ""
    if checkpoint is not None and (found := checkpoint.load(nodes=int, ids=str)) is not None:
        tally, done = found
        counted, expected = done["nodes"], done["ids"]
    nodes, digest = 0, ""
    reading = 1.0 / (1.0 + rows.rows / _ROWS_LIKE_READING)
    passed, furthest = EdgeProgress(), 0.0

    def report() -> None:
        nonlocal furthest
        fraction = passed.fraction(reading)
        furthest = max(furthest, fraction or 0.0)
        try:
            if progress is not None:
                progress(None if fraction is None else furthest)
        except BaseException:
            if checkpoint is not None and tally_nodes > counted:
                checkpoint.save(tally, {"nodes": tally_nodes, "ids": tally_ids})
            raise

    tally_nodes, tally_ids = counted, expected
    for ids, sets in edges.with_ids(passed, report):
        nodes += len(ids)
        digest = blake2b(ids.tobytes(), digest_size=32, key=digest.encode()).hexdigest()
        if nodes <= counted:
            if nodes == counted and digest != expected:
                raise _another_order()
            continue
        if nodes - len(ids) < counted:
            raise _another_order()
        # Not by add, which refuses rows one by one; a tally of a part of the rows is never returned.
        tally._accumulate(basis.prepare(sets), 1, threads)
        tally_nodes, tally_ids = nodes, digest
        if checkpoint is not None:
            checkpoint.save_if_due(tally, {"nodes": nodes, "ids": digest})
        report()
    if nodes < counted:
        raise _another_order()
    return tally


def _another_order() -> UsageError:
    return UsageError(
        "checkpoint",
        "must contain the first nodes of this count",
        got="others, such as from another version",
        remedy=("give another ", Parameter("checkpoint"), ", and count from the beginning"),
    )
