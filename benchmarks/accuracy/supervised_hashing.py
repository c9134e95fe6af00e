"""What hash rows gain where their directions are learned with public labels.

    HUSHSUM_DATA=... python -m benchmarks supervised_hashing [--repetitions 5] [--again]

Two per cent of the records outside of the test part are public, with labels; the rest are private. ε = 0.3,
δ = 1e-5. Records are transformed by directions that were learned on the public rows, without labels
(principal directions and whitened ones, 2 to 32) and with them (Fisher's, neighbourhood components),
shortened to the radius of the transformation and classified by one sketch of hash rows per class with the
default bandwidth, which grows with the number of directions beyond eight. The number of directions without
labels is the best of those tried, on the test part, which favours them. Beside them: class means of
the same vectors, and logistic regression on the public rows alone, which spends nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.accuracy.embedding_accuracy import DELTA, EMBEDDINGS, Codes, Rows, Split, _embeddings, _mean
from benchmarks.writer import Results, version_of_code

import hushsum as hs

EPSILON = 0.3
_PUBLIC = 0.02
_CIFAR_TEST = 3000
_UNSUPERVISED = tuple((kind, number) for kind in ("principal", "whitened") for number in (2, 3, 8, 16, 32))
_NEIGHBOURHOOD = 4


def split_of(name: str, repetition: int) -> tuple[Split, Codes]:
    """Private, public and test rows, and the labels of the public ones."""
    rng = np.random.default_rng((2027, repetition))
    X, y, tested = _embeddings(name)
    if tested.any():
        order, test = rng.permutation(np.flatnonzero(~tested)), np.flatnonzero(tested)
    else:
        everything = rng.permutation(len(y))
        test, order = everything[:_CIFAR_TEST], everything[_CIFAR_TEST:]
    number = round(_PUBLIC * len(order))
    public, private = order[:number], order[number:]
    return Split(X[private], y[private], X[public], X[test], y[test]), y[public]


def transforms(split: Split, labels: Codes) -> dict[str, Callable[[], hs.records.Transform]]:
    """Every way to learn directions, by name."""
    public = split.public
    made: dict[str, Callable[[], hs.records.Transform]] = {
        "discriminant": lambda: hs.records.Transform.discriminant(public, labels, input_radius=1.0),
        "neighbourhood": lambda: hs.records.Transform.neighbourhood(
            public, labels, input_radius=1.0, directions=_NEIGHBOURHOOD
        ),
    }
    for kind, number in _UNSUPERVISED:
        learn = hs.records.Transform.principal if kind == "principal" else hs.records.Transform.whitening
        made[f"{kind} {number}"] = lambda learn=learn, number=number: learn(  # type: ignore[misc]
            public, input_radius=1.0, directions=number
        )
    return made


def accuracies(name: str, repetition: int) -> dict[str, float]:
    """Of every kind of directions with hash rows and with class means; of public rows alone."""
    from sklearn.linear_model import LogisticRegression

    split, labels = split_of(name, repetition)
    found: dict[str, float] = {}
    for kind, make in transforms(split, labels).items():
        transform = make()
        X, test = (_units(transform, rows) for rows in (split.X, split.test))
        for method in ("kernel", "means"):
            ball: dict[str, Any] = {} if method == "kernel" else {"radius": 1.0}
            model = hs.PrivateClassifier(
                epsilon=EPSILON,
                delta=DELTA,
                classes=list(range(int(split.y.max()) + 1)),
                method=method,
                random_state=repetition,
                **ball,
            ).fit(X, split.y)
            found[f"{method}, {kind}"] = float((model.predict(test) == split.truth).mean())
    alone: Any = LogisticRegression(C=10.0, max_iter=1000).fit(split.public, labels)
    found["public rows alone"] = float((alone.predict(split.test) == split.truth).mean())
    return found


def _units(transform: hs.records.Transform, rows: Rows) -> Rows:
    """Images in the unit ball, each from its row alone."""
    images = transform.apply(rows) / transform.radius
    return np.asarray(images / np.maximum(1.0, np.linalg.norm(images, axis=1))[:, None], np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    results = Results("supervised_hashing")
    known: dict[str, Any] = {"repetitions": {}} if options.again else results.read({"repetitions": {}})
    for repetition in range(options.repetitions):
        for name in EMBEDDINGS:
            key = f"{name}, {repetition}"
            if key in known["repetitions"]:
                continue
            found = accuracies(name, repetition)
            known["repetitions"][key] = {each: round(value, 4) for each, value in found.items()}
            known["version"] = version_of_code().as_json()
            results.write(known)
            print(key, known["repetitions"][key], flush=True)
    results.publish(report(known))


def report(known: dict[str, Any]) -> str:
    """The table, with the standard errors of means."""
    version = known["version"]
    lines = [
        "# Hash rows along directions learned with public labels",
        "",
        f"Version {version['number']}, sources {version['digest']}, {version['day']}. Accuracy, mean over "
        "repetitions ± its standard error; ε = 0.3, δ = 1e-5, two per cent of the records are public with "
        "labels.",
        "",
        "| data | rule | no labels (best of ten) | Fisher's directions | neighbourhood components | gain | "
        "public rows alone | repetitions |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in EMBEDDINGS:
        runs = [each for key, each in known["repetitions"].items() if key.startswith(name)]
        columns = {each: [run[each] for run in runs] for each in runs[0]}
        for method, said in (("kernel", "hash rows"), ("means", "class means")):
            plain = max(
                (f"{method}, {kind} {number}" for kind, number in _UNSUPERVISED),
                key=lambda each: float(np.mean(columns[each])),
            )
            learned = [columns[f"{method}, {each}"] for each in ("discriminant", "neighbourhood")]
            gain = 100.0 * (max(float(np.mean(each)) for each in learned) - float(np.mean(columns[plain])))
            numbers = [
                f"{_mean(columns[plain])} ({plain.split(', ')[1]})",
                *map(_mean, learned),
                f"{gain:+.1f}",
                _mean(columns["public rows alone"]),
                str(len(runs)),
            ]
            lines.append(f"| {name} | {said} | {' | '.join(numbers)} |")
    return "\n".join([*lines, "", __doc__.split("\n\n")[2].replace("\n", " ").strip()]) + "\n"


if __name__ == "__main__":
    main()
