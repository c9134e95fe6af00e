"""Fourier features in groups, of which a record is counted in one, and structured ones: plain sums."""

from __future__ import annotations

import math

import numpy as np
import pytest

import hushsum as hs
from hushsum import _native
from hushsum.errors import UsageError
from hushsum.methods import Option
from hushsum.privacy import Relation
from hushsum.releases import CoefficientFunction
from hushsum.tables import FourierFeatures, basis_as_json, basis_from_json

RNG = np.random.default_rng(4)
KERNEL = hs.GaussianKernel(dim=5, bandwidth=2.0)


def basis_of(groups: int, *, structured: bool, kernel: hs.GaussianKernel = KERNEL) -> FourierFeatures:
    block = 64 if structured else 5
    return FourierFeatures(kernel, 4 * groups * block, 3, groups=groups, structured=structured)


@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize("groups", [1, 3, 8])
class TestGroups:
    def test_a_record_is_counted_in_the_rows_of_its_group_alone(self, groups: int, structured: bool) -> None:
        basis = basis_of(groups, structured=structured)
        batch = basis.prepare(RNG.standard_normal((40, 5)))
        whole = np.zeros(basis.shape, np.int64)
        basis.accumulate(whole, batch, step=1, threads=2)
        expected = np.zeros(basis.shape, np.int64)
        rows = np.arange(basis.features) // basis.block % groups
        for record, group in zip(batch.arrays[0], basis.group_of(batch.arrays[0]), strict=True):
            integers = basis.map.integers(record[None])[0]
            expected += np.where((rows == group)[:, None], integers, 0)
        np.testing.assert_array_equal(whole, expected)
        squares = np.square(expected).sum()
        assert squares <= 40**2 * basis.sensitivity(Relation.ADD_REMOVE).l2_squared

    def test_one_record_moves_no_further_than_the_sensitivity(self, groups: int, structured: bool) -> None:
        basis = basis_of(groups, structured=structured)
        added = basis.sensitivity(Relation.ADD_REMOVE)
        replaced = basis.sensitivity(Relation.REPLACE)
        assert added.l2_squared == basis.features // groups * _native.WAVE_LENGTH**2
        tables = []
        for record in RNG.standard_normal((12, 1, 5)):
            table = np.zeros(basis.shape, np.int64)
            basis.accumulate(table, basis.prepare(record), step=1, threads=1)
            assert np.square(table).sum() <= added.l2_squared
            assert np.abs(table).sum() <= added.l1
            tables.append(table)
        for one in tables:
            for other in tables:
                assert np.square(one - other).sum() <= replaced.l2_squared
                assert np.abs(one - other).sum() <= replaced.l1

    def test_a_records_group_and_integers_depend_on_it_alone(self, groups: int, structured: bool) -> None:
        basis = basis_of(groups, structured=structured)
        records = RNG.standard_normal((70, 5))
        at_once, apart = np.zeros(basis.shape, np.int64), np.zeros(basis.shape, np.int64)
        basis.accumulate(at_once, basis.prepare(records), step=1, threads=3)
        for part in np.array_split(records[::-1], 9):
            basis.accumulate(apart, basis.prepare(part), step=1, threads=1)
        np.testing.assert_array_equal(at_once, apart)

    def test_answers_are_near_the_kernel_sum_and_their_errors_honest(
        self, groups: int, structured: bool
    ) -> None:
        block = 64 if structured else 5
        rng = np.random.default_rng(2)
        records, queries = rng.standard_normal((2000, 5)), rng.standard_normal((50, 5))
        tally = hs.fourier_features(
            KERNEL, features=200 * groups * block, groups=groups, structured=structured, seed=5
        )
        f = tally.add(records).release(epsilon=20.0, delta=1e-6, insecure_noise_seed=1)
        answers = f.query(queries)
        exact = KERNEL.exact_sum(records, queries) / len(records)
        # The errors of queries go together, being of the same frequencies: within four of them.
        assert (np.abs(answers.value - exact) <= 4.0 * answers.stderr + 3e-4).all()
        np.testing.assert_allclose(answers.value, f(queries), rtol=1e-6)

    def test_it_is_read_back_from_json(self, groups: int, structured: bool) -> None:
        basis = basis_of(groups, structured=structured)
        again = basis_from_json(basis_as_json(basis))
        assert again == basis
        assert again.fingerprint == basis.fingerprint


def test_groups_are_of_equal_size_on_average_and_minus_zero_is_zero() -> None:
    basis = basis_of(8, structured=False)
    records = RNG.standard_normal((8000, 5)).astype(np.float32)
    counts = np.bincount(basis.group_of(records), minlength=8)
    assert np.square(counts - 1000).sum() / 1000 < 26.1  # chi-squared of 7 degrees: one alarm in 2000
    zeros = np.zeros((1, 5), np.float32)
    assert basis.group_of(zeros) == basis.group_of(-zeros)


def test_structured_frequencies_are_orthogonal_and_of_normal_length() -> None:
    basis = FourierFeatures(hs.GaussianKernel(dim=64, bandwidth=1.0), 640, 2, structured=True)
    rows = basis.frequencies.astype(np.float64) * 2.0 * math.pi
    products = rows[:64] @ rows[:64].T
    np.testing.assert_allclose(products - np.diag(np.diag(products)), 0.0, atol=1e-3)
    # Squares have the mean 64 and the variance 128: within four standard errors of 640 of them.
    assert abs(np.square(rows).sum(axis=1).mean() - 64.0) < 4.0 * math.sqrt(128.0 / 640)
    fewer = FourierFeatures(hs.GaussianKernel(dim=64, bandwidth=1.0), 70, 2, structured=True)
    np.testing.assert_array_equal(fewer.frequencies, basis.frequencies[:70])


def test_structured_phases_are_those_of_the_frequencies() -> None:
    basis = FourierFeatures(hs.MaternKernel(dim=54, bandwidth=3.0), 200, 2, structured=True)
    records = RNG.random((20, 54), dtype=np.float32)
    dense = _native.FeatureMap(basis.frequencies).integers(records)
    assert np.abs(basis.map.integers(records) - dense).max() <= 1


def test_the_structured_kernel_is_nearly_unbiased() -> None:
    rows = 1 << 17
    basis = FourierFeatures(hs.GaussianKernel(dim=54, bandwidth=1.0), rows, 11, structured=True)
    table = np.zeros((rows, 2), np.int64)
    table[:, 0] = 1
    sparse, dense = np.zeros(54), RNG.standard_normal(54)
    sparse[[3, 40]] = 1.0, -1.0
    for radius in (1.0, 2.0):
        points = np.array([each * radius / np.linalg.norm(each) for each in (sparse, dense)], np.float32)
        mean, variance = basis.map.spread(points, table, 64, 1.0, 1)
        assert (np.abs(mean - math.exp(-(radius**2) / 2)) < 4.0 * np.sqrt(variance) + 3e-4).all()


def test_sharpened_groups_stay_unbiased() -> None:
    records = RNG.standard_normal((3000, 5))
    tally = hs.fourier_features(KERNEL, features=4000, groups=4, seed=5).add(records)
    f = tally.release(epsilon=20.0, delta=1e-6, insecure_noise_seed=1)
    queries = RNG.standard_normal((200, 5))
    exact = KERNEL.exact_sum(records, queries) / len(records)
    assert isinstance(f, CoefficientFunction)
    sharp = f.with_public_points(RNG.standard_normal((200, 5)))
    assert sharp.explained > 0.3
    assert np.abs(sharp(queries) - exact).mean() < np.abs(f(queries) - exact).mean()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"features": 30, "groups": 4}, "features must be a multiple of 4, .* use 32"),
        ({"features": 40, "groups": 0}, "groups must be"),
        ({"features": 100, "groups": 2, "structured": True}, "multiple of 128, .* use 128"),
        ({"kernel": hs.LaplacianKernel(5, 1.0), "structured": True}, "structured is for kernels of the"),
    ],
)
def test_misuse_is_refused(given: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        hs.fourier_features(**{"kernel": KERNEL, "features": 64, **given})  # type: ignore[arg-type]


def test_pure_epsilon_publishes_whole_blocks_of_all_groups() -> None:
    tally = hs.fourier_features(KERNEL, features=4000, groups=4, seed=5).add(RNG.standard_normal((2000, 5)))
    f = tally.release(epsilon=1.0, insecure_noise_seed=1)
    assert isinstance(f, CoefficientFunction)
    assert f.rows % 4 == 0
    assert f.rows < 4000


def test_plans_offer_many_features_where_they_pay() -> None:
    def best(**given: object) -> Option:
        return hs.plan(
            records=581_000,
            method="fourier_features",
            epsilon=1.0,
            delta=1e-6,
            **given,  # type: ignore[arg-type]
        ).best

    forest = best(kernel=hs.GaussianKernel(dim=54, bandwidth=0.5))
    assert forest.settings["structured"]
    assert forest.settings["features"] == 262_144
    assert forest.settings["groups"] > 1
    assert forest.error < 4e-4
    assert forest.seconds <= 60.0
    few = best(kernel=hs.GaussianKernel(dim=6, bandwidth=0.5))
    assert "structured" not in few.settings
