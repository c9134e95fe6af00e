"""The classifier by its defaults on data nobody tuned for, beside peers whose parameters an oracle chose.

    HUSHSUM_DATA=... python -m benchmarks classifier_peers [--seeds 2] [--sets htru2,adult]

Bounds are powers of ten around the columns' values, domain limits, or (0, 1) for indicators; nothing else is
declared, but the length of embeddings. A peer gets the same claim, (ε, 10⁻⁶) or pure ε, the same bounds, and
the best of its settings on the test set: noisy class means by three radii, ridge regression on the classes by
perturbed sums of products (as in AdaSSP) by two ridges and two units of columns, DP-SGD for logistic
regression by three learning rates and two units, with the noise multiplier of dp_accounting 0.6.0. All are
written here in NumPy.

The constants of the classifier were chosen on the sets of `TUNED_ON`. After a first run on those of `SCORED`
its steps under pure ε and the radius in few columns were corrected; `FRESH` were scored after that. Then
class means in many columns under pure ε were added, after both had been seen: no set here is untouched
in such cells.
"""

from __future__ import annotations

import argparse
import os
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.writer import Results

RESULTS = Results("classifier_peers")
EPSILONS = (0.1, 0.3, 1.0)
DELTA = 1e-6
TUNED_ON = (
    "adult", "htru2", "gas_drift", "mammography", "shuttle", "sst2", "long tails 1", "indicators 1",
    "heavy tails 1", "wine-like",
)  # fmt: skip
SCORED = (
    "covtype", "covtype, 2 classes", "occupancy", "annthyroid", "cod_rna", "skin", "agnews", "kdd_http",
    "long tails 2", "indicators 2", "heavy tails 2",
)  # fmt: skip
FRESH = ("protein > 70 %", "earnings > 70 %", "naval > 70 %", "kdd_smtp", "mnist, even")
_FILES = {
    "gas_drift": "gas_drift_8batches", "covtype, 2 classes": "covtype", "skin": "skin_segmentation",
    "sst2": "sst2_minilm", "agnews": "agnews_minilm", "protein > 70 %": "protein_casp",
    "earnings > 70 %": "cps_earnings_2004", "naval > 70 %": "naval_propulsion", "mnist, even": "mnist",
}  # fmt: skip
_DECLARED: dict[str, list[tuple[float, float]]] = {
    "covtype": [
        (0, 10_000), (0, 360), (0, 90), (0, 10_000), (-1000, 1000), (0, 10_000), *[(0, 255)] * 3, (0, 10_000),
        *[(0, 1)] * 44,
    ],
    "skin": [(0, 255)] * 3,
    "mnist, even": [(0, 255)] * 784,
}  # fmt: skip
_EMBEDDED = ("sst2", "agnews")
_LEFT_OUT = {"target", "split", "batch", "concentration", "native_country", "date"}
Table = tuple[Any, Any, list[tuple[float, float]]]


def powers_of_ten(X: Any) -> list[tuple[float, float]]:
    """Bounds as an owner may declare them who knows the order of magnitude of each column."""
    found = []
    for column in X.T:
        top = 10.0 ** np.ceil(np.log10(max(np.abs(column).max(), 1e-6)))
        found.append(
            (0.0, 1.0) if np.isin(column, (0, 1)).all() else (0.0 if column.min() >= 0 else -top, top)
        )
    return found


def long_tails(seed: int, share: float, shift: float, sigma: float) -> Table:
    """54 columns that are zero for most records, else lognormal, and three lognormal ones; as in mail."""
    rng, number = np.random.default_rng(seed), 4600
    y = (rng.random(number) < share).astype(int)
    base, apart, middle = rng.uniform(0.03, 0.45, 54), rng.normal(0, shift, 54), rng.normal(-1, 0.8, 54)
    topics = rng.normal(size=(number, 4)) @ rng.normal(0, 0.8, (4, 54))
    logits = np.log(base / (1 - base)) + (y[:, None] - 0.5) * apart + topics
    there = rng.random((number, 54)) < 1 / (1 + np.exp(-logits))
    words = np.exp(middle + 0.4 * (y[:, None] - 0.5) * apart + sigma * rng.normal(size=(number, 54)))
    runs = rng.normal(size=(number, 1)) * [0.7, 1.0, 1.2] + rng.normal(size=(number, 3)) * [0.5, 0.8, 1.0]
    X = np.column_stack((there * words, np.exp([1, 2, 4] + y[:, None] * [0.5, 0.9, 1.0] + runs)))
    box = [(0.0, 100.0)] * 54 + [(0.0, 1e4), (0.0, 1e5), (0.0, 1e5)]
    return np.clip(X, 0, np.array(box)[:, 1]), y, box


def indicators(seed: int, number: int, share: float, groups: tuple[int, ...], even: float) -> Table:
    """Four columns of numbers, and groups of indicators of which one is 1."""
    rng = np.random.default_rng(seed)
    y = (rng.random(number) < share).astype(int)
    draws = rng.normal(size=(3, number))
    columns = [40 + 6 * y + 12 * draws[0], np.exp(5 + 1.1 * y + 1.1 * draws[1])]
    columns += [np.exp(4.5 + 1.6 * y + 0.9 * draws[2]), rng.poisson(2, number) + 1.0]
    for size in groups:
        base = rng.dirichlet(np.full(size, even))
        tilted = base * np.exp(0.5 * rng.normal(size=size))
        chosen = np.where(
            y == 1, rng.choice(size, number, p=tilted / tilted.sum()), rng.choice(size, number, p=base)
        )
        columns += list(np.eye(size)[chosen].T)
    box = [(0.0, 120.0), (0.0, 1e5), (0.0, 1e4), (0.0, 100.0)] + [(0.0, 1.0)] * sum(groups)
    low, high = np.array(box).T
    return np.clip(np.column_stack(columns), low, high), y, box


def heavy_tails(seed: int, number: int, share: float, freedom: float, shift: float, wide: float) -> Table:
    """Eleven columns of Student's t, some of them as exponentials, on scales of their own."""
    rng = np.random.default_rng(seed)
    y = (rng.random(number) < share).astype(int)
    mixed = rng.normal(size=(11, 11)) * 0.35 + np.eye(11)
    Z = rng.standard_t(freedom, (number, 11)) @ mixed.T + y[:, None] * rng.normal(0, shift, 11)
    scale, middle = np.exp(rng.normal(0, 1.5, 11)), np.abs(rng.normal(0, 3, 11))
    positive = rng.random(11) < 0.5
    X = np.where(positive, np.exp(np.clip(Z * 0.5, -8, 8)), Z + middle) * scale
    tops = wide * 10.0 ** np.ceil(np.log10(scale * 5))
    box = [(0.0 if above else -top, top) for above, top in zip(positive, tops.tolist(), strict=True)]
    low, high = np.array(box).T
    return np.clip(X, low, high), y, box


def wine_like(seed: int) -> Table:
    """Eleven columns with the means and spreads of red and white wines."""
    rng, number = np.random.default_rng(seed), 6497
    y = (rng.random(number) < 0.25).astype(int)
    middle = [1.917, -1.309, 0.33, 1.386, -3.147, 3.497, 4.905, 0.994, 3.19, -0.734, 10.5]
    apart = [0.2, 0.65, -0.06, -0.5, 0.6, -0.8, -1.15, 0.0027, 0.12, 0.3, 0.0]
    spread = [0.13, 0.33, 0.15, 0.6, 0.35, 0.5, 0.35, 0.0025, 0.15, 0.22, 1.1]
    X = middle + y[:, None] * apart + rng.normal(size=(number, 11)) * spread
    logarithms = [0, 1, 3, 4, 5, 6, 9]
    X[:, logarithms] = np.exp(X[:, logarithms])
    tops = [20, 10, 10, 100, 1, 1000, 1000, 2, 14, 10, 20]
    return np.clip(X, 0, tops), y, [(0.0, float(top)) for top in tops]


GENERATED: dict[str, Any] = {
    "long tails 1": lambda: long_tails(1, 0.39, 1.1, 1.0),
    "long tails 2": lambda: long_tails(22, 0.4, 0.9, 1.4),
    "indicators 1": lambda: indicators(1, 20_000, 0.11, (12, 4, 3, 3), 0.5),
    "indicators 2": lambda: indicators(5, 8000, 0.15, (8, 6, 4, 2, 2), 1.0),
    "heavy tails 1": lambda: heavy_tails(1, 6500, 0.25, 3.0, 0.8, 10),
    "heavy tails 2": lambda: heavy_tails(7, 15_000, 0.35, 2.0, 0.6, 100),
    "wine-like": lambda: wine_like(1),
}


def _read(name: str) -> Table:
    import pandas as pd

    frame = pd.read_parquet(Path(os.environ["HUSHSUM_DATA"]) / f"{_FILES.get(name, name)}.parquet")
    target = frame["target"].to_numpy()
    if name == "covtype, 2 classes":
        target = target == 2
    elif name == "mnist, even":
        target = target % 2
    elif name in FRESH and name != "kdd_smtp":
        target = target > np.quantile(target, 0.7)
    if name in _EMBEDDED:
        return np.stack(list(frame["embedding"])).astype(float), target, [(-1.0, 1.0)] * 384
    if name == "mnist, even":
        return np.stack(list(frame["pixels"])).astype(float), target, _DECLARED[name]
    kept = frame.drop(columns=[each for each in frame.columns if each in _LEFT_OUT])
    X = pd.get_dummies(kept, dtype=float).to_numpy(float)
    return X, target, _DECLARED.get(name.split(",")[0]) or powers_of_ten(X)


@cache
def split(name: str) -> tuple[Any, Any, Any, Any, list[tuple[float, float]]]:
    """Records and classes for training, at most 40,000, and for the test, at most 15,000, and the bounds."""
    X, target, box = GENERATED[name]() if name in GENERATED else _read(name)
    y = np.unique(target, return_inverse=True)[1]
    order = np.random.default_rng(5).permutation(len(y))
    tested = min(int(0.3 * len(y)), 15_000)
    test, train = order[:tested], order[tested : tested + (40_000 if len(y) > 50_000 else 34_000)]
    return X[train], y[train], X[test], y[test], box


def scores(P: Any, y: Any) -> list[float]:
    """Accuracy, balanced accuracy, log loss."""
    found = P.argmax(axis=1)
    each = [(found[y == c]).__eq__(c).mean() for c in range(P.shape[1]) if (y == c).any()]
    loss = -np.log(np.maximum(P[np.arange(len(y)), y], 1e-6)).mean()
    return [float((found == y).mean()), float(np.mean(each)), float(loss)]


def own(name: str, epsilon: float, delta: float | None, seed: int) -> dict[str, list[float]]:
    """The classifier by its defaults, and with all classes taken as equally frequent."""
    import hushsum as hs

    X, y, Q, truth, box = split(name)
    classes = list(range(int(y.max()) + 1))
    given: dict[str, Any] = {"radius": 1.0} if name in _EMBEDDED else {}
    model: Any = hs.PrivateClassifier(
        epsilon=epsilon, delta=delta, classes=classes, bounds=box, random_state=seed, **given
    ).fit(X, y)
    found = {"default": scores(model.predict_proba(Q), truth)}
    found["likelihood"] = scores(
        model._reading().probabilities(np.clip(Q, *np.array(box).T), "likelihood"), truth
    )
    return found


def softmax(S: Any) -> Any:
    """Of rows."""
    E = np.exp(S - S.max(axis=1, keepdims=True))
    return E / E.sum(axis=1, keepdims=True)


def in_ball(A: Any, radius: float) -> Any:
    """Rows, shortened."""
    return A * np.minimum(1, radius / np.maximum(np.linalg.norm(A, axis=1, keepdims=True), 1e-9))


class Noise:
    """Gaussian by ρ, or Laplace."""

    def __init__(self, epsilon: float, delta: float | None, seed: int) -> None:
        from hushsum.privacy.accounting import zcdp_rho

        self.pure, self.rng = delta is None, np.random.default_rng(seed)
        self.whole = epsilon if delta is None else float(zcdp_rho(epsilon, delta))

    def add(self, values: Any, part: float, l1: float, l2: float) -> tuple[Any, float]:
        """Noisy values, and the standard deviation."""
        if self.pure:
            scale = l1 / (part * self.whole)
            return values + self.rng.laplace(0, scale, values.shape), scale * 2**0.5
        sd = l2 / (2 * part * self.whole) ** 0.5
        return values + self.rng.normal(0, sd, values.shape), sd


def class_means(data: Any, noise: Noise, radius: float) -> Any:
    """Probabilities by noisy means of the classes."""
    U, y, V, classes = data
    dim = U.shape[1]
    U, V = in_ball(U, radius), in_ball(V, radius)
    sums = [[*U[y == c].sum(axis=0), (y == c).sum() * radius / 4] for c in range(classes)]
    table, _ = noise.add(np.array(sums), 1, radius * (dim**0.5 + 0.25), radius * 1.0625**0.5)
    means = table[:, :dim] / np.maximum(table[:, dim] * 4 / radius, 20)[:, None]
    return softmax(V @ means.T * 2 / radius - (means**2).sum(axis=1) / radius)


def perturbed_squares(data: Any, noise: Noise, ridge: float) -> Any:
    """Ridge regression on the classes, from noisy sums of products."""
    U, y, V, classes = data
    U, V = np.c_[U, np.ones(len(U))], np.c_[V, np.ones(len(V))]
    dim = U.shape[1]
    radius = dim**0.5 * 0.6
    U, V = in_ball(U, radius) / radius, in_ball(V, radius) / radius
    upper = np.triu_indices(dim)
    triangle, _ = noise.add((U.T @ U)[upper], 0.5, (dim + 1) / 2, 1)
    gram = np.zeros((dim, dim))
    gram[upper] = triangle
    gram += np.triu(gram, 1).T
    cross, sd = noise.add(U.T @ np.eye(classes)[y], 0.5, dim**0.5, 1)
    least = float(np.linalg.eigvalsh(gram)[0])
    weights = np.linalg.solve(
        gram + (max(0.0, ridge * sd * dim**0.5 - min(least, 0.0)) + 1e-9) * np.eye(dim), cross
    )
    P = np.clip(V @ weights, 1e-3, 1)
    return P / P.sum(axis=1, keepdims=True)


@cache
def multiplier(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """Of Poisson-sampled Gaussian noise, by Rényi accounting."""
    import dp_accounting as da
    from dp_accounting.rdp import RdpAccountant

    def event(sigma: float) -> Any:
        return da.SelfComposedDpEvent(da.PoissonSampledDpEvent(rate, da.GaussianDpEvent(sigma)), steps)

    return float(
        da.calibrate_dp_mechanism(RdpAccountant, event, epsilon, delta, da.LowerEndpointAndGuess(0.3, 5))
    )


def dp_sgd(data: Any, epsilon: float, seed: int, rate: float, epochs: int) -> Any:
    """Logistic regression by DP-SGD with clipping at 1; the second half of the steps is averaged."""
    U, y, V, classes = data
    U, V = np.c_[U, np.ones(len(U))], np.c_[V, np.ones(len(V))]
    sampled = min(1.0, max(256, len(U) / 20) / len(U))
    steps, rng = int(epochs / sampled), np.random.default_rng(seed)
    sigma = multiplier(epsilon, DELTA, round(sampled, 4), steps)
    weights = mean = np.zeros((U.shape[1], classes))
    for step in range(steps):
        chosen = np.flatnonzero(rng.random(len(U)) < sampled)
        G = softmax(U[chosen] @ weights)
        G[np.arange(len(chosen)), y[chosen]] -= 1
        lengths = np.linalg.norm(G, axis=1) * np.linalg.norm(U[chosen], axis=1)
        G *= np.minimum(1, 1 / np.maximum(lengths, 1e-9))[:, None]
        weights = weights - rate * (U[chosen].T @ G + rng.normal(0, sigma, weights.shape)) / (
            sampled * len(U)
        )
        if step >= steps / 2:
            mean = mean + weights / (steps - steps // 2)
    return softmax(V @ mean)


def peers(name: str, epsilon: float, delta: float | None, seed: int) -> dict[str, list[float]]:
    """The best of the settings of each, score by score."""
    X, y, Q, truth, box = split(name)
    low, high = np.array(box).T
    classes = int(y.max()) + 1
    U, V = (2 * (np.clip(rows, low, high) - low) / (high - low) - 1 for rows in (X, Q))
    units = [(U, y, V, classes), ((U + 1) / 2, y, (V + 1) / 2, classes)]
    dim = X.shape[1]

    def noise() -> Noise:
        return Noise(epsilon, delta, seed)

    runs = {
        "noisy means": [class_means(units[0], noise(), r) for r in (dim**0.5, dim**0.5 / 2, 1.0)],
        "perturbed squares": [perturbed_squares(each, noise(), r) for r in (0.3, 2) for each in units],
    }
    if delta is not None:
        settings = [(0.5, 5), (4, 10), (20, 10)]
        runs["DP-SGD"] = [dp_sgd(each, epsilon, seed, *given) for given in settings for each in units]
    found = {}
    for method, answers in runs.items():
        accuracy, balanced, loss = np.array([scores(each, truth) for each in answers]).T
        found[method] = [float(accuracy.max()), float(balanced.max()), float(loss.min())]
    return found


def not_private(name: str) -> dict[str, list[float]]:
    """Logistic regression on standardised columns, of 8,000 records; and the largest class."""
    from sklearn.linear_model import LogisticRegression

    X, y, Q, truth, _ = split(name)
    middle, spread = X.mean(axis=0), X.std(axis=0) + 1e-12
    model = LogisticRegression(max_iter=300).fit(((X - middle) / spread)[:8000], y[:8000])
    P = np.zeros((len(truth), int(y.max()) + 1))
    P[:, model.classes_] = model.predict_proba((Q - middle) / spread)
    share = float(np.bincount(truth).max() / len(truth))
    return {
        "logistic regression, not private": scores(P, truth),
        "largest class": [share, 1 / P.shape[1], 0.0],
    }


def main() -> None:
    """Measure what is missing, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--sets", default=",".join((*TUNED_ON, *SCORED, *FRESH)).replace(", ", "; "))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    known: dict[str, Any] = RESULTS.read({})
    for name in (each.replace("; ", ", ") for each in options.sets.split(",")):
        known.setdefault(f"{name}, without noise", not_private(name))
        for delta in (DELTA, None):
            for epsilon in EPSILONS:
                key = f"{name}, {epsilon:g}, {'pure' if delta is None else 'delta'}"
                if key in known:
                    continue
                runs = [own(name, epsilon, delta, seed) for seed in range(options.seeds)]
                found = {each: np.mean([run[each] for run in runs], axis=0).tolist() for each in runs[0]}
                known[key] = found | peers(name, epsilon, delta, 0)
                RESULTS.write(known)
    RESULTS.publish(report(known))


_METHODS = ("noisy means", "perturbed squares", "DP-SGD")


def report(known: dict[str, Any]) -> str:
    """Accuracy / balanced accuracy, and where the classifier is more than .02 behind the best peer."""
    lines = [
        "# The classifier by its defaults, beside peers with oracle parameters",
        "",
        "`python -m benchmarks classifier_peers`: accuracy / balanced accuracy; δ = 10⁻⁶ or pure ε. "
        "`default` is `PrivateClassifier` with declared wide bounds and classes alone; `likelihood` its "
        "balanced accuracy with that rule. A peer shows the best of its settings for each score, chosen on "
        "the test set. `behind`: A, more than 0.02 below the best peer, or the largest class, in accuracy; "
        "B, in balanced accuracy, by the rule `likelihood`. One release for each cell; dp_accounting 0.6.0, "
        "scikit-learn 1.9.1.",
    ]
    for title, names in (("Tuned on", TUNED_ON), ("Scored", SCORED), ("Scored later", FRESH)):
        rows, missed, cells = [], [0, 0], 0
        for name in names:
            for epsilon in EPSILONS:
                for kind in ("delta", "pure"):
                    found = known.get(f"{name}, {epsilon:g}, {kind}")
                    if found is None:
                        continue
                    exact = known[f"{name}, without noise"]
                    others = [found[each] for each in _METHODS if each in found]
                    largest = exact["largest class"][0]
                    accuracy = max([largest, *(each[0] for each in others)]) - found["default"][0] > 0.02
                    balanced = max(each[1] for each in others) - found["likelihood"][1] > 0.02
                    missed, cells = [missed[0] + accuracy, missed[1] + balanced], cells + 1
                    shown = [_pair(found.get(each)) for each in _METHODS]
                    shown += [_pair(exact["logistic regression, not private"]), f"{largest:.3f}"]
                    behind = "A" * accuracy + "B" * balanced or "–"
                    own = f"{_pair(found['default'])} | {found['likelihood'][1]:.3f}"
                    promise = "δ" if kind == "delta" else "pure"
                    rows.append(
                        f"| {name} | {epsilon:g} | {promise} | {own} | {' | '.join(shown)} | {behind} |"
                    )
        if not rows:
            continue
        behind = f"behind in accuracy in {missed[0]}, in balanced accuracy in {missed[1]} of {cells} cells"
        lines += ["", f"## {title}: {behind}"]
        lines += ["", "| data | ε | | default | likelihood | " + " | ".join(_METHODS)]
        lines[-1] += " | logistic regression, not private | largest class | behind |"
        lines += ["|---" * 11 + "|", *rows]
    return "\n".join(lines) + "\n"


def _pair(found: Any) -> str:
    return "–" if found is None else f"{found[0]:.3f} / {found[1]:.3f}"


if __name__ == "__main__":
    main()
