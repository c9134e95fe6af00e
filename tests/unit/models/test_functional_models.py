"""The models of functional perturbation: what they say with little noise, and when they are silent."""

from __future__ import annotations

import io
import math
import warnings
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import ClaimError, DataRefused, RepeatedSpending, UsageError
from hushsum.methods import GAP_REACHED
from hushsum.models import (
    PrivateDensity,
    PrivateGaussianProcessRegressor,
    PrivateHistogram,
    PrivateKernelSVC,
    load_model,
)
from hushsum.models._density import FunctionalSums

RNG = np.random.default_rng(8)
LINE = RNG.uniform(-1.0, 1.0, size=(1500, 1))
CURVE = 0.5 * np.sin(3.0 * LINE[:, 0])
PLANE = RNG.uniform(-1.0, 1.0, size=(1200, 2))
RING = np.where((PLANE**2).sum(axis=1) < 0.5, 1, 0)
EASY: Any = {"epsilon": 500.0, "random_state": 0}


def test_a_histogram_counts_its_bins() -> None:
    X = np.array([[0.1]] * 30 + [[0.6]] * 50 + [[7.0]] * 20)
    model = PrivateHistogram(epsilon=1000.0, bins=4, bounds=(0, 1)).fit(X)
    assert model.counts_.tolist() == [30.0, 0.0, 50.0, 20.0]
    assert model.bin_edges_[0].tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    np.testing.assert_allclose(model.predict([[0.2], [0.5], [1.0]]), [1.2, 2.0, 0.8], rtol=1e-6)
    assert model.predict([[5.0]])[0] < 1e-6
    assert np.isfinite(model.score([[0.3], [5.0]]))


@pytest.mark.parametrize(("relation", "length"), [("add/remove", 1.0), ("replace", math.sqrt(2.0))])
def test_the_noise_of_a_histogram_is_that_of_its_l2_sensitivity(relation: str, length: float) -> None:
    model = PrivateHistogram(epsilon=1.0, delta=1e-6, bins=8, relation=relation).fit(LINE)
    assert model.count_stderr_ == pytest.approx(4.2245 * length, rel=0.03)
    assert str(model.claim_.relation) == relation
    wrong: Any = {"bins": "many"}
    with pytest.raises(UsageError, match="bins"):
        PrivateHistogram(**wrong).fit(LINE)


@pytest.mark.parametrize("kernel", ["gaussian", "matern"])
def test_a_functional_density_is_the_kernel_density(kernel: str) -> None:
    model = PrivateDensity(method="functional", kernel=kernel, bandwidth=0.3, delta=1e-6, **EASY).fit(LINE)
    at = np.linspace(-0.9, 0.9, 7)[:, None]
    kind = {"gaussian": hs.GaussianKernel, "matern": hs.MaternKernel}[kernel](dim=1, bandwidth=0.3)
    integral = {"gaussian": 0.3 * math.sqrt(2 * math.pi), "matern": 0.3 * 4 / math.sqrt(3)}[kernel]
    np.testing.assert_allclose(
        model.predict(at), kind.exact_sum(LINE, at) / len(LINE) / integral, atol=0.05, rtol=0.1
    )
    assert model.normalised_over_ == "all space"


def test_a_functional_density_is_calibrated_analytically_and_needs_delta() -> None:
    with pytest.raises(ClaimError, match="delta"):
        PrivateDensity(method="functional").fit(LINE)
    part: Any = PrivateDensity(method="functional", delta=1e-6).fit(LINE).released_.parts
    (function,) = part.values()
    assert _noise(function) == pytest.approx(4.2245 / 0.98, rel=0.02)
    two: Any = PrivateDensity(method="functional", bandwidth=[0.2, 0.4], delta=1e-6).fit(LINE)
    for each in two.released_.parts.values():
        assert _noise(each) == pytest.approx(math.sqrt(2.0) * 4.2245 / 0.98, rel=0.02)


def _noise(function: Any) -> float:
    """The standard deviation of the noise of a kernel sum at 0."""
    batch = function.basis.prepare_queries([[0.0]])
    return math.sqrt(function.noise.variance * function.reading.noise_gain(batch)[0])


@pytest.mark.parametrize("epsilon", [1.0, 1000.0])
def test_a_functional_density_has_no_error_but_its_noise(epsilon: float) -> None:
    """The mean absolute error at 50 points, against its prediction, which ε alone lowers."""
    records = np.random.default_rng(2).normal(0.0, 0.3, (20_000, 1))
    model = PrivateDensity(method="functional", epsilon=epsilon, delta=1e-6, bandwidth=0.1)
    stated = model.predicted_error(20_000, n_features=1)
    assert stated is not None
    predicted = stated.error
    at = np.linspace(-0.9, 0.9, 50)[:, None]
    kernel = hs.GaussianKernel(dim=1, bandwidth=0.1)
    exact = kernel.exact_sum(np.clip(records, -1, 1), at) / 20_000 / (0.1 * math.sqrt(2.0 * math.pi))
    with warnings.catch_warnings(action="ignore", category=RepeatedSpending):
        errors = [np.abs(model.fit(records).query(at).value - exact).mean() for _ in range(4)]
    # N̂ adds a little of its own, in proportion to the density.
    assert 0.3 * predicted < float(np.mean(errors)) < 3.0 * predicted
    assert predicted < 1e-3 / epsilon**0.5


@pytest.mark.parametrize(
    ("kernel", "bounds", "exact"),
    [
        (hs.GaussianKernel(1, 4.0), (0, 100), True),
        (hs.GaussianKernel(2, 0.2), (-1, 1), True),
        (hs.GaussianKernel(1, 0.01), (0, 100), False),
        (hs.GaussianKernel(5, 0.5), (-1, 1), False),
        (hs.LaplacianKernel(1, 4.0), (0, 100), False),
    ],
)
def test_exact_features_where_there_are_few(kernel: Any, bounds: tuple[float, float], exact: bool) -> None:
    from hushsum.models._density import functional_basis
    from hushsum.records import Bounds
    from hushsum.tables import FourierSeries

    basis = functional_basis(kernel, Bounds.declared(bounds, kernel.dim, "functional"), 1)
    assert isinstance(basis, FourierSeries) is exact
    if not exact:
        return
    # One record: what the table says of it at every query is the kernel.
    table = np.zeros(basis.shape, np.int64)
    middle = (bounds[0] + bounds[1]) / 2.0
    record = np.full((1, kernel.dim), middle)
    basis.accumulate(table, basis.prepare(record), step=1, threads=1)
    queries = np.random.default_rng(1).uniform(*bounds, (50, kernel.dim))
    found = basis.reading().evaluate(table, basis.prepare_queries(queries), threads=1)  # type: ignore[attr-defined]
    np.testing.assert_allclose(found, kernel.exact_sum(record, queries), atol=2e-5)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (1.0, 1e-9), (3.0, 1e-8), (8.0, 1e-6)])
def test_exact_and_random_features_together_keep_one_promise(epsilon: float, delta: float) -> None:
    """Noise on the coarser lattice of random features may have to be calibrated through ρ; that of the exact
    features must be then too.
    """
    from hushsum.privacy import Relation
    from hushsum.privacy.accounting import gaussian_delta, rounding_gap, zcdp_rho

    model = PrivateDensity(
        method="functional", bandwidth=[0.3, 0.0005], epsilon=epsilon, delta=delta, bounds=(-1, 1)
    )
    parts: Any = model.fit(LINE).released_.parts.values()
    assert {part.basis.name for part in parts} == {"fourier-series", "fourier-features"}
    moved = [part.basis.sensitivity(Relation.ADD_REMOVE).l2_squared for part in parts]
    variances = [part.noise.parameter for part in parts]
    rho = sum(square / (2 * variance) for square, variance in zip(moved, variances, strict=True))
    # A fiftieth of ε is for the count.
    left = 0.98 * epsilon
    gaps = [rounding_gap(part.table.size, part.noise.parameter) for part in parts]
    over_the_reals = gaussian_delta(left, math.sqrt(2.0 * float(rho))) + (1.0 + math.exp(left)) * sum(gaps)
    assert rho <= zcdp_rho(left, delta) * (1.0 + 1e-12) or over_the_reals <= delta


def test_private_sums_show_and_give_nothing() -> None:
    import pickle

    from hushsum.models._density import planned
    from hushsum.privacy import Promise
    from hushsum.records import Bounds

    box = [(-1.0, 1.0)]
    tables = planned("gaussian", 0.3, "functional", 1, scale=None, box=box)
    sums = FunctionalSums(tables, Promise.of(epsilon=1.0, delta=1e-6), 1, Bounds((-1.0,), (1.0,)))
    sums.add(LINE)
    assert repr(sums) == "<FunctionalSums CONFIDENTIAL>"
    with pytest.raises(hs.errors.SecretRefused):
        pickle.dumps(sums)


@pytest.mark.parametrize("kernel", ["gaussian", "matern", hs.GaussianKernel(dim=1, bandwidth=0.5)])
def test_a_posterior_follows_its_curve(kernel: Any) -> None:
    model = PrivateGaussianProcessRegressor(kernel=kernel, noise=0.5, **EASY).fit(LINE, CURVE)
    at = np.linspace(-0.9, 0.9, 9)[:, None]
    mean, deviation = model.predict(at, return_std=True)
    np.testing.assert_allclose(mean, 0.5 * np.sin(3.0 * at[:, 0]), atol=0.05)
    assert (deviation >= model.noise_stderr_ * 0.999).all()
    assert (deviation < 0.1).all()
    assert str(model.claim_.relation) == "replace"
    assert "inputs X are public" in model.claim_.sentence()


def test_a_posterior_clips_targets_and_queries() -> None:
    wild = CURVE.copy()
    wild[::50] = 1e9
    model = PrivateGaussianProcessRegressor(noise=0.5, **EASY).fit(LINE, wild)
    assert np.abs(model.predict(LINE)).max() <= 1.0
    assert model.predict([[50.0]]) == model.predict([[1.0]])


def test_a_loud_posterior_is_silent() -> None:
    model = PrivateGaussianProcessRegressor(epsilon=0.01, target_bounds=(2, 4), random_state=0)
    model.fit(LINE[:50], 3.0 + CURVE[:50])
    mean, deviation = model.predict([[0.0]], return_std=True)
    assert mean.tolist() == [3.0]
    assert deviation[0] == pytest.approx(1.0, rel=1e-3)


def test_private_inputs_are_regressed_from_noisy_sums() -> None:
    X = np.random.default_rng(0).uniform(-1, 1, size=(20_000, 1))
    model = PrivateGaussianProcessRegressor(inputs="private", epsilon=50.0, random_state=0)
    model.fit(X, 0.5 * np.sin(3.0 * X[:, 0]))
    at = np.linspace(-0.9, 0.9, 9)[:, None]
    mean, deviation = model.predict(at, return_std=True)
    np.testing.assert_allclose(mean, 0.5 * np.sin(3.0 * at[:, 0]), atol=0.05)
    assert np.isfinite(deviation).all()
    assert str(model.claim_.relation) == "add/remove"
    assert model.claim_.assumptions == ()
    with pytest.raises(AttributeError):
        _ = model.noise_stderr_
    few = PrivateGaussianProcessRegressor(inputs="private", random_state=0).fit(LINE[:50], CURVE[:50])
    assert few.predict([[0.5]]).tolist() == [0.0]


@pytest.mark.parametrize(
    "wrong",
    [
        {"inputs": "both"},
        {"calibration": "loose"},
        {"noise": 0.0},
        {"delta": None},
        {"features": "many"},
        {"kernel": "cosine"},
        {"kernel": hs.GaussianKernel(dim=3, bandwidth=1.0)},
        {"target_bounds": None},
    ],
    ids=str,
)
def test_a_regressor_refuses_what_it_cannot_do(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        PrivateGaussianProcessRegressor(**wrong).fit(LINE, CURVE)


@pytest.mark.parametrize("kernel", ["gaussian", "matern"])
def test_machines_draw_a_ring(kernel: str) -> None:
    model = PrivateKernelSVC(kernel=kernel, classes=[0, 1], **EASY).fit(PLANE, RING)
    assert model.score(PLANE, RING) > 0.85
    assert model.decision_function(PLANE[:5]).shape == (5,)
    assert str(model.claim_.relation) == "replace"


def test_several_classes_are_one_against_the_rest() -> None:
    labels = np.array(["a", "b", "c"])[np.digitize(PLANE[:, 0], [-0.33, 0.33])]
    model = PrivateKernelSVC(classes=["a", "b", "c", "never"], C=300.0, **EASY).fit(PLANE, labels)
    assert model.decision_function(PLANE[:5]).shape == (5, 4)
    assert model.score(PLANE, labels) > 0.9
    assert model.claim_.assumptions == (GAP_REACHED,)
    with pytest.raises(DataRefused, match="declared"):
        PrivateKernelSVC(classes=["a", "b"]).fit(PLANE, labels)


def test_a_loud_machine_says_the_first_class() -> None:
    model = PrivateKernelSVC(epsilon=0.01, classes=[0, 1], random_state=0).fit(PLANE, RING)
    assert model.release().noise_stderr_ > 1.0
    assert set(model.predict(PLANE)) == {0}


@pytest.mark.parametrize(
    "wrong", [{"C": 0.0}, {"delta": None}, {"calibration": "loose"}, {"classes": [1]}], ids=str
)
def test_a_machine_refuses_what_it_cannot_do(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        PrivateKernelSVC(**{"classes": [0, 1], **wrong}).fit(PLANE, RING)


def test_a_process_of_private_inputs_survives_a_file() -> None:
    X = np.random.default_rng(0).uniform(-1, 1, size=(500, 1))
    model = hs.PrivateGaussianProcessRegressor(inputs="private", random_state=0).fit(X, X[:, 0])
    buffer = io.BytesIO()
    model.save(buffer)
    buffer.seek(0)
    np.testing.assert_array_equal(load_model(buffer).predict(X[:5]), model.predict(X[:5]))
