"""Everything that releases takes a real ledger: it debits exactly its claim, and a retry spends nothing.

Each case is one releasing call. The first attempt is interrupted after its bytes are staged; the second one,
with the same idempotency key, must return those bytes without drawing again.
"""

from __future__ import annotations

import hashlib
import io
import secrets
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import ClaimError, PublicAssumption, UsageError
from hushsum.ledger import Charge, DatasetBudget, DatasetTerms, Kind, LedgerDebit
from hushsum.methods import method_named, method_names
from hushsum.models import PrivateModel
from hushsum.privacy import Claim, Relation, check_mechanism
from hushsum.releases import Released
from hushsum.secret_functions import FreshAnswers, SqliteStore, answer_once, density_function, serve
from tests.contract.fitted_models import MODELS, fitted
from tests.contract.test_methods import QUERIES, records, released

KERNELS = [hs.EuclideanKernel(dim=1, bandwidth=h) for h in (0.01, 0.1)]
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "PrivateDensity": [{"method": "functional", "delta": 1e-6}],
    "PrivateRegressor": [
        {"method": "sketch"},
        {"method": "objective"},
        {"method": "ops"},
        {"method": "adaops", "epsilon": 2.0, "delta": 1e-6},
        {"method": "ssp", "calibration": "as-published", "delta": 1e-6},
        {"method": "adassp", "calibration": "as-published", "delta": 1e-6},
    ],
    "PrivateLinearSVC": [{"method": "objective"}],
    "PrivateKernelSVC": [{"calibration": "as-published"}],
    "PrivateGaussianProcessRegressor": [{"calibration": "as-published"}, {"inputs": "private"}],
}
"""Parameters under which a model has another mechanism than by default."""

LARGE = {"epsilon": 200.0, "delta": 1e-6}


@dataclass(frozen=True)
class Result:
    """What a call returned: its claim, and the bytes by which two results are compared."""

    claim: Claim
    payload: bytes


def of_function(function: Released) -> Result:
    buffer = io.BytesIO()
    function.save(buffer)
    return Result(function.claim, buffer.getvalue())


@dataclass(frozen=True)
class Town:
    """Datasets of one test, one for each relation: a claim then costs what it says."""

    ledger: hs.Ledger
    name: str

    def budget(self, relation: str = "add/remove") -> DatasetBudget:
        name = f"{self.name} {relation}"
        if name not in self.ledger.datasets():
            terms = DatasetTerms.of(epsilon=3.0, delta=1e-5, relation=relation, allow_large_delta=True)
            self.ledger.create_dataset(name, terms)
        return self.ledger.dataset(name)

    def budget_for(self, case: str) -> DatasetBudget:
        replaces = case.startswith(("PrivateKernelSVC", "PrivateGaussianProcessRegressor"))
        private_inputs = case.endswith("{'inputs': 'private'}")
        return self.budget(
            "replace" if "replace" in case or (replaces and not private_inputs) else "add/remove"
        )

    @property
    def key(self) -> str:
        return f"{self.name} once"


Release = Callable[[dict[str, Any], Path], Result]
CASES: dict[str, Release] = {}


def case(name: str) -> Callable[[Release], Release]:
    def add(release: Release) -> Release:
        CASES[name] = release
        return release

    return add


def tally() -> hs.Tally:
    return hs.race(KERNELS[1], rows=20, width=50, seed=1).add(records(300))


def add_cases() -> None:
    """One case for each way to call: promises, methods with their relations, models with their mechanisms."""

    def of_tally(given: dict[str, Any]) -> Release:
        return lambda booked, _: of_function(tally().release(**given, **booked))

    def of_method(name: str, relation: Relation) -> Release:
        return lambda booked, _: of_function(released(name, records(300), relation=relation, **booked))

    def of_model(kind: type[PrivateModel], given: dict[str, Any]) -> Release:
        return lambda booked, _: of_function(fitted(kind, **given, **booked).release().released_)

    promises: list[dict[str, Any]] = [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}]
    for promise in [*promises, {"epsilon": 1.0, "relation": "replace"}]:
        CASES[f"tally {promise}"] = of_tally(promise)
    for name in method_names():
        for relation in method_named(name).relations:
            CASES[f"method {name} {relation}"] = of_method(name, relation)
    for kind in MODELS:
        small = {"features": 20} if kind.__name__ == "PrivateKernelSVC" else {}
        for given in [{}, *VARIANTS.get(kind.__name__, [])]:
            CASES[f"{kind.__name__} {given}"] = of_model(kind, {**small, **given})


add_cases()


@case("hs.release")
def one_liner(booked: dict[str, Any], _: Path) -> Result:
    return of_function(hs.release(records(300), bandwidth=0.1, bounds=(0, 1), epsilon=1.0, **booked))


@case("hs.methods.choose")
def chosen(booked: dict[str, Any], _: Path) -> Result:
    def run(bandwidth: float, epsilon: float) -> hs.ReleasedFunction:
        kernel = hs.EuclideanKernel(dim=1, bandwidth=bandwidth)
        return hs.race(kernel, rows=5, width=20).add(records(50)).release(epsilon=epsilon)

    def score(f: hs.ReleasedFunction) -> float:
        return float(f(QUERIES).sum())

    return of_function(hs.methods.choose([0.01, 0.1], run, score, epsilon=1.0, runs=3, **booked).function)


@case("hs.methods.choose_kernel")
def chosen_kernel(booked: dict[str, Any], _: Path) -> Result:
    choice = hs.methods.choose_kernel(records(300), KERNELS, epsilon=1.0, **booked)
    return Result(choice.claim, str(choice.index).encode())


@case("hs.private_quantiles")
def quantiles(booked: dict[str, Any], _: Path) -> Result:
    found = hs.private_quantiles(records(300), [0.1, 0.9], bounds=(0, 1), epsilon=1.0, **booked)
    return Result(found.claim, repr(found.values).encode())


@case("hs.private_bounds")
def bounds(booked: dict[str, Any], _: Path) -> Result:
    found = hs.private_bounds(records(300), within=(-9, 9), epsilon=1.0, **booked)
    return Result(found.claim, repr(list(found)).encode())


@case("answer_once")
def answered(booked: dict[str, Any], _: Path) -> Result:
    function = density_function(records(300), hs.GaussianKernel(1, 0.2), bounds=(0, 1))
    answers = answer_once(function, QUERIES, epsilon=1.0, delta=1e-6, **booked)
    return Result(answers.claim, answers.values.tobytes())


@case("answer_once as published")
def answered_as_published(booked: dict[str, Any], _: Path) -> Result:
    function = density_function(records(300), hs.GaussianKernel(1, 0.2), bounds=(0, 1))
    answers = answer_once(function, QUERIES, epsilon=1.0, delta=1e-6, calibration="as-published", **booked)
    return Result(answers.claim, answers.values.tobytes())


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PublicAssumption)
        yield


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> hs.Ledger:
    """One ledger for all tests, which have datasets of their own: making it takes half a second."""
    folder = tmp_path_factory.mktemp("ledger")
    return hs.Ledger.create(folder / "ledger.db", state=folder / "state")


@pytest.fixture
def town(shared: hs.Ledger) -> Town:
    return Town(shared, secrets.token_hex(4))


def crash(self: LedgerDebit) -> None:
    raise OSError("crash before it is published")


@pytest.mark.parametrize("name", CASES)
def test_a_release_debits_its_claim_and_a_retry_returns_the_same_bytes(
    name: str, town: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, budget = CASES[name], town.budget_for(name)
    booked = {"budget": budget, "idempotency_key": town.key}
    with monkeypatch.context() as patched:
        patched.setattr(LedgerDebit, "publish", crash)
        with pytest.raises(OSError, match="before it is published"):
            release(booked, tmp_path)
    staged = budget.find(town.key)
    assert staged is not None
    assert staged.step is Kind.STAGED
    result = release(booked, tmp_path)
    entry = budget.find(town.key)
    assert entry is not None
    assert (entry.step, entry.sha256) == (Kind.PUBLISHED, staged.sha256)
    assert entry.claim == result.claim
    promise = result.claim.promise
    assert entry.charge == Charge(promise.epsilon or Fraction(0), promise.delta)
    assert budget.account.spent == entry.charge
    if entry.size == len(result.payload):
        assert hashlib.sha256(result.payload).hexdigest() == entry.sha256


def test_functions_are_staged_as_their_file(town: Town) -> None:
    """So that the comparison of digests above is not skipped for all of them."""
    budget = town.budget()
    result = of_function(tally().release(epsilon=1.0, budget=budget, idempotency_key=town.key))
    entry = budget.find(town.key)
    assert entry is not None
    assert entry.size == len(result.payload)


def test_a_key_of_another_request_is_refused(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    booked: dict[str, Any] = {"budget": town.budget(), "idempotency_key": town.key}
    with monkeypatch.context() as patched:
        patched.setattr(LedgerDebit, "publish", crash)
        with pytest.raises(OSError, match="before it is published"):
            tally().release(epsilon=0.5, rows=5, **booked)
    for other in (
        {"epsilon": 0.25, "rows": 5},
        {"epsilon": 0.5, "rows": 6},
        {"epsilon": 0.5, "rounded": True},
    ):
        with pytest.raises(UsageError, match=r"idempotency key '.*' belongs to another release"):
            tally().release(**other, **booked)  # type: ignore[arg-type]
    assert tally().release(epsilon=0.5, rows=5, **booked).claim.epsilon == 0.5


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("PrivateKernelSVC", {"calibration": "as-published", "epsilon": 2.0}),
        ("PrivateGaussianProcessRegressor", {"calibration": "as-published", "epsilon": 2.0}),
        (
            "PrivateRegressor",
            {"method": "ssp", "calibration": "as-published", "epsilon": 200.0, "delta": 1e-6},
        ),
    ],
)
def test_published_constants_that_do_not_keep_the_claim_are_refused_before_the_debit(
    kind: str, given: dict[str, Any], town: Town
) -> None:
    budget = town.budget_for(kind)
    with pytest.raises((ClaimError, UsageError), match="published"):
        fitted(getattr(hs, kind), **given, budget=budget).release()
    assert town.ledger.history(budget.dataset) == []


def test_a_part_of_a_dataset_is_a_budget_too(shared: hs.Ledger) -> None:
    terms = DatasetTerms.of(epsilon=1.0, partition=("north", "south"))
    shared.create_dataset("town", terms)
    north, south = (shared.dataset("town", part=part) for part in ("north", "south"))
    tally().release(epsilon=0.75, budget=north)
    tally().release(epsilon=0.5, budget=south)
    assert (north.remaining, south.remaining) == (Charge(Fraction(1, 4)), Charge(Fraction(1, 2)))
    with pytest.raises(UsageError, match="west"):
        shared.dataset("town", part="west")
    with pytest.raises(UsageError, match="city"):
        shared.dataset("city")


def test_a_ledger_is_not_a_budget(shared: hs.Ledger) -> None:
    with pytest.raises(UsageError, match=r"got Ledger; give budget=hs\.Ledger"):
        tally().release(epsilon=1.0, budget=shared)  # type: ignore[arg-type]


class TestServedFunctions:
    """They keep no bytes: what was paid for is a store, or so many answers of one object."""

    def test_a_store_is_paid_for_once(self, town: Town, tmp_path: Path) -> None:
        budget = town.budget()
        function = density_function(records(300), hs.GaussianKernel(1, 0.2), bounds=(0, 1))
        answers = []
        for _ in range(2):
            store = SqliteStore(tmp_path / "answers.db")
            served = serve(
                function, epsilon=1.0, delta=1e-6, store=store, budget=budget, idempotency_key=town.key
            )
            answers.append(served(QUERIES))
        np.testing.assert_array_equal(answers[0], answers[1])
        assert [each.claim for each in town.ledger.history(budget.dataset)] == [served.claim]
        assert budget.account.spent == Charge(Fraction(1), Fraction(1, 10**6))

    @pytest.mark.parametrize("given", [{"mechanism": "gaussian", "delta": 1e-6}, {"mechanism": "laplace"}])
    def test_fresh_answers_are_given_by_one_object_for_one_debit(
        self, given: dict[str, Any], town: Town, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        budget = town.budget()
        function = density_function(records(300), hs.GaussianKernel(1, 0.2), bounds=(0, 1))

        def opened(key: str) -> FreshAnswers:
            return FreshAnswers(
                function,
                answers=19,
                epsilon=1.0,
                **given,
                budget=budget,
                idempotency_key=f"{town.name} {key}",
            )

        fresh = opened("one")
        assert fresh(QUERIES).shape == (19,)
        check_mechanism(fresh.claim)
        assert [each.claim for each in town.ledger.history(budget.dataset)] == [fresh.claim]
        with monkeypatch.context() as patched:
            patched.setattr(LedgerDebit, "publish", crash)
            with pytest.raises(OSError, match="before it is published"):
                opened("two")
        with pytest.raises(UsageError, match="opened before"):
            opened("two")
