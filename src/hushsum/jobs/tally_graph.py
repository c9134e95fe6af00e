"""Count the nodes of a graph, given as files of edges, into a tally."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from hushsum.bases.hash_rows import HashRows
from hushsum.errors import Parameter, UsageError
from hushsum.jobs.checkpointed_count import CheckpointChoice, EngineChoice
from hushsum.jobs.kernel_and_method import KernelChoice, TableSize, empty_tally
from hushsum.jobs.progress import Progress
from hushsum.methods.graphs import count_rows
from hushsum.tally.tally import Tally

if TYPE_CHECKING:
    from hushsum.records.edges import EdgeList


@dataclass(frozen=True, slots=True)
class EdgeColumns:
    """How files list the edges of a graph; see :func:`hushsum.read_edges`."""

    columns: tuple[str, ...] | None = None
    directed: bool = False
    nodes: int | None = None
    sorted: bool = False

    def read(self, paths: Sequence[str]) -> EdgeList:
        """The edges of the files."""
        from hushsum.records.edges import read_edges

        return read_edges(
            list(paths), columns=self.columns, directed=self.directed, nodes=self.nodes, sorted=self.sorted
        )


def check_in_one_go(engine: EngineChoice | None, checkpoint: CheckpointChoice | None) -> None:
    """Refuse an engine or a checkpoint for edges, which are grouped by a sort of all of them."""
    for name, value in (("engine", engine), ("checkpoint", checkpoint)):
        if value is not None:
            raise UsageError(
                parameter=name,
                rule=("and ", Parameter("edges"), " exclude each other"),
                remedy="leave it out",
            )


def count_nodes(
    paths: Sequence[str],
    edges: EdgeColumns,
    kernel: KernelChoice,
    size: TableSize,
    threads: int | None,
    progress: Progress | None,
) -> Tally:
    """Count one set of neighbours for each node, in a tally that knows its kind of graph."""
    from hushsum.records.edge_files import read_pairs

    for name in paths:
        # The start of every file is read before the first is counted.
        with closing(read_pairs(name, edges.columns)) as pairs:
            next(pairs, None)
    rows = empty_tally(kernel.build(None), size, columns=None, max_per_unit=None).basis
    assert isinstance(rows, HashRows)  # the only basis of sets
    report = None if progress is None else partial(progress, None)
    return count_rows(edges.read(paths), rows, threads=threads, progress=report)
