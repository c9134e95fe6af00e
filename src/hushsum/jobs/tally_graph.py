"""Count the nodes of a graph, given as files of edges, into a tally."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hushsum.bases.hash_rows import HashRows
from hushsum.errors import Parameter, UsageError
from hushsum.files.container import declared_fields
from hushsum.jobs.checkpointed_count import CheckpointChoice, EngineChoice, files_as_they_are
from hushsum.jobs.kernel_and_method import KernelChoice, TableSize, empty_tally
from hushsum.jobs.progress import Progress
from hushsum.methods.graphs import count_rows
from hushsum.tally.checkpoint import Checkpoint
from hushsum.tally.tally import Tally

if TYPE_CHECKING:
    from hushsum.records.edge_list import EdgeList


@dataclass(frozen=True, slots=True)
class EdgeColumns:
    """How files list the edges of a graph; see :func:`hushsum.read_edges`."""

    columns: tuple[str, ...] | None = None
    directed: bool = False
    nodes: int | None = None
    sorted: bool = False

    def read(self, paths: Sequence[str]) -> EdgeList:
        """The edges of the files."""
        from hushsum.records.edge_list import read_edges

        return read_edges(
            list(paths), columns=self.columns, directed=self.directed, nodes=self.nodes, sorted=self.sorted
        )


def refuse_engine(engine: EngineChoice | None) -> None:
    """Refuse an engine for edges, which are grouped by a sort of all of them."""
    if engine is not None:
        raise UsageError(
            parameter="engine",
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
    checkpoint: CheckpointChoice | None = None,
    encryption_key: bytes | None = None,
) -> Tally:
    """Count one set of neighbours for each node, in a tally that knows its kind of graph.

    With a checkpoint the count continues where it was interrupted; what ``progress`` raises ends it, after a
    last checkpoint.
    """
    from hushsum.records.edge_files import read_pairs
    from hushsum.records.edge_list import DEFAULT_MEMORY

    for name in paths:
        # The start of every file is read before the first is counted.
        with closing(read_pairs(name, edges.columns)) as pairs:
            next(pairs, None)
    rows = empty_tally(kernel.build(None), size, columns=None, max_per_unit=None).basis
    assert isinstance(rows, HashRows)  # the only basis of sets
    kept = None
    if checkpoint is not None:
        job = {
            "files": files_as_they_are(paths),
            "edges": declared_fields(edges),
            "memory": DEFAULT_MEMORY,  # decides the order of the nodes
            "kernel": declared_fields(kernel),
            "size": declared_fields(size),
        }
        kept = Checkpoint(checkpoint.path, job, seconds=checkpoint.every, encryption_key=encryption_key)
    return count_rows(edges.read(paths), rows, threads=threads, progress=progress, checkpoint=kept)
