"""Figure 5 again: linear regression from the sketch's surrogate loss, against methods made for regression.

Bounds of columns and target come from public records, and so does the radius to which records are shortened.
All methods get the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from papers.private_race.data import Dataset, Floats, split_records
from papers.private_race.results import Curves, Settings, Subject

from hushsum.models import PrivateRegressor

SKETCH: Final = "sketch"
SKETCH_DELTA: Final = "sketch with δ"
ADASSP: Final = "AdaSSP"
PUBLISHED: Final = "AdaSSP as published"
SSP: Final = "SSP"
OPS: Final = "OPS"
ADAOPS: Final = "AdaOPS"
OBJECTIVE: Final = "objective perturbation"
AUTO: Final = "auto"
LEAST_SQUARES: Final = "least squares, not private"
PUBLIC: Final = "public records alone"

DELTA: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Way:
    """How a curve's models are made."""

    method: str
    delta: float | None
    calibration: str = "tight"


WAYS: Final = {
    SKETCH: Way("sketch", None),
    SKETCH_DELTA: Way("sketch", DELTA),
    OBJECTIVE: Way("objective", None),
    OPS: Way("ops", None),
    ADAOPS: Way("adaops", DELTA),
    SSP: Way("ssp", DELTA),
    PUBLISHED: Way("adassp", DELTA, "as-published"),
    ADASSP: Way("adassp", DELTA),
    AUTO: Way("auto", DELTA),
}
SINGLE: Final = (SKETCH_DELTA, OBJECTIVE, OPS, ADAOPS, SSP, ADASSP)
"""What ``auto`` chooses from."""

_DEVIATIONS = 3.0
_SHORTENED = 0.05
_RIDGE = 1e-3


@dataclass(frozen=True, slots=True)
class PublicFacts:
    """What the public records tell: bounds of every column (mean ± 3 standard deviations), the range of the
    target, and a radius that leaves 95 % of them as they are.
    """

    low: Floats
    high: Floats
    target: tuple[float, float]
    mean: float
    radius: float

    @classmethod
    def of(cls, X: Floats, y: Floats) -> PublicFacts:
        """From public records of shape (n, d) and their targets."""
        middle, spread = X.mean(axis=0), X.std(axis=0)
        reach = _DEVIATIONS * np.where(spread > 1e-9 * (1.0 + np.abs(middle)), spread, 1.0)
        lengths = np.sqrt(1.0 + np.sum(np.clip((X - middle) / reach, -1.0, 1.0) ** 2, axis=1))
        return cls(
            low=middle - reach,
            high=middle + reach,
            target=(float(y.min()), float(y.max())),
            mean=float(y.mean()),
            radius=float(np.quantile(lengths, 1.0 - _SHORTENED)),
        )

    def columns(self, X: Floats) -> Floats:
        """Columns clipped and moved to [−1, 1]."""
        return 2.0 * (np.clip(X, self.low, self.high) - self.low) / (self.high - self.low) - 1.0


def run_regression(datasets: Sequence[Dataset], settings: Settings) -> Subject:
    """Relative squared error of every method, for each ε and repetition."""
    return Subject(
        name="regression",
        metric="squared error, relative to that of the public mean",
        settings=settings,
        curves={each.name: regress(each, settings) for each in datasets},
    )


def regress(dataset: Dataset, settings: Settings) -> Curves:
    """All repetitions on one data set."""
    curves = Curves(len(dataset.y), dataset.X.shape[1])
    for repetition in range(settings.repetitions):
        split = split_records(len(dataset.y), repetition)
        facts = PublicFacts.of(dataset.X[split.public], dataset.y[split.public])
        U, y = facts.columns(dataset.X), dataset.y
        truth = y[split.test]

        def error(predicted: Floats, truth: Floats = truth, mean: float = facts.mean) -> float:
            return float(np.mean((predicted - truth) ** 2) / np.mean((mean - truth) ** 2))

        for name, fitted in ((LEAST_SQUARES, split.private), (PUBLIC, split.public)):
            value = error(least_squares(U[fitted], y[fitted], U[split.test], facts.target))
            for _ in settings.epsilons:
                curves.add(name, repetition, value)
        for name, way in WAYS.items():
            for epsilon in settings.epsilons:
                model = private_regressor(way, epsilon, facts, repetition, len(split.private))
                model.fit(U[split.private], y[split.private])
                curves.add(name, repetition, error(model.predict(U[split.test])))
        settings.say(f"regression {dataset.name}: repetition {repetition + 1} of {settings.repetitions}")
    return curves


def private_regressor(
    way: Way, epsilon: float, facts: PublicFacts, repetition: int, records: int
) -> PrivateRegressor:
    """An unfitted model with bounds, radius and size declared."""
    return PrivateRegressor(
        epsilon=epsilon,
        delta=way.delta,
        method=way.method,
        calibration=way.calibration,
        bounds=(-1.0, 1.0),
        target_bounds=facts.target,
        radius=facts.radius,
        records=records,
        random_state=repetition,
    )


def least_squares(X: Floats, y: Floats, Q: Floats, target: tuple[float, float]) -> Floats:
    """Predictions without privacy, with a ridge that only keeps constant columns from mattering."""
    A = np.column_stack([np.ones(len(X)), X])
    theta = np.linalg.solve(A.T @ A + _RIDGE * np.eye(A.shape[1]), A.T @ y)
    return np.clip(np.column_stack([np.ones(len(Q)), Q]) @ theta, *target)
