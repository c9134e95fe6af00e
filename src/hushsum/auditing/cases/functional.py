"""Functions made private in a finite space: a histogram, a posterior mean, support vector machines."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from hushsum._types import Floats
from hushsum.auditing.gaussian_smoke_test import (
    Chances,
    Separated,
    allowed_distance,
    lattice_chances,
    normal_chances,
)
from hushsum.auditing.registry import MechanismCase, register_mechanism
from hushsum.bases.bins import Bins
from hushsum.kernels.gaussian import GaussianKernel
from hushsum.methods.feature_functions import (
    GAP_SHARE,
    TARGET_BITS,
    fit_machines,
    perturbed_machines,
    perturbed_posterior,
    smoother,
)
from hushsum.privacy.claim import Promise, Relation
from hushsum.records.bounds import Bounds
from hushsum.releases.coefficients import CoefficientFunction
from hushsum.tally.tally import Tally

PROMISE = Promise.of(epsilon=8.0, delta=1e-6)
_SMALLER = Promise.of(epsilon=4.0, delta=1e-6)
"""For counts, whose lattice is as coarse as their sensitivity: at this claim two neighbours are up to 3 %
further apart than two normal laws, far within the slack of the bounds, and at a larger ε by more.
"""

_RECORDS = 24
_ONE_CLASS_MARGIN = 0.3
"""C for which no margin is reached, ‖w‖√κ ≤ Cκ < 1: every record pulls with all of C/n, and Δ is attained."""


def _histogram(relation: Relation, promise: Promise = _SMALLER) -> Separated:
    box = Bounds((0.0,), (1.0,))
    basis = Bins((4,), box)
    crowd = [[0.1]] * _RECORDS
    more = [*crowd, [0.9]] if relation is Relation.ADD_REMOVE else [*crowd[1:], [0.9]]
    tallies = [Tally(basis, GaussianKernel(dim=1, bandwidth=0.25)).add(records) for records in (crowd, more)]
    assert promise.epsilon is not None
    epsilon, delta = float(promise.epsilon), float(promise.delta)

    def release(side: int, seed: int | None) -> Floats:
        function = tallies[side].release(
            epsilon=epsilon, delta=delta, relation=relation, insecure_noise_seed=seed
        )
        assert isinstance(function, CoefficientFunction)
        return np.asarray(function.table[0], np.float64)

    exact = tuple(tally._state()["table"][0].astype(np.float64) for tally in tallies)
    planned = tallies[0].release(epsilon=epsilon, delta=delta, relation=relation)
    assert isinstance(planned, CoefficientFunction)
    # A record that is replaced moves two cells, and the difference of both by two.
    moved = 1 if relation is Relation.ADD_REMOVE else 2
    chances = lattice_chances(float(planned.noise.parameter), cells=moved, move=moved)
    return _along_difference((exact[0], exact[1]), release, promise, chances)


def _posterior(promise: Promise = PROMISE) -> Separated:
    """One target goes from one end of its range to the other, at the input that weighs most."""
    matrix = smoother(_directions(_RECORDS, 12), 0.5)
    largest = 1 << TARGET_BITS
    heaviest = int((matrix**2).sum(axis=0).argmax())
    targets = [np.zeros(_RECORDS, np.int64) for _ in range(2)]
    targets[0][heaviest], targets[1][heaviest] = -largest, largest

    def release(side: int, seed: int | None) -> Floats:
        noisy = perturbed_posterior(matrix, targets[side], promise, insecure_noise_seed=seed)
        return noisy.values.reshape(-1)

    exact = (matrix @ targets[0] / largest, matrix @ targets[1] / largest)
    return _along_difference(exact, release, promise, normal_chances(0.99 * allowed_distance(promise)))


def _machines(classes: int, promise: Promise = PROMISE) -> Separated:
    """One label goes over to another class; the last weight of each machine is its intercept."""
    rows = _directions(_RECORDS, 8)
    codes = [np.arange(_RECORDS) % classes for _ in range(2)]
    codes[1][0] = 1
    found = [fit_machines(rows, each, classes, _ONE_CLASS_MARGIN) for each in codes]

    def release(side: int, seed: int | None) -> Floats:
        return perturbed_machines(found[side], promise, insecure_noise_seed=seed).values.reshape(-1)

    exact = found[0].weights.reshape(-1), found[1].weights.reshape(-1)
    intercepts = np.zeros(found[0].weights.shape)
    intercepts[:, -1] = (found[1].weights - found[0].weights)[:, -1]
    # Of K machines a label moves two.
    reach = (1.0 if classes == 2 else (2.0 / classes) ** 0.5) / (1.0 + GAP_SHARE)
    chances = normal_chances(0.99 * reach * allowed_distance(promise))
    return _along_difference(exact, release, promise, chances, also=intercepts.reshape(1, -1))


def _directions(number: int, dim: int) -> Floats:
    """Rows of length 1."""
    rows = np.random.default_rng(5).normal(size=(number, dim))
    lengths: Floats = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return lengths


def _along_difference(
    exact: tuple[Floats, Floats],
    release: Callable[[int, int | None], Floats],
    promise: Promise,
    chances: Chances,
    *,
    also: Floats | None = None,
) -> Separated:
    """Noise is equal in all coordinates, so the difference itself is the best direction."""
    difference = (exact[1] - exact[0])[np.newaxis]
    directions = difference if also is None else np.concatenate((difference, also))
    return Separated(exact, release, directions, allowed_distance(promise), chances)


register_mechanism(
    MechanismCase("PrivateHistogram", "one record replaced", partial(_histogram, Relation.REPLACE), _SMALLER)
)
register_mechanism(
    MechanismCase(
        "PrivateHistogram", "one record", partial(_histogram, Relation.ADD_REMOVE), _SMALLER, thorough=True
    )
)
register_mechanism(MechanismCase("PrivateGaussianProcessRegressor", "one target", _posterior, PROMISE))
for classes, words in ((2, "two"), (3, "three")):
    register_mechanism(
        MechanismCase(
            "PrivateKernelSVC", f"one label of {words} classes", partial(_machines, classes), PROMISE
        )
    )
