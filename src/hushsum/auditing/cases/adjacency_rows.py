"""Hash rows of graphs. The neighbours that differ in an edge are in `hushsum.auditing.edge_sensitivity`."""

from __future__ import annotations

import numpy as np

from hushsum.auditing.adversarial_records import Pool, set_records
from hushsum.auditing.registry import BasisCases, register_basis
from hushsum.bases.adjacency_rows import AdjacencyRows
from hushsum.bases.base import Basis
from hushsum.kernels import JaccardKernel
from hushsum.records.graph import Graph


def _pool(basis: Basis, rng: np.random.Generator) -> Pool:
    """Any sets: the reader of edges makes rows of 64-bit ids."""
    assert isinstance(basis, AdjacencyRows)
    return set_records(basis.kernel, rng)


def _example(width: int, graph: Graph) -> AdjacencyRows:
    return AdjacencyRows(JaccardKernel(), 70, width, 11, graph=graph)


register_basis(
    AdjacencyRows.name,
    BasisCases(
        _pool,
        (
            _example(53, Graph()),
            _example(7, Graph(nodes=40)),
            _example(53, Graph(rows_listed=True)),
            _example(53, Graph(directed=True)),
            _example(7, Graph(directed=True, nodes=40)),
            _example(53, Graph(directed=True, rows_listed=True)),
        ),
    ),
)
