"""Functions made private in a finite space: a histogram, a posterior mean, support vector machines."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hushsum.auditing.registry import MechanismCase, register_mechanism
from hushsum.auditing.separation import Separated, allowed_distance
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
from hushsum.privacy.claim import Promise
from hushsum.privacy.relation import Relation
from hushsum.records.bounds import Bounds
from hushsum.releases.coefficients import CoefficientFunction
from hushsum.tally.tally import Tally

Floats = NDArray[np.float64]

PROMISE = Promise.of(epsilon=8.0, delta=1e-6)
_SMALLER = Promise.of(epsilon=4.0, delta=1e-6)
"""For counts, whose lattice is as coarse as their sensitivity: it shows up to 3 % more than the smooth curve
allows, far within the slack of the bounds.
"""

_RECORDS = 24
_ONE_CLASS_MARGIN = 0.3
"""C for which no margin is reached, ‖w‖√κ ≤ Cκ < 1: every record pulls with all of C/n, and Δ is attained."""


def _histogram(relation: Relation) -> Separated:
    box = Bounds((0.0,), (1.0,))
    basis = Bins((4,), box)
    crowd = [[0.1]] * _RECORDS
    more = [*crowd, [0.9]] if relation is Relation.ADD_REMOVE else [*crowd[1:], [0.9]]
    tallies = [Tally(basis, GaussianKernel(dim=1, bandwidth=0.25)).add(records) for records in (crowd, more)]
    assert _SMALLER.epsilon is not None
    epsilon, delta = float(_SMALLER.epsilon), float(_SMALLER.delta)

    def release(side: int, seed: int | None) -> Floats:
        function = tallies[side].release(
            epsilon=epsilon, delta=delta, relation=relation, insecure_noise_seed=seed
        )
        assert isinstance(function, CoefficientFunction)
        return np.asarray(function.table[0], np.float64)

    exact = tuple(tally._state()["table"][0].astype(np.float64) for tally in tallies)
    return _along_difference((exact[0], exact[1]), release, _SMALLER, reach=0.97)


def _posterior() -> Separated:
    """One target goes from one end of its range to the other, at the input that weighs most."""
    matrix = smoother(_directions(_RECORDS, 12), 0.5)
    largest = 1 << TARGET_BITS
    heaviest = int((matrix**2).sum(axis=0).argmax())
    targets = [np.zeros(_RECORDS, np.int64) for _ in range(2)]
    targets[0][heaviest], targets[1][heaviest] = -largest, largest

    def release(side: int, seed: int | None) -> Floats:
        noisy = perturbed_posterior(matrix, targets[side], PROMISE, insecure_noise_seed=seed)
        return noisy.values.reshape(-1)

    exact = (matrix @ targets[0] / largest, matrix @ targets[1] / largest)
    return _along_difference(exact, release, PROMISE, reach=0.99)


def _machines(classes: int) -> Separated:
    """One label goes over to another class; the last weight of each machine is its intercept."""
    rows = _directions(_RECORDS, 8)
    codes = [np.arange(_RECORDS) % classes for _ in range(2)]
    codes[1][0] = 1
    found = [fit_machines(rows, each, classes, _ONE_CLASS_MARGIN) for each in codes]

    def release(side: int, seed: int | None) -> Floats:
        return perturbed_machines(found[side], PROMISE, insecure_noise_seed=seed).values.reshape(-1)

    exact = found[0].weights.reshape(-1), found[1].weights.reshape(-1)
    intercepts = np.zeros(found[0].weights.shape)
    intercepts[:, -1] = (found[1].weights - found[0].weights)[:, -1]
    # Of K machines a label moves two.
    reach = (1.0 if classes == 2 else (2.0 / classes) ** 0.5) / (1.0 + GAP_SHARE)
    return _along_difference(exact, release, PROMISE, reach=0.99 * reach, also=intercepts.reshape(1, -1))


def _directions(number: int, dim: int) -> Floats:
    """Rows of length 1."""
    rows = np.random.default_rng(5).normal(size=(number, dim))
    lengths: Floats = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return lengths


def _along_difference(
    exact: tuple[Floats, Floats],
    release: Callable[[int, int | None], Floats],
    promise: Promise,
    *,
    reach: float,
    also: Floats | None = None,
) -> Separated:
    """Noise is equal in all coordinates, so the difference itself is the best direction."""
    difference = (exact[1] - exact[0])[np.newaxis]
    directions = difference if also is None else np.concatenate((difference, also))
    return Separated(exact, release, directions, allowed_distance(promise), reach)


register_mechanism(
    MechanismCase(
        "PrivateHistogram", "one record replaced", partial(_histogram, Relation.REPLACE), releases=800
    )
)
register_mechanism(
    MechanismCase(
        "PrivateHistogram",
        "one record",
        partial(_histogram, Relation.ADD_REMOVE),
        releases=800,
        thorough=True,
    )
)
register_mechanism(MechanismCase("PrivateGaussianProcessRegressor", "one target", _posterior))
register_mechanism(MechanismCase("PrivateKernelSVC", "one label of two classes", partial(_machines, 2)))
register_mechanism(
    MechanismCase("PrivateKernelSVC", "one label of three classes", partial(_machines, 3), releases=1500)
)
