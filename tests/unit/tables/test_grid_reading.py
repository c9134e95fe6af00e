"""Kernels as sums of products: the fit, the sums and the gains against the kernels themselves."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum._types import Floats
from hushsum.kernels import Batch, ProfileKernel, named
from hushsum.tables._grid import GridColumn, GridReader, profiles_of

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("name", ["euclidean", "manhattan", "laplacian"])
@pytest.mark.parametrize("box", [10.0, 300.0])
def test_positive_heights_fit_the_kernel(name: str, power: int, box: float) -> None:
    kernel = named(name, dim=1, bandwidth=1.0, power=power)
    assert isinstance(kernel, ProfileKernel)
    distances = np.geomspace(0.05, box, 200)
    truth = kernel.similarity([[0.0]], distances[:, None])[0]
    found = np.zeros(len(distances))
    for each in kernel.profiles(spacings=[0.1], sides=[box]):
        assert each.height > 0.0
        ratio = distances / each.scales[0]
        found += each.height * (np.exp(-0.5 * ratio**2) if each.gaussian[0] else np.exp(-ratio))
    np.testing.assert_allclose(found, truth, rtol=0.02, atol=2e-4)


def _reader(kernel: ProfileKernel, dim: int, degree: int) -> GridReader:
    columns = [GridColumn(12 + column, 0.25, -1.5, degree) for column in range(dim)]
    return GridReader.of(profiles_of(kernel, columns), columns)


def _weights(reader: GridReader, queries: Floats) -> Floats:
    """What every node counts for every query, one term and column after the other."""
    total: Floats = np.zeros((len(queries), math.prod(each.nodes for each in reader.columns)))
    for term in reader.terms:
        product = np.full((len(queries), 1), term.height)
        for column, factors, query in zip(reader.columns, term.factors, queries.T, strict=True):
            places = column.first + column.spacing * np.arange(column.nodes)
            weights = factors.at((places - query[:, None]) / column.spacing)
            product = (product[:, :, None] * weights[:, None, :]).reshape(len(queries), -1)
        total += product
    return total


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("name", ["gaussian", "euclidean", "manhattan", "laplacian", "matern"])
@pytest.mark.parametrize("near", [0, 10**9], ids=["all nodes", "near nodes"])
@pytest.mark.parametrize("degree", [0, 3])
def test_sums_and_gains_are_those_of_the_nodes(
    dim: int, name: str, near: int, degree: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In three columns the widest terms have windows of 10⁸ nodes; they are summed with the whole grid.
    largest = min(near, 200_000) if dim == 3 else near
    monkeypatch.setattr("hushsum.tables._grid._NODES_A_QUERY", largest)
    monkeypatch.setattr("hushsum.tables._grid._NODES_PER_PRODUCT", 1 if near == 0 else 1e-6)
    kernel = named(name, dim=dim, bandwidth=0.4)
    assert isinstance(kernel, ProfileKernel)
    reader = _reader(kernel, dim, degree)
    table = RNG.integers(-50, 1000, [column.nodes for column in reader.columns])
    queries = RNG.uniform(-1.9, 1.9, (7, dim)).astype(np.float32)
    gathered = sum(reader._narrow(term, table.size) for term in reader.terms)
    mixture_of_gaussians = all(reader._has_reach(term) for term in reader.terms)
    assert (gathered > 0) == (near > 0 and mixture_of_gaussians)
    assert gathered in (0, len(reader.terms)) or dim == 3
    weights = _weights(reader, queries.astype(np.float64))
    batch = Batch((queries,), len(queries))
    np.testing.assert_allclose(reader.sums(table, batch), weights @ table.reshape(-1), rtol=1e-6, atol=1e-3)
    squared = weights @ np.square(table.reshape(-1).astype(np.float64))
    np.testing.assert_allclose(reader.sums(table, batch, squared=True), squared, rtol=1e-6, atol=1.0)
    np.testing.assert_allclose(reader.totals(batch), weights.sum(axis=1), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(reader.gains(batch), (weights**2).sum(axis=1), rtol=1e-6)


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("name", ["gaussian", "euclidean"])
def test_a_lattice_of_queries_is_summed_as_its_points_are(dim: int, name: str) -> None:
    kernel = named(name, dim=dim, bandwidth=0.4)
    assert isinstance(kernel, ProfileKernel)
    reader = _reader(kernel, dim, 3)
    table = RNG.integers(-50, 1000, [column.nodes for column in reader.columns])
    places = [RNG.uniform(-1.9, 1.9, 90 if dim == 1 else 9) for _ in range(dim)]
    queries = np.stack(np.meshgrid(*places), axis=-1).reshape(-1, dim).astype(np.float32)
    # In any order, some twice and some left out.
    queries = queries[RNG.integers(0, len(queries), len(queries))]
    weights = _weights(reader, queries.astype(np.float64))
    found = reader.sums(table, Batch((queries,), len(queries)))
    np.testing.assert_allclose(found, weights @ table.reshape(-1), rtol=1e-6, atol=1e-3)


@pytest.mark.parametrize(
    "kernel",
    [
        hs.EuclideanKernel(2, 0.5),
        hs.EuclideanKernel(2, 1.0, power=2),
        hs.ManhattanKernel(2, 0.5),
        hs.LaplacianKernel(2, 1.0, power=2),
        hs.MaternKernel(2, 0.5),
    ],
    ids=str,
)
def test_a_fine_grid_answers_as_the_kernel_does(kernel: ProfileKernel) -> None:
    X = RNG.uniform(-1, 1, (4000, 2))
    f = hs.grid(kernel, bounds=(-1, 1), spacing=0.15).add(X).release(epsilon=1e6)
    truth = kernel.exact_sum(X, X[:50]) / len(X)
    np.testing.assert_allclose(f(X[:50]), truth, rtol=0.006)


def test_a_picture_of_a_fine_grid_takes_little_memory() -> None:
    """A factor for every place and node would be 1 GB here; the nodes in reach of a place are few."""
    tally = hs.grid(hs.GaussianKernel(dim=1, bandwidth=0.25), bounds=(0, 1e5))
    released: Any = tally.add(np.full((10, 1), 5e4)).release(epsilon=1.0)
    places = np.linspace(0.0, 1e5, 256)[:, None]
    tracemalloc.start()
    try:
        released(places)
        assert tracemalloc.get_traced_memory()[1] < 1 << 27
    finally:
        tracemalloc.stop()
