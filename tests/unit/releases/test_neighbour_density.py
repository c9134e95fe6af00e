"""Densities by windows that hold k records: against the normal density, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import hushsum as hs
from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.kernels import Batch, GaussianProfileKernel, Profile

RNG = np.random.default_rng(8)
X = RNG.normal(size=(20_000, 2))
F = (
    hs.grid(hs.GaussianKernel(dim=2, bandwidth=0.1), bounds=(-6, 6))
    .add(X)
    .release(epsilon=1.0, insecure_noise_seed=4)
)


def test_it_is_the_density_blurred_by_the_window() -> None:
    """The density of normal records in a Gaussian window of width h is that of variance 1 + h²."""
    queries = np.array([[0.0, 0.0], [1.0, -1.0], [2.0, 2.0], [4.0, 0.0]])
    found = hs.releases.neighbour_density(F, queries, neighbours=400)
    variance = 1.0 + found.width**2
    exact = np.exp(-np.square(queries).sum(axis=1) / 2.0 / variance) / (2.0 * math.pi * variance)
    np.testing.assert_allclose(found.value, exact, rtol=0.25)
    assert (np.diff(found.width) >= 0.0).all()
    assert found.width[-1] > 2.0 * found.width[0]


def test_the_width_lies_between_those_that_hold_a_little_fewer_and_more() -> None:
    queries = RNG.normal(size=(20, 2))
    found = hs.releases.neighbour_density(F, queries, neighbours=300)
    for query, width in zip(queries, found.width, strict=True):
        held = [
            hs.GaussianKernel(dim=2, bandwidth=each).exact_sum(X, query[None])[0]
            for each in (width, width / math.sqrt(2.0))
        ]
        assert held[0] >= 200.0
        assert held[1] <= 400.0 or width == pytest.approx(0.1)


def test_a_window_that_never_holds_as_many_is_the_widest() -> None:
    found = hs.releases.neighbour_density(F, [[0.0, 0.0]], neighbours=1e9)
    assert found.width[0] >= 12.0


@dataclass(frozen=True)
class Bell(GaussianProfileKernel):
    """A kernel of the Gaussian shape that is not the Gaussian kernel."""

    name: ClassVar[str] = "bell"

    dim: int
    bandwidth: float

    def gaussian_width(self) -> float:
        return self.bandwidth / 2.0

    @property
    def width(self) -> float:
        return self.bandwidth / 2.0

    @property
    def smooth(self) -> bool:
        return True

    def _same(self) -> hs.GaussianKernel:
        return hs.GaussianKernel(dim=self.dim, bandwidth=self.width)

    def integral(self) -> float:
        return self._same().integral()

    def profiles(self, *, spacings: Sequence[float], sides: Sequence[float]) -> tuple[Profile, ...]:
        return self._same().profiles(spacings=spacings, sides=sides)

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        return self._same()._pairwise(records, queries)


def test_every_kernel_of_the_gaussian_shape_will_do() -> None:
    queries = [[0.0, 0.0], [4.0, 0.0]]
    expected = hs.releases.neighbour_density(F, queries, neighbours=400)
    assert isinstance(F, hs.releases.CoefficientFunction)
    found = hs.releases.neighbour_density(F.with_kernel(Bell(dim=2, bandwidth=0.2)), queries, neighbours=400)
    np.testing.assert_array_equal(found.value, expected.value)


def test_what_does_not_suit_is_refused() -> None:
    with pytest.raises(UsageError, match="neighbours must be above 0"):
        hs.releases.neighbour_density(F, [[0.0, 0.0]], neighbours=0.0)
    other = hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=10).add([[0.0]]).release(epsilon=1.0)
    with pytest.raises(UsageError, match="release of a grid"):
        hs.releases.neighbour_density(other, [[0.0]], neighbours=5.0)
