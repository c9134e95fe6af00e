"""Kernels whose columns have units of their own: the same as plain kernels of columns that are divided."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.kernels import (
    HashableKernel,
    ProfileKernel,
    ScaledKernel,
    SpectralKernel,
    bandwidth_warnings,
    in_scale,
    in_units,
    kernel_as_json,
    kernel_from_json,
    kernel_in_words,
    named,
    scaled_by,
)
from hushsum.records import Bounds
from tests.exact_tallies import exact_table

BOUNDS = [(0, 120), (0, 300_000)]
UNITS = np.array([120.0, 300_000.0])
RNG = np.random.default_rng(5)
N = 6000
X = np.column_stack([RNG.normal(45, 12, N).clip(18, 90), np.exp(RNG.normal(10.8, 0.5, N)).clip(0, 300_000)])
Q = X[:100]
KERNELS = ("gaussian", "laplacian", "euclidean", "manhattan", "matern")


def near(name: str, bandwidth: float = 0.05) -> Any:
    return hs.kernels.scaled(named(name, dim=2, bandwidth=bandwidth), BOUNDS)


@pytest.mark.parametrize("name", KERNELS)
class TestTheSameAsDividedColumns:
    def test_similarity(self, name: str) -> None:
        plain = named(name, dim=2, bandwidth=0.05)
        found = near(name).similarity(X[:50], Q)
        np.testing.assert_allclose(found, plain.similarity(X[:50] / UNITS, Q / UNITS), atol=2e-5)

    def test_roles(self, name: str) -> None:
        kernel, plain = near(name), named(name, dim=2, bandwidth=0.05)
        for role in (HashableKernel, SpectralKernel, ProfileKernel):
            assert isinstance(kernel, role) == isinstance(plain, role)
        assert kernel.column_bandwidths() == pytest.approx((6.0, 15_000.0))
        assert kernel.width == pytest.approx(plain.width * 120.0)  # type: ignore[attr-defined]

    def test_files_and_pickles(self, name: str) -> None:
        kernel = near(name)
        assert kernel_from_json(kernel_as_json(kernel)) == kernel
        assert pickle.loads(pickle.dumps(kernel)) == kernel
        assert hash(kernel) == hash(near(name))
        assert "6 × 15000" in kernel_in_words(kernel)


TALLIES: dict[str, Any] = {
    "race": lambda kernel, box: hs.race(kernel, rows=300, bounds=box),
    "features": lambda kernel, box: hs.fourier_features(kernel, features=300, bounds=box),
    "grid": lambda kernel, box: hs.grid(kernel, bounds=box),
}


@pytest.mark.parametrize(
    ("name", "method"),
    [("euclidean", "race"), ("gaussian", "grid"), ("gaussian", "features"), ("euclidean", "grid")],
)
def test_answers_and_their_errors_are_those_of_divided_columns(name: str, method: str) -> None:
    kernel, plain = near(name, 0.1), named(name, dim=2, bandwidth=0.1)
    truth = kernel.exact_sum(X, Q) / N
    answers, divided = (
        TALLIES[method](each, box).add(rows).release(epsilon=2.0, insecure_noise_seed=4).query(queries)
        for each, box, rows, queries in ((kernel, BOUNDS, X, Q), (plain, (0, 1), X / UNITS, Q / UNITS))
    )
    assert np.abs(answers.value - truth).mean() < 3.0 * answers.stderr.mean()
    assert np.abs(answers.value - truth).mean() < 0.05
    assert answers.stderr.mean() == pytest.approx(divided.stderr.mean(), rel=0.25)


@pytest.mark.parametrize("make", [lambda: hs.race(near("euclidean"), rows=60, bounds=BOUNDS),
                                  lambda: hs.grid(near("gaussian"), bounds=BOUNDS)])  # fmt: skip
def test_a_record_counts_alone_bit_for_bit(make: Any) -> None:
    one, other = make().add(X[:64]), make()
    for row in X[:64]:
        other.add(row[None])
    released = [each.release(epsilon=1.0, insecure_noise_seed=1) for each in (one, other)]
    np.testing.assert_array_equal(released[0](Q), released[1](Q))


def test_numbers_that_a_small_unit_brings_beyond_float32_still_have_one_cell_per_row() -> None:
    kernel = scaled_by(hs.EuclideanKernel(dim=2, bandwidth=1.0), (1e-20, 1.0))
    largest = np.array([[3e38, 1.0], [-3e38, 3e38], [3e38, -3e38]])
    tally = hs.race(kernel, rows=20, width=10).add(largest)
    assert int(exact_table(tally).sum()) == 60


class TestScale:
    def test_the_default_is_bounds_where_ranges_differ_more_than_ten_times(self) -> None:
        plain = named("gaussian", dim=2, bandwidth=0.1)
        assert isinstance(in_scale(plain, None, BOUNDS), ScaledKernel)
        assert in_scale(plain, None, [(0, 120), (0, 250)]) is plain
        assert in_scale(plain, None, None) is plain
        assert in_scale(plain, "units", BOUNDS) is plain
        assert in_scale(plain, None, BOUNDS, default=False) is plain
        assert in_units(plain, "bounds", [(0, 2), (0, 4)]) == pytest.approx((2.0, 4.0))

    def test_equal_ranges_change_the_bandwidth_alone(self) -> None:
        assert hs.kernels.scaled(hs.GaussianKernel(2, 0.05), (0, 200)) == hs.GaussianKernel(2, 10.0)

    def test_release_and_plan_take_names_dictionaries_and_objects(self) -> None:
        import pandas as pd

        frame = pd.DataFrame(X[:2000], columns=["age", "pay"])
        bounds = {"age": BOUNDS[0], "pay": BOUNDS[1]}
        f = hs.release(frame, kernel="gaussian", bandwidth=0.05, bounds=bounds, epsilon=1.0)
        assert f.kernel == near("gaussian")
        g = hs.release(frame, kernel=hs.GaussianKernel(2, 0.05), bounds=bounds, epsilon=1.0, scale="bounds")
        assert g.kernel == near("gaussian")
        with pytest.warns(hs.errors.SuspiciousParameter, match="hardly depend"):
            kept = hs.release(frame, kernel=hs.GaussianKernel(2, 5e3), bounds=bounds, epsilon=1.0)
        assert kept.kernel == hs.GaussianKernel(2, 5e3)
        declared: list[dict[str, Any]] = [
            {"bandwidth": 0.05, "bounds": bounds},
            {"bandwidth": 0.05, "bounds": (0, 1)},
        ]
        errors = [
            hs.plan(records=2000, dim=2, epsilon=1.0, kernel="gaussian", **each).best.error
            for each in declared
        ]
        assert errors[0] == pytest.approx(errors[1], rel=1e-6)

    def test_a_public_sample_gives_a_bandwidth_in_units_of_the_bounds(self) -> None:
        f = hs.release(X[:5000], kernel="gaussian", public=X[-500:], epsilon=1.0)
        assert isinstance(f.kernel, ScaledKernel)
        age, pay = f.kernel.column_bandwidths()
        assert 1.0 < age < 12.0
        assert 1000.0 < pay < 30_000.0

    @pytest.mark.parametrize(
        ("call", "match"),
        [
            (lambda: in_scale(named("gaussian", dim=2, bandwidth=1.0), "ranges", BOUNDS), "units or bounds"),
            (lambda: in_scale(named("gaussian", dim=2, bandwidth=1.0), "bounds", None), "declared"),
            (
                lambda: in_scale(named("gaussian", dim=2, bandwidth=5e3), None, BOUNDS),
                "a fraction of the declared",
            ),
            (lambda: in_scale(named("hamming", dim=2), "bounds", BOUNDS), "compares columns of numbers"),
            (lambda: near("gaussian") * hs.GaussianKernel(2, 1.0), "units of its own"),
            (lambda: hs.kernels.on_columns(near("gaussian"), [0, 1], of=3), "units of its own"),
            (lambda: scaled_by(hs.GaussianKernel(2, 1.0), (1.0, float("nan"))), "from 1e-30"),
        ],
    )
    def test_what_is_refused(self, call: Any, match: str) -> None:
        with pytest.raises(UsageError, match=match):
            call()

    @pytest.mark.parametrize(
        "parameters",
        [
            {"kernel": kernel_as_json(hs.GaussianKernel(2, 1.0)), "units": [1.0]},
            {"kernel": kernel_as_json(hs.GaussianKernel(2, 1.0)), "units": [1.0, 0.0]},
            {"kernel": kernel_as_json(hs.GaussianKernel(2, 1.0)), "units": [1.0, 1.0]},
            {"kernel": kernel_as_json(hs.HammingKernel(2)), "units": [1.0, 2.0]},
            {"kernel": kernel_as_json(near("gaussian")), "units": [1.0, 2.0]},
            {"kernel": kernel_as_json(hs.GaussianKernel(2, 1.0))},
        ],
    )
    def test_damaged_descriptions(self, parameters: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match=r".+"):
            kernel_from_json({"name": "scaled", "parameters": parameters})

    def test_warnings_beside_the_bounds(self) -> None:
        box = Bounds.of(BOUNDS, 2)
        assert bandwidth_warnings(near("gaussian"), box) == []
        (one,) = bandwidth_warnings(hs.GaussianKernel(2, 5e3), box)
        assert "hardly depend on that column" in one
        (tiny,) = bandwidth_warnings(hs.GaussianKernel(2, 0.5), box)
        assert "1/10000" in tiny
        assert bandwidth_warnings(hs.JaccardKernel(), None) == []


@pytest.mark.parametrize(
    "model",
    [
        hs.PrivateDensity(bandwidth=[0.05, 0.1], bounds=BOUNDS),
        hs.PrivateModes(bandwidth=0.1, rows=200, bounds=BOUNDS, epsilon=20.0, random_state=0),
        hs.PrivateNeighbors(bandwidth=0.1, rows=200, bounds=BOUNDS, random_state=0),
        hs.PrivateSampler(bandwidth=0.05, bounds=BOUNDS, random_state=0),
        hs.PrivateOutlierDetector(bandwidth=0.1, rows=200, bounds=BOUNDS, epsilon=20.0, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_have_the_units_of_the_data(model: Any, tmp_path: Path) -> None:
    model.fit(X)
    model.save(tmp_path / "m.hush")
    again: Any = hs.load(tmp_path / "m.hush")
    assert again.scale is None
    if isinstance(model, hs.PrivateDensity):
        inside = again.predict(np.array([[45.0, 50_000.0], [100.0, 250_000.0]]))
        assert inside[0] > 10.0 * inside[1]
    if isinstance(model, hs.PrivateModes):
        assert len(again.modes_) == 1
        assert abs(again.modes_[0] - [45.0, 42_000.0]) @ [1 / 10.0, 1 / 15_000.0] < 2.0
        assert (again.predict(Q) == 0).all()
    if isinstance(model, hs.PrivateSampler):
        drawn = again.sample(1000, random_state=1)
        assert abs(np.median(drawn, axis=0) - np.median(X, axis=0)) @ [1 / 6.0, 1 / 15_000.0] < 1.0
    if isinstance(model, hs.PrivateOutlierDetector):
        assert again.predict([[45.0, 50_000.0], [119.0, 299_000.0]]).tolist() == [1, -1]


def test_estimates_of_a_density_are_named_by_the_bandwidth_that_was_given() -> None:
    model = hs.PrivateDensity(bandwidth=[0.05, 0.2], bounds=BOUNDS).fit(X)
    wide = model.predict(Q, bandwidth=0.2)
    assert not np.allclose(wide, model.predict(Q))
    np.testing.assert_array_equal(model.predict(Q, bandwidth=0.05), model.predict(Q, kernel="gaussian"))
    one = hs.PrivateDensity(bandwidth=0.05, bounds=(0, 120), scale="bounds").fit(X[:, :1])
    assert one.predict(Q[:, :1], bandwidth=0.05).shape == (100,)
    with pytest.raises(UsageError, match="among those"):
        one.predict(Q[:, :1], bandwidth=6.0)
