"""How well private scores of embeddings rank candidates, and tell vectors of another kind.

    HUSHSUM_DATA=... python -m benchmarks embedding_neighbours [--repetitions 3]

δ = 1e-5, vectors of length 1. *Neighbours*: 10,000 private rows and 500 candidates of the same set; the rank
correlation (Spearman) of the private counts with the exact numbers of rows within the distance that holds
0.5 % of all pairs. *Outliers*: one class is left out of the private rows; the area under the ROC curve of the
score, test rows of the left-out class against those of the others, mean over the classes that are left out
(of SST-2, whose two classes are of one kind, sentences of AG News stand for another kind).

Beside the models with ``radius=1`` are their defaults for tables (hash rows), and a page of NumPy: the mean
of the rows with Gaussian noise (√(2 ln(1.25/δ))/ε, divided by the declared number), and its inner products.
The choice between squares and inner products was made with AG News in view; the other sets were run once.
results/embedding_neighbours.md has the tables.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from benchmarks.accuracy.embedding_accuracy import (
    DELTA,
    EMBEDDINGS,
    EPSILONS,
    Codes,
    Rows,
    _embeddings,
    _mean,
)
from benchmarks.writer import Results
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

import hushsum as hs

_PRIVATE, _TESTED = 10_000, 500
_NEAR = 0.005
_ELSEWHERE = {"sst2_minilm": "agnews_minilm"}

Score = Callable[[Rows, Rows, float, int], Any]


def _noisy_mean(private: Rows, test: Rows, epsilon: float, seed: int) -> Any:
    noise = np.random.default_rng(seed).normal(size=private.shape[1])
    scale = math.sqrt(2.0 * math.log(1.25 / DELTA)) / epsilon
    return test @ ((private.sum(axis=0) + scale * noise) / _PRIVATE)


def _near(**given: Any) -> Score:
    def score(private: Rows, test: Rows, epsilon: float, seed: int) -> Any:
        model = hs.PrivateNeighbors(epsilon=epsilon, delta=DELTA, random_state=seed, **given)
        return model.fit(private).decision_function(test)

    return score


def _like(**given: Any) -> Score:
    def score(private: Rows, test: Rows, epsilon: float, seed: int) -> Any:
        model = hs.PrivateOutlierDetector(epsilon=epsilon, delta=DELTA, random_state=seed, **given)
        return model.fit(private).score_samples(test)

    return score


NEIGHBOURS: dict[str, Score] = {
    "radius=1": _near(radius=1.0),
    "hash rows": _near(),
    "noisy mean in NumPy": _noisy_mean,
}
OUTLIERS: dict[str, Score] = {
    "radius=1": _like(radius=1.0),
    "hash rows": _like(),
    "noisy mean in NumPy": _noisy_mean,
}


def neighbours(name: str, epsilon: float, score: Score, seed: int) -> float:
    """The rank correlation of private counts with exact ones."""
    X, _, _ = _embeddings(name)
    order = np.random.default_rng((2028, seed)).permutation(len(X))
    test, private = X[order[:_TESTED]], X[order[_TESTED : _TESTED + _PRIVATE]]
    cosines = test @ private.T
    exact = (cosines >= np.quantile(cosines, 1.0 - _NEAR)).sum(axis=1)
    return float(spearmanr(score(private, test, epsilon, seed), exact).statistic)


def outliers(name: str, epsilon: float, score: Score, seed: int) -> float:
    """The area under the ROC curve, mean over what is left out."""
    areas = []
    for private, like, unlike in _left_out(name, seed):
        scores = score(private, np.concatenate((like, unlike)), epsilon, seed)
        areas.append(roc_auc_score(np.repeat([1, 0], [len(like), len(unlike)]), scores))
    return float(np.mean(areas))


def _left_out(name: str, seed: int) -> Iterator[tuple[Rows, Rows, Rows]]:
    rng = np.random.default_rng((2029, seed))
    X, y, _ = _embeddings(name)
    if name in _ELSEWHERE:
        other = _embeddings(_ELSEWHERE[name])[0]
        order = rng.permutation(len(X))
        like, private = X[order[:_TESTED]], X[order[_TESTED : _TESTED + _PRIVATE]]
        yield private, like, other[rng.permutation(len(other))[:_TESTED]]
        return
    for code in np.unique(y):
        known: Codes = rng.permutation(np.flatnonzero(y != code))
        unknown: Codes = rng.permutation(np.flatnonzero(y == code))
        private = X[known[_TESTED : _TESTED + _PRIVATE]]
        yield private, X[known[:_TESTED]], X[unknown[:_TESTED]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = ["# Neighbours and outliers among embeddings", ""]
    lines += [f"{options.repetitions} repetitions, mean ± its standard error; δ = 1e-5."]
    for title, measure, methods in (
        ("Neighbours: rank correlation with exact counts", neighbours, NEIGHBOURS),
        ("Outliers: area under the ROC curve", outliers, OUTLIERS),
    ):
        lines += ["", f"## {title}", "", f"| data | ε | {' | '.join(methods)} |", "|---" * 5 + "|"]
        for name in EMBEDDINGS:
            for epsilon in EPSILONS:
                found = [
                    _mean([measure(name, epsilon, score, seed) for seed in range(options.repetitions)])
                    for score in methods.values()
                ]
                lines.append(f"| {name} | {epsilon:g} | {' | '.join(found)} |")
                print(lines[-1], flush=True)
    Results("embedding_neighbours").publish("\n".join(lines))


if __name__ == "__main__":
    main()
