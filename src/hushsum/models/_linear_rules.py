"""Linear rules from noisy sums by class: nearest class means, and discriminant analysis."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from hushsum._types import Floats
from hushsum.privacy import RECORD, IntegerNoise, Promise, Relation, calibrate, stated_mechanism
from hushsum.records import clipped_to_ball
from hushsum.releases import CoefficientFunction
from hushsum.tables import SQUARE_WEIGHT, ClassMoments

from ._accuracy import shares_within_noise

TOTAL_SHARE: Final = Fraction(1, 1000)
"""The part of the budget for the number of all records.

The table holds the numbers of the classes, which add up to that number too.
"""

COUNT_SHARE: Final = Fraction(1, 20)
MOMENT_SHARE: Final = Fraction(1, 5)
CLASS_MOMENT_SHARE: Final = Fraction(1, 2)
"""Parts of what one record may move: for the numbers of the classes, for the second moments of all records,
and for the second moments of each class. They were chosen with the three sets of the embedding benchmark in
view.
"""
TOTAL_WEIGHT: Final = math.sqrt(0.5)
PUBLIC_TOTAL_WEIGHT: Final = 0.5
"""The weight of the sum over all classes beside the weight of differences between classes, without public
rows and with public rows, from which more is known of the mean of all records. Both were chosen on the
training parts of SST-2 and on CIFAR, where all weights from 0.35 to 0.7 are nearly as good. With less weight
the accuracy of a class that is much rarer than others falls.
"""
# Each class has moments of its own where their noise is this many times below what can be used.
_CLEAR: Final = 8.0
_DISTINCT: Final = 3.0
_ENOUGH: Final = 5.0
_FLOOR: Final = 2.0
# Vectors are taken to vary in a sixth of their columns where second moments do not tell. For embeddings of
# SST-2 scores are then nearly logarithms of odds.
_USED: Final = 6.0
_NEAR_ZERO: Final = 1e-12
# The smallest logarithm of a probability: none is 0.
_DEEPEST: Final = -30.0


def means_basis(
    classes: int, dim: int, promise: Promise, radius: float = 1.0, transform: str | None = None
) -> ClassMoments:
    """What the rule of class means counts."""
    return _basis((classes, dim, radius), promise, transform, Fraction(0))


def discriminant_basis(
    classes: int, dim: int, records: int, promise: Promise, radius: float = 1.0, transform: str | None = None
) -> ClassMoments:
    """What discriminant analysis counts: second moments of each class where their noise is small for that
    number of records, else those of all.
    """
    size = classes, dim, radius
    by_class = _basis(size, promise, transform, CLASS_MOMENT_SHARE, by_class=True)
    if _CLEAR * spectral_edge(by_class, promise, records) <= largest_edge(dim):
        return by_class
    return _basis(size, promise, transform, MOMENT_SHARE)


def _basis(
    size: tuple[int, int, float],
    promise: Promise,
    transform: str | None,
    share: Fraction,
    *,
    by_class: bool = False,
) -> ClassMoments:
    weight = TOTAL_WEIGHT if transform is None else PUBLIC_TOTAL_WEIGHT
    # Laplace noise is calibrated to sums of absolute values, which a weight below 1 does not make smaller.
    given: Any = {"transform": transform, "total": 1.0 if promise.pure else weight, "by_class": by_class}
    return ClassMoments.of_shares(*size, moment_share=share, count_share=COUNT_SHARE, **given)


def largest_edge(dim: int) -> float:
    """Noise with a larger eigenvalue hides the second moments: typical records have eigenvalues of about
    1/√dim of the squared radius.
    """
    return 1.0 / math.sqrt(dim)


def noise_of(basis: ClassMoments, promise: Promise) -> IntegerNoise:
    """The noise of a cell that a release draws."""
    change = basis.unit_change(RECORD, 1, Relation.ADD_REMOVE)
    given: Any = {"count_share": TOTAL_SHARE, "mechanism": stated_mechanism(promise)}
    return calibrate(promise, change, cells=basis.shape[1], **given).table


def mean_noise(basis: ClassMoments, variance: float, members: float) -> float:
    """The standard deviation of a coordinate of a class mean, in units of the radius."""
    return math.sqrt(variance * basis.sum_gain) / max(members, 1.0)


def spectral_edge(basis: ClassMoments, promise: Promise, records: int) -> float:
    """The largest eigenvalue of the noise in the mean of second moments, in units of the squared radius; for
    classes of one size.
    """
    sizes = np.full(basis.moments, records / basis.moments)
    return _edge(basis, noise_of(basis, promise).variance, 1.0 / (basis.moments * sizes))


def _edge(basis: ClassMoments, variance: float, weights: Floats) -> float:
    """The edge of the spectrum of the noise in the weighted sum of the matrices of second moments.

    Noise of equal variance v in all weighted cells is a Gaussian orthogonal ensemble; its spectrum ends at
    √(2·dim·v).
    """
    cell = math.sqrt(variance) / (SQUARE_WEIGHT * basis.unit**2) * float(np.linalg.norm(weights))
    return max(cell * math.sqrt(2.0 * basis.dim), _NEAR_ZERO)


@dataclass(frozen=True, slots=True)
class LinearRule:
    """Scores of the classes, linear in a vector; post-processing of one released table.

    Attributes
    ----------
    counts : array of shape (classes,)
        Noisy numbers of records.
    known : array of int
        The classes that take part; none where there are too few records.
    shares : array of shape (classes,)
        The probability of each class where none takes part.
    weights, offsets, log_priors : arrays of shape (classes, dim) and (classes,)
    """

    counts: Floats
    known: NDArray[np.int64]
    shares: Floats
    weights: Floats
    offsets: Floats
    log_priors: Floats
    center: Floats
    radius: float

    @classmethod
    def of(cls, function: Any, spread: Floats | None = None) -> LinearRule:
        """The rule of a released table.

        ``spread``, of shape (dim,), are variances of public records: differences between classes are then
        taken to be large where records vary much, and what noise adds to them elsewhere is removed
        (:func:`_expected`); likewise the difference between the means of private and public records. The
        offsets of the classes are corrected for the squares of the noise.

        With second moments the metric is (T + edge)⁻¹: T is a covariance, of which the eigenvalues that
        cannot be distinguished from noise are taken as 0 and the others are shrunk by what noise adds to them
        (Benaych-Georges and Nadakuditi 2011), and the edge of the noise's spectrum is the ridge. T is that of
        all records, which contains the differences between classes and does not change the rule of two
        classes (Fisher 1936). If each class has moments, T is the mean of their covariances, or, where its
        noise exceeds the mean variance of a column, the mean weighted by their numbers. Without moments the
        metric is the identity.
        """
        if not isinstance(function, CoefficientFunction) or not isinstance(function.basis, ClassMoments):
            raise ValueError("the part of the model")
        basis, table, variance = function.basis, function.table, function.cell_variance
        counts = basis.class_counts(table)
        error = math.sqrt(variance) / basis.count_weight
        known = np.flatnonzero(counts >= _DISTINCT * error)
        if function.count < _ENOUGH * function.count_stderr:
            known = known[:0]
        elif len(known) < 2:
            known = np.arange(basis.classes)
        sizes = np.maximum(_shrunk(counts, error), _FLOOR * error)
        means = basis.class_sums(table) / sizes[:, None]
        priors = sizes / sizes.sum()
        center = priors @ means
        differences = means - center
        noise, noise_of_center = _noise_of_differences(basis, variance, sizes)
        metric = _metric(basis, table, variance, sizes, means)
        if spread is not None:
            squares = np.square(differences).sum(axis=1) - basis.dim * noise
            # One filter for all classes: others would change the distances between classes of other sizes.
            kept = _expected(float(squares.mean()), float(priors @ noise), spread)
            metric = (kept if kept.any() else np.ones(basis.dim))[:, None] * metric
            apart = float(center @ center) - basis.dim * noise_of_center
            center = center * _expected(apart, noise_of_center, spread)
        weights = differences @ metric
        return cls(
            counts=np.maximum(counts, 0.0),
            known=known,
            shares=shares_within_noise(counts, np.full(basis.classes, error)),
            weights=weights,
            offsets=0.5 * ((weights * differences).sum(axis=1) - noise * float(np.trace(metric))),
            log_priors=np.log(priors),
            center=center,
            radius=basis.radius,
        )

    def probabilities(self, vectors: Floats, rule: str) -> Floats:
        """The probability of each class for each vector, shape (n_vectors, classes)."""
        classes = len(self.counts)
        if not len(self.known):
            return np.tile(self.shares, (len(vectors), 1))
        units = clipped_to_ball(vectors, self.radius) / self.radius
        scores = (units - self.center) @ self.weights.T - self.offsets
        if rule == "map":
            scores = scores + self.log_priors
        raised = np.full((len(vectors), classes), _DEEPEST)
        below = scores[:, self.known] - scores[:, self.known].max(axis=1, keepdims=True)
        raised[:, self.known] = np.maximum(below, _DEEPEST)
        return np.asarray(softmax(raised, axis=1))


def _shrunk(counts: Floats, error: float) -> Floats:
    """Counts moved towards their mean as far as their spread may be noise (James and Stein 1961): where
    classes are about as frequent, a count is then as precise as that of all records.
    """
    mean = float(counts.mean())
    spread = float(np.square(counts - mean).sum())
    kept = max(0.0, 1.0 - (len(counts) - 1) * error**2 / spread) if spread > 0.0 else 0.0
    return np.asarray(mean + kept * (counts - mean))


def _noise_of_differences(basis: ClassMoments, variance: float, sizes: Floats) -> tuple[Floats, float]:
    """The variance that noise adds to each coordinate of a class mean less the mean of all records, and to
    each of that mean.
    """
    classes, records = len(sizes), float(sizes.sum())
    squares = 1.0 / sizes**2 - 2.0 / (sizes * records) + classes / records**2
    each = variance * basis.sum_noise(squares, 1.0 / sizes - classes / records)
    center = basis.sum_noise(np.array([classes / records**2]), np.array([classes / records]))
    return np.asarray(each), variance * float(center[0])


def _expected(signal: float, noise: float, spread: Floats) -> Floats:
    """The part of each coordinate of a noisy vector that is expected of the vector without noise.

    If the vector is normal with variances τ·spread, that is τ·spread/(τ·spread + noise). τ is the value at
    which squares sum up to the signal: those that were released, less those of the noise.
    """
    if signal <= 0.0 or not spread.any():
        return np.zeros(len(spread))
    variances = signal / float(spread.sum()) * spread
    return np.asarray(variances / (variances + noise))


def _metric(basis: ClassMoments, table: Any, variance: float, sizes: Floats, means: Floats) -> Floats:
    identity = np.eye(basis.dim)
    if not basis.moments:
        # As if the variance were 1/√dim in every direction, or in many columns 6/dim: it scales scores.
        return np.asarray(identity * max(math.sqrt(basis.dim), basis.dim / _USED))
    covariance, edge = _covariance(basis, table, variance, sizes, means)
    values, vectors = np.linalg.eigh(covariance)
    seen = values > edge
    values, vectors = values[seen], vectors[:, seen]
    signal = (values + np.sqrt(values**2 - edge**2)) / 2.0
    shrunk = signal - edge**2 / (4.0 * signal)
    return np.asarray(identity / edge + (vectors * (1.0 / (edge + shrunk) - 1.0 / edge)) @ vectors.T)


def _covariance(
    basis: ClassMoments, table: Any, variance: float, sizes: Floats, means: Floats
) -> tuple[Floats, float]:
    """The covariance that the metric is made of, and the edge of its noise."""
    moments = basis.second_moments(table)
    if basis.moments == 1:
        records = float(sizes.sum())
        center = sizes / records @ means
        edge = _edge(basis, variance, np.array([1 / records]))
        return moments[0] / records - np.outer(center, center), edge
    each = moments / sizes[:, None, None] - means[:, :, None] * means[:, None, :]
    for shares in (np.full(len(sizes), 1.0 / len(sizes)), sizes / sizes.sum()):
        covariance, edge = np.tensordot(shares, each, 1), _edge(basis, variance, shares / sizes)
        if edge <= np.trace(covariance) / basis.dim:
            break
    return covariance, edge
