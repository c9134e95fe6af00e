"""Anomaly detection: a low released density tells an anomaly; with exact KDE and ACE beside it.

The sketch is filled with all private records, anomalies among them, and nobody tells it which they are. Power
and bandwidth are chosen on public records with their labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from papers.private_race.curves import Curves, Settings, Subject
from papers.private_race.data import Dataset, Floats, Labels, Split, split_records
from papers.private_race.kernel_choice import (
    TRIAL_WIDTH,
    Candidate,
    Trial,
    candidates,
    choose_on_public,
    maps_from,
    stratified_folds,
)
from papers.private_race.scaling import RANGES, Points

import hushsum as hs
from hushsum.models import PrivateOutlierDetector

BITS: Final = 15
ARRAYS: Final = 50
"""K and L as published."""


def ace_scores(X: Points, Q: Points, *, seed: int, bits: int = BITS, arrays: int = ARRAYS) -> Floats:
    """Mean counts at the queries, shape (n_queries,); a low one tells an anomaly. Not private."""
    rng = np.random.default_rng(seed)
    places = 1 << np.arange(bits)
    total = np.zeros(len(Q))
    for _ in range(arrays):
        directions = rng.normal(size=(X.shape[1], bits))
        counts = np.bincount((X @ directions > 0.0) @ places, minlength=1 << bits)
        total += counts[(Q @ directions > 0.0) @ places]
    return total / arrays


def ace_tally(X: Points, *, seed: int, bits: int = BITS, arrays: int = ARRAYS) -> hs.Tally:
    """The same counters as a tally, to be released with exact integer noise."""
    kernel = hs.AngularKernel(dim=X.shape[1], bits=bits)
    return hs.race(kernel, rows=arrays, width=1 << bits, seed=seed).add(X)


SKETCH: Final = "sketch"
ESTIMATOR: Final = "PrivateOutlierDetector.score_samples"
EXACT: Final = "exact KDE"
PUBLIC: Final = "public records alone"
ACE: Final = "ACE, not private"
PRIVATE_ACE: Final = "ACE, private"

CHOICES: Final = candidates({"box": (0.2, 0.4, 0.8, 1.6)}, powers=(1, 4))

_TAIL = 0.001
_HASH_SEEDS = 2
_NORMAL_TESTED = 500
_MOST_PUBLIC = 6000
_PAIRS_AT_A_TIME = 1 << 24


def run_anomalies(datasets: Sequence[Dataset], settings: Settings) -> Subject:
    """Area under the ROC curve of every method, for each ε and repetition."""
    return Subject(
        name="anomalies",
        metric="area under the ROC curve",
        settings=settings,
        curves={each.name: detect(each, settings) for each in datasets},
    )


def detect(dataset: Dataset, settings: Settings) -> Curves:
    """All repetitions on one data set."""
    curves = Curves(len(dataset.y), dataset.X.shape[1])
    for repetition in range(settings.repetitions):
        _repeat(dataset, split_records(len(dataset.y), repetition), repetition, settings, curves)
        settings.say(f"anomalies {dataset.name}: repetition {repetition + 1} of {settings.repetitions}")
    return curves


def area_under_roc(anomaly: NDArray[np.int64], density: Floats) -> float:
    """The probability that an anomaly has a lower density than a normal record; ties count one half.

    One half, which prefers no kernel, where a fold of public records holds only one of the two.
    """
    from scipy.stats import rankdata

    ranks = rankdata(-density)
    positive = anomaly == 1
    found, normal = np.count_nonzero(positive), np.count_nonzero(~positive)
    if not found or not normal:
        return 0.5
    return float((ranks[positive].sum() - found * (found + 1) / 2.0) / (found * normal))


def exact_density(kernel: hs.EuclideanKernel, X: Points, Q: Points) -> Floats:
    """Exact kernel sums; equal records, of which these data have many, are computed once."""
    distinct, counts = np.unique(X, axis=0, return_counts=True)
    step = max(1, _PAIRS_AT_A_TIME // len(Q))
    total = np.zeros(len(Q))
    for start in range(0, len(distinct), step):
        total += counts[start : start + step] @ kernel.similarity(distinct[start : start + step], Q)
    return total


def released_densities(
    kernel: hs.EuclideanKernel, X: Points, Q: Points, epsilons: Sequence[float], *, hash_seed: int
) -> list[Floats]:
    """Released mean kernel values at the queries, for each ε."""
    tally = hs.race(kernel, width=TRIAL_WIDTH, seed=hash_seed).add(X)
    return [tally.release(epsilon=epsilon)(Q) for epsilon in epsilons]


def tested_records(split: Split, labels: Labels) -> NDArray[np.int64]:
    """All anomalies of the test set and a part of its normal records; the area depends on no proportion."""
    anomaly = labels[split.test] == 1
    return np.concatenate([split.test[anomaly], split.test[~anomaly][:_NORMAL_TESTED]])


def _repeat(dataset: Dataset, split: Split, repetition: int, settings: Settings, curves: Curves) -> None:
    labels, epsilons = dataset.labels, settings.epsilons
    maps = maps_from(dataset.X[split.public], CHOICES, _TAIL)

    def score(trial: Trial) -> list[float]:
        noisy = [epsilon * trial.factor for epsilon in epsilons]
        densities = released_densities(trial.kernel, trial.fitted, trial.held, noisy, hash_seed=trial.seed)
        return [area_under_roc(trial.hidden, density) for density in densities]

    sample = split.public[:_MOST_PUBLIC]
    chosen = choose_on_public(
        dataset.X[sample],
        labels[sample],
        CHOICES,
        maps,
        score,
        private_size=len(split.private),
        seeds=1 if settings.quick else _HASH_SEEDS,
    )
    tested = tested_records(split, labels)
    truth = labels[tested]
    exact: dict[Candidate, tuple[float, float]] = {}
    for epsilon, choice in zip(epsilons, chosen, strict=True):
        kernel, scale = choice.kernel(dataset.X.shape[1]), maps[choice.scaling]
        X, Q = scale(dataset.X[split.private]), scale(dataset.X[tested])
        model = PrivateOutlierDetector(
            epsilon=epsilon,
            bandwidth=choice.bandwidth,
            power=choice.power,
            bounds=RANGES[choice.scaling],
            random_state=repetition,
        )
        model.fit(X)
        curves.add(SKETCH, repetition, area_under_roc(truth, model.released_.parts["similarity"](Q)))
        curves.add(ESTIMATOR, repetition, area_under_roc(truth, model.score_samples(Q)))
        if choice not in exact:
            alone = exact_density(kernel, scale(dataset.X[split.public]), Q)
            exact[choice] = (area_under_roc(truth, exact_density(kernel, X, Q)), area_under_roc(truth, alone))
        curves.add(EXACT, repetition, exact[choice][0])
        curves.add(PUBLIC, repetition, exact[choice][1])
        curves.choose(repetition, str(choice))
    _count_estimators(dataset, split, tested, repetition, epsilons, curves)


def _count_estimators(
    dataset: Dataset,
    split: Split,
    tested: NDArray[np.int64],
    repetition: int,
    epsilons: Sequence[float],
    curves: Curves,
) -> None:
    """ACE on the same columns, seen from the origin that tells the most on public folds."""
    scale = maps_from(dataset.X[split.public], CHOICES, _TAIL)["box"]
    sample = split.public[:_MOST_PUBLIC]
    origin = ace_origin(scale(dataset.X[sample]), dataset.labels[sample])
    X, Q = scale(dataset.X[split.private]) - origin, scale(dataset.X[tested]) - origin
    truth = dataset.labels[tested]
    plain = area_under_roc(truth, ace_scores(X, Q, seed=repetition))
    tally = ace_tally(X, seed=repetition)
    for epsilon in epsilons:
        curves.add(ACE, repetition, plain)
        released = tally.release(epsilon=epsilon, rows=ARRAYS)
        curves.add(PRIVATE_ACE, repetition, area_under_roc(truth, released(Q)))


def ace_origin(points: Points, labels: Labels) -> Points:
    """ACE sees directions alone, so all depends on where from: the public mean, a corner of the box, or a
    point beyond it. The best on public folds.
    """
    corner = np.zeros(points.shape[1], np.float32)
    origins = [points.mean(axis=0), corner, corner - 1.0]
    areas = [
        [
            area_under_roc(labels[held], ace_scores(points[fit] - origin, points[held] - origin, seed=0))
            for fit, held in stratified_folds(labels)
        ]
        for origin in origins
    ]
    best: Points = origins[int(np.argmax(np.mean(areas, axis=1)))]
    return best
