"""Neighbours for audits of served functions; ``hushsum.auditing`` imports this.

A path is queried where one record has the largest effect; where it was queried before, so that fresh noise
would average out; far from all records, where a function is its intercept; and at two points next to each
other, whose difference would be a gradient if they had the same noise.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hushsum._types import Floats
from hushsum.auditing import MechanismCase, Separated, allowed_distance, normal_chances, register_mechanism
from hushsum.kernels import GaussianKernel
from hushsum.methods import GAP_SHARE
from hushsum.privacy import Promise

from ._secret_function import (
    SecretFunction,
    density_function,
    gaussian_process_function,
    kernel_svm_functions,
    serve,
)

PROMISE = Promise.of(epsilon=8.0, delta=1e-6)
REPEATS = 6
_KERNEL = GaussianKernel(dim=1, bandwidth=2.0)
_BOX = (-100.0, 100.0)
_FAR = np.linspace(-90.0, -34.0, 8)[:, np.newaxis]
_CLOSE = 1.0 / 64


def served_pair(
    sides: tuple[SecretFunction, SecretFunction],
    questions: Floats,
    also: Floats | None = None,
    *,
    reach: float,
    promise: Promise,
) -> Separated:
    """All answers, each query repeated `REPEATS` times and the answers averaged.

    The best direction for noise of covariance K is K⁻¹ times the difference of the functions.
    """
    assert promise.epsilon is not None
    epsilon, delta = float(promise.epsilon), float(promise.delta)

    def release(side: int, seed: int | None) -> Floats:
        function = serve(sides[side], epsilon=epsilon, delta=delta, insecure_noise_seed=seed)
        answers: Floats = np.mean([function(questions) for _ in range(REPEATS)], axis=0)
        return answers

    rows = sides[0].prepared(questions)
    exact = sides[0].scale * sides[0].at(rows), sides[1].scale * sides[1].at(rows)
    covariance = sides[0].covariance(rows, rows) + 1e-6 * np.eye(len(rows))
    best: Floats = np.asarray(np.linalg.solve(covariance, exact[1] - exact[0]), np.float64)[np.newaxis]
    directions: Floats = best if also is None else np.concatenate((best, also))
    allowed = allowed_distance(promise)
    return Separated(exact, release, directions, allowed, normal_chances(reach * allowed))


def density_pair(
    relation: str,
    change: Callable[[SecretFunction], SecretFunction] = lambda f: f,
    *,
    promise: Promise = PROMISE,
) -> Separated:
    """One record at 4, in place of one at −40 if it is replaced, among nine at −8; queried at both places."""
    crowd = [[-8.0]] * 9
    others = ([*crowd, [-40.0]], [*crowd, [4.0]]) if relation == "replace" else (crowd, [*crowd, [4.0]])
    first, second = (
        change(density_function(records, _KERNEL, bounds=_BOX, relation=relation)) for records in others
    )
    questions = np.array([[4.0], [-40.0], [6.0 - _CLOSE], [6.0 + _CLOSE]])
    gradient = np.array([[0.0, 0.0, -1.0, 1.0]])
    return served_pair((first, second), questions, gradient, reach=0.99, promise=promise)


def posterior_pair(*, promise: Promise = PROMISE) -> Separated:
    """The target of a lonely input goes from one end of its range to the other; queried at that input."""
    inputs = [[-8.0], [-6.0], [-4.0], [40.0]]
    first, second = (
        gaussian_process_function(
            inputs, [0.0, 0.5, 0.0, end], _KERNEL, bounds=_BOX, target_bounds=(-1, 1), noise=0.7
        )
        for end in (-1.0, 1.0)
    )
    return served_pair((first, second), np.array(inputs), reach=0.99, promise=promise)


def machine_pair(*, promise: Promise = PROMISE) -> Separated:
    """One label goes over to the other class; queried at its record, and far away, where the intercept is."""
    points = np.linspace(-10.0, 10.0, 24)[:, np.newaxis]
    labels = np.arange(24) % 2
    other = labels.copy()
    other[12] = 1
    # With so small a C every record pulls with all of C/n, and the sensitivity is attained.
    first, second = (
        kernel_svm_functions(points, codes, 2, _KERNEL, bounds=_BOX, C=0.3)[0] for codes in (labels, other)
    )
    questions = np.concatenate((points[12:13], _FAR))
    intercept = np.concatenate(([0.0], np.ones(len(_FAR))))[np.newaxis]
    reach = 0.99 / (1.0 + GAP_SHARE)
    return served_pair((first, second), questions, intercept, reach=reach, promise=promise)


_NAME = "ServedFunction"
for pair, make, thorough in (
    ("density, one record", lambda promise: density_pair("add/remove", promise=promise), False),
    ("density, one record replaced", lambda promise: density_pair("replace", promise=promise), True),
    ("posterior, one target", lambda promise: posterior_pair(promise=promise), True),
    ("machine, one label", lambda promise: machine_pair(promise=promise), False),
):
    register_mechanism(MechanismCase(_NAME, pair, make, PROMISE, thorough))
