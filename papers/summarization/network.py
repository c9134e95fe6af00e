"""The paper's classifier: one hidden layer of 32 rectified units with dropout 0.2, by Adam, in NumPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

HIDDEN, DROPOUT, EPOCHS, BATCH, RATE = 32, 0.2, 20, 50, 1e-3


def accuracy(points: Floats, labels: Labels, test: Floats, test_labels: Labels, *, seed: int) -> float:
    """The share of test points that a network trained on the points gets right."""
    rng = np.random.default_rng(seed)
    classes, targets = np.unique(labels, return_inverse=True)
    weights = [
        rng.normal(0.0, np.sqrt(2.0 / points.shape[1]), (points.shape[1], HIDDEN)),
        np.zeros(HIDDEN),
        rng.normal(0.0, np.sqrt(1.0 / HIDDEN), (HIDDEN, len(classes))),
        np.zeros(len(classes)),
    ]
    first = [np.zeros_like(each) for each in weights]
    second = [np.zeros_like(each) for each in weights]
    step = 0
    for _ in range(EPOCHS):
        order = rng.permutation(len(points))
        for start in range(0, len(order), BATCH):
            part = order[start : start + BATCH]
            step += 1
            gradients = _gradients(weights, points[part], targets[part], rng)
            for i, gradient in enumerate(gradients):
                first[i] = 0.9 * first[i] + 0.1 * gradient
                second[i] = 0.999 * second[i] + 0.001 * gradient**2
                scaled = first[i] / (1 - 0.9**step) / (np.sqrt(second[i] / (1 - 0.999**step)) + 1e-8)
                weights[i] = weights[i] - RATE * scaled
    hidden = np.maximum(test @ weights[0] + weights[1], 0.0)
    said = classes[np.argmax(hidden @ weights[2] + weights[3], axis=1)]
    return float((said == test_labels).mean())


def _gradients(
    weights: list[Floats], points: Floats, targets: Labels, rng: np.random.Generator
) -> list[Floats]:
    hidden = np.maximum(points @ weights[0] + weights[1], 0.0)
    kept = (rng.random(hidden.shape) >= DROPOUT) / (1.0 - DROPOUT)
    dropped = hidden * kept
    scores = dropped @ weights[2] + weights[3]
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    shares[np.arange(len(targets)), targets] -= 1.0
    shares /= len(targets)
    back = (shares @ weights[2].T) * kept * (hidden > 0.0)
    return [points.T @ back, back.sum(axis=0), dropped.T @ shares, shares.sum(axis=0)]
