"""What a replaced record moves, in a declared box: bounds against a search, and where there is none."""

from __future__ import annotations

import io
import math
import tracemalloc
from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.errors import FileRefused
from hushsum.kernels import Batch, Kernel
from hushsum.privacy import Relation
from hushsum.records import Bounds
from hushsum.releases import NoisyTable
from hushsum.tables import LENGTH, FourierFeatures
from hushsum.tables._fourier_features import feature_sensitivity, least_similarity, squared_diameter

CASES: list[tuple[Kernel, int, float]] = [
    (hs.GaussianKernel(dim=1, bandwidth=1.0), 1, 0.5),
    (hs.GaussianKernel(dim=1, bandwidth=1.0), 7, 3.0),
    (hs.GaussianKernel(dim=1, bandwidth=0.3), 200, 3.0),
    (hs.GaussianKernel(dim=2, bandwidth=1.0), 3, 2.0),
    (hs.GaussianKernel(dim=2, bandwidth=1.0), 200, 4.0),
    (hs.GaussianKernel(dim=3, bandwidth=1.0), 100, 0.4),
    (hs.GaussianKernel(dim=3, bandwidth=1.0), 100, 3.0),
    (hs.MaternKernel(2, 0.9, smoothness=2.5), 150, 2.0),
    (hs.LaplacianKernel(1, 1.5), 60, 2.0),
    (hs.GaussianKernel(dim=5, bandwidth=2.0), 50, 0.7),
]


class FickleKernel(hs.GaussianKernel):
    """Draws lower frequencies every time."""

    __slots__ = ()
    drawn: ClassVar[int] = 0

    def frequencies(self, *, rows: int, seed: int, orthogonal: bool) -> NDArray[np.float32]:
        """A thousandth of the last ones."""
        FickleKernel.drawn += 1
        own = super().frequencies(rows=rows, seed=seed, orthogonal=orthogonal)
        return own * np.float32(1e5 * 1e-3**FickleKernel.drawn)


def basis_of(kernel: Kernel, features: int, half: float, **options: Any) -> FourierFeatures:
    basis = hs.fourier_features(kernel, features=features, seed=3, bounds=(-half, half), **options).basis
    assert isinstance(basis, FourierFeatures)
    return basis


def smallest_similarity(basis: FourierFeatures) -> tuple[float, Any]:
    """The least k that a search finds, with the difference at which it is: random starts, then descent."""
    assert basis.bounds is not None
    angular = 2.0 * np.pi * basis.frequencies.astype(np.float64)
    sides = 2.0 * basis.bounds.half_width.astype(np.float64)
    starts = np.random.default_rng(0).uniform(-1.0, 1.0, (20_000, len(sides)))
    # Corners and faces, where a function that falls all the way is smallest.
    starts[::4] = np.clip(2.0 * starts[::4], -1.0, 1.0)
    starts[1::8] = np.sign(starts[1::8])
    values = np.cos(starts * sides @ angular.T).mean(axis=1)
    at = starts[np.argsort(values)[:10]] * sides
    # Steps as long as the largest second derivative allows never rise.
    step = len(angular) / np.linalg.norm(angular, ord=2) ** 2
    for _ in range(2000):
        rise = -np.sin(at @ angular.T) @ angular / len(angular)
        at = np.clip(at - step * rise, -sides, sides)
    found = np.cos(at @ angular.T).mean(axis=1)
    return float(found.min()), at[found.argmin()]


@pytest.mark.parametrize(("kernel", "features", "half"), CASES, ids=repr)
class TestBound:
    def test_no_difference_is_below_it_and_some_are_near(
        self, kernel: Kernel, features: int, half: float
    ) -> None:
        basis = basis_of(kernel, features, half)
        assert basis.bounds is not None
        bound = least_similarity(basis.frequencies, basis.bounds.half_width)
        found, _ = smallest_similarity(basis)
        assert bound is not None
        assert bound <= found
        assert found - bound < 0.25

    def test_no_two_records_are_further_apart_and_some_nearly_are(
        self, kernel: Kernel, features: int, half: float
    ) -> None:
        """A copy that declares a fifth less is caught: some pair is further apart than that."""
        basis = basis_of(kernel, features, half)
        assert basis.bounds is not None
        square = squared_diameter(basis.frequencies, basis.bounds.half_width)
        assert square <= 4 * features * LENGTH**2
        _, difference = smallest_similarity(basis)
        rng = np.random.default_rng(1)
        spare = half - np.abs(difference) / 2.0
        middle = rng.uniform(-1.0, 1.0, (2000, len(difference))) * spare
        ends = [basis.prepare(middle + sign * difference / 2.0).arrays[0] for sign in (1, -1)]
        one, other = (basis.map.integers(end).astype(np.int64) for end in ends)
        moved = np.square(one - other).sum(axis=(1, 2)).max()
        assert 0.8**2 * square < moved <= square
        declared = basis.sensitivity(Relation.REPLACE)
        assert declared.l2_squared == square
        assert np.abs(one - other).sum(axis=(1, 2)).max() <= declared.l1


def test_one_frequency_in_a_narrow_box_falls_to_its_corner() -> None:
    frequencies = np.array([[0.1]], np.float32)
    least = least_similarity(frequencies, np.array([1.0], np.float32))
    assert least is not None
    assert math.cos(2.0 * math.pi * 0.2) - 0.01 < least <= math.cos(2.0 * math.pi * 0.2)


def test_the_same_number_on_every_machine() -> None:
    for sobol, square in ((False, 325094751), (True, 339744169)):
        basis = basis_of(hs.GaussianKernel(dim=3, bandwidth=1.0), 128, 3.0, sobol=sobol)
        assert basis.sensitivity(Relation.REPLACE).l2_squared == square


def test_a_column_that_no_frequency_has_changes_nothing() -> None:
    frequencies = basis_of(hs.GaussianKernel(dim=1, bandwidth=1.0), 50, 3.0).frequencies
    wide = np.concatenate([frequencies, np.zeros_like(frequencies)], axis=1)
    alone = least_similarity(frequencies, np.array([3.0], np.float32))
    both = least_similarity(wide, np.array([3.0, 100.0], np.float32))
    assert alone is not None
    assert both == pytest.approx(alone, abs=0.01)


@pytest.mark.parametrize(
    "basis",
    [
        hs.fourier_features(hs.GaussianKernel(dim=2, bandwidth=1.0), features=100).basis,
        basis_of(hs.GaussianKernel(dim=2, bandwidth=1.0), 100, 1e6),
        basis_of(hs.GaussianKernel(dim=9, bandwidth=1.0), 90, 1.0),
        basis_of(hs.LaplacianKernel(dim=2, bandwidth=1e-6), 100, 1.0),
        basis_of(hs.GaussianKernel(dim=2, bandwidth=1.0), 100, 2.0, groups=2),
        basis_of(hs.GaussianKernel(dim=2, bandwidth=1.0), 128, 2.0, structured=True),
        basis_of(hs.GaussianKernel(dim=2, bandwidth=1e-30), 100, 1e30),
    ],
    ids=["no bounds", "wide", "many columns", "rough", "groups", "structured", "overflow"],
)
def test_otherwise_every_row_counts_in_full(basis: FourierFeatures) -> None:
    general = feature_sensitivity(basis.features // basis.groups, Relation.REPLACE)
    assert basis.sensitivity(Relation.REPLACE) == general


@pytest.mark.parametrize("half", [1e-44, 1e-38, 2e38, 3e38])
def test_nothing_is_proven_where_the_lattice_leaves_the_range_of_single_precision(half: float) -> None:
    """Its points would underflow, to zero where a process flushes such numbers, or overflow."""
    frequencies = np.array([[0.02], [0.01]]) / max(half, 1e-38)
    box = np.array([half], np.float32)
    assert squared_diameter(frequencies.astype(np.float32), box) == 4 * 2 * LENGTH**2


def test_the_bound_is_for_the_frequencies_that_records_are_counted_with() -> None:
    """They cannot be changed, and are not drawn a second time, by a kernel that may break its contract."""
    basis = basis_of(hs.GaussianKernel(dim=1, bandwidth=1.0), 20, 0.1)
    with pytest.raises(ValueError, match="read-only"):
        basis.frequencies[:] *= 1000.0
    fickle = replace(basis, kernel=FickleKernel(dim=1, bandwidth=1.0))
    counted = fickle.map.integers(np.linspace(-0.1, 0.1, 200, dtype=np.float32)[:, np.newaxis])
    moved = np.square(counted[:100].astype(np.int64) - counted[:99:-1]).sum(axis=(1, 2)).max()
    assert moved <= fickle.sensitivity(Relation.REPLACE).l2_squared


def test_present_or_absent_records_move_what_they_did() -> None:
    basis = basis_of(hs.GaussianKernel(dim=1, bandwidth=1.0), 30, 0.1)
    assert basis.sensitivity(Relation.ADD_REMOVE) == feature_sensitivity(30, Relation.ADD_REMOVE)


def test_records_outside_the_box_are_not_counted() -> None:
    basis = basis_of(hs.GaussianKernel(dim=1, bandwidth=1.0), 30, 1.0)
    table = basis.new_table()
    for outside in (1.5, -1.5, np.nan):
        with pytest.raises(ValueError, match="prepared"):
            basis.accumulate(table, Batch((np.array([[0.0], [outside]], np.float32),), 2), step=1, threads=1)
    assert not table.any()


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_a_release_under_replace_has_less_noise(delta: float | None) -> None:
    """In a box of three bandwidths either way; the number of rows of a pure release is the same."""

    def noise(**options: Any) -> float:
        kernel = hs.GaussianKernel(dim=1, bandwidth=1.0)
        tally = hs.fourier_features(kernel, features=200, seed=3, **options)
        released = tally.add(np.zeros((5000, 1))).release(
            epsilon=1.0, delta=delta, relation="replace", insecure_noise_seed=1
        )
        assert isinstance(released, NoisyTable)
        return released.noise.variance

    ratio = noise(bounds=(-3.0, 3.0)) / noise()
    assert 0.5 <= ratio < 0.65


@pytest.mark.parametrize("promise", [{"epsilon": 1.0}, {"rho": 0.5}], ids=str)
@pytest.mark.parametrize(
    "change",
    [
        {"bounds": Bounds((-0.3,), (0.3,))},
        {"seed": 4},
        {"kernel": hs.GaussianKernel(dim=1, bandwidth=0.5)},
        {"bounds": None},
    ],
    ids=["wider bounds", "another seed", "another kernel", "no bounds"],
)
def test_files_are_refused_where_the_bound_of_what_they_state_needs_more_noise(
    promise: dict[str, Any], change: dict[str, Any]
) -> None:
    """The bound is computed again from the frequencies and the box of the header."""
    tally = hs.fourier_features(
        hs.GaussianKernel(dim=1, bandwidth=1.0), features=30, seed=2, bounds=(-0.1, 0.1)
    )
    released = tally.add(np.zeros((50, 1))).release(**promise, relation="replace", rows=30)
    assert isinstance(released, NoisyTable)
    assert isinstance(tally.basis, FourierFeatures)
    other = replace(tally.basis, **change)
    stated, needed = (each.sensitivity(Relation.REPLACE).l2_squared for each in (tally.basis, other))
    assert stated < needed
    file = io.BytesIO()
    replace(released, reading=other.reading()).save(file)
    file.seek(0)
    with pytest.raises(FileRefused):
        cast(Any, hs.load(file))([[0.0]])


def test_memory_is_bounded() -> None:
    """A lattice of millions of points in two columns: what a few features in a wide box take."""
    frequencies = hs.GaussianKernel(dim=2, bandwidth=1.0).frequencies(rows=2, seed=1, orthogonal=False)
    tracemalloc.start()
    try:
        squared_diameter(frequencies, np.array([300.0, 300.0], np.float32))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 27
