"""Pairs of records whose Fourier features are as far apart as an adversary can make them.

Under replace, the sensitivity of features in a box is proven on a lattice of differences
(`hushsum.tables._fourier_features`). Here records are searched for that break it: descent to the least
similarity, then random steps of both records that increase the distance of their integers. There are coarse
lattices, large phases, narrow boxes, frequencies with rare large ones, columns that change together, columns
of unequal widths, and records outside the box.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum import _native
from hushsum.auditing import counted
from hushsum.kernels import Kernel
from hushsum.privacy import Relation
from hushsum.records import Bounds
from hushsum.tables import LENGTH, FourierFeatures
from hushsum.tables import _fourier_features as fourier_feature_diameter
from hushsum.tables._fourier_features import squared_diameter

Singles = NDArray[np.float32]


def least_similar(frequencies: Singles, half: Singles, rng: np.random.Generator) -> list[Any]:
    """Differences of records at which the similarity has small local minima, smallest first."""
    angular = 2.0 * np.pi * frequencies.astype(np.float64)
    sides = 2.0 * half.astype(np.float64)
    starts = rng.uniform(-1.0, 1.0, (2000, len(half)))
    starts[::4] = np.clip(2.0 * starts[::4], -1.0, 1.0)
    starts[1::8] = np.sign(starts[1::8])
    values = np.cos(starts * sides @ angular.T).mean(axis=1)
    at = starts[values.argsort()[:8]] * sides
    step = len(angular) / np.linalg.norm(angular, ord=2) ** 2
    for _ in range(150):
        at = np.clip(at + step * (np.sin(at @ angular.T) @ angular) / len(angular), -sides, sides)
    return list(at[np.cos(at @ angular.T).mean(axis=1).argsort()])


def furthest_pair(frequencies: Singles, half: Singles, seed: int) -> tuple[int, int, Singles]:
    """The largest squared L2 and the largest L1 distance that the search finds; the pair of the former."""
    rng = np.random.default_rng(seed)
    features = _native.FeatureMap(frequencies)

    def moved(pairs: Any) -> tuple[Any, int, Singles]:
        inside = np.clip(pairs, -half, half).astype(np.float32)
        one, other = (features.integers(np.ascontiguousarray(each)).astype(np.int64) for each in inside)
        change = one - other
        return np.square(change).sum(axis=(1, 2)), int(np.abs(change).sum(axis=(1, 2)).max()), inside

    best, sums, pair = -1, 0, np.zeros((2, len(half)), np.float32)
    for difference in least_similar(frequencies, half, rng)[:3]:
        middle = rng.uniform(-1.0, 1.0, (100, len(half))) * (half - np.abs(difference) / 2.0)
        squares, total, pairs = moved(np.stack([middle + difference / 2.0, middle - difference / 2.0]))
        sums = max(sums, total)
        if squares.max() > best:
            best, pair = int(squares.max()), pairs[:, squares.argmax()]
    for _ in range(20):
        size = 10.0 ** rng.uniform(-7.0, -0.5) * half
        squares, total, pairs = moved(pair[:, np.newaxis] + size * rng.normal(size=(2, 24, len(half))))
        sums = max(sums, total)
        if squares.max() > best:
            best, pair = int(squares.max()), pairs[:, squares.argmax()]
    return best, sums, pair


KERNELS: list[tuple[Kernel, int, Bounds]] = [
    (hs.GaussianKernel(dim=1, bandwidth=1.0), 2, Bounds((-9.0,), (9.0,))),
    (hs.MaternKernel(dim=1, bandwidth=0.2, smoothness=0.5), 30, Bounds((-1.0,), (1.0,))),
    (hs.LaplacianKernel(dim=2, bandwidth=2.0), 25, Bounds((0.0, -1.0), (1.0, 5.0))),
    (hs.GaussianKernel(dim=3, bandwidth=0.4), 60, Bounds((1e6, 0.0, -3.0), (1e6 + 1.0, 0.1, 3.0))),
    (hs.GaussianKernel(2, 1.0) * hs.LaplacianKernel(2, 3.0), 40, Bounds((-2.0, 0.0), (2.0, 1.0))),
    (0.5 * hs.GaussianKernel(2, 1.0) + 0.5 * hs.MaternKernel(2, 4.0), 40, Bounds((-2.0,) * 2, (2.0,) * 2)),
    (hs.kernels.scaled(hs.GaussianKernel(2, 0.2), [(0, 1), (0, 1e4)]), 40, Bounds((0.0, 0.0), (1.0, 1e4))),
    (hs.GaussianKernel(dim=6, bandwidth=2.0), 12, Bounds((-0.8,) * 6, (0.8,) * 6)),
    (hs.GaussianKernel(dim=8, bandwidth=3.0), 5, Bounds((-0.8,) * 8, (0.8,) * 8)),
    (hs.GaussianKernel(dim=2, bandwidth=1.0), 500, Bounds((-1e-3,) * 2, (1e-3,) * 2)),
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("kernel", "features", "box"), KERNELS, ids=repr)
def test_no_pair_of_counted_records_is_further_apart_than_declared(
    kernel: Kernel, features: int, box: Bounds, seed: int
) -> None:
    basis = FourierFeatures(kernel, features, seed, bounds=box)
    declared = basis.sensitivity(Relation.REPLACE)
    squared, sums, pair = furthest_pair(basis.frequencies, box.half_width, seed)
    assert squared <= declared.l2_squared
    assert sums <= declared.l1
    # Far outside, where a corner is on the way; and not clipped to more than the box.
    outside = [np.where(np.abs(each) == box.half_width, 1e30 * each, each + box.centre) for each in pair]
    one, other = (counted(basis, record[np.newaxis].astype(np.float64)) for record in outside)
    assert np.square(one - other).sum() <= declared.l2_squared


def harmonics(base: float, number: int) -> Singles:
    """Multiples of one frequency: the similarity repeats over the whole box, and hardly falls below zero."""
    found: Singles = (base * np.arange(1, number + 1)).astype(np.float32)
    return found[:, np.newaxis]


def along(direction: tuple[float, ...], number: int) -> Singles:
    """Multiples of one frequency of several columns, which all change together."""
    found: Singles = (harmonics(0.2, number) * np.array(direction)).astype(np.float32)
    return found


def random(number: int, dim: int) -> Singles:
    return np.random.default_rng(number).normal(0.0, 0.2, (number, dim)).astype(np.float32)


@pytest.mark.parametrize("work", [5, 6, 7, 9, 11, 14, 20])
@pytest.mark.parametrize(
    "frequencies",
    [
        np.array([[0.20], [0.23]], np.float32),
        *(harmonics(0.2, number) for number in (2, 3, 8)),
        *(along(direction, 3) for direction in ((1.0, 1.0), (1.0, -1.0), (1.0, -1.0, 1.0))),
        *(random(number, dim) for number, dim in ((3, 2), (5, 2), (7, 3), (9, 3))),
    ],
    ids=lambda found: f"{found.shape}",
)
def test_the_bound_holds_on_any_lattice(
    frequencies: Singles, work: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The coarser it is, the more is subtracted for what lies between its points. Two tables of columns that
    are joined, or none, give one number.
    """
    monkeypatch.setattr(fourier_feature_diameter, "MOST_WORK", len(frequencies) << work)
    for width in np.linspace(0.7, 2.2, 16):
        half = np.full(frequencies.shape[1], width, np.float32)
        monkeypatch.setattr(fourier_feature_diameter, "_MOST_NUMBERS", 1 << 20)
        declared = squared_diameter(frequencies, half)
        monkeypatch.setattr(fourier_feature_diameter, "_MOST_NUMBERS", 1)
        assert squared_diameter(frequencies, half) == declared
        if declared < 4 * len(frequencies) * LENGTH**2:
            assert furthest_pair(frequencies, half, work)[0] <= declared


@pytest.mark.parametrize("turns", [30.0, 1e3, 8e3])
def test_the_bound_holds_where_single_precision_loses_digits_of_phases(turns: float) -> None:
    frequencies, half = harmonics(turns, 3), np.array([1.0], np.float32)
    declared = squared_diameter(frequencies, half)
    assert declared < 4 * 3 * LENGTH**2, "the lattice proves nothing"
    squared, _, _ = furthest_pair(frequencies, half, 0)
    assert 0.95 < math.sqrt(squared / declared) <= 1.0
