"""Kernels as sums of products: the fit, the sums and the gains against the kernels themselves."""

from __future__ import annotations

import numpy as np
import pytest

import hushsum as hs
from hushsum._types import Floats
from hushsum.bases.grid_reading import GridReader, _factor
from hushsum.kernels.base import Batch, ProfileKernel, named

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
    for each in kernel.profiles(spacing=0.1, sides=[box]):
        assert each.height > 0.0
        ratio = distances / each.scale
        found += each.height * (np.exp(-0.5 * ratio**2) if each.gaussian else np.exp(-ratio))
    np.testing.assert_allclose(found, truth, rtol=0.02, atol=2e-4)


def _reader(kernel: ProfileKernel, dim: int) -> tuple[GridReader, Floats]:
    places: list[Floats] = [(np.arange(12.0 + column) - 6.0) * 0.25 for column in range(dim)]
    nodes = np.stack(np.meshgrid(*places, indexing="ij"), axis=-1).reshape(-1, dim)
    return GridReader(kernel, places, [0.25] * dim), nodes


def _weights(reader: GridReader, queries: Floats, nodes: Floats) -> Floats:
    """What every node counts for every query, one profile and column after the other."""
    total = np.zeros((len(queries), len(nodes)))
    for profile in reader.profiles:
        product = np.full(total.shape, profile.height)
        for column, spacing in enumerate(reader.spacing):
            product *= _factor(profile, nodes[:, column] - queries[:, column, None], spacing)
        total += product
    return total


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("name", ["gaussian", "euclidean", "manhattan", "laplacian", "matern"])
@pytest.mark.parametrize("near", [0, 10**9], ids=["all nodes", "near nodes"])
def test_sums_and_gains_are_those_of_the_nodes(
    dim: int, name: str, near: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hushsum.bases.grid_reading._NODES_A_QUERY", near)
    kernel = named(name, dim=dim, bandwidth=0.4)
    assert isinstance(kernel, ProfileKernel)
    reader, nodes = _reader(kernel, dim)
    table = RNG.integers(-50, 1000, [len(places) for places in reader.places])
    queries = RNG.uniform(-1.5, 1.5, (7, dim)).astype(np.float32)
    weights = _weights(reader, queries.astype(np.float64), nodes)
    batch = Batch((queries,), len(queries))
    np.testing.assert_allclose(reader.sums(table, batch), weights @ table.reshape(-1), rtol=1e-6)
    np.testing.assert_allclose(reader.gains(batch), (weights**2).sum(axis=1), rtol=1e-9)


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
