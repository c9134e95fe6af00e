"""Fourier features read with the help of public points."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest

import hushsum as hs
from hushsum import _native
from hushsum.errors import FileRefused, UsageError
from hushsum.releases import MOST_POINTS, CoefficientFunction, SharpenedFunction
from hushsum.tables import FourierFeatures, explain, mean_weights, unexplained

RNG = np.random.default_rng(4)
KERNEL = hs.GaussianKernel(6, 1.5)
RECORDS = np.concatenate([RNG.normal(size=(1500, 6)) * 0.6, RNG.normal(size=(500, 6)) * 0.4 + 1.0])
PUBLIC = np.concatenate([RNG.normal(size=(150, 6)) * 0.6, RNG.normal(size=(150, 6)) * 0.4 + 1.0])
QUERIES = RECORDS[::20]
EXACT = KERNEL.exact_sum(RECORDS, QUERIES)


def released(features: int = 400, rho: float = 5.0, **options: object) -> CoefficientFunction:
    tally = hs.fourier_features(KERNEL, features=features, seed=3, **options)  # type: ignore[arg-type]
    function = tally.add(RECORDS).release(rho=rho, relation="replace", insecure_noise_seed=1)
    assert isinstance(function, CoefficientFunction)
    return function


def error(function: CoefficientFunction | SharpenedFunction) -> float:
    return float(np.abs(function.sum(QUERIES) - EXACT).mean())


def test_points_like_the_records_lower_the_error_manifold() -> None:
    """Seeded. About 20 times less here."""
    f = released()
    g = f.with_public_points(PUBLIC)
    assert g.explained > 0.99
    assert error(g) < error(f) / 8
    answers = g.query(QUERIES, of="sum")
    np.testing.assert_allclose(answers.value, g.sum(QUERIES))
    assert error(g) * 1.25 < answers.stderr.mean() < error(g) * 3.0
    assert (answers.stderr < f.query(QUERIES, of="sum").stderr / 4).all()


def test_the_queries_themselves_may_be_the_points() -> None:
    f = released()
    assert error(f.with_public_points(QUERIES)) < error(f) / 5


def test_points_elsewhere_do_no_harm() -> None:
    f = released()
    g = f.with_public_points(RNG.normal(size=(50, 6)) + 40.0)
    assert g.explained < 0.05
    assert error(g) < 1.1 * error(f)


def test_without_folds_nothing_is_changed() -> None:
    # Four blocks of six orthogonal rows: too few for folds of whole blocks.
    f = released(features=24, sobol=False)
    g = f.with_public_points(PUBLIC)
    assert g.explained == 0.0
    np.testing.assert_allclose(g.sum(QUERIES), f.sum(QUERIES))


def test_what_is_taken_out_of_the_rows_is_what_is_added_back() -> None:
    """A row's remainder and its points' part make the row again, up to the rounding of cells."""
    f = released(features=50, orthogonal=False)
    basis = f.basis
    assert isinstance(basis, FourierFeatures)
    batch = basis.prepare_queries(PUBLIC)
    found = explain(basis, f.table, batch)
    remainder = unexplained(basis, f.table, batch, found.weights)
    waves = _native.FeatureMap(basis.frequencies).waves(batch.arrays[0]).astype(np.float64)
    for fold in range(5):
        rows = np.arange(fold, 50, 5)
        part = f.table[rows] - remainder[rows]
        # Fifty numbers more than determine three hundred weights, but not to less than these cells.
        weights, *_ = np.linalg.lstsq(waves[:, rows].reshape(len(PUBLIC), -1).T, part.reshape(-1), rcond=None)
        again = (weights @ waves[:, rows].reshape(len(PUBLIC), -1)).reshape(-1, 2)
        np.testing.assert_allclose(again, part, atol=1.0)
    assert mean_weights(basis, found.weights).sum() == pytest.approx(len(RECORDS), rel=0.2)


def test_it_is_saved_and_pickled_with_its_points() -> None:
    g = released(features=60, bounds=(-9, 11)).with_public_points(PUBLIC[:40])
    stream = io.BytesIO()
    g.save(stream)
    stream.seek(0)
    for again in (hs.load(stream), pickle.loads(pickle.dumps(g))):
        assert isinstance(again, SharpenedFunction)
        np.testing.assert_allclose(again.points, PUBLIC[:40], atol=1e-6)
        np.testing.assert_allclose(again(QUERIES), g(QUERIES), atol=1e-9)
        assert again.claim == g.claim
        assert again.kernel == KERNEL
        assert again.count == 2000
        assert "points=40" in repr(again)
    assert isinstance(g, hs.ReleasedFunction)


def test_a_file_with_other_points_is_refused() -> None:
    g = released(features=20).with_public_points(PUBLIC[:5])
    object.__setattr__(g, "points", np.zeros((5, 7)))
    stream = io.BytesIO()
    g.save(stream)
    stream.seek(0)
    with pytest.raises(FileRefused):
        hs.load(stream)


def test_negative_answers_are_raised_on_demand() -> None:
    g = released(features=100, rho=1e-3).with_public_points(PUBLIC)
    far = RNG.normal(size=(50, 6)) * 9
    assert (g(far) < 0).any()
    assert (g(far, nonnegative=True) >= 0).all()


def test_misuse_is_refused() -> None:
    grid = hs.grid(hs.GaussianKernel(1, 0.5), bounds=(0, 1)).add([[0.5]]).release(epsilon=1.0)
    assert isinstance(grid, CoefficientFunction)
    with pytest.raises(UsageError, match="points sharpen Fourier features"):
        grid.with_public_points([[0.5]])
    with pytest.raises(UsageError, match="points must be"):
        released(features=20).with_public_points(np.zeros((MOST_POINTS + 1, 6)))
