"""Figure 4 again: the maximum-likelihood rule from one sketch per class, against private logistic regression.

Scaling, power and bandwidth of the sketch are chosen on public records. The baseline's regularisation, and in
one variant its threshold too, is chosen on the test set, which favours the baseline.
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
)
from papers.private_race.scaling import RANGES, Points, unit_box

import hushsum as hs
from hushsum.methods import fit_logistic
from hushsum.models import PrivateClassifier

SKETCH: Final = "sketch"
ESTIMATOR: Final = "PrivateClassifier.predict"
GAUSSIAN: Final = "sketch with δ"
EXACT: Final = "exact kernel sums"
PUBLIC: Final = "public records alone"
LOGISTIC: Final = "objective perturbation"
WIDE: Final = "objective perturbation, wider grid"
THRESHOLD: Final = "objective perturbation, wider grid and threshold"

DELTA: Final = 1e-6
CHOICES: Final = candidates({"box": (0.4, 0.8, 1.6), "whitened": (4.0, 8.0, 16.0)}, powers=(4, 8))
PAPER_GRID: Final = (0.01, 0.1, 1.0, 2.0)
WIDE_GRID: Final = (1e-5, 1e-4, 1e-3, *PAPER_GRID)

_TAIL = 0.01
_HASH_SEEDS = 2
_MOST_TESTED = 2000


def run_classification(datasets: Sequence[Dataset], settings: Settings) -> Subject:
    """Balanced accuracy of every method, for each ε and repetition."""
    return Subject(
        name="classification",
        metric="balanced accuracy",
        settings=settings,
        curves={each.name: classify(each, settings) for each in datasets},
    )


def classify(dataset: Dataset, settings: Settings) -> Curves:
    """All repetitions on one data set."""
    curves = Curves(len(dataset.y), dataset.X.shape[1])
    logistic: list[Floats] = []
    thresholds: list[Floats] = []
    for repetition in range(settings.repetitions):
        split = split_records(len(dataset.y), repetition)
        _sketches(dataset, split, repetition, settings, curves)
        plain, tuned = _baseline(dataset, split, settings)
        logistic.append(plain)
        thresholds.append(tuned)
        settings.say(f"classification {dataset.name}: repetition {repetition + 1} of {settings.repetitions}")
    scores, tuned_scores = np.array(logistic), np.array(thresholds)
    paper = len(WIDE_GRID) - len(PAPER_GRID)
    curves.values[LOGISTIC] = best_on_test(scores[:, paper:]).tolist()
    curves.values[WIDE] = best_on_test(scores).tolist()
    curves.values[THRESHOLD] = best_on_test(tuned_scores).tolist()
    return curves


def best_on_test(scores: Floats) -> Floats:
    """Of scores (repetition, setting, ε) those of the setting with the best mean on the test set, for each
    ε.
    """
    best = scores.mean(axis=0).argmax(axis=0)
    return np.column_stack([scores[:, setting, i] for i, setting in enumerate(best)])


def most_likely(model: PrivateClassifier, Q: Points) -> Labels:
    """The rule as published: the class whose released mean kernel value (Algorithm 2) is largest.

    ``predict`` differs where the private counts cannot be distinguished from noise: there it returns
    the first class.
    """
    values = [model.released_.parts[f"class {code}"](Q) for code in range(len(model.classes_))]
    winners: Labels = model.classes_[np.argmax(values, axis=0)]
    return winners


def likelihood_rule(
    kernel: hs.EuclideanKernel, X: Points, y: Labels, Q: Points, epsilons: Sequence[float], *, hash_seed: int
) -> list[Labels]:
    """Predicted classes for each ε: the class whose released mean kernel value is largest.

    Privacy
    -------
    Every record is in one class's tally, so the releases of the classes compose in parallel: each ε is that
    of the rule (add/remove). The classes share their hash functions, which makes their errors alike.
    """
    classes = np.unique(y)
    tallies = [hs.race(kernel, width=TRIAL_WIDTH, seed=hash_seed).add(X[y == each]) for each in classes]
    return [
        classes[np.argmax([tally.release(epsilon=epsilon)(Q) for tally in tallies], axis=0)]
        for epsilon in epsilons
    ]


def exact_rule(kernel: hs.EuclideanKernel, X: Points, y: Labels, Q: Points) -> Labels:
    """The same rule from exact kernel sums: no hashing, no noise, no privacy."""
    classes = np.unique(y)
    means = [kernel.exact_sum(X[y == each], Q) / np.count_nonzero(y == each) for each in classes]
    winners: Labels = classes[np.argmax(means, axis=0)]
    return winners


def balanced_accuracy(truth: Labels, predicted: Labels) -> float:
    """The mean over classes of the share that was recognised."""
    return float(np.mean([np.mean(predicted[truth == each] == each) for each in np.unique(truth)]))


def _sketches(dataset: Dataset, split: Split, repetition: int, settings: Settings, curves: Curves) -> None:
    labels, epsilons = dataset.labels, settings.epsilons
    maps = maps_from(dataset.X[split.public], CHOICES, _TAIL)

    def score(trial: Trial) -> list[float]:
        noisy = [epsilon * trial.factor for epsilon in epsilons]
        guesses = likelihood_rule(
            trial.kernel, trial.fitted, trial.known, trial.held, noisy, hash_seed=trial.seed
        )
        return [balanced_accuracy(trial.hidden, guess) for guess in guesses]

    chosen = choose_on_public(
        dataset.X[split.public],
        labels[split.public],
        CHOICES,
        maps,
        score,
        private_size=len(split.private),
        seeds=1 if settings.quick else _HASH_SEEDS,
    )
    tested = split.test[:_MOST_TESTED]
    truth = labels[tested]
    exact: dict[Candidate, tuple[float, float]] = {}
    for epsilon, choice in zip(epsilons, chosen, strict=True):
        kernel, scale = choice.kernel(dataset.X.shape[1]), maps[choice.scaling]
        X, y, Q = scale(dataset.X[split.private]), labels[split.private], scale(dataset.X[tested])
        for delta, method, estimator in ((None, SKETCH, ESTIMATOR), (DELTA, GAUSSIAN, None)):
            model = PrivateClassifier(
                epsilon=epsilon,
                delta=delta,
                classes=[0, 1],
                method="kernel",
                rule="likelihood",
                bandwidth=choice.bandwidth,
                power=choice.power,
                rows=1000,
                bounds=RANGES[choice.scaling],
                random_state=repetition,
            )
            model.fit(X, y)
            curves.add(method, repetition, balanced_accuracy(truth, most_likely(model, Q)))
            if estimator is not None:
                curves.add(estimator, repetition, balanced_accuracy(truth, model.predict(Q)))
        if choice not in exact:
            alone = exact_rule(kernel, scale(dataset.X[split.public]), labels[split.public], Q)
            exact[choice] = (
                balanced_accuracy(truth, exact_rule(kernel, X, y, Q)),
                balanced_accuracy(truth, alone),
            )
        curves.add(EXACT, repetition, exact[choice][0])
        curves.add(PUBLIC, repetition, exact[choice][1])
        curves.choose(repetition, str(choice))


def _baseline(dataset: Dataset, split: Split, settings: Settings) -> tuple[Floats, Floats]:
    """Balanced accuracies (regularisation, ε), with the threshold at 0 and with the best one of the test
    set.
    """
    box = unit_box(dataset.X[split.public], _TAIL)
    X = into_ball(box(dataset.X[split.private]).astype(np.float64))
    tested = split.test[:_MOST_TESTED]
    Q, truth = into_ball(box(dataset.X[tested]).astype(np.float64)), dataset.labels[tested]
    signs = np.where(dataset.labels[split.private] == 1, 1.0, -1.0)
    plain = np.empty((len(WIDE_GRID), len(settings.epsilons)))
    tuned = np.empty_like(plain)
    for i, regularisation in enumerate(WIDE_GRID):
        for j, epsilon in enumerate(settings.epsilons):
            margins = Q @ fit_logistic(X, signs, epsilon=epsilon, ridge=regularisation * len(X))
            plain[i, j] = balanced_accuracy(truth, (margins > 0.0).astype(np.int64))
            tuned[i, j] = best_threshold(truth, margins)
    return plain, tuned


def into_ball(box: Floats) -> Floats:
    """Points of [0, 1]^d, centred and with a constant column, inside the unit ball as the proof needs."""
    centred = np.hstack([2.0 * box - 1.0, np.ones((len(box), 1))])
    return np.asarray(centred / np.sqrt(centred.shape[1]), np.float64)


def best_threshold(truth: NDArray[np.int64], margins: Floats) -> float:
    """The balanced accuracy of two classes at the threshold that suits the test set best."""
    order = np.argsort(-margins)
    positive = truth[order] == 1
    found = np.cumsum(positive) / max(np.count_nonzero(positive), 1)
    wrong = np.cumsum(~positive) / max(np.count_nonzero(~positive), 1)
    return float(max(0.5, np.max(0.5 * (found + 1.0 - wrong))))
