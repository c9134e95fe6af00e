"""The data of the experiments: a census, and the paper's benchmarks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from papers.data import dataset_file

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

AGE_BOUNDS = (15.0, 95.0)
EARNINGS_BOUNDS = (0.0, 60.0)
GAUSSIAN_BOUNDS = (-4.0, 8.0)
GAUSSIAN_MEAN, GAUSSIAN_VARIANCE = 2.0, 1.3
HEIGHT_BOUNDS = (50.0, 180.0)


@dataclass(frozen=True, slots=True)
class Sample:
    """Training and test records, inputs in [−1, 1] but for one-column densities."""

    X: Floats
    y: Floats
    X_test: Floats
    y_test: Floats


@cache
def table(name: str) -> dict[str, NDArray[np.generic]]:
    """The columns of a set, categories as strings."""
    import pyarrow.parquet as pq

    read = pq.read_table(dataset_file(name))
    return {each: np.array(read[each].to_pylist()) for each in read.column_names}


def ages(number: int, test: int, seed: int) -> Sample:
    """Ages of the census, in years."""
    values = table("adult")["age"].astype(np.float64)[:, np.newaxis]
    return _sampled(values, np.zeros(len(values)), number, test, seed)


def earnings(number: int, test: int, seed: int) -> Sample:
    """Hourly earnings by age and years of schooling."""
    found = table("cps_earnings_2004")
    X = np.column_stack((_unit(found["age"], 20.0, 65.0), _unit(found["education_years"], 6.0, 20.0)))
    return _sampled(X, np.clip(found["target"].astype(np.float64), *EARNINGS_BOUNDS), number, test, seed)


def incomes(number: int, test: int, seed: int, *, tuning: bool = False) -> Sample:
    """Whether somebody earns more than 50,000, by age, schooling, hours, gains, sex and marriage.

    A third of the records, always the same ones, is for choosing parameters, and never fitted or scored in a
    figure; ``tuning`` draws from that third.
    """
    found = table("adult")
    X = np.column_stack(
        (
            _unit(found["age"], 15.0, 75.0),
            _unit(found["education_num"], 1.0, 16.0),
            _unit(found["hours_per_week"], 0.0, 80.0),
            _unit(np.log1p(found["capital_gain"].astype(np.float64)), 0.0, 12.0),
            np.where(found["sex"] == "Male", 1.0, -1.0),
            np.where(np.char.startswith(found["marital_status"].astype(str), "Married"), 1.0, -1.0),
        )
    )
    order = np.random.default_rng(1994).permutation(len(X))
    part = order[: len(X) // 3] if tuning else order[len(X) // 3 :]
    return _sampled(X[part], found["target"].astype(np.float64)[part], number, test, seed)


def gaussian(number: int, seed: int) -> Floats:
    """The synthetic sample: mean 2, variance 1.3."""
    drawn = np.random.default_rng(seed).normal(GAUSSIAN_MEAN, GAUSSIAN_VARIANCE**0.5, number)
    return drawn[:, np.newaxis]


def gaussian_density(points: Floats) -> Floats:
    """Its density."""
    squares = (points[:, 0] - GAUSSIAN_MEAN) ** 2 / GAUSSIAN_VARIANCE
    density: Floats = np.exp(-0.5 * squares) / np.sqrt(2.0 * np.pi * GAUSSIAN_VARIANCE)
    return density


def kung_women(seed: int) -> Sample:
    """Heights of the !Kung San women by age; a fifth for the test."""
    found = table("howell1")
    women = found["male"] == 0
    X = _unit(found["age"][women], 0.0, 90.0)[:, np.newaxis]
    y = np.clip(found["height"][women].astype(np.float64), *HEIGHT_BOUNDS)
    return _sampled(X, y, len(X) - len(X) // 5, len(X) // 5, seed)


def iris(seed: int) -> Sample:
    """Three species by four lengths; a fifth for the test."""
    found = table("iris")
    box = {"sepal_length": (4, 8), "sepal_width": (2, 4.5), "petal_length": (1, 7), "petal_width": (0, 2.6)}
    X = np.column_stack([_unit(found[name], float(low), float(high)) for name, (low, high) in box.items()])
    return _sampled(X, found["target"].astype(np.float64), 120, 30, seed)


def _unit(values: NDArray[np.generic], low: float, high: float) -> Floats:
    """A declared range, to [−1, 1]."""
    scaled: Floats = np.clip((values.astype(np.float64) - low) / (high - low), 0.0, 1.0) * 2.0 - 1.0
    return scaled


def _sampled(X: Floats, y: Floats, number: int, test: int, seed: int) -> Sample:
    order = np.random.default_rng(seed).permutation(len(X))
    train, rest = order[:number], order[number : number + test]
    return Sample(X[train], y[train], X[rest], y[rest])
