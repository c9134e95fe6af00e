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

_OF_MODEL, _AT_DEVIATION, _MODEL_POWER = 2.7, 5.6e-4, 0.27
_OF_PLACES = 3.6
"""Measured errors over those of a model, in which the points are the records themselves: 2.7 where a lone
feature has noise of standard deviation 5.6e-4 (Nε = 4000), more where there is less noise, because of what
the points miss; and 3.6 for every time that the records would have to be multiplied for a tree of full depth.
Fitted to the tuning half of ``benchmarks/plan_validation.py`` (thyroid, cod_rna, shuttle, protein, each with
40,000 and with 4,000 records), where measured errors are 0.5 to 2 times the predicted ones, and within 1.5
times in three of five.
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
    missed = _OF_PLACES * full_depth(bounds, widths) * penalty
    scale = math.hypot(_OF_MODEL * (_AT_DEVIATION / deviation) ** _MODEL_POWER, missed)
    scale *= NORMAL_MEAN_ABSOLUTE
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
