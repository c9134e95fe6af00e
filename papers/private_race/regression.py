"""Figure 5 again: linear regression from the sketch's surrogate loss, against methods made for regression.

Bounds of columns and target come from public records, and so does the radius to which records are shortened:
each method has its own choice, tried on public folds with the noise that the private release will have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from papers.private_race.curves import Curves, Settings, Subject
from papers.private_race.data import Dataset, Floats, split_records

from hushsum.models import PrivateRegressor

SKETCH: Final = "sketch"
SKETCH_DELTA: Final = "sketch with δ"
ADASSP: Final = "AdaSSP"
PUBLISHED: Final = "AdaSSP as published"
SSP: Final = "SSP"
OPS: Final = "OPS"
ADAOPS: Final = "AdaOPS"
OBJECTIVE: Final = "objective perturbation"
UNBOUNDED: Final = "objective perturbation, wide"
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
    wide: bool = False


WAYS: Final = {
    SKETCH: Way("sketch", None),
    SKETCH_DELTA: Way("sketch", DELTA),
    OBJECTIVE: Way("objective", None),
    UNBOUNDED: Way("objective", None, wide=True),
    OPS: Way("ops", None),
    ADAOPS: Way("adaops", DELTA),
    SSP: Way("ssp", DELTA),
    PUBLISHED: Way("adassp", DELTA, "as-published"),
    ADASSP: Way("adassp", DELTA),
    AUTO: Way("auto", DELTA),
}
SINGLE: Final = (SKETCH_DELTA, OBJECTIVE, OPS, ADAOPS, SSP, ADASSP)
"""What ``auto`` chooses from."""

ANCHORS: Final = (0.3, 3.0)
"""Budgets at which geometries are tried; the others take the choice of the nearer one."""

_DEVIATIONS = (1.0, 2.0, 3.0)
_KEPT = (0.5, 0.95)
_FOLDS = 2
_TRIAL_ROWS = 1000
"""Of the sketch while geometries are tried, in place of 4000; it reads in a fourth of the time."""

_TARGET_TAIL = 0.01
_RIDGE = 1e-3


@dataclass(frozen=True, slots=True)
class Geometry:
    """Where columns are clipped (mean ± this many standard deviations), and to which length records are
    shortened (that of this share of the public records).
    """

    deviations: float
    kept: float

    def __str__(self) -> str:
        return f"±{self.deviations:g} sd, {self.kept:.0%}"


GEOMETRIES: Final = tuple(Geometry(deviations, kept) for deviations in _DEVIATIONS for kept in _KEPT)


@dataclass(frozen=True, slots=True)
class PublicFacts:
    """Bounds of every column, range and mean of the target, and the radius, from public records."""

    low: Floats
    high: Floats
    target: tuple[float, float]
    mean: float
    radius: float

    @classmethod
    def of(cls, X: Floats, y: Floats, geometry: Geometry) -> PublicFacts:
        """From public records of shape (n, d) and their targets.

        The target's range is even around its mean, since models under much noise answer its middle.
        """
        middle, spread = X.mean(axis=0), X.std(axis=0)
        reach = geometry.deviations * np.where(spread > 1e-9 * (1.0 + np.abs(middle)), spread, 1.0)
        lengths = np.sqrt(1.0 + np.sum(np.clip((X - middle) / reach, -1.0, 1.0) ** 2, axis=1))
        mean = float(y.mean())
        width = float(np.quantile(np.abs(y - mean), 1.0 - _TARGET_TAIL))
        radius = float(np.quantile(lengths, geometry.kept))
        return cls(middle - reach, middle + reach, (mean - width, mean + width), mean, radius)

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
        X, y = dataset.X, dataset.y
        public, private, test = split.public, split.private, split.test
        facts = {each: PublicFacts.of(X[public], y[public], each) for each in GEOMETRIES}
        widest = facts[GEOMETRIES[-1]]
        U = widest.columns(X)
        for name, fitted in ((LEAST_SQUARES, private), (PUBLIC, public)):
            predicted = least_squares(U[fitted], y[fitted], U[test], widest.target)
            for _ in settings.epsilons:
                curves.add(name, repetition, relative_error(predicted, y[test], widest.mean))
        for name, way in WAYS.items():
            chosen = choose_geometries(way, facts, X[public], y[public], len(private), repetition)
            for epsilon in settings.epsilons:
                fact = facts[chosen[nearest_anchor(epsilon)]]
                model = private_regressor(way, epsilon, fact, repetition, len(private))
                model.fit(fact.columns(X[private]), y[private])
                predicted = model.predict(fact.columns(X[test]))
                curves.add(name, repetition, relative_error(predicted, y[test], fact.mean))
        settings.say(f"regression {dataset.name}: repetition {repetition + 1} of {settings.repetitions}")
    return curves


def nearest_anchor(epsilon: float) -> float:
    """The anchor whose ratio to ε is nearest to 1."""
    return min(ANCHORS, key=lambda anchor: abs(math.log(anchor / epsilon)))


def choose_geometries(
    way: Way, facts: Mapping[Geometry, PublicFacts], X: Floats, y: Floats, private_size: int, repetition: int
) -> dict[float, Geometry]:
    """For each anchor the geometry with the least error on public folds, released at ε·N/n."""
    if way.calibration == "as-published":
        # The published constants do not hold for the large ε of the trials.
        way = replace(way, calibration="tight")
    fold = np.arange(len(y)) % _FOLDS
    best = {}
    for anchor in ANCHORS:
        errors = []
        for geometry in GEOMETRIES:
            fact, error = facts[geometry], 0.0
            U = fact.columns(X)
            for held in range(_FOLDS):
                known, hidden = fold != held, fold == held
                size = int(np.count_nonzero(known))
                model = private_regressor(way, anchor * private_size / size, fact, repetition, size)
                model.set_params(rows=_TRIAL_ROWS)
                predicted = model.fit(U[known], y[known]).predict(U[hidden])
                error += relative_error(predicted, y[hidden], fact.mean)
            errors.append(error)
        best[anchor] = GEOMETRIES[int(np.argmin(errors))]
    return best


def private_regressor(
    way: Way, epsilon: float, facts: PublicFacts, repetition: int, records: int
) -> PrivateRegressor:
    """An unfitted model with bounds, radius and size declared."""
    columns = len(facts.low)
    return PrivateRegressor(
        epsilon=epsilon,
        delta=way.delta,
        method=way.method,
        calibration=way.calibration,
        bounds=(-1.0, 1.0),
        target_bounds=facts.target,
        radius=facts.radius,
        theta_bound=float(np.sqrt(columns + 1.0)) if way.wide else 2.0,
        records=records,
        random_state=repetition,
    )


def relative_error(predicted: Floats, truth: Floats, mean: float) -> float:
    """The squared error over that of a constant."""
    return float(np.mean((predicted - truth) ** 2) / np.mean((mean - truth) ** 2))


def least_squares(X: Floats, y: Floats, Q: Floats, target: tuple[float, float]) -> Floats:
    """Predictions without privacy, with a ridge that only keeps constant columns from mattering."""
    A = np.column_stack([np.ones(len(X)), X])
    theta = np.linalg.solve(A.T @ A + _RIDGE * np.eye(A.shape[1]), A.T @ y)
    predicted: Floats = np.clip(np.column_stack([np.ones(len(Q)), Q]) @ theta, *target)
    return predicted
