"""The sampling error of records that nobody has seen: estimated from a released function of them.

How much a mean kernel value would differ for another sample of as many records is the covariance of k(x, q)
over the records. It is not a kernel sum of the same kernel, so it cannot be read directly. Instead, weights
on public points are found whose kernel sums agree with the released ones within their noise; the covariance
over these weighted points stands for that over the records. Where noise leaves the weights open they are
equal, and there noise is what matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from hushsum._types import Floats

_ITERATIONS: Final = 400
_MISFIT: Final = 0.01
"""Of the largest value: what weighted points may miss beside the noise."""

_PRIOR: Final = 6.0
"""The standard deviation of a weight before anything is measured, relative to that of equal weights."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordModel:
    """Weighted public points in place of the records; weights are not negative and add up to 1 at most. The
    rest is elsewhere, where no query meets it.
    """

    weights: Floats

    def covariance(self, answers: Floats, *, centred: bool = True) -> Floats:
        """Of what one record adds to the answers, whose rows are what each point adds: shape (queries,
        queries).

        Without ``centred`` the mean products, which is the covariance of a sum over a Poisson number of
        records, per record.
        """
        products = (answers.T * self.weights) @ answers
        if not centred:
            return np.asarray(products)
        means = self.weights @ answers
        return np.asarray(products - np.outer(means, means))

    def variance(self, answers: Floats, *, centred: bool = True) -> Floats:
        """The diagonal of the same."""
        squares = self.weights @ np.square(answers)
        return np.asarray(squares - np.square(self.weights @ answers) if centred else squares)


def fit_records(answers: Floats, values: Floats, noise: Floats) -> RecordModel:
    """Weights of points with which their mean kernel values are the released ones, within the noise.

    Parameters
    ----------
    answers : array of shape (points, queries)
        What a record at each point adds to the answer at each query.
    values : array of shape (queries,)
        Released mean kernel values.
    noise : array of shape (queries, queries) or (queries,)
        The covariance of their noise, or the variances alone.

    Notes
    -----
    The mode of the posterior for normal noise and independent normal weights around equal ones, among weights
    that are not negative and do not exceed 1 together: accelerated projected gradients (Beck and Teboulle
    2009).
    """
    number = len(answers)
    covariance = np.diag(noise) if noise.ndim == 1 else noise
    least = (_MISFIT * max(float(np.abs(values).max(initial=0.0)), 1e-9)) ** 2
    precise = np.linalg.solve(covariance + least * np.eye(len(values)), np.column_stack([answers.T, values]))
    prior = (number / _PRIOR) ** 2
    hessian = answers @ precise[:, :-1] + prior * np.eye(number)
    slope = answers @ precise[:, -1] + prior / number
    length = 1.0 / float(np.linalg.eigvalsh(hessian)[-1])
    weights = np.full(number, 1.0 / number)
    ahead, momentum = weights, 1.0
    for _ in range(_ITERATIONS):
        moved = _onto_simplex(ahead - length * (hessian @ ahead - slope))
        following = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        ahead = moved + (momentum - 1.0) / following * (moved - weights)
        weights, momentum = moved, following
    return RecordModel(weights)


def _onto_simplex(weights: Floats) -> Floats:
    """The nearest weights that are not negative and do not exceed 1 together.

    >>> _onto_simplex(np.array([0.25, -1.0])).tolist(), _onto_simplex(np.array([2.0, 1.0])).tolist()
    ([0.25, 0.0], [1.0, 0.0])
    """
    kept = np.maximum(weights, 0.0)
    if kept.sum() <= 1.0:
        return kept
    falling = np.sort(weights)[::-1]
    excess = (np.cumsum(falling) - 1.0) / np.arange(1, len(weights) + 1)
    return np.asarray(np.maximum(weights - excess[np.flatnonzero(falling > excess)[-1]], 0.0))
