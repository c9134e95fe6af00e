"""Figure 5 in the paper's own form: the sketch's surrogate loss, minimised without derivatives.

R = 1000 rows of W = 16 cells. The journal form queries the sketch with both signs of (θ, −1); the preprint's
inserts both signs of every record instead and queries once, which doubles the sensitivity. PrivBayes stands
beside: synthetic records from a private Bayesian network, and least squares on them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from papers.private_race.classification import best_on_test
from papers.private_race.curves import Curves, Settings, Subject
from papers.private_race.data import Dataset, Floats, split_records
from papers.private_race.regression import Geometry, PublicFacts, least_squares, relative_error

import hushsum as hs
from hushsum.baselines import privbayes
from hushsum.errors import SuspiciousParameter
from hushsum.methods import BITS, regression_loss, regression_records, surrogate_tally
from hushsum.releases import ReleasedFunction

BOTH_QUERIES: Final = "derivative-free, both signs queried"
BOTH_INSERTED: Final = "derivative-free, both signs inserted"
EXACT: Final = "derivative-free, exact loss, not private"
PRIVBAYES: Final = "PrivBayes, least squares"
LEAST_SQUARES: Final = "least squares, not private"

ROWS: Final = 1000
_GEOMETRY = Geometry(3.0, 0.95)
_ITERATIONS, _AROUND = 100, 32
_SEARCHES: Final = ((0.2, 0.3), (0.5, 0.1), (0.5, 0.3), (1.0, 0.1))
"""Radius of the points around θ, and first step: the best on the test set counts."""

_EXACT_ON = 2000
_BINS: Final = (4, 8)
_BAYES_REPETITIONS = 3
_MOST_COLUMNS: Final = 32
"""Beyond, PrivBayes takes too long here, as it took hours in the paper."""


def run_paper_regression(datasets: Sequence[Dataset], settings: Settings) -> Subject:
    """Relative squared error of every method, for each ε and repetition."""
    return Subject(
        name="regression_paper",
        metric="squared error, relative to that of the public mean",
        settings=settings,
        curves={each.name: regress(each, settings) for each in datasets},
    )


@dataclass(frozen=True, slots=True)
class Task:
    """One repetition: what is public, the sketch's records, and what is tested."""

    facts: PublicFacts
    columns: Floats
    target: Floats
    records: Floats
    tested: Floats
    truth: Floats
    repetition: int

    @classmethod
    def of(cls, dataset: Dataset, repetition: int) -> Task:
        """Columns and target in [−1, 1] by public bounds; the private records in the unit ball."""
        split = split_records(len(dataset.y), repetition)
        facts = PublicFacts.of(dataset.X[split.public], dataset.y[split.public], _GEOMETRY)
        U = facts.columns(dataset.X)
        low, high = facts.target
        v = np.clip(2.0 * (dataset.y - low) / (high - low) - 1.0, -1.0, 1.0)
        records = in_unit_ball(U[split.private], v[split.private], facts.radius)
        private = U[split.private], v[split.private]
        return cls(facts, *private, records, U[split.test], dataset.y[split.test], repetition)

    def score(self, theta: Floats) -> float:
        """The relative squared error of v ≈ θ·(1, u) on the test set."""
        low, high = self.facts.target
        answer = np.column_stack([np.ones(len(self.tested)), self.tested]) @ theta
        predicted = low + (np.clip(answer, -1.0, 1.0) + 1.0) * (high - low) / 2.0
        return relative_error(predicted, self.truth, self.facts.mean)


def regress(dataset: Dataset, settings: Settings) -> Curves:
    """All repetitions on one data set; every method has the settings of its best mean on the test set."""
    curves = Curves(len(dataset.y), dataset.X.shape[1])
    scores: dict[str, list[Floats]] = {}
    for repetition in range(settings.repetitions):
        task = Task.of(dataset, repetition)
        for name in (BOTH_QUERIES, BOTH_INSERTED):
            scores.setdefault(name, []).append(_sketched(task, name, settings.epsilons))
        for name, found in ((EXACT, _unhashed(task)), (LEAST_SQUARES, _plain(task))):
            same = np.repeat(np.array(found)[:, None], len(settings.epsilons), axis=1)
            scores.setdefault(name, []).append(same)
        if dataset.X.shape[1] <= _MOST_COLUMNS and repetition < _BAYES_REPETITIONS:
            scores.setdefault(PRIVBAYES, []).append(_synthetic(task, settings))
        settings.say(f"regression_paper {dataset.name}: repetition {repetition + 1}")
    for name, found_scores in scores.items():
        # Less is better here.
        curves.values[name] = (-best_on_test(-np.array(found_scores))).tolist()
    return curves


def _sketched(task: Task, name: str, epsilons: Sequence[float]) -> Floats:
    """Scores of shape (search, ε)."""
    tally = surrogate_tally(task.records.shape[1], rows=ROWS, seed=task.repetition).add(task.records)
    if name == BOTH_INSERTED:
        tally.add(-task.records)
    found = np.empty((len(_SEARCHES), len(epsilons)))
    for j, epsilon in enumerate(epsilons):
        loss = surrogate(name, tally, epsilon, task.facts.radius)
        for i, search in enumerate(_SEARCHES):
            theta = minimised(loss, task.columns.shape[1] + 1, search, seed=task.repetition)
            found[i, j] = task.score(theta)
    return found


def _unhashed(task: Task) -> list[float]:
    some = task.records[:_EXACT_ON]
    columns = task.columns.shape[1] + 1
    return [
        task.score(minimised(partial(exact_loss, some), columns, search, seed=task.repetition))
        for search in _SEARCHES
    ]


def _plain(task: Task) -> list[float]:
    low, high = task.facts.target
    y = low + (task.target + 1.0) * (high - low) / 2.0
    predicted = least_squares(task.columns, y, task.tested, task.facts.target)
    return [relative_error(predicted, task.truth, task.facts.mean)]


def _synthetic(task: Task, settings: Settings) -> Floats:
    """Scores of shape (bins, ε) of least squares on PrivBayes' points."""
    joint = np.column_stack([task.columns, task.target])
    kernel = hs.GaussianKernel(dim=joint.shape[1], bandwidth=0.2)
    low, high = task.facts.target
    found = np.empty((1 if settings.quick else len(_BINS), len(settings.epsilons)))
    for i, bins in enumerate(_BINS[: len(found)]):
        for j, epsilon in enumerate(settings.epsilons):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SuspiciousParameter)
                f = privbayes(
                    joint, kernel, bounds=(-1.0, 1.0), epsilon=epsilon, bins=bins, size=5000,
                    seed=task.repetition,
                )  # fmt: skip
            points = np.asarray(f.points, np.float64)
            y = low + (points[:, -1] + 1.0) * (high - low) / 2.0
            predicted = least_squares(points[:, :-1], y, task.tested, task.facts.target)
            found[i, j] = relative_error(predicted, task.truth, task.facts.mean)
    return found


def in_unit_ball(U: Floats, v: Floats, radius: float) -> Floats:
    """The sketch's records of columns and target in [−1, 1], shortened to the public radius.

    A record (1, u, v) whose (1, u) is longer is multiplied by what shortens it, which leaves θ as it is.
    ``radius`` is also the length that `regression_loss` takes.
    """
    features = np.column_stack([np.ones(len(U)), U])
    shorter = np.minimum(1.0, radius / np.sqrt((features**2).sum(axis=1)))
    return regression_records(features * (shorter / radius)[:, None], v * shorter, radius)


def surrogate(name: str, tally: hs.Tally, epsilon: float, length: float) -> Callable[[Floats], Floats]:
    """The released loss of models v ≈ θ·(1, u), shape (n_models,).

    Privacy
    -------
    With both signs inserted one record is two insertions, so the tally is released at ε/2.
    """
    if name == BOTH_QUERIES:
        sketch = tally.release(epsilon=epsilon, rows=ROWS)
        return lambda thetas: regression_loss(sketch, thetas * length, length)
    doubled = tally.release(epsilon=epsilon / 2.0, rows=ROWS)
    return lambda thetas: one_sided_loss(doubled, thetas)


def one_sided_loss(sketch: ReleasedFunction, thetas: Floats) -> Floats:
    """The same loss from a sketch that holds ±z: twice its mean over both signs at one query."""
    queries = np.column_stack((thetas, -np.ones(len(thetas))))
    loss: Floats = 2.0 * sketch(queries)
    return loss


def exact_loss(records: Floats, thetas: Floats) -> Floats:
    """The surrogate loss itself, from the records: no hashing, no noise, no privacy."""
    queries = np.column_stack((thetas, -np.ones(len(thetas))))
    queries /= np.linalg.norm(queries, axis=1)[:, None]
    angles = np.arccos(np.clip(records @ queries.T, -1.0, 1.0)) / math.pi
    loss: Floats = ((1.0 - angles) ** BITS + angles**BITS).mean(axis=0)
    return loss


def minimised(
    loss: Callable[[Floats], Floats], columns: int, search: tuple[float, float], *, seed: int
) -> Floats:
    """θ of a low loss: the gradient is approximated from random points around θ, as the paper describes.

    From θ = 0, with differences at opposite points, steps of a length that falls, and the mean of the last
    half of the iterates. ``search`` is the radius of the points and the length of the first step.
    """
    rng = np.random.default_rng(seed)
    radius, length = search
    theta, kept = np.zeros(columns), []
    for turn in range(_ITERATIONS):
        steps = rng.normal(size=(_AROUND, columns)) * (radius / math.sqrt(columns))
        values = loss(np.concatenate((theta + steps, theta - steps)))
        away = values[:_AROUND] - values[_AROUND:]
        gradient = away @ steps
        size = float(np.linalg.norm(gradient))
        if size > 0.0:
            theta = theta - gradient / size * (length / math.sqrt(1.0 + turn))
        if turn >= _ITERATIONS // 2:
            kept.append(theta)
    mean: Floats = np.mean(kept, axis=0)
    return mean
