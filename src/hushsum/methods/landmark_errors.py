"""What landmarks are predicted to err, from declared quantities alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushsum._types import Floats
from hushsum.methods.prediction_request import EFFECTIVE_POWER, NORMAL_MEAN_ABSOLUTE
from hushsum.methods.principal_features import best_number, prior_variance
from hushsum.methods.private_tree import full_depth
from hushsum.records.bounds import Bounds

_OF_MODEL, _AT_DEVIATION, _MODEL_POWER = 3.1, 5.6e-4, 0.16
_AT_COLUMNS, _COLUMNS_POWER = 8, 1.5
_OF_PLACES = 0.45
"""Measured errors over those of a model, in which the points are the records themselves: 3.1 in 8 columns,
where a lone feature has noise of standard deviation 5.6e-4 (Nε = 4000); more with more columns, or with less
noise, because of what the points miss; and more by the square of how many times the records would have to be
multiplied for a tree of full depth. Fitted to thyroid, cod_rna, shuttle and protein with 1,500 to 20,000
records at ε = 0.1 to 1, but for the power of the columns, which is a compromise between all eleven sets that
were tried. Measured errors are within 1.5 times the predicted ones in two of three cases; they are further
off where the density is far from typical.
"""

_MOST_FEATURES = 2000
_LEAST = 1e-8


@dataclass(frozen=True, slots=True)
class LandmarkError:
    """Mean absolute errors of the mean kernel value, and how many features they are for."""

    noise: float
    approximation: float
    features: int


def predicted_error(
    widths: Sequence[float], bounds: Bounds, *, density: float, deviation: float, penalty: float
) -> LandmarkError:
    """For normal records that vary along d^0.27 of the d columns, so much that their mean kernel value is
    ``density``.

    Parameters
    ----------
    widths : sequence of float
        The bandwidth along each column.
    deviation : float
        The standard deviation of the noise of one feature where one is measured; m features have √m times
        that.
    penalty : float
        What a box must hold for each halving before it, to be halved again: a part of the records.

    Examples
    --------
    >>> box = Bounds.of((0, 1), 8)
    >>> error = predicted_error([0.1] * 8, box, density=0.2, deviation=1e-4, penalty=1e-4)
    >>> error.features, 0.001 < math.hypot(error.noise, error.approximation) < 0.01
    (40, True)
    """
    values = typical_eigenvalues(density, bounds.dim)
    number = best_number(values, deviation, prior_variance(penalty))
    prior, variance = prior_variance() * values, number * deviation**2
    noise = float((values * prior * variance / (prior + variance))[:number].sum())
    left = float((values * prior)[number:].sum())
    missed = _OF_PLACES * (full_depth(bounds, widths) * penalty) ** 2
    scale = _OF_MODEL * math.hypot((_AT_DEVIATION / deviation) ** _MODEL_POWER, missed)
    scale *= NORMAL_MEAN_ABSOLUTE * (bounds.dim / _AT_COLUMNS) ** _COLUMNS_POWER
    # Where noise hides the records, answers are near 0, and err by the density.
    total = scale * math.sqrt(noise + left)
    scale *= -math.expm1(-total / density) * density / total
    return LandmarkError(scale * math.sqrt(noise), scale * math.sqrt(left), number)


def typical_eigenvalues(density: float, dim: int) -> Floats:
    """Of the kernel's integral operator, falling, for typical records.

    For a Gaussian kernel and normal records of variance a, in bandwidths, they are λ₀·B^k in one column
    (Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 4.3.1); in p columns the k-th power
    has λ₀^p and C(k + p − 1, k) functions, and the mean kernel value is (1 + 2a)^(−p/2). The other kernels
    are taken to be like the Gaussian one.
    """
    columns = math.pow(dim, EFFECTIVE_POWER)
    variance = max((math.pow(density, -2.0 / columns) - 1.0) / 2.0, _LEAST)
    a, b = 1.0 / (4.0 * variance), 0.5
    total = a + b + math.sqrt(a * a + 2.0 * a * b)
    ratio, first = b / total, math.sqrt(2.0 * a / total) ** columns
    values: list[float] = []
    power = 0
    while len(values) < _MOST_FEATURES and first * ratio**power > _LEAST:
        logarithm = math.lgamma(power + columns) - math.lgamma(power + 1) - math.lgamma(columns)
        values += [first * ratio**power] * max(1, round(math.exp(logarithm)))
        power += 1
    return np.array(values[:_MOST_FEATURES] or [first])
