"""Linear rules: nearest class means and discriminant analysis from noisy sums by class, and logistic
regression by noisy gradient steps on records whose columns are scaled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from hushsum._types import Floats, Integers
from hushsum.kernels import DotProductKernel, HammingKernel
from hushsum.privacy import RECORD, IntegerNoise, Promise, Relation, calibrate, stated_mechanism
from hushsum.records import NumberColumn, clipped_to_ball, whole_length, whole_vectors
from hushsum.releases import CoefficientFunction
from hushsum.tables import SQUARE_WEIGHT, ClassMoments, Marginals, Monomials, slices
from hushsum.tally import Tally

from ._accuracy import part_of, shares_within_noise, terms_of
from ._base import require

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
# A class has no fewer records than this many standard errors of its count.
_FLOOR: Final = 2.0
# Vectors are taken to vary in a sixth of their columns where second moments do not tell. For embeddings of
# SST-2 scores are then nearly logarithms of odds.
_USED: Final = 6.0
_NEAR_ZERO: Final = 1e-12
# The smallest logarithm of a probability: none is 0.
DEEPEST: Final = -30.0


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
    known: Integers
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

    def compared(self, vectors: Floats) -> Floats:
        """The scores of the classes, less their mean; those of a vector depend on it alone, bit for bit."""
        units = clipped_to_ball(vectors, self.radius) / self.radius
        apart = self.weights - self.weights.mean(axis=0)
        scores = np.tile(self.offsets.mean() - self.offsets, (len(units), 1))
        for column in range(units.shape[1]):
            scores += (units[:, column] - self.center[column])[:, None] * apart[:, column]
        return scores

    def probabilities(self, vectors: Floats, rule: str) -> Floats:
        """The probability of each class for each vector, shape (n_vectors, classes)."""
        classes = len(self.counts)
        if not len(self.known):
            return np.tile(self.shares, (len(vectors), 1))
        units = clipped_to_ball(vectors, self.radius) / self.radius
        scores = (units - self.center) @ self.weights.T - self.offsets
        if rule == "map":
            scores = scores + self.log_priors
        raised = np.full((len(vectors), classes), DEEPEST)
        below = scores[:, self.known] - scores[:, self.known].max(axis=1, keepdims=True)
        raised[:, self.known] = np.maximum(below, DEEPEST)
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


STEPS_COUNT_SHARE: Final = Fraction(1, 25)
"""The part of the budget for the numbers of records of the classes."""
_UNIT_SHARE: Final = Fraction(1, 5)
_POWERS: Final = 48
# The part for the unit of scores, which is one of so many powers of two.
_TOTAL_SHARE: Final = Fraction(1, 1000)
# A record's gradient is shortened to half of the longest that there can be: most are shorter anyway.
_CLIP: Final = 0.5
# How far noise may move the logarithm of the odds of a typical record, if nothing counteracts it.
_LOGIT_NOISE: Final = 2.0
# Above this noise of a slope, steps are shortened further: little of what they find is there.
_LARGE_NOISE: Final = 0.2
# No weight is larger in a step, so that products with records of 13 bits stay below 2⁵³.
_HEAVIEST: Final = 1e3
_BITS: Final = 12
_WEIGHT_BITS: Final = 20
_SQUARINGS: Final = 16
_NUMBERS_AT_A_TIME: Final = 1 << 21
_FEWEST_STEPS: Final = 10
# The most numbers in the gradients of all steps together, which take some two minutes.
_MOST_NUMBERS: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class Schedule:
    """How many steps there are, how much of a step's direction the next one keeps, and how far all of them
    together go at most.

    Composition of Gaussian noise makes steps nearly free, so there are many with δ. Under pure ε the noise of
    a step grows with their number, so there are few, unless noise is small.
    """

    steps: int
    momentum: float
    furthest: float


_WITH_DELTA: Final = Schedule(30, 0.8, 150.0)
# Chosen on the tuning sets of `benchmarks.accuracy.classifier_peers`, where twice or half as many steps are
# nearly as good. Where noise is small there are more, and shorter, steps: they do not diverge where the
# largest variance of a direction is below 14.
_PURE: Final = (Schedule(24, 0.8, 120.0), Schedule(12, 0.7, 60.0), Schedule(6, 0.5, 60.0))
_SMALL_NOISE: Final = 0.02
# Added to the square of the radius where noise is small: in few columns, records that are far from the others
# are longer than √columns.
_SPARE: Final = 8.0


@dataclass(frozen=True, slots=True)
class LogisticSteps:
    """Gradient steps for records in a ball of about √dim, with a constant 1 beside their columns.

    With p the probabilities of the classes by the weights of the step before, a record of class c adds
    (p − e_c) xᵀ to the step's sum; for two classes the second of both numbers alone, since they differ in
    sign.

    Privacy
    -------
    Unit: one record; neighbours: add/remove. The weights of a step are computed from the noisy sums before,
    so given those they are public. A record is rounded to integers by itself, its products with the rounded
    weights are integers below 2⁵³ and exact in any order, and what follows is done number by number, by
    additions, products and quotients that are rounded as IEEE 754 requires. So its gradient depends on that
    record, its class and public weights alone, bit for bit; it is shortened to a declared length, rounded,
    and added to a tally of `Monomials`, whose sensitivity is proven there for that length. Whichever way a
    unit changes the records:

    - a record appears or disappears: one gradient in each step's sum, and one cell of the class counts;
    - a record is replaced, or moves to another class: one disappears and one appears;
    - a record appears twice: it is two records;
    - the order of records changes: nothing, since integers are added.

    The parts of the promise, for the counts and for each step, add up to the promise; steps depend on
    earlier ones, so this is adaptive composition: of ε under pure ε, of ρ with δ (`part_of`).
    """

    classes: int
    dim: int
    promise: Promise
    spare: float = 0.0
    """Added to the square of the radius."""

    @property
    def _codes(self) -> int:
        return 1 if self.classes == 2 else self.classes

    @property
    def radius(self) -> float:
        """The length to which records are shortened, in units in which columns have a variance of 1."""
        return math.sqrt(self.dim + self.spare)

    @property
    def _length(self) -> float:
        """The length to which a gradient is shortened."""
        return _CLIP * math.hypot(self.radius, 1.0) * (1.0 if self.classes == 2 else math.sqrt(2.0))

    @property
    def _basis(self) -> Monomials:
        return Monomials(DotProductKernel(self._codes * (self.dim + 1), radius=self._length))

    def schedule(self, records: float) -> Schedule:
        """The steps for a public number of records."""
        if self.promise.pure:
            return next((each for each in _PURE[:-1] if self._noise(each, records) < _SMALL_NOISE), _PURE[-1])
        # Fewer steps where the gradients of all records have many numbers and take long to compute.
        most = round(_MOST_NUMBERS / max(records * self._codes * (self.dim + 1), 1.0))
        return replace(_WITH_DELTA, steps=min(_WITH_DELTA.steps, max(_FEWEST_STEPS, most)))

    def _step_promise(self, schedule: Schedule) -> Promise:
        return part_of(self.promise, (1 - STEPS_COUNT_SHARE) / schedule.steps)

    def slope_noise(self, records: float) -> float:
        """The standard deviation that all steps together leave in the slope of the log loss of a record of
        typical length; from public parameters and a number of records alone.
        """
        return self._noise(self.schedule(records), records)

    def _noise(self, schedule: Schedule, records: float) -> float:
        basis = self._basis
        change = basis.unit_change(RECORD, 1, Relation.ADD_REMOVE)
        promise = self._step_promise(schedule)
        drawn = calibrate(promise, change, cells=basis.shape[1], count_share=_TOTAL_SHARE).table
        step = math.sqrt(drawn.variance * self.dim) / basis.unit * self._length / max(records, 1.0)
        return step / math.sqrt(schedule.steps)

    def fit(self, vectors: Floats, codes: NDArray[Any]) -> dict[str, Floats]:
        """Weights of shape (classes, dim + 1), noisy counts and shares of the classes. Spends the promise.

        All steps together go so far that noise may move the logarithm of the odds by 2 if nothing
        counteracts it, and less far where noise is large: then predictions stay near the shares.
        """
        counts, error = class_counts(codes, self.classes, part_of(self.promise, STEPS_COUNT_SHARE))
        sizes = np.maximum(counts, _FLOOR * error)
        seen = counts.sum() >= _ENOUGH * error * math.sqrt(self.classes)
        shares = sizes / sizes.sum() if seen else shares_within_noise(counts, np.full(self.classes, error))
        return self._weighed(vectors, codes, counts, shares, float(sizes.sum()), seen=seen)

    def calibrated(self, rule: LinearRule, vectors: Floats, codes: NDArray[Any]) -> dict[str, Floats]:
        """The same for the scores of a released rule in place of columns; with the numbers of its classes.

        Noise in the moments behind a rule shrinks its scores, by how much depends on the directions in which
        classes differ, and where there are no second moments nothing tells how far scores spread. Steps in as
        many columns as there are classes have little noise, and find the logits. The unit of scores is a
        power of two near their median, by a histogram with a part of the promise.
        """
        scores = rule.compared(vectors)
        powers = np.clip(np.frexp(np.abs(scores).max(axis=1))[1] + _POWERS // 2, 0, _POWERS - 1)
        held, error = class_counts(powers, _POWERS, part_of(self.promise, _UNIT_SHARE))
        held = np.where(held > _DISTINCT * error, held, 0.0)
        median = int(np.searchsorted(np.cumsum(held), held.sum() / 2.0)) if held.any() else _POWERS // 2
        unit = 2.0 ** (median - _POWERS // 2)
        steps, seen = replace(self, promise=part_of(self.promise, 1 - _UNIT_SHARE)), len(rule.known) > 0
        shares, records = np.exp(rule.log_priors) if seen else rule.shares, max(float(rule.counts.sum()), 1.0)
        found = steps._weighed(scores / unit, codes, rule.counts, shares, records, seen=seen)
        return {**found, "unit": np.array([unit])}

    def _weighed(
        self,
        vectors: Floats,
        codes: NDArray[Any],
        counts: Floats,
        shares: Floats,
        records: float,
        *,
        seen: bool,
    ) -> dict[str, Floats]:
        longer = replace(self, spare=_SPARE)
        steps = longer if longer.slope_noise(records) < _SMALL_NOISE else self
        levels = np.log(shares)
        weights = np.column_stack((np.zeros((self.classes, self.dim)), levels))
        if seen:
            weights = steps.descent(vectors, codes, levels, records)
        return {"weights": weights, "counts": np.maximum(counts, 0.0), "shares": shares}

    def descent(self, vectors: Floats, codes: NDArray[Any], levels: Floats, records: float) -> Floats:
        """Weights, from zero and a constant for each class, for a noisy number of records."""
        weights = np.column_stack((np.zeros((self.classes, self.dim)), levels))
        schedule, noise = self.schedule(records), self.slope_noise(records)
        far = min(schedule.furthest, _LOGIT_NOISE / noise * min(1.0, _LARGE_NOISE / noise))
        rate = far * (1.0 - schedule.momentum) / schedule.steps
        promise, whole = self._step_promise(schedule), self.whole(vectors)
        velocity = np.zeros_like(weights)
        for _ in range(schedule.steps):
            velocity = schedule.momentum * velocity + self.slope(whole, codes, weights, promise) / records
            weights = weights - rate * velocity
        return weights

    @property
    def unit(self) -> float:
        """The integer that stands for 1 in a column of a record."""
        return whole_length(self.dim, _BITS) / self.radius

    def whole(self, vectors: Floats) -> Floats:
        """Records in the ball as integers, and a constant, shape (n, dim + 1)."""
        rounded = whole_vectors(vectors, self.radius, _BITS)
        constant = np.full((len(rounded), 1), round(self.unit))
        return np.column_stack((rounded, constant)).astype(np.float64)

    def logits(self, whole: Floats, weights: Floats) -> Floats:
        """The logit of each class, shape (n, classes), from exact products of integers."""
        rounded = np.rint(np.clip(weights, -_HEAVIEST, _HEAVIEST) * (1 << _WEIGHT_BITS))
        return np.asarray((whole @ rounded.T) / (self.unit * (1 << _WEIGHT_BITS)))

    def gradients(self, whole: Floats, codes: NDArray[Any], weights: Floats) -> Floats:
        """The gradients of some records, shape (n, dim + 1) for two classes, else (n, classes·(dim + 1))."""
        apart = probabilities(self.logits(whole, weights))
        apart[np.arange(len(codes)), codes] -= 1.0
        apart = apart[:, -self._codes :]
        return np.asarray((apart[:, :, None] * (whole / self.unit)[:, None, :]).reshape(len(whole), -1))

    def summed(self, whole: Floats, codes: NDArray[Any], weights: Floats) -> Tally:
        """The sum of the records' gradients; secret."""
        tally = Tally(self._basis)
        at_a_time = max(1, _NUMBERS_AT_A_TIME // tally.basis.shape[1])
        for some in slices(len(whole), at_a_time):
            tally.add(self.gradients(whole[some], codes[some], weights))
        return tally

    def slope(self, whole: Floats, codes: NDArray[Any], weights: Floats, promise: Promise) -> Floats:
        """The noisy sum of the gradients, shape (classes, dim + 1). Spends ``promise``."""
        tally = self.summed(whole, codes, weights)
        released: Any = tally.release(**terms_of(promise), count_share=_TOTAL_SHARE)
        found = (released.table[0] / released.basis.unit * self._length).reshape(self._codes, -1)
        return np.concatenate((-found, found)) / 2.0 if self.classes == 2 else found


def class_counts(codes: NDArray[Any], classes: int, promise: Promise) -> tuple[Floats, float]:
    """Noisy numbers of records of the classes, and their standard error. Spends ``promise``."""
    basis = Marginals.of([NumberColumn(0, classes, bins=classes)], [(0,)])
    spent = {**terms_of(promise), "count_share": _TOTAL_SHARE}
    released: Any = Tally(basis, HammingKernel(1)).add(codes[:, None].astype(np.float64)).release(**spent)
    return released.table[0].astype(np.float64), math.sqrt(released.cell_variance)


def exponential(exponents: Floats) -> Floats:
    """eˣ of numbers from −30 to 0, as (1 + x/2¹⁶)^(2¹⁶), by squaring: a library's exponential may differ in
    the last bit with the place of a number in an array.
    """
    powers = 1.0 + np.maximum(exponents, DEEPEST) / (1 << _SQUARINGS)
    for _ in range(_SQUARINGS):
        powers = powers * powers
    return np.asarray(powers)


def probabilities(logits: Floats) -> Floats:
    """The probability of each class, shape (n, classes). Each row's bits depend on that row alone."""
    highest = logits[:, 0]
    for column in logits.T[1:]:
        highest = np.maximum(highest, column)
    masses = exponential(logits - highest[:, None])
    total = masses[:, 0]
    for column in masses.T[1:]:
        total = total + column
    return np.asarray(masses / total[:, None])


@dataclass(frozen=True, slots=True)
class LogisticReading:
    """Weights that were released, and how a query becomes the vector that they weigh."""

    weights: Floats
    counts: Floats
    shares: Floats
    vectors: Callable[[Floats], Floats]

    @classmethod
    def of(
        cls, arrays: Mapping[str, Any], classes: int, dim: int, vectors: Callable[[Floats], Floats]
    ) -> LogisticReading:
        """What `LogisticSteps.fit` released; ValueError if arrays are not that."""
        shapes = {"weights": (classes, dim + 1), "counts": (classes,), "shares": (classes,)}
        for name, shape in shapes.items():
            require(name in arrays, name)
            require(arrays[name].shape == shape and np.isfinite(arrays[name]).all(), name)
        require((arrays["shares"] > 0.0).all(), "shares")
        return cls(arrays["weights"], arrays["counts"], arrays["shares"], vectors)

    def probabilities(self, queries: Floats, rule: str) -> Floats:
        """The probability of each class at each query, shape (n_queries, n_classes)."""
        vectors = clipped_to_ball(self.vectors(queries), math.sqrt(self.weights.shape[1] - 1 + _SPARE))
        logits = vectors @ self.weights[:, :-1].T + self.weights[:, -1]
        return probabilities(logits if rule == "map" else logits - np.log(self.shares))
