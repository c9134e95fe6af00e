"""Models that protect persons: who is counted, how much noise is drawn, and what the claim says."""

from __future__ import annotations

import hashlib
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum._native import StreamKey
from hushsum.errors import ClaimError, DataRefused, UsageError
from hushsum.ledger import DatasetTerms
from hushsum.models import PrivateHistogram, PrivateKernelSVC, PrivateModel, load_model
from hushsum.privacy import Promise
from hushsum.privacy.accounting import group_delta, promise_of_one
from hushsum.privacy.noise import NoiseSource
from tests.contract.fitted_models import ask, records, target_for

NEED_DELTA = {"PrivateGaussianProcessRegressor"}
CAP = 4


@pytest.fixture
def person_model(model_kind: type[PrivateModel]) -> type[PrivateModel]:
    """Every model for which persons are proven."""
    if model_kind is not PrivateKernelSVC:
        return model_kind
    with pytest.raises(UsageError, match="max_per_unit must be left out for this model: its noise follows"):
        PrivateKernelSVC(max_per_unit=2, classes=[0, 1]).fit(records(), target_for(model_kind(), records()))
    return PrivateHistogram


def given(kind: type[PrivateModel], **parameters: Any) -> Any:
    classes: dict[str, Any] = {"classes": [0, 1]} if "classes" in kind().get_params() else {}
    return kind(random_state=1, **classes, **parameters)


def released(model: Any, units: Any) -> list[Any]:
    X = records()
    model.fit(X, target_for(model, X), units=units)
    bundle = model.released_
    tables = [np.asarray(bundle.parts[name].table) for name in sorted(bundle.parts)]
    return [*tables, *(bundle.arrays[name] for name in sorted(bundle.arrays))]


@pytest.fixture
def same_noise(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Starts the sequence of noise keys again."""
    taken = [0]

    def fresh() -> NoiseSource:
        taken[0] += 1
        return NoiseSource(StreamKey(hashlib.sha256(str(taken[0]).encode()).digest()), secure=True)

    monkeypatch.setattr(NoiseSource, "fresh", fresh)
    return lambda: taken.__setitem__(0, 0)


def test_a_claim_for_persons_is_stated_before_any_record_and_stored(
    person_model: type[PrivateModel], tmp_path: Path
) -> None:
    model = given(person_model, max_per_unit=CAP)
    beforehand = model.claim(2)
    assert (beforehand.unit, beforehand.records_per_unit) == ("person", CAP)
    X = records()
    model.fit(X, target_for(model, X), units=np.arange(len(X)) // CAP)
    assert model.claim_ == beforehand
    model.save(tmp_path / "model.hush")
    again: Any = load_model(tmp_path / "model.hush")
    assert np.array_equal(ask(again, X[:5]), ask(model, X[:5]))
    assert (again.claim_, again.get_params()["max_per_unit"]) == (beforehand, CAP)


def test_every_step_has_the_noise_of_so_many_records(
    person_model: type[PrivateModel], same_noise: Any
) -> None:
    """Under pure ε a release for persons with m records is, bit for bit, that for records with ε/m: every
    sensitivity, of counts, sums, scores and gradients, is multiplied by m.
    """
    alone = np.arange(len(records()))
    for delta in (None, 1e-6):
        if delta is None and person_model.__name__ in NEED_DELTA:
            continue
        one = promise_of_one(Promise.of(epsilon=1.0, delta=delta), CAP)
        assert one.epsilon is not None
        same_noise()
        of_persons = released(given(person_model, epsilon=1.0, delta=delta, max_per_unit=CAP), alone)
        same_noise()
        small = float(one.delta) if delta else None
        of_records = released(given(person_model, epsilon=float(one.epsilon), delta=small), None)
        assert all(np.array_equal(*pair) for pair in zip(of_persons, of_records, strict=True))
        if delta is None:
            assert one.epsilon == Fraction(1, CAP)
        else:
            assert 0.999 * delta < group_delta(one.epsilon, one.delta, CAP) <= delta


def counted(
    kind: type[PrivateModel],
    visits: list[tuple[str, int]],
    rng: np.random.Generator,
    patch: pytest.MonkeyPatch,
) -> Counter[tuple[Any, ...]]:
    """The records that reach a model from visits of persons, in batches."""
    found: Counter[tuple[Any, ...]] = Counter()

    def watched(model: Any, secret: Any, X: Any, y: Any) -> None:
        targets = [None] * len(X) if y is None else y.tolist()
        found.update(
            (tuple(row), target) for row, target in zip(np.asarray(X).tolist(), targets, strict=True)
        )

    X = records(40)
    model = given(kind, max_per_unit=CAP)
    target = target_for(model, X)
    with patch.context() as patched:
        patched.setattr(kind, "_count", watched)
        start = 0
        while start < len(visits):
            batch = visits[start : (start := start + int(rng.integers(1, 15)))]
            rows = [row for _, row in batch]
            y = None if target is None else target[rows]
            model.partial_fit(X[rows], y, units=[who for who, _ in batch])
    return found


@pytest.mark.filterwarnings("ignore::hushsum.errors.SuspiciousParameter")
def test_a_person_changes_at_most_so_many_of_the_counted_records(
    person_model: type[PrivateModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Persons who try to get past the cap: with equal records, records of every class, in several batches,
    before and after those of others, and none at all.
    """
    rng = np.random.default_rng(3)
    most = 0
    for attempt in range(12):
        crowd = [(f"p{rng.integers(6)}", int(rng.integers(40))) for _ in range(int(rng.integers(20, 50)))]
        number = int(rng.integers(1, CAP + 6))
        rows = rng.integers(40, size=number) if attempt % 2 else np.full(number, rng.integers(40))
        with_person = list(crowd)
        for row in rows.tolist():
            with_person.insert(int(rng.integers(len(with_person) + 1)), ("adversary", row))
        one, other = (counted(person_model, each, rng, monkeypatch) for each in (crowd, with_person))
        assert not one - other, "nobody else is displaced"
        assert (other - one).total() == min(number, CAP)
        most = max(most, (other - one).total())
    assert most == CAP


def test_units_and_their_cap_need_each_other(person_model: type[PrivateModel]) -> None:
    X = records()
    capped, plain = given(person_model, max_per_unit=2), given(person_model)
    y = target_for(plain, X)
    for model, arguments in ((capped, {}), (plain, {"units": np.arange(len(X))})):
        with pytest.raises(UsageError, match="units and max_per_unit need each other"):
            model.fit(X, y, **arguments)
    for units in (np.arange(3), [None] * len(X)):
        with pytest.raises(DataRefused):
            capped.fit(X, y, units=units)
    with pytest.raises(UsageError, match="max_per_unit must be an integer"):
        given(person_model, max_per_unit=0).claim(2)
    assert not hasattr(capped, "_state")
    # A person of whom enough is counted: the batch is taken, and nothing of it is counted.
    capped.partial_fit(X, y, units=np.arange(len(X)) // 2)
    capped.partial_fit(X[:1], None if y is None else y[:1], units=[0]).release()


def test_a_dataset_of_persons_takes_a_model_of_persons(
    person_model: type[PrivateModel], tmp_path: Path
) -> None:
    ledger = hs.Ledger.create(tmp_path / "ledger.db", state=tmp_path / "state")
    model = given(person_model, max_per_unit=CAP, epsilon=1.0)
    relation = str(model.claim(2).relation)
    terms = DatasetTerms.of(epsilon=2.0, delta=1e-4, unit="person", relation=relation)
    ledger.create_dataset("people", terms)
    model.set_params(budget=ledger.dataset("people"))
    X = records()
    model.fit(X, target_for(model, X), units=np.arange(len(X)))
    plain = given(person_model, epsilon=1.0, budget=ledger.dataset("people"))
    with pytest.raises(ClaimError, match="max_per_unit"):
        plain.fit(X, target_for(plain, X))


def test_a_replaced_person_counts_twice_in_a_histogram(same_noise: Any) -> None:
    """Up to m records disappear and up to m appear; their number is private."""
    X = records()
    model = PrivateHistogram(epsilon=1.0, relation="replace", max_per_unit=CAP)
    same_noise()
    model.fit(X, units=np.arange(len(X)))
    same_noise()
    plain = PrivateHistogram(epsilon=1.0 / (2 * CAP)).fit(X)
    assert np.array_equal(model.counts_, plain.counts_)
    assert (str(model.claim_.relation), model.claim_.unit) == ("replace", "person")
    assert model.released_.parts["counts"].count_stderr > 0.0


def test_who_has_which_public_input_is_assumed_to_be_public() -> None:
    claim = hs.PrivateGaussianProcessRegressor(max_per_unit=2).claim(1)
    assert claim.assumptions == (
        "the inputs X, and whose records they are, are public, and only the targets y are private",
    )
