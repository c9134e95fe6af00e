"""The two settings: MNIST digits among five owners, and a group of the adult census among four."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

DIGIT_PAIRS = ((0, 1), (3, 4), (5, 6), (7, 8), (9, 2))
MNIST_BANDWIDTH = 5.0
"""γ = 0.02 on pixels in [0, 1]. At γ = 0.1 the mean similarity of two validation images is 0.004: a kernel
that sees every image alone, so that even a perfect sample of the target is hardly nearer than any other."""
CENSUS_BANDWIDTH = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """Owners' points and labels, the consumer's validation points (without labels) and its test set."""

    name: str
    owners: dict[str, Floats]
    labels: dict[str, Labels]
    validation: Floats
    test: Floats
    test_labels: Labels
    bandwidth: float


def folder() -> Path:
    """Where the datasets are."""
    return Path(os.environ["HUSHSUM_DATA"])


def mnist(seed: int) -> Setting:
    """Five owners by digit pairs; the target has 3s and 4s at 70 : 30, a quarter of it for validation."""
    import pandas as pd

    frame = pd.read_parquet(folder() / "mnist.parquet")
    pixels = np.stack(frame["pixels"].to_list()) / 255.0
    digits = frame["target"].to_numpy().astype(np.int64)
    training = (frame["split"].astype(str) == "train").to_numpy()
    rng = np.random.default_rng(seed)
    threes, fours = (np.flatnonzero(~training & (digits == digit)) for digit in (3, 4))
    fours = rng.choice(fours, round(len(threes) * 3 / 7), replace=False)
    held = rng.permutation(np.concatenate([threes, fours]))
    validating = rng.random(len(held)) < 0.25
    places = [np.flatnonzero(training & np.isin(digits, pair)) for pair in DIGIT_PAIRS]
    names = [f"digits {a} and {b}" for a, b in DIGIT_PAIRS]
    return Setting(
        "mnist",
        {name: pixels[place] for name, place in zip(names, places, strict=True)},
        {name: digits[place] for name, place in zip(names, places, strict=True)},
        pixels[held[validating]],
        pixels[held[~validating]],
        digits[held[~validating]],
        MNIST_BANDWIDTH,
    )


def census(seed: int) -> Setting:
    """Adult: four owners; the target is married people who live with their spouse.

    As in the paper's insurance data, everybody else is split evenly among the four, and 70 % of the target
    group belongs to one of them. Of the other 30 % a quarter is for validation.
    """
    import pandas as pd

    frame = pd.read_parquet(folder() / "adult.parquet").dropna()
    labels = frame["target"].to_numpy().astype(np.int64)
    wanted = (frame["marital_status"].astype(str).str.strip() == "Married-civ-spouse").to_numpy()
    columns = []
    for column in ("age", "hours_per_week", "education_num", "capital_gain", "capital_loss"):
        values = frame[column].to_numpy(np.float64)
        values = np.log1p(values) / 4.0 if column.startswith("capital") else values / _SCALES[column]
        columns.append(values[:, None])
    for column in ("marital_status", "occupation", "sex", "workclass"):
        columns.append(pd.get_dummies(frame[column].astype(str)).to_numpy(np.float64))
    points = np.concatenate(columns, axis=1)
    rng = np.random.default_rng(seed)
    target = rng.permutation(np.flatnonzero(wanted))
    others = rng.permutation(np.flatnonzero(~wanted))
    own, held = np.split(target, [int(0.7 * len(target))])
    validation, test = np.split(held, [len(held) // 4])
    parts = np.array_split(others, 4)
    parts[0] = np.concatenate([parts[0], own])
    names = ["a", "b", "c", "d"]
    return Setting(
        "census",
        {name: points[part] for name, part in zip(names, parts, strict=True)},
        {name: labels[part] for name, part in zip(names, parts, strict=True)},
        points[validation],
        points[test],
        labels[test],
        CENSUS_BANDWIDTH,
    )


_SCALES = {"age": 13.0, "hours_per_week": 12.0, "education_num": 2.5}
