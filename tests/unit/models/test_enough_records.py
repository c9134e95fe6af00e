"""Models are silent where their private counts cannot be distinguished from noise, and speak beyond."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.models import MODEL_COUNT_SHARE, enough_records, shares_within_noise
from hushsum.models._classifier import SketchReading

LOUD: dict[str, Any] = {"epsilon": 0.001, "delta": 1e-6, "random_state": 0}
"""A few records pass for many with a probability below 1e-6: five standard errors of a Gaussian."""


@dataclass(frozen=True)
class Counted:
    """As much of a released function as the rules look at; its sum is the same everywhere."""

    count: float
    count_stderr: float
    value: float = 1.0
    rows: int = 1
    noise: Any = None

    def sum(self, Q: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.full(len(Q), self.value)


@dataclass(frozen=True)
class Noise:
    variance: float = 1.0


def reading(*counts: float, values: tuple[float, ...] | None = None) -> SketchReading:
    answers = values or (1.0,) * len(counts)
    return SketchReading.of(
        [Counted(count, 1.0, value, noise=Noise()) for count, value in zip(counts, answers, strict=True)]
    )


def records(number: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    X = np.random.default_rng(1).uniform(-1.0, 1.0, size=(number, 2))
    return X, (X[:, 0] > 0.0).astype(np.int64)


@pytest.mark.parametrize(
    ("counts", "enough"),
    [((5.0,), True), ((4.9,), False), ((6.0, 1.1), True), ((7.0, 0.0), False), ((-9.0,), False)],
)
def test_five_standard_errors_are_requested_for(counts: tuple[float, ...], enough: bool) -> None:
    functions: list[Any] = [Counted(each, 1.0) for each in counts]
    assert enough_records(functions) == enough


def test_noise_alone_passes_as_rarely_as_stated() -> None:
    """Of 4000 empty tallies two pass on average, and more than 16 in one run of 10⁹."""
    empty = hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=1, width=2, seed=0)
    passed = sum(
        enough_records([empty.release(epsilon=1.0, count_share=MODEL_COUNT_SHARE)]) for _ in range(4000)
    )
    assert passed <= 16


def test_a_class_within_the_noise_has_no_say_beside_two_that_are_not() -> None:
    masses = reading(50.0, 40.0, 2.9).probabilities(np.zeros((1, 1)), "map")
    assert masses[0, 2] < 1e-9 < masses[0, 1] == masses[0, 0]


def test_of_two_classes_a_rare_one_is_heard_with_a_cautious_size() -> None:
    """Divided by two standard errors, and not by the tenth of one that noise has left of its count."""
    found = reading(50.0, 0.1, values=(10.0, 0.5))
    assert found.known.tolist() == [0, 1]
    assert found.sizes.tolist() == [50.0, 2.0]
    masses = found.probabilities(np.zeros((1, 1)), "likelihood")[0]
    assert masses.argmax() == 1
    assert (
        reading(50.0, 0.1, values=(10.0, 0.3)).probabilities(np.zeros((1, 1)), "likelihood")[0].argmax() == 0
    )


def test_counts_far_above_the_noise_are_taken_as_they_are() -> None:
    found = reading(500.0, 300.0, 90.0)
    assert np.array_equal(found.sizes, found.counts)


def test_a_silent_classifier_gives_every_class_the_same_probability() -> None:
    X, y = records(20)
    model = hs.PrivateClassifier(classes=[0, 1], **LOUD).fit(X, y)
    assert (model.predict_proba(X) == 0.5).all()
    assert (model.predict(X) == 0).all()


def test_a_silent_plane_says_the_first_class() -> None:
    X, y = records(20)
    assert (hs.PrivateLinearSVC(classes=[0, 1], **LOUD).fit(X, y).predict(X) == 0).all()


def test_a_silent_detector_knows_the_bounds_alone() -> None:
    X, _ = records(20)
    model = hs.PrivateOutlierDetector(**LOUD).fit(X)
    assert model.predict([[0.0, 0.0], [0.9, -0.9], [1.1, 0.0]]).tolist() == [1, 1, -1]


def test_within_the_noise_classes_are_alike_unless_one_is_far_more_frequent() -> None:
    errors = np.array([1.0, 1.0, 2.0])
    assert (shares_within_noise(np.array([0.0, 6.0, 1.0]), errors) == 1 / 3).all()
    shares = shares_within_noise(np.array([0.0, 14.0, 1.0]), errors)
    assert shares.argmax() == 1
    assert np.isclose(shares.sum(), 1.0)
    assert (shares > 0.0).all()
