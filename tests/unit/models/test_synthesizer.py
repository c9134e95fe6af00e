"""Synthetic tables of records that are known: what is kept, what is drawn, and what is refused.

Noise is not seeded. Limits are at least eight standard deviations of what noise and sampling move, so that a
run fails by chance in fewer than one of 10⁶.
"""

from __future__ import annotations

import io
import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

import hushsum as hs
from hushsum.errors import DataRefused, UsageError
from hushsum.models import (
    CategoryColumn,
    FlagColumn,
    NumberColumn,
    PrivateSampler,
    PrivateSynthesizer,
    ProductMixture,
    fit_mixture,
)
from hushsum.models import _synthesizer as product_mixture
from hushsum.releases import nearest_probabilities
from tests.exact_tallies import exact_table

N = 20_000
COLUMNS: dict[str, Any] = {
    "age": NumberColumn(0, 120, fill=0, bins=12, whole=True),
    "ward": CategoryColumn(["none", "heart", "lung"]),
    "ill": FlagColumn(missing="refuse"),
}


def visits() -> pa.Table:
    rng = np.random.default_rng(0)
    age = rng.integers(20, 90, N)
    ill = rng.random(N) < age / 100
    ward = np.where(ill, rng.choice(["heart", "lung"], N), "none").astype(object)
    missing = rng.random(N) < 0.1
    return pa.table(
        {
            "ill": ill,
            "age": pa.array(age, pa.uint8(), mask=missing),
            "ward": pa.array(ward).dictionary_encode(),
            "name": ["s3cret"] * N,
        }
    )


@pytest.fixture(scope="module")
def model() -> PrivateSynthesizer:
    return PrivateSynthesizer(columns=COLUMNS, epsilon=2.0, delta=1e-6, random_state=0).fit(visits())


def test_marginals_dependences_and_missing_values_are_kept(model: PrivateSynthesizer) -> None:
    drawn = model.sample(N, random_state=1)
    real = visits()
    assert drawn.column_names == list(COLUMNS)
    assert [str(each.type) for each in drawn.schema] == ["int64", "string", "bool"]
    made, true = drawn.to_pandas(), real.to_pandas()
    assert abs(made["ill"].mean() - true["ill"].mean()) < 0.05
    assert abs(made["age"].isna().mean() - 0.1) < 0.05
    assert (made["ward"][made["ill"]] == "none").mean() < 0.05
    assert made["age"].min() >= 0
    assert made["age"].max() <= 120
    old = made["ill"][made["age"] > 70].mean() - made["ill"][made["age"] < 40].mean()
    assert abs(old - (true["ill"][true["age"] > 70].mean() - true["ill"][true["age"] < 40].mean())) < 0.1


def test_types_are_those_of_the_declarations() -> None:
    """One missing age makes pandas keep ages as fractions: the file must not show which it was."""
    frame = visits().to_pandas()
    assert frame["age"].dtype == np.float64
    complete = frame.dropna().astype({"age": np.int64})
    headers = []
    for records in (frame, complete):
        fitted = PrivateSynthesizer(columns=COLUMNS, epsilon=2.0, delta=1e-6, random_state=0).fit(records)
        headers.append(dict(fitted.released_.about))
        assert [str(each.type) for each in fitted.sample(5).schema] == ["int64", "string", "bool"]
    assert headers[0] == headers[1]


def test_draws_repeat_by_seed_and_after_loading(model: PrivateSynthesizer) -> None:
    file = io.BytesIO()
    model.save(file)
    assert b"s3cret" not in file.getvalue()
    file.seek(0)
    loaded = hs.load(file)
    assert isinstance(loaded, PrivateSynthesizer)
    assert loaded.sample(50, random_state=3).equals(model.sample(50, random_state=3))
    assert not model.sample(50, random_state=4).equals(model.sample(50, random_state=3))
    assert loaded.expected_errors() == model.expected_errors()
    assert loaded.claim_ == model.claim_


def test_expected_errors_are_of_the_size_of_the_errors(model: PrivateSynthesizer) -> None:
    basis = hs.methods.marginals(COLUMNS).add(visits())
    table = exact_table(basis)
    fitted = model._reading()
    true = [fitted.basis.marginal(table, i) / N for i in range(len(fitted.basis.sets))]
    found = [
        0.5 * np.abs(fitted.mixture.marginal(each) - cells).sum()
        for each, cells in zip(fitted.basis.sets, true, strict=True)
    ]
    expected = list(model.expected_errors().values())
    assert 0.2 < np.mean(expected) / np.mean(found) < 5.0
    predicted = model.predicted_error(N)
    assert predicted is not None
    assert np.mean(found) < 3.0 * predicted.error


def test_the_prediction_of_columns_alone_is_that_of_noise() -> None:
    """Without pairs the fit changes little; 10 labels with the noise of scale 10 on average, among 1000."""
    predicted = PrivateSynthesizer(columns=[NumberColumn(0, 1)], epsilon=0.1).predicted_error(1000)
    assert predicted is not None
    assert 0.03 < predicted.error < 0.08


def test_claims_name_the_mechanisms() -> None:
    def claim(**given: Any) -> Any:
        return PrivateSynthesizer(columns=COLUMNS, **given).claim()

    noise = "discrete laplace or gamma radius"
    tree = "permute and flip + discrete laplace or permute and flip + gamma radius"
    assert str(claim(delta=1e-6).mechanism) == "discrete gaussian"
    assert str(claim().mechanism) == noise
    assert str(claim(marginals="tree").mechanism) == tree
    assert str(claim(marginals="tree", delta=1e-6).mechanism) == "permute and flip + discrete gaussian"
    many = {f"c{i}": FlagColumn() for i in range(20)}
    assert str(PrivateSynthesizer(columns=many).claim().mechanism) == tree
    assert str(PrivateSynthesizer(columns=many, epsilon=2.0).claim().mechanism) == noise
    assert str(PrivateSynthesizer().claim(20).mechanism) == tree
    assert str(PrivateSynthesizer().claim(19).mechanism) == noise


def test_a_tree_releases_its_edges_alone_and_splits_epsilon_exactly() -> None:
    rng = np.random.default_rng(2)
    a = rng.integers(0, 2, 5000)
    X = np.column_stack([a, rng.integers(0, 2, 5000), a])
    columns = [FlagColumn(missing="refuse")] * 3
    model = PrivateSynthesizer(columns=columns, epsilon=4.0, marginals="tree", choice_share=0.25).fit(X)
    released = model.function_
    assert released.basis.shape == (1, 3 * 2 + 2 * 4)
    assert released.claim.promise.epsilon == 3
    assert model.claim_.promise.epsilon == 4
    assert ("x0", "x2") in model.expected_errors()
    drawn = model.sample(2000, random_state=0).to_pandas()
    assert (drawn["x0"] == drawn["x2"]).mean() > 0.9


def test_declared_pairs_are_released_alone() -> None:
    model = PrivateSynthesizer(columns=COLUMNS, delta=1e-6, pairs=[("ill", "age")]).fit(visits())
    assert set(model.expected_errors()) == {("age",), ("ward",), ("ill",), ("age", "ill")}


def test_numbers_without_declarations() -> None:
    X = np.random.default_rng(3).uniform(-1, 1, (3000, 2))
    model = PrivateSynthesizer(delta=1e-6, bins=4, random_state=0).fit(X)
    drawn = model.sample(500, random_state=1)
    assert drawn.shape == (500, 2)
    assert np.abs(drawn).max() <= 1.0
    assert model.decision_function(X[:3]).shape == (3,)


def test_a_released_table_of_marginals_is_enough() -> None:
    table = visits()
    here, there = hs.methods.marginals(COLUMNS), hs.methods.marginals(COLUMNS)
    f = here.add(table[:7000]).merge(there.add(table[7000:])).release(epsilon=2.0, delta=1e-6)
    model = PrivateSynthesizer(random_state=0).fit_released(f)
    assert model.claim_ == f.claim
    assert abs(np.mean(model.sample(5000, random_state=0)["ill"].to_pylist()) - 0.545) < 0.1
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    assert hs.load(file).sample(5, random_state=1).num_rows == 5  # type: ignore[union-attr]
    grid = hs.grid(hs.GaussianKernel(dim=1, bandwidth=1), bounds=(0, 9))
    other = grid.add([[1]] * 50).release(epsilon=1)
    with pytest.raises(UsageError, match="marginals"):
        PrivateSynthesizer().fit_released(other)


def test_what_is_refused() -> None:
    with pytest.raises(NotFittedError):
        PrivateSynthesizer(columns=COLUMNS).sample(3)
    with pytest.raises(UsageError, match="columns"):
        PrivateSynthesizer(columns={"age": 3}).fit([[1]])
    with pytest.raises(UsageError, match="columns"):
        PrivateSynthesizer(columns=[]).fit([[1]])
    with pytest.raises(UsageError, match="sets"):
        PrivateSynthesizer(columns=COLUMNS, pairs=[("age", "nobody")]).fit(visits())
    with pytest.raises(UsageError, match="n_samples"):
        PrivateSynthesizer(columns=[FlagColumn()]).fit([[True]] * 50).sample(0)
    with pytest.raises(DataRefused) as refused:
        PrivateSynthesizer(columns={"ward": CategoryColumn(["none"])}).fit(visits())
    assert "heart" not in str(refused.value)


def test_the_sampler_advises_it_for_many_columns() -> None:
    assert PrivateSampler().advice(3) == []
    assert "synthesizer" in PrivateSampler().advice(9)[0]


def exact(codes: NDArray[Any], sizes: list[int]) -> tuple[list[Any], dict[tuple[int, int], Any]]:
    one = [np.bincount(codes[:, i], minlength=size) / len(codes) for i, size in enumerate(sizes)]
    two = {}
    for i, j in itertools.combinations(range(len(sizes)), 2):
        cells = np.bincount(codes[:, i] * sizes[j] + codes[:, j], minlength=sizes[i] * sizes[j])
        two[i, j] = cells.reshape(sizes[i], sizes[j]) / len(codes)
    return one, two


def test_the_mixture_has_the_marginals_that_it_is_fitted_to() -> None:
    rng = np.random.default_rng(4)
    a = rng.integers(0, 4, 3000)
    codes = np.column_stack([a, (a + rng.integers(0, 2, 3000)) % 4, rng.integers(0, 3, 3000)])
    one, two = exact(codes, [4, 4, 3])
    mixture = fit_mixture([4, 4, 3], one, two, deviation=0.0, seed=0)
    for pair, cells in two.items():
        assert 0.5 * np.abs(mixture.marginal(pair) - cells).sum() < 0.02
    drawn = mixture.sample(20_000, np.random.default_rng(0))
    for pair, cells in exact(drawn, [4, 4, 3])[1].items():
        assert 0.5 * np.abs(mixture.marginal(pair) - cells).sum() < 0.03
    likely, unlikely = mixture.log_probability(np.array([[0, 0, 0], [0, 2, 0]], np.int32))
    assert likely > unlikely + 1.0


def _distance(one: NDArray[Any], other: NDArray[Any]) -> float:
    return 0.5 * float(np.abs(one - other).sum())


def test_draws_are_nearer_to_the_mixture_than_independent_ones() -> None:
    """Of one column up to a record for each component, of two by a half; every number of records works."""
    sizes = (12, 9, 5)
    random = np.random.default_rng(0)
    tables = np.concatenate([random.dirichlet(np.ones(size), 8) for size in sizes], axis=1)
    mixture = ProductMixture(sizes, tables)
    codes = mixture.sample(8000, random)
    for i, size in enumerate(sizes):
        found = np.bincount(codes[:, i], minlength=size) / 8000
        assert np.abs(found - mixture.marginal([i])).max() <= 8 * 1.01 / 8000
    for i, j in itertools.combinations(range(3), 2):
        law = mixture.marginal([i, j])
        found = np.zeros_like(law)
        np.add.at(found, (codes[:, i], codes[:, j]), 1.0 / 8000)
        independent = random.multinomial(8000, law.ravel()).reshape(law.shape) / 8000
        assert _distance(found, law) < 0.5 * _distance(independent, law)
    for number in (1, 7, 8, 9, 1001):
        few = mixture.sample(number, random)
        assert few.shape == (number, 3)
        assert (few >= 0).all()
        assert (few < sizes).all()


def test_the_mean_of_several_mixtures_errs_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the truth, with noise in every cell; seeded."""
    sizes = (16,) * 6
    random = np.random.default_rng(1)
    tables = np.concatenate([random.dirichlet(np.full(16, 0.02), 200) for _ in sizes], axis=1)
    law = ProductMixture(sizes, tables)
    pairs = list(itertools.combinations(range(6), 2))
    single = [law.marginal([i]) + 0.0005 * random.standard_normal(16) for i in range(6)]
    noisy = {pair: law.marginal(pair) + 0.0005 * random.standard_normal((16, 16)) for pair in pairs}

    def error() -> float:
        fitted = fit_mixture(sizes, single, noisy, deviation=0.0005, seed=0)
        return float(np.mean([_distance(fitted.marginal(pair), law.marginal(pair)) for pair in pairs]))

    several = error()
    monkeypatch.setattr(product_mixture, "PARTS", 1)
    assert several < 0.95 * error()


def test_weak_dependences_are_suppressed_as_far_as_noise_hides_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the truth and against a fit that follows the noise; seeded."""
    random, noise = np.random.default_rng(3), 0.02
    tables = np.concatenate([random.dirichlet(np.full(8, 0.5), 4) for _ in range(6)], axis=1)
    law = ProductMixture((8,) * 6, tables)
    pairs = list(itertools.combinations(range(6), 2))
    single = [law.marginal([i]) + noise * random.standard_normal(8) for i in range(6)]
    noisy = {pair: law.marginal(pair) + noise * random.standard_normal((8, 8)) for pair in pairs}

    def error() -> float:
        fitted = fit_mixture(law.sizes, single, noisy, deviation=noise, seed=0)
        return float(np.mean([_distance(fitted.marginal(pair), law.marginal(pair)) for pair in pairs]))

    penalised = error()
    monkeypatch.setattr(product_mixture, "SHRINKAGE", 0.0)
    assert penalised < 0.8 * error()


def test_pairs_that_were_not_released_are_implied_by_a_chain() -> None:
    rng = np.random.default_rng(5)
    a = rng.integers(0, 3, 5000)
    b = np.where(rng.random(5000) < 0.9, a, rng.integers(0, 3, 5000))
    c = np.where(rng.random(5000) < 0.9, b, rng.integers(0, 3, 5000))
    one, two = exact(np.column_stack([a, b, c]), [3, 3, 3])
    mixture = fit_mixture([3, 3, 3], one, {(0, 1): two[0, 1], (1, 2): two[1, 2]}, deviation=0.0, seed=0)
    assert 0.5 * np.abs(mixture.marginal((0, 2)) - two[0, 2]).sum() < 0.06


def test_the_nearest_probabilities() -> None:
    np.testing.assert_allclose(nearest_probabilities(np.array([0.5, 0.5])), [0.5, 0.5])
    np.testing.assert_allclose(nearest_probabilities(np.array([2.0, -1.0, 0.0])), [1.0, 0.0, 0.0])
    np.testing.assert_allclose(nearest_probabilities(np.array([0.0, 0.0])), [0.5, 0.5])


@pytest.mark.parametrize("units", [np.zeros((2, 3)), np.array([[1, 2]]), -np.ones((2, 3)), np.ones(3)])
def test_a_damaged_mixture_is_refused(units: NDArray[Any]) -> None:
    with pytest.raises(ValueError, match="mixture"):
        ProductMixture.from_units([1, 2], units.astype(np.int64))


def test_marginals_over_time_become_a_synthesizer() -> None:
    stream = hs.stream(
        hs.methods.marginals({"ill": FlagColumn(missing="refuse")}), horizon=2, epsilon=2, delta=1e-6
    )
    stream.add([[True]] * 900 + [[False]] * 100)
    model = PrivateSynthesizer(random_state=0).fit_released(stream.step())
    assert str(model.claim_.mechanism) == "factorised discrete gaussian"
    assert np.mean(model.sample(1000, random_state=0)["ill"].to_pylist()) > 0.7


@pytest.mark.parametrize("pairs", [[("age", "age")], [("age",)], [("age", "ward", "ill")]])
def test_pairs_that_cannot_be_released_are_refused(pairs: Any) -> None:
    with pytest.raises(UsageError, match="pairs of different columns"):
        PrivateSynthesizer(columns=COLUMNS, pairs=pairs).fit(visits())


def test_more_labels_than_can_be_fitted_are_refused_before_anything_is_counted() -> None:
    columns = {"age": NumberColumn(0, 120, bins=1 << 14)}
    with pytest.raises(UsageError, match="labels together"):
        PrivateSynthesizer(columns=columns).fit([[30.0], [40.0]])
