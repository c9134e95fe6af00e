"""Transformations learned on public rows: what they do, and that each record is transformed alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushsum.errors import DataRefused, FileRefused, UsageError
from hushsum.records import Transform

RNG = np.random.default_rng(6)
SCALES = np.array([1.0, 0.5, 0.1, 0.02, 0.3, 0.7])
PUBLIC = RNG.normal(size=(3000, 6)) * SCALES + 1.0
PRIVATE = RNG.normal(size=(500, 6)) * SCALES + 1.0


def test_whitening_makes_columns_uncorrelated_and_divides_by_their_spread() -> None:
    images = Transform.whitening(PUBLIC, input_radius=10.0).apply(PRIVATE)
    covariance = np.cov(images.T)
    assert np.abs(covariance - np.diag(np.diag(covariance))).max() < 0.15
    # The ridge is 10/3000 of the trace of 1.85.
    expected = np.sort(SCALES**2 / (SCALES**2 + 10 * (SCALES**2).sum() / 3000))[::-1]
    np.testing.assert_allclose(np.diag(covariance), expected, rtol=0.3)
    assert np.abs(images.mean(axis=0)).max() < 0.2


def test_principal_directions_and_centring() -> None:
    principal = Transform.principal(PUBLIC, input_radius=10.0, directions=2)
    assert principal.dim == 2
    np.testing.assert_allclose(principal.apply(PRIVATE).std(axis=0), [1.0, 0.7], rtol=0.1)
    centred = Transform.centring(PUBLIC, input_radius=10.0)
    np.testing.assert_allclose(centred.apply(PRIVATE), PRIVATE - PUBLIC.mean(axis=0), atol=1e-4)


@settings(max_examples=30, deadline=None)
@given(
    columns=st.integers(1, 40),
    number=st.integers(1, 70),
    at=st.integers(0, 69),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_record_is_transformed_alone_bit_for_bit(columns: int, number: int, at: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    transform = Transform.whitening(rng.normal(size=(30, columns)), input_radius=3.0)
    rows = rng.normal(size=(number, columns)) * 10.0 ** rng.integers(-6, 7, (number, 1))
    images, at = transform.apply(rows), at % number
    np.testing.assert_array_equal(transform.apply(rows[at : at + 1])[0], images[at])
    np.testing.assert_array_equal(transform.apply(rows[::-1])[::-1], images)


def test_the_arithmetic_is_that_of_whole_numbers() -> None:
    """Against Python's integers, which are exact."""
    transform = Transform.whitening(PUBLIC, input_radius=4.0)
    rows = PRIVATE[:20].astype(np.float32)
    lengths = np.sqrt((rows.astype(float) ** 2).cumsum(axis=1)[:, -1])
    steps = np.rint(rows.astype(float) * np.minimum(1.0, 4.0 / lengths)[:, None] * (2**20 / 4.0))
    exact = [
        [
            sum(int(m) * int(s) for m, s in zip(line, step, strict=True)) - int(offset)
            for line, offset in zip(transform.matrix, transform.offset, strict=True)
        ]
        for step in steps
    ]
    np.testing.assert_allclose(
        transform.apply(rows), np.array(exact, float) * transform.scale, rtol=1e-9, atol=1e-5
    )


LABELS = RNG.integers(0, 3, len(PUBLIC))
APART = PUBLIC + 0.3 * np.eye(6)[np.array([2, 4, 5])[LABELS]]
"""Classes that differ in columns whose spread is small or medium."""


def test_directions_learned_with_labels_separate_the_classes() -> None:
    """By Fisher's ratio of variances, above that of any single column and of principal directions."""

    def ratio(images: Any) -> float:
        means = np.stack([images[code == LABELS].mean(axis=0) for code in range(3)])
        within = images - means[LABELS]
        return float(np.trace(np.linalg.solve(np.cov(within.T), np.cov(means.T))))

    learned = Transform.discriminant(APART[:600], LABELS[:600], input_radius=10.0)
    assert learned.dim == 2
    assert ratio(learned.apply(APART)) > 0.5 * ratio(APART)
    assert ratio(learned.apply(APART)) > 5 * ratio(
        Transform.principal(APART, input_radius=10.0, directions=2).apply(APART)
    )
    near = Transform.neighbourhood(APART[:200], LABELS[:200], input_radius=10.0, directions=2)
    assert near.dim == 2
    assert ratio(near.apply(APART)) > 0.3 * ratio(APART)


def test_pipelines_of_linear_steps_become_matrices() -> None:
    from sklearn.decomposition import PCA
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer, StandardScaler

    for steps in (
        make_pipeline(StandardScaler(), PCA(3)).fit(PUBLIC),
        LinearDiscriminantAnalysis().fit(APART, LABELS),
    ):
        transform = Transform.of_steps(steps, PUBLIC, input_radius=10.0)
        expected = steps.transform(PRIVATE)
        np.testing.assert_allclose(transform.apply(PRIVATE), expected, atol=1e-3 * np.abs(expected).max())
        one = transform.apply(PRIVATE[7:8])[0]
        np.testing.assert_array_equal(transform.apply(PRIVATE)[7], one)
    with pytest.raises(UsageError, match="steps must be linear"):
        Transform.of_steps(
            make_pipeline(StandardScaler(), Normalizer()).fit(PUBLIC), PUBLIC, input_radius=1.0
        )


def test_labels_that_do_not_suit_the_rows_are_refused() -> None:
    for labels in (LABELS[:-1], np.zeros(len(PUBLIC)), [*np.zeros(len(PUBLIC) - 1), 1], LABELS[:, None]):
        with pytest.raises(DataRefused, match="labels must be"):
            Transform.discriminant(PUBLIC, labels, input_radius=1.0)


def test_variances_are_those_of_results_where_rows_suffice() -> None:
    transform = Transform.principal(PUBLIC, input_radius=10.0)
    np.testing.assert_allclose(transform.variances, transform.apply(PUBLIC).var(axis=0), rtol=0.05, atol=1e-3)
    few = Transform.principal(PUBLIC[:12], input_radius=10.0)
    assert few.variances[-1] > 5.0 * few.apply(PUBLIC[:12]).var(axis=0)[-1]


def test_it_is_stored_and_its_digest_tells_it_apart() -> None:
    one, other = (Transform.whitening(PUBLIC[:k], input_radius=4.0) for k in (1000, 1001))
    again = Transform.from_arrays(one.arrays())
    assert again.digest == one.digest != other.digest
    np.testing.assert_array_equal(again.apply(PRIVATE), one.apply(PRIVATE))
    frame = pd.DataFrame(PUBLIC[:1000], columns=list("abcdef"))
    assert Transform.whitening(frame, input_radius=4.0).digest == one.digest


@pytest.mark.parametrize(
    "name", ["transform matrix", "transform offset", "transform scales", "transform variances"]
)
def test_damaged_arrays_are_refused(name: str) -> None:
    arrays: dict[str, Any] = Transform.centring(PUBLIC, input_radius=4.0).arrays()
    whole = arrays[name].dtype.kind == "i"
    arrays[name] = np.full_like(arrays[name], 1 << 60) if whole else -arrays[name]
    with pytest.raises(FileRefused):
        Transform.from_arrays(arrays)
    arrays[name] = arrays[name].astype(float)[:1]
    with pytest.raises((FileRefused, ValueError)):
        Transform.from_arrays(arrays)


def test_bad_public_rows_are_refused() -> None:
    for rows in (PUBLIC[:9], PUBLIC[:, :0], np.zeros(5), np.full((20, 2), np.nan)):
        with pytest.raises(DataRefused):
            Transform.whitening(rows, input_radius=1.0)
    with pytest.raises(UsageError, match="directions"):
        Transform.principal(PUBLIC, input_radius=1.0, directions=7)


def test_whitening_needs_public_rows_that_differ() -> None:
    """Else images of private records would not fit 32 bits, and the records would be refused."""
    with pytest.raises(DataRefused, match="public must differ from each other"):
        Transform.whitening(np.ones((20, 3)), input_radius=2.0)
    assert np.isfinite(Transform.principal(np.ones((20, 3)), input_radius=2.0).apply(PRIVATE[:, :3])).all()


@pytest.mark.parametrize("radius", [0.0, -1.0, 1e-300, 1e300, float("inf"), float("nan")])
def test_a_radius_without_meaning_is_refused(radius: float) -> None:
    with pytest.raises(UsageError, match="input_radius must be from 1e-15 to 1e15"):
        Transform.centring(np.eye(20)[:, :2], input_radius=radius)
