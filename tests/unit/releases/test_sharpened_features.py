"""Fourier features read with points that are found in the release itself."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.auditing import audit, audit_calibration
from hushsum.errors import UsageError
from hushsum.privacy import Relation
from hushsum.releases import CoefficientFunction, SharpenedFunction
from hushsum.tables import FourierFeatures

RNG = np.random.default_rng(8)
CENTRES = RNG.uniform(0.2, 0.8, (6, 6))
RECORDS = np.clip(CENTRES[RNG.integers(0, 6, 30_000)] + 0.04 * RNG.standard_normal((30_000, 6)), 0.0, 1.0)
KERNEL = hs.GaussianKernel(6, 0.15)
QUERIES = RECORDS[:300]
EMPTY = RNG.uniform(size=(200, 6))
WITH_DELTA: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}


def released(records: Any = RECORDS, kernel: Any = KERNEL, seed: int = 1, **options: Any) -> Any:
    given: dict[str, Any] = {"features": 2048, "bounds": (0, 1)} | options
    tally = hs.fourier_features(kernel, **given).add(records)
    return tally.release(**WITH_DELTA, insecure_noise_seed=seed)


def errors(function: Any, queries: Any, records: Any = RECORDS, kernel: Any = KERNEL) -> Any:
    return np.abs(function(queries) - kernel.exact_sum(records, queries) / len(records))


@pytest.mark.parametrize("options", [{}, {"sobol": False}, {"axes": 8}, {"groups": 4, "axes": 8}], ids=str)
def test_errors_at_records_and_in_empty_places_are_several_times_smaller(options: dict[str, Any]) -> None:
    """Seeded; 5 to 20 times smaller in empty places here."""
    f = released(**options)
    g = f.sharpened()
    assert g.explained > 0.9
    assert errors(g, EMPTY).mean() < errors(f, EMPTY).mean() / 4
    assert errors(g, QUERIES).mean() < errors(f, QUERIES).mean() / 2


def test_intervals_hold_about_as_often_as_stated() -> None:
    """Over frequencies and noise, at records and in empty places."""
    hits: dict[str, list[float]] = {"records": [], "empty": []}
    for seed in range(4):
        g = released(seed=seed, features=1024, **{"sobol": False} if seed % 2 else {}).sharpened()
        assert isinstance(g, SharpenedFunction)
        for name, queries in (("records", QUERIES), ("empty", EMPTY)):
            truth = KERNEL.exact_sum(RECORDS, queries) / len(RECORDS)
            found = g.query(queries)
            hits[name].append(((found.lower <= truth) & (truth <= found.upper)).mean())
    for each in hits.values():
        assert 0.9 < np.mean(each) <= 1.0


def test_nothing_is_spent_and_the_points_are_in_the_file() -> None:
    f = released()
    g = f.sharpened()
    assert g.claim == f.claim
    assert any("found in it" in str(each.words) for each in g.details())
    stream = io.BytesIO()
    g.save(stream)
    stream.seek(0)
    for again in (hs.load(stream), pickle.loads(pickle.dumps(g))):
        assert isinstance(again, SharpenedFunction)
        np.testing.assert_array_equal(again(EMPTY), g(EMPTY))
        np.testing.assert_array_equal(again.points, g.points)
        assert again.claim == f.claim


@pytest.mark.parametrize("records", [RECORDS[:300], RNG.uniform(size=(30_000, 6))], ids=["few", "everywhere"])
def test_where_points_do_not_explain_the_table_answers_are_those_of_the_release(records: Any) -> None:
    f = released(records, features=512)
    g = f.sharpened()
    if g.explained == 0.0:
        np.testing.assert_array_equal(g(QUERIES), f(QUERIES))
    else:
        assert errors(g, EMPTY, records).mean() <= 1.05 * errors(f, EMPTY, records).mean()


def test_points_are_found_far_from_the_middle_of_a_wide_box_by_its_columns() -> None:
    """Of sixty bandwidths on each side: only the rows of single columns lead to the records."""
    kernel, records = hs.GaussianKernel(6, 0.015), 0.75 + 0.1 * (RECORDS - 0.5)
    found = [released(records, kernel, axes=axes).sharpened().explained for axes in (0, 16)]
    assert found[0] == 0.0
    assert found[1] > 0.9


def test_without_bounds_points_are_looked_for_around_the_origin() -> None:
    records = (RECORDS - 0.5) / 0.15
    kernel = hs.GaussianKernel(6, 1.0)
    f = released(records, kernel, bounds=None)
    g = f.sharpened()
    assert g.explained > 0.9
    assert errors(g, EMPTY, records, kernel).mean() < errors(f, EMPTY, records, kernel).mean() / 2


@pytest.mark.parametrize("kernel", [hs.LaplacianKernel(6, 0.5), hs.MaternKernel(6, 0.3)], ids=str)
def test_other_kernels_are_no_worse(kernel: Any) -> None:
    f = released(kernel=kernel)
    g = f.sharpened()
    assert errors(g, EMPTY, kernel=kernel).mean() <= 1.05 * errors(f, EMPTY, kernel=kernel).mean()


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("groups", [1, 4])
def test_rows_of_single_columns_are_paid_for(relation: Relation, groups: int) -> None:
    tally = hs.fourier_features(KERNEL, features=64, bounds=(0, 1), axes=3, groups=groups)
    rows = 64 // groups + 18
    assert tally.basis.shape == (82, 2)
    moved = tally.basis.sensitivity(relation)
    if relation is Relation.ADD_REMOVE:
        assert moved.l2_squared == rows * 1024**2
    else:
        # Less where a lattice shows that two records of the box are not that far apart, as in one group.
        assert 2 * rows * 1024**2 < moved.l2_squared <= 4 * rows * 1024**2
        pairs = RNG.uniform(size=(200, 2, 6)).round()
        for pair in pairs:
            tables = np.zeros((2, *tally.basis.shape), np.int64)
            for table, record in zip(tables, pair, strict=True):
                tally.basis.accumulate(table, tally.basis.prepare(record[None]), step=1, threads=1)
            assert np.square(tables[0] - tables[1]).sum() <= moved.l2_squared
    f: Any = tally.add(RECORDS[:50]).release(**WITH_DELTA, relation=relation)
    assert all(row.holds for row in audit_calibration(f))


def test_each_record_adds_a_vector_of_no_more_than_the_stated_length() -> None:
    for groups in (1, 4):
        tally = hs.fourier_features(KERNEL, features=64, bounds=(0, 1), axes=3, groups=groups)
        for record in [*RECORDS[:20], np.zeros(6), np.ones(6)]:
            table = np.zeros(tally.basis.shape, np.int64)
            tally.basis.accumulate(table, tally.basis.prepare(record[None]), step=1, threads=1)
            assert np.square(table).sum() <= tally.basis.sensitivity(Relation.ADD_REMOVE).l2_squared
            assert (np.square(table[64:]).sum(axis=1) > 1000**2).all()


def test_a_pure_release_publishes_features_alone() -> None:
    tally = hs.fourier_features(KERNEL, features=512, bounds=(0, 1), axes=3).add(RECORDS[:500])
    f: Any = tally.release(epsilon=1.0)
    assert isinstance(f, CoefficientFunction)
    assert isinstance(f.basis, FourierFeatures)
    assert f.basis.axes == 0
    assert f.basis.shape[0] <= 512


def test_merge_compare_cluster_and_audit_take_the_release() -> None:
    f, g = (released(features=512, seed=seed).sharpened() for seed in (1, 2))
    both = hs.merge(f, g, disjoint_units=True)
    np.testing.assert_array_equal(both.table, f.function.table + g.function.table)
    assert hs.compare(f, g).p_value == hs.compare(f.function, g.function).p_value
    assert len(hs.PrivateKMeans(6).fit_released(f).cluster_centers_) == 6
    assert all(row.holds for row in audit(f).rows if row.what == "stated noise")


def test_a_release_with_delta_is_sharpened_where_that_helps() -> None:
    given: dict[str, Any] = {"kernel": KERNEL, "bounds": (0, 1), **WITH_DELTA, "method": "fourier_features"}
    f: Any = hs.release(RECORDS, records=len(RECORDS), max_bytes=1 << 17, **given)
    assert isinstance(f, SharpenedFunction)
    assert isinstance(f.function.basis, FourierFeatures)
    assert f.function.basis.axes > 0
    few: Any = hs.release(RECORDS[:20], records=20, max_bytes=1 << 17, **given)
    assert isinstance(few, CoefficientFunction)


def test_misuse_is_refused() -> None:
    with pytest.raises(UsageError, match="axes need bounds"):
        hs.fourier_features(KERNEL, features=64, axes=3)
    grid: Any = hs.grid(hs.GaussianKernel(1, 0.5), bounds=(0, 1)).add([[0.5]]).release(epsilon=1.0)
    with pytest.raises(UsageError, match="points sharpen Fourier features"):
        grid.sharpened()
