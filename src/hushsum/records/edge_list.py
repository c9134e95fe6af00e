"""Graphs as records: every node is the set of its neighbours."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import DataRefused, UsageError
from hushsum.records.edge_files import node_number, read_pairs
from hushsum.records.edge_grouping import Arcs, Ids, grouped, grouped_in_order
from hushsum.records.graph import Graph
from hushsum.records.remote_files import expanded
from hushsum.records.sets import Sets

DEFAULT_MEMORY: Final = 1 << 30
_LEAST_MEMORY: Final = 1 << 20


@dataclass(slots=True)
class EdgeProgress:
    """How far a pass over files of edges has come.

    ``read`` is the fraction of their bytes that has been read, None where their size is not known. ``arcs``
    were read, and ``grouped`` of them are in the batches that have been returned.
    """

    read: float | None = 0.0
    arcs: int = 0
    grouped: int = 0

    def fraction(self, reading: float) -> float | None:
        """How much of the work is done if ``reading`` is the part of it that reading the files takes.

        >>> EdgeProgress(read=0.5, arcs=10).fraction(0.5), EdgeProgress(1.0, 10, 5).fraction(0.5)
        (0.25, 0.75)
        """
        if self.read is None:
            return None
        return self.read * (reading + (1.0 - reading) * self.grouped / max(self.arcs, 1))


class EdgeList:
    """The edges of files, to be iterated as batches of nodes: one set of neighbours per node.

    Made by :func:`hushsum.read_edges`, which describes it. Iterating reads the files anew.
    """

    __slots__ = ("_columns", "_memory", "_paths", "graph")

    def __init__(
        self, paths: Sequence[str], columns: Sequence[str] | None, graph: Graph, *, memory: int
    ) -> None:
        self._paths, self._columns, self._memory = tuple(paths), columns, memory
        self.graph = graph

    def __repr__(self) -> str:
        return f"<EdgeList {self.graph}>"

    def __iter__(self) -> Iterator[Sets]:
        for _, sets in self.with_ids():
            yield sets

    def with_ids(
        self, progress: EdgeProgress | None = None, report: Callable[[], None] | None = None
    ) -> Iterator[tuple[Ids, Sets]]:
        """Batches of nodes: their ids as 64-bit integers, and their sets of neighbours.

        ``progress`` is kept up to date, and ``report`` called while the files are read; what it raises ends
        that.
        """
        empty = True
        groups = grouped_in_order if self.graph.rows_listed else grouped
        passed = EdgeProgress() if progress is None else progress

        def grouping(arcs: int) -> None:
            passed.grouped += arcs

        for ids, sets in groups(self._arcs(passed, report), self._memory, grouping):
            empty = False
            yield ids, sets
        if empty:
            raise DataRefused(rule="the files must have at least one edge", got="none", remedy="check them")

    def neighbours(self, nodes: Sequence[int | str]) -> list[NDArray[np.int64]]:
        """The sets of neighbours of some nodes, in one pass over the files and without sorting them.

        A node that no edge has, and that is not declared, has no neighbours.
        """
        wanted = [node_number(node) for node in nodes]
        found: dict[int, list[Ids]] = {number: [] for number in wanted}
        listed = np.array(sorted(found), np.int64)
        for arcs in self._arcs(EdgeProgress()):
            for node, other in arcs[np.isin(arcs[:, 0], listed)]:
                found[int(node)].append(other)
        sets = {node: np.unique(np.array(others, np.int64)) for node, others in found.items()}
        return [sets[number][sets[number] != number] for number in wanted]

    def _arcs(self, progress: EdgeProgress, report: Callable[[], None] | None = None) -> Iterator[Arcs]:
        for arcs in self.graph.arcs(self._pairs(progress)):
            progress.arcs += len(arcs)
            yield arcs
            if report is not None:
                report()

    def _pairs(self, progress: EdgeProgress) -> Iterator[tuple[Ids, Ids]]:
        local = all(os.path.isfile(path) for path in self._paths)
        sizes = [os.path.getsize(path) for path in self._paths] if local else []
        if not local:
            progress.read = None
        for number, path in enumerate(self._paths):

            def read(fraction: float, number: int = number) -> None:
                if local:
                    done = sum(sizes[:number]) + fraction * sizes[number]
                    progress.read = done / max(sum(sizes), 1)

            yield from read_pairs(path, self._columns, read)
        if local:
            progress.read = 1.0


def read_edges(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    columns: Sequence[str] | None = None,
    directed: bool = False,
    nodes: int | None = None,
    sorted: bool = False,
    memory: int = DEFAULT_MEMORY,
) -> EdgeList:
    """The nodes of a graph as sets of neighbours, from files of edges of any size.

    :func:`hushsum.count_graph` counts them. Iterating over the result yields the sets in batches.

    Parameters
    ----------
    paths : path or sequence of paths
        Parquet or Arrow files; CSV with a header; text files as SNAP publishes them (.txt, .tsv, .edges): ids
        separated by spaces or tabs, with comments after ``#`` or ``%``. CSV and text may end in .gz or .zst.
        All files together are one graph. Addresses such as ``s3://bucket/part-*.parquet`` are copied to
        temporary files.
    columns : two str, optional
        The columns of the two ends; in text files their positions, from 1. Default: the first two.
    directed : bool
        The neighbours of a node are then those that its edges lead to.
    nodes : int, optional
        All nodes are numbered from 0 to ``nodes − 1``, and each is a record, also without any edge. By
        default the records are the nodes that occur in an edge.
    sorted : bool
        The files list each node's neighbours together, in rising order of the node's id; an undirected edge
        is listed in both directions. They are read without temporary files. A node that is not listed first
        in an edge is then not a record.
    memory : int
        About how many bytes may be used. Larger graphs are divided into temporary files that have no name and
        are readable by this process only.

    Notes
    -----
    An id is an integer that fits 64 bits, or text; text that writes such an integer is that integer, so that
    CSV and Parquet name the same nodes. Other text is represented by 64 bits of its BLAKE2b digest: two of n
    names coincide with probability n²·2⁻⁶⁵. Duplicate edges count once. A self-loop makes its node a record,
    and is not a neighbour.

    Privacy
    -------
    ``directed``, ``nodes`` and ``sorted`` decide how many rows one edge changes, so they are part of the
    tally that :func:`hushsum.count_graph` makes. Sets that are iterated over and added to another tally are
    ordinary records, and nothing can be claimed about edges.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("friends.txt").write_text("# a comment\\n0 1\\n1 2\\n2 2\\n1 0\\n")
    >>> [(ids.tolist(), sets.values.tolist()) for ids, sets in read_edges("friends.txt").with_ids()]
    [([0, 1, 2], [1, 0, 2, 1])]
    """
    listed = expanded([paths] if isinstance(paths, str | os.PathLike) else paths)
    if not listed:
        raise UsageError(parameter="paths", rule="must be at least one file", got="none")
    if columns is not None and len(columns) != 2:
        raise UsageError(parameter="columns", rule="must be the two ends of an edge", got=len(columns))
    if memory < _LEAST_MEMORY:
        raise UsageError(parameter="memory", rule=f"must be at least {_LEAST_MEMORY} bytes", got=memory)
    graph = Graph(directed=directed, nodes=nodes, rows_listed=sorted)
    return EdgeList(listed, columns, graph, memory=memory)
