"""What every one-call method does: claims what it was requested, pays first, refuses what it cannot promise,
and errs less with a larger budget and with more records.

Errors are compared with fixed seeds of the noise, so they are the same in every run.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.errors import BudgetExhausted, ClaimError, DataRefused, UsageError
from hushsum.kernels import ColumnKernel, Kernel
from hushsum.methods import Method, method_named, method_names
from hushsum.privacy import Claim, Relation
from tests.memory_budget import MemoryBudget, MemoryDebit

Floats = NDArray[np.float64]

GAUSSIAN = hs.GaussianKernel(dim=1, bandwidth=0.1)
EUCLIDEAN = hs.EuclideanKernel(dim=1, bandwidth=0.1)
DOT_PRODUCT = hs.kernels.DotProductKernel(dim=1)
QUERIES = np.linspace(0.05, 0.95, 19)[:, None]
GOOD: dict[str, dict[str, Any]] = {
    "adaptive_grid": {},
    "histogram": {"bins": 40},
    "mwem": {"bins": 60, "rounds": 12, "queries": QUERIES},
    "privbayes": {"bins": 40},
    "kme": {"points": 60},
    "landmarks": {"points": 200},
    "pfda": {"steps": 128, "penalty": 1e-4},
    "race": {"rows": 1000, "width": 50},
    "grid": {},
    "fourier_features": {"features": 1000},
    "fourier_series": {"frequencies": 8},
    "trigonometric": {"terms": 16},
    "bernstein": {"degree": 39, "iterations": 10},
    "hermite": {},
    "lsq_rff": {"features": 1000},
    "lsq_fgt": {"order": 5},
    "monomials": {},
}
"""Parameters with which the error of the noise is the larger part, so that a budget makes a difference."""


def records(number: int, seed: int = 1) -> Floats:
    rng = np.random.default_rng(seed)
    low, high = rng.normal(0.3, 0.06, (number // 2, 1)), rng.normal(0.7, 0.1, (number - number // 2, 1))
    both: Floats = np.clip(np.concatenate([low, high]), 0.0, 1.0)
    return both


def delta_of(method: Method) -> float | None:
    return None if method.pure else 1e-6


def kernel_of(name: str) -> Kernel:
    role = method_named(name).role
    return next(kernel for kernel in (GAUSSIAN, EUCLIDEAN, DOT_PRODUCT) if role.test(kernel))


def bounds_of(name: str) -> tuple[int, int] | None:
    """Of records from 0 to 1; none where the kernel declares a ball."""
    return (0, 1) if isinstance(kernel_of(name), ColumnKernel) else None


def released(name: str, X: object, **options: Any) -> Any:
    method = method_named(name)
    given = {"bounds": bounds_of(name), "epsilon": 1.0, "delta": delta_of(method), **GOOD[name], **options}
    return method.release(X, kernel_of(name), **given)


def error(name: str, number: int, epsilon: float, runs: int = 6) -> float:
    X = records(number)
    truth = kernel_of(name).exact_sum(X, QUERIES) / number
    off = [
        np.abs(released(name, X, epsilon=epsilon, insecure_noise_seed=seed)(QUERIES) - truth).mean()
        for seed in range(runs)
    ]
    return float(np.mean(off))


class Book(MemoryBudget):
    """One that also books claims with a delta."""

    def debit(self, claim: Claim, *, subject: Any, idempotency_key: str) -> MemoryDebit:
        key = idempotency_key
        if key not in self.entries:
            if self.spent + (claim.promise.epsilon or 0) > self.total:
                raise BudgetExhausted("the budget is exhausted")
            self.entries[key] = MemoryDebit(claim, subject)
        return self.entries[key]


def test_every_registered_method_is_held_to_the_contract() -> None:
    assert sorted(GOOD) == method_names()


@pytest.mark.parametrize("name", method_names())
class TestMethod:
    """The contract."""

    def test_claims_exactly_what_was_requested_for(self, name: str) -> None:
        method = method_named(name)
        for relation in method.relations:
            claim = released(name, records(300), epsilon=0.7, relation=str(relation)).claim
            assert claim.promise.epsilon == Fraction(7, 10)
            assert claim.promise.delta == (0 if method.pure else Fraction(1, 10**6))
            assert (claim.unit, claim.records_per_unit, claim.relation) == ("record", 1, relation)
            assert claim.arithmetic == method.arithmetic
            assert claim.secure

    def test_the_number_of_records_is_exact_only_where_it_is_public(self, name: str) -> None:
        method = method_named(name)
        for relation in method.relations:
            found = {released(name, records(300), relation=str(relation)).count for _ in range(4)}
            # Under add/remove four paid counts without any noise happen once in 10⁸.
            assert (found == {300.0}) is (relation is Relation.REPLACE)

    def test_noise_differs_from_release_to_release_and_a_seed_is_marked(self, name: str) -> None:
        X = records(300)
        assert not np.array_equal(released(name, X)(QUERIES), released(name, X)(QUERIES))
        first, second = (released(name, X, insecure_noise_seed=5) for _ in range(2))
        np.testing.assert_array_equal(first(QUERIES), second(QUERIES))
        assert not first.claim.secure

    def test_refuses_promises_that_it_cannot_keep(self, name: str) -> None:
        method = method_named(name)
        if not method.approximate:
            with pytest.raises(ClaimError, match="no delta"):
                released(name, records(50), delta=1e-6)
        if not method.pure:
            with pytest.raises(ClaimError, match="a delta above 0"):
                released(name, records(50), delta=None)
        else:
            assert released(name, records(50), delta=None).claim.promise.pure
        if method.approximate:
            with pytest.raises(ClaimError, match="delta must be at most"):
                released(name, records(50), delta=0.01)
            assert released(name, records(50), delta=0.01, allow_large_delta=True).claim.delta == 0.01
        if Relation.ADD_REMOVE not in method.relations:
            with pytest.raises(ClaimError, match="replace alone"):
                released(name, records(50), relation="add/remove")
        with pytest.raises(ClaimError, match="epsilon must be above 0"):
            released(name, records(50), epsilon=0.0)

    def test_refuses_kernels_and_bounds_that_do_not_fit(self, name: str) -> None:
        release: Callable[..., object] = method_named(name).release
        options = {"epsilon": 1.0, "delta": delta_of(method_named(name))}
        kernel = kernel_of(name)
        if method_named(name).needs_bounds:
            with pytest.raises(UsageError, match="bounds"):
                release([[1.0]], kernel, bounds=None, **options)
        refusal = "bounds must be left out" if bounds_of(name) is None else "low < high"
        with pytest.raises(UsageError, match=refusal):
            release([[1.0]], kernel, bounds=(1, 0), **options)
        with pytest.raises(UsageError):
            release([[1.0, 2.0]], hs.AngularKernel(dim=2, bits=2), bounds=(0, 1), **options)

    @pytest.mark.parametrize("wrong", [[[np.nan]], [[np.inf]], [[0.1, 0.2]], [["a"]], np.empty((0, 1))])
    def test_refuses_records_without_showing_them(self, name: str, wrong: object) -> None:
        with pytest.raises(DataRefused):
            released(name, wrong)

    def test_takes_frames_and_clips_to_the_bounds(self, name: str) -> None:
        X = records(200)
        X[:3] = [[5.0], [-7.0], [1.0]]
        clipped = np.clip(X, -1.0 if bounds_of(name) is None else 0.0, 1.0)
        frame = pd.DataFrame({"x": X[:, 0]})
        np.testing.assert_array_equal(
            released(name, frame, insecure_noise_seed=1)(QUERIES),
            released(name, clipped, insecure_noise_seed=1)(QUERIES),
        )

    def test_pays_before_it_draws_and_a_retry_gets_the_same_function(self, name: str) -> None:
        book = Book(Fraction(3, 2))
        options: dict[str, Any] = {"budget": book, "idempotency_key": "one"}
        first = released(name, records(300), **options)
        again = released(name, records(300), **options)
        np.testing.assert_array_equal(first(QUERIES), again(QUERIES))
        entry = book.entries["one"]
        assert entry.claim == first.claim
        assert entry.subject["method"] == name
        assert entry.steps[:4] == ["debited", "drawn", "staged", "published"]
        with pytest.raises(BudgetExhausted):
            released(name, records(300), budget=book, idempotency_key="two")
        with pytest.raises(UsageError, match="budget of a dataset"):
            released(name, records(300), budget="ledger.db")

    def test_errs_less_with_a_larger_budget(self, name: str) -> None:
        assert error(name, 2000, epsilon=2.0) < 0.5 * error(name, 2000, epsilon=0.1)

    def test_errs_less_with_more_records(self, name: str) -> None:
        assert error(name, 10_000, epsilon=0.2, runs=4) < 0.5 * error(name, 1000, epsilon=0.2)

    def test_a_large_budget_leaves_only_the_method_s_own_error(self, name: str) -> None:
        assert error(name, 5000, epsilon=100.0, runs=1) < 0.02
