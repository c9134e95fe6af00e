"""Private k-means and mixtures: accuracy where noise is small, steps that add up, exact cells, attacks."""

from __future__ import annotations

import io
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hushsum as hs
from hushsum.auditing import counted
from hushsum.errors import FileRefused, UsageError
from hushsum.ledger import DatasetTerms, Ledger
from hushsum.models import part_of
from hushsum.models._clusters import (
    DIAGONAL,
    FIRST,
    LENGTHS,
    LOCATION,
    MEANS,
    MOMENTS,
    SQUARES,
    Crowd,
    Frame,
    Partition,
    PromiseParts,
    basis_of,
    counted_cells,
    inertia_of,
    lengths_part,
    refined_centers,
    split_cells,
    vectors_by_cell,
)
from hushsum.privacy import Promise, Relation
from hushsum.records import Bounds
from hushsum.releases import Bundle, PublicFacts
from tests.exact_tallies import exact_table

CENTRES = np.array([[-0.6, -0.5], [0.5, -0.4], [0.1, 0.6]])
X = np.concatenate([c + 0.06 * np.random.default_rng(0).standard_normal((1000, 2)) for c in CENTRES])
KINDS = (MEANS, LOCATION, SQUARES, MOMENTS, LENGTHS, DIAGONAL)


def in_order(centres: Any) -> Any:
    return centres[np.argsort(centres[:, 0])]


@pytest.mark.parametrize("delta", [1e-6, None])
def test_centres_sizes_and_inertia_are_those_of_the_records(delta: float | None) -> None:
    # At ε = 50 a centre is off by less than a hundredth of the width of its cluster.
    model = hs.PrivateKMeans(3, epsilon=50.0, delta=delta, random_state=0).fit(X)
    np.testing.assert_allclose(in_order(model.cluster_centers_), in_order(CENTRES), atol=0.02)
    np.testing.assert_allclose(model.counts_, 1000.0, atol=50.0)
    assert model.inertia_ == pytest.approx(-model.score(X), rel=0.1)
    assert model.n_clusters_ == 3
    distances = model.distances(X[:20])
    np.testing.assert_array_equal(distances.argmin(axis=1), model.predict(X[:20]))
    centre = model.cluster_centers_[0]
    np.testing.assert_allclose(distances[:, 0], np.linalg.norm(X[:20] - centre, axis=1))


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_a_mixture_has_the_shapes_of_scikit_learn(kind: str) -> None:
    model = hs.PrivateMixture(3, epsilon=50.0, delta=1e-6, covariance_type=kind, random_state=0).fit(X)
    np.testing.assert_allclose(in_order(model.means_), in_order(CENTRES), atol=0.02)
    np.testing.assert_allclose(model.weights_, 1.0 / 3.0, atol=0.02)
    assert model.covariances_.shape == {"full": (3, 2, 2), "diag": (3, 2), "spherical": (3,)}[kind]
    assert model.score(X) > 1.0
    drawn = model.sample(2000, random_state=0)
    np.testing.assert_array_equal(drawn, model.sample(2000, random_state=0))
    assert np.abs(drawn.mean(axis=0) - X.mean(axis=0)).max() < 0.05
    np.testing.assert_allclose(model.predict_proba(X[:5]).sum(axis=1), 1.0)
    with pytest.raises(UsageError, match="n_samples must be an integer from 1"):
        model.sample(0)


def test_the_numbers_of_clusters_and_components_are_chosen() -> None:
    auto: dict[str, Any] = {"epsilon": 50.0, "delta": 1e-6, "random_state": 0}
    assert hs.PrivateKMeans("auto", max_clusters=6, **auto).fit(X).n_clusters_ == 3
    assert hs.PrivateMixture("auto", max_components=4, **auto).fit(X).n_components_ in (3, 4)


def test_columns_of_different_units_are_compared_in_declared_ranges() -> None:
    bounds = [(-1.0, 1.0), (-1e5, 1e5)]
    scaled = X * [1.0, 1e5]
    model = hs.PrivateKMeans(3, epsilon=50.0, bounds=bounds, random_state=0).fit(scaled)
    np.testing.assert_allclose(in_order(model.cluster_centers_ / [1.0, 1e5]), in_order(CENTRES), atol=0.03)
    box = Bounds((-1.0, -1e5), (1.0, 1e5))
    in_units = Frame.of(box, "units")
    assert (in_units.unit == in_units.unit[0]).all()
    assert Frame.of(box, None).unit.tolist() == [1.0, 1e5]


@pytest.mark.parametrize("promise", [Promise.of(epsilon=1.0), Promise.of(epsilon=1.0, delta=1e-6)])
def test_the_steps_spend_the_promise_and_nothing_more(promise: Promise) -> None:
    taken: list[Fraction] = []

    class Recorded(PromiseParts):
        def take(self, part: Fraction) -> Promise:
            taken.append(part)
            return super().take(part)

    parts = Recorded(promise)
    crowd = Crowd.located(X, np.ones(2), parts)
    left = parts.left - lengths_part(crowd.fewest, promise)
    split_cells(X, crowd, 3, parts, left / 2, SQUARES)
    inertia_of(X, *refined_centers(X, CENTRES, np.full(3, 0.1), parts, left / 2), parts)
    assert sum(taken) == 1
    assert taken[0] == FIRST
    assert parts.left == 0
    name = "epsilon" if promise.pure else "rho"
    total = sum(getattr(part_of(promise, each), name) for each in taken)
    assert total == 2 * getattr(part_of(promise, Fraction(1, 2)), name)
    with pytest.raises(ValueError, match="more than the promise"):
        parts.take(Fraction(1, 100))


def test_centers_can_be_paid_for_whatever_the_noise_of_the_first_step() -> None:
    """The first number of records is far too small, so that the step is made again, and the second is not."""

    class TooFewAtFirst(PromiseParts):
        def measure(self, rows: Any, *args: Any) -> Any:
            return super().measure(rows[:1] if self.left == 1 else rows, *args)

    promise = Promise.of(epsilon=0.1, delta=1e-6)
    parts = TooFewAtFirst(promise)
    rows = np.pad(np.tile(X, (30, 1)), ((0, 0), (0, 38)))
    crowd = Crowd.located(rows, np.ones(40), parts)
    assert crowd.fewest > 80_000
    assert 0 < lengths_part(crowd.fewest, promise) < parts.left < Fraction(1, 2)


@given(seed=st.integers(0, 2**32), kind=st.sampled_from(KINDS), outside=st.booleans())
@settings(max_examples=30, deadline=None)
def test_one_record_moves_a_table_by_its_own_cells_within_the_sensitivity(
    seed: int, kind: str, outside: bool
) -> None:
    """Records appear, are replaced, move to other cells or appear twice: the rest does not move."""
    rng = np.random.default_rng(seed)
    dim, cells = int(rng.integers(1, 6)), int(rng.integers(1, 7))
    partition = Partition(rng.uniform(-1, 1, (cells, dim)), rng.uniform(0.001, 2.0, cells))
    rows = rng.uniform(-1, 1, (40, dim)) * (1e6 if outside else 1.0)
    basis = basis_of(cells, dim, kind)
    whole = counted(basis, vectors_by_cell(rows, partition, kind))
    order = rng.permutation(len(rows))
    np.testing.assert_array_equal(counted(basis, vectors_by_cell(rows[order], partition, kind)), whole)
    alone = [counted(basis, vectors_by_cell(rows[i : i + 1], partition, kind)) for i in range(len(rows))]
    np.testing.assert_array_equal(sum(alone), whole)
    moved = basis.sensitivity(Relation.ADD_REMOVE)
    for each in alone:
        assert np.abs(each).sum() <= moved.l1
        assert np.square(each).sum() <= moved.l2_squared
    # Under pure ε a record is in the table of one cell, and not in those of the others.
    if kind != MOMENTS:
        with_one, without = (
            [exact_table(tally) for tally in counted_cells(each, partition, kind, apart=True)]
            for each in (rows, rows[1:])
        )
        changed = [np.abs(a - b).sum() for a, b in zip(with_one, without, strict=True)]
        assert sum(each > 0 for each in changed) <= 1
        assert max(changed) <= basis_of(1, dim, kind).sensitivity(Relation.ADD_REMOVE).l1
    replaced = basis.sensitivity(Relation.REPLACE)
    assert np.square(alone[0] - alone[1]).sum() <= replaced.l2_squared


def test_ties_and_last_bits_do_not_depend_on_the_batch() -> None:
    partition = Partition(np.array([[0.25, 0.0], [-0.25, 0.0]]), np.ones(2))
    rows = np.column_stack((np.zeros(5000), np.linspace(-1, 1, 5000)))
    assert (partition.codes(rows) == 0).all()
    assert partition.codes(rows[17:18])[0] == 0


def test_few_records_and_small_budgets_give_a_model_all_the_same() -> None:
    for records in (X[:1], X[:40]):
        for delta in (None, 1e-6):
            model = hs.PrivateKMeans(5, epsilon=0.01, delta=delta, random_state=0).fit(records)
            assert np.isfinite(model.cluster_centers_).all()
            assert (np.abs(model.cluster_centers_) <= 1.0 + 1e-9).all()
            mixture = hs.PrivateMixture(2, epsilon=0.01, delta=delta, random_state=0).fit(records)
            assert np.isfinite(mixture.score_samples(X[:10])).all()


@pytest.mark.parametrize(("epsilon", "wide"), [(0.05, 1.0), (0.1, 4.0)])
def test_clusters_that_noise_hides_leave_one_center_that_is_near_the_mean(
    epsilon: float, wide: float
) -> None:
    """Eight centers of noisy means would be far from the records: most fits had several times the inertia."""
    rows = np.random.default_rng(1).normal(0.3, 0.2, (3000, 5)).clip(-1.0, 1.0)
    one = float(np.square(rows - rows.mean(axis=0)).sum())
    found = [
        -hs.PrivateKMeans(8, epsilon=epsilon, bounds=(-wide, wide), random_state=i).fit(rows).score(rows)
        for i in range(5)
    ]
    assert float(np.median(found)) < 1.6 * one
    assert max(found) < 5.0 * one


def test_the_inertia_is_measured() -> None:
    rows = np.random.default_rng(2).standard_t(3, (6000, 4)).clip(-8.0, 8.0)
    for i in range(4):
        model = hs.PrivateKMeans(6, epsilon=1.0, bounds=(-8, 8), random_state=i).fit(rows)
        assert 1.0 / 1.3 < model.inertia_ / -model.score(rows) < 1.3


def test_predicted_errors_fall_with_records_and_are_not_exceeded() -> None:
    model = hs.PrivateKMeans(3, epsilon=1.0, delta=1e-6, random_state=0)
    few, many = (model.predicted_error(records, 2) for records in (3000, 30_000))
    assert few is not None
    assert many is not None
    assert few.error == pytest.approx(10.0 * many.error)
    # Clusters that fill 4 % of the box: far below the error for ones that fill it, but for one in 10⁹.
    found = in_order(hs.PrivateKMeans(3, epsilon=5.0, delta=1e-6, random_state=0).fit(X).cluster_centers_)
    means = in_order(np.array([X[i : i + 1000].mean(axis=0) for i in (0, 1000, 2000)]))
    assert np.linalg.norm(found - means, axis=1).max() < few.error


def test_parameters_out_of_range_are_refused() -> None:
    for parameters in ({"n_clusters": 0}, {"n_clusters": 65}, {"n_clusters": "many"}, {"max_clusters": 0}):
        with pytest.raises(UsageError):
            hs.PrivateKMeans(**parameters).fit(X)
    with pytest.raises(UsageError, match="covariance_type"):
        hs.PrivateMixture(covariance_type="tied").fit(X)


def test_damaged_arrays_of_a_file_are_refused() -> None:
    kmeans = hs.PrivateKMeans(2, random_state=0).fit(X).released_
    mixture = hs.PrivateMixture(2, random_state=0).fit(X).released_
    damages: list[tuple[Any, str, Any]] = [
        (kmeans, "centers", np.zeros((2, 3))),
        (kmeans, "counts", np.zeros(3)),
        (kmeans, "inertia", np.zeros(2)),
        (mixture, "weights", np.array([-0.5, 1.5])),
        (mixture, "weights", np.array([0.5, 0.2])),
        (mixture, "covariances", np.zeros((2, 2, 2))),
        (mixture, "covariances", np.tile([[1.0, 0.9], [0.1, 1.0]], (2, 1, 1))),
    ]
    for bundle, name, value in damages:
        buffer = io.BytesIO()
        Bundle(PublicFacts(bundle.claim), bundle.about, bundle.parts, {**bundle.arrays, name: value}).save(
            buffer
        )
        buffer.seek(0)
        model: Any = hs.load(buffer)
        with pytest.raises(FileRefused):
            model.predict(X)
    buffer = io.BytesIO()
    Bundle(PublicFacts(kmeans.claim), {**kmeans.about, "source": "elsewhere"}, {}, kmeans.arrays).save(buffer)
    buffer.seek(0)
    with pytest.raises(FileRefused):
        hs.load(buffer)


@pytest.mark.parametrize(
    "model",
    [
        hs.PrivateKMeans(2, epsilon=1e-12),
        hs.PrivateMixture(2, epsilon=1e-6, delta=1e-9),
        hs.PrivateKMeans(2, epsilon=1.0),
    ],
    ids=["tiny epsilon", "tiny rho", "many columns"],
)
def test_what_cannot_be_released_spends_nothing(model: Any, tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db", state=tmp_path / "guards")
    ledger.create_dataset("town", DatasetTerms.of(epsilon=5.0, delta=1e-3))
    columns = 40_000 if model.epsilon == 1.0 else 2
    with pytest.raises(UsageError):
        model.set_params(budget=ledger.dataset("town")).fit(np.zeros((3, columns)))
    assert ledger.history("town") == []
