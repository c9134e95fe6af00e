"""Densities against the exact kernel density estimate, and how several kernels share a budget."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.errors import DataRefused, UsageError
from hushsum.privacy.accounting import zcdp_delta
from tests.exact_tallies import exact_table


def bell(number: int, columns: int, spread: float = 0.3) -> NDArray[np.float64]:
    return np.random.default_rng(2).normal(0.0, spread, size=(number, columns)).clip(-1.0, 1.0)


@pytest.mark.parametrize("columns", [1, 2, 3, 4])
def test_a_gaussian_density_is_the_exact_one_up_to_small_errors(columns: int) -> None:
    X, h = bell(50_000, columns), 0.25
    Q = bell(40, columns, 0.2)
    exact = hs.GaussianKernel(columns, h).exact_sum(X, Q) / len(X) / (2 * np.pi * h**2) ** (columns / 2)
    found = hs.PrivateDensity(epsilon=4.0, bandwidth=h).fit(X).predict(Q)
    # Largest error seen in a hundred runs: 1.5 % in one column, 6 % in four.
    np.testing.assert_allclose(found, exact, rtol=0.25, atol=0.02 * exact.max())


def test_beyond_four_columns_features_answer() -> None:
    X = bell(50_000, 6)
    model = hs.PrivateDensity(epsilon=4.0, delta=1e-6, bandwidth=1.0, random_state=3).fit(X)
    exact = hs.GaussianKernel(6, 1.0).exact_sum(X, X[:20]) / len(X) / (2 * np.pi) ** 3
    np.testing.assert_allclose(model.predict(X[:20]), exact, rtol=0.2)
    assert list(model.released_.parts) == ["fourier_features 0"]


def test_any_number_of_gaussian_bandwidths_is_one_release() -> None:
    model = hs.PrivateDensity(epsilon=1.0, bandwidth=[0.4, 0.1, 0.2]).fit(bell(20_000, 1))
    assert list(model.released_.parts) == ["grid"]
    assert model.released_.parts["grid"].claim.epsilon == 1.0
    narrow, wide = (model.predict([[0.0]], bandwidth=h)[0] for h in (0.1, 0.4))
    assert narrow > wide
    assert model.predict([[0.0]])[0] == wide, "the first is the one that answers"
    with pytest.raises(UsageError, match="declare them before fit"):
        model.predict([[0.0]], bandwidth=0.3)


def test_tables_of_the_same_records_split_pure_epsilon_exactly() -> None:
    model = hs.PrivateDensity(epsilon=1.0, kernel=["gaussian", "euclidean", "manhattan"], bandwidth=0.3)
    parts = model.fit(bell(500, 2)).released_.parts
    assert [part.claim.promise.epsilon for part in parts.values()] == [Fraction(1, 3)] * 3
    assert model.claim_.promise.epsilon == 1


def test_with_delta_tables_split_rho_which_gives_the_claim() -> None:
    model = hs.PrivateDensity(epsilon=1.0, delta=1e-6, kernel="euclidean", bandwidth=[0.2, 0.4])
    parts = model.fit(bell(500, 2)).released_.parts
    spent = sum((part.claim.promise.rho or Fraction(0)) for part in parts.values())
    assert zcdp_delta(spent, 1.0) <= 1e-6
    assert zcdp_delta(spent * Fraction(101, 100), 1.0) > 1e-6, "no more is left unspent than rounding"
    assert (model.claim_.epsilon, model.claim_.delta) == (1.0, 1e-6)


@pytest.mark.parametrize("kernel", ["euclidean", "manhattan"])
def test_hash_kernels_are_normalised_over_the_bounds_and_say_so(kernel: str) -> None:
    model = hs.PrivateDensity(
        epsilon=4.0, kernel=kernel, bandwidth=0.3, bounds=[(-1, 1), (0, 3)], random_state=0
    )
    X = np.stack([bell(20_000, 1)[:, 0], 1.5 + bell(20_000, 1)[:, 0]], axis=1)
    model.partial_fit(X)
    with pytest.raises(AttributeError, match="released nothing yet"):
        _ = model.normalised_over_
    model.release()
    even = np.random.default_rng(0).uniform((-1, 0), (1, 3), size=(20_000, 2))
    # The integral over the box by 20,000 random points: its own error is below 2 %.
    assert model.predict(even).mean() * 6.0 == pytest.approx(1.0, abs=0.1)
    assert model.normalised_over_ == "bounds"


def test_the_gaussian_is_normalised_over_all_space() -> None:
    model = hs.PrivateDensity().fit(bell(1000, 1))
    assert model.normalised_over_ == "all space"


@pytest.mark.parametrize("kernel", ["gaussian", "euclidean"])
@pytest.mark.parametrize("number", [1, 50, 5000])
def test_log_densities_are_finite_everywhere(kernel: str, number: int) -> None:
    model = hs.PrivateDensity(epsilon=0.1, kernel=kernel, random_state=0).fit(bell(number, 2))
    scores = model.score_samples(np.array([[0.0, 0.0], [1.0, -1.0], [50.0, 50.0], [-1e6, 1e6]]))
    assert np.isfinite(scores).all()


def test_a_value_below_its_standard_error_is_raised_to_it() -> None:
    model = hs.PrivateDensity(epsilon=1.0, bandwidth=0.1).fit(bell(5000, 1, 0.05))
    Q = np.array([[-0.9], [0.8], [0.9]])
    part: Any = model.release().released_.parts["grid"]
    answers = part.with_kernel(hs.GaussianKernel(1, 0.1)).query(Q)
    expected = np.maximum(answers.value, answers.stderr) / np.sqrt(2 * np.pi * 0.01)
    np.testing.assert_allclose(model.predict(Q), expected)


def test_score_is_the_total_log_likelihood() -> None:
    model = hs.PrivateDensity().fit(bell(2000, 1))
    Q = bell(30, 1)
    assert model.score(Q) == pytest.approx(model.score_samples(Q).sum())


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_samples_lie_inside_the_bounds_and_follow_the_records(columns: int) -> None:
    X = bell(50_000, columns, 0.15) + 0.4
    model = hs.PrivateDensity(epsilon=4.0, delta=1e-6, bandwidth=0.3, random_state=1).fit(X)
    drawn = model.sample(500, random_state=5)
    assert drawn.shape == (500, columns)
    assert (np.abs(drawn) <= 1.0).all()
    # Records have mean 0.4; the kernel widens them and the box cuts at 1, which moves it down a little.
    np.testing.assert_allclose(drawn.mean(axis=0), 0.36, atol=0.08)
    assert np.array_equal(drawn, model.sample(500, random_state=5))


def test_a_density_in_pieces_counts_the_same_sums() -> None:
    X = bell(900, 2)
    whole = hs.PrivateDensity(kernel=["gaussian", "euclidean"], random_state=4).partial_fit(X)
    pieces = hs.PrivateDensity(kernel=["gaussian", "euclidean"], random_state=4)
    for part in np.array_split(X, 4):
        pieces.partial_fit(part)
    for name, tally in whole._state.secret.items():
        other = pieces._state.secret[name]
        assert np.array_equal(exact_table(tally), exact_table(other))
        assert tally.fingerprint == other.fingerprint


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "round"}, "kernel must be one of"),
        ({"kernel": 5}, "kernel must be one of"),
        ({"kernel": "jaccard"}, "kernel must be one of"),
        ({"kernel": []}, "kernel must be one of"),
        ({"bandwidth": [0.1, 0.1]}, "different"),
        ({"bandwidth": -1.0}, "bandwidth"),
        ({"method": "magic"}, "method must be one of"),
        ({"method": "race"}, "collision probability"),
        ({"bounds": None}, "bounds must be"),
        ({"epsilon": 0.0}, "epsilon must be above 0"),
        ({"delta": 0.1}, "delta"),
    ],
    ids=str,
)
def test_parameters_that_cannot_be_are_refused(parameters: dict[str, Any], message: str) -> None:
    model = hs.PrivateDensity(**parameters)
    with pytest.raises(UsageError, match=message):
        model.fit(bell(50, 2))


def test_a_sample_has_at_least_one_point() -> None:
    with pytest.raises(UsageError, match="n_samples"):
        hs.PrivateDensity().fit(bell(50, 1)).sample(0)


@pytest.mark.parametrize("frame", ["pandas", "zoned", "numpy", "polars"])
def test_dates_are_refused_whatever_unit_they_are_stored_in(frame: str) -> None:
    """scikit-learn would take nanoseconds, microseconds or days for the numbers."""
    days = pd.DataFrame({"day": pd.date_range("2026-05-01", periods=50)})
    data: dict[str, Any] = {
        "pandas": days,
        "zoned": days.assign(day=days["day"].dt.tz_localize("UTC")),
        "numpy": days.to_numpy(),
        "polars": pl.DataFrame({"day": days["day"].to_numpy()}),
    }
    model = hs.PrivateDensity(epsilon=1.0, bandwidth=2.0, bounds=(0, 31))
    with pytest.raises(
        DataRefused, match="must be of numbers, got dates; convert them to numbers, such as days"
    ):
        model.fit(data[frame])
    numbers = ((days["day"] - pd.Timestamp("2026-05-01")) / pd.Timedelta(days=1)).to_frame()
    assert model.fit(numbers).claim_.epsilon == 1.0


def test_a_series_is_refused_with_what_to_give_instead() -> None:
    with pytest.raises(DataRefused, match=r"for one column give a frame of it, frame\[\['age'\]\]"):
        hs.PrivateDensity(bounds=(0, 100)).fit(pd.Series([30.0, 40.0], name="age"))
