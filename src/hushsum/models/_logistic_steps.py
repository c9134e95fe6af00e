"""Logistic regression by noisy gradient steps on records whose columns are scaled."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.kernels import DotProductKernel, HammingKernel
from hushsum.privacy import RECORD, Promise, Relation, calibrate
from hushsum.records import NumberColumn, clipped_to_ball, whole_length, whole_vectors
from hushsum.tables import Marginals, Monomials, slices
from hushsum.tally import Tally

from ._accuracy import part_of, shares_within_noise, terms_of
from ._base import require

COUNT_SHARE: Final = Fraction(1, 25)
"""The part of the budget for the numbers of records of the classes."""
_TOTAL_SHARE: Final = Fraction(1, 1000)
# A record's gradient is shortened to half of the longest that there can be: most are shorter anyway.
_CLIP: Final = 0.5
# How far noise may move the logarithm of the odds of a typical record, if nothing counteracts it.
_LOGIT_NOISE: Final = 2.0
# Above this noise of a slope, steps are shortened further: little of what they find is there.
_LARGE_NOISE: Final = 0.2
_ENOUGH: Final = 5.0
# No weight is larger in a step, so that products with records of 13 bits stay below 2⁵³.
_HEAVIEST: Final = 1e3
# A class has no fewer records than this many standard errors of its count.
_FLOOR: Final = 2.0
_DEEPEST: Final = -30.0
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
        return part_of(self.promise, (1 - COUNT_SHARE) / schedule.steps)

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

    def class_counts(self, codes: NDArray[Any]) -> tuple[Floats, float]:
        """Noisy numbers of records of the classes, and their standard error."""
        basis = Marginals.of([NumberColumn(0, self.classes, bins=self.classes)], [(0,)])
        spent = {**terms_of(part_of(self.promise, COUNT_SHARE)), "count_share": _TOTAL_SHARE}
        released: Any = Tally(basis, HammingKernel(1)).add(codes[:, None].astype(np.float64)).release(**spent)
        return released.table[0].astype(np.float64), math.sqrt(released.cell_variance)

    def fit(self, vectors: Floats, codes: NDArray[Any]) -> dict[str, Floats]:
        """Weights of shape (classes, dim + 1), noisy counts and shares of the classes. Spends the promise.

        All steps together go so far that noise may move the logarithm of the odds by 2 if nothing
        counteracts it, and less far where noise is large: then predictions stay near the shares.
        """
        counts, error = self.class_counts(codes)
        sizes = np.maximum(counts, _FLOOR * error)
        shares, records = sizes / sizes.sum(), float(sizes.sum())
        longer = replace(self, spare=_SPARE)
        steps = longer if longer.slope_noise(records) < _SMALL_NOISE else self
        weights = steps.descent(vectors, codes, np.log(shares), records)
        if counts.sum() < _ENOUGH * error * math.sqrt(self.classes):
            shares = shares_within_noise(counts, np.full(self.classes, error))
            weights = np.column_stack((np.zeros((self.classes, self.dim)), np.log(shares)))
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


def probabilities(logits: Floats) -> Floats:
    """The probability of each class, shape (n, classes). Each row's bits depend on that row alone.

    eˣ is (1 + x/2¹⁶)^(2¹⁶), by squaring: a library's exponential may differ in the last bit with the place of
    a number in an array.
    """
    highest = logits[:, 0]
    for column in logits.T[1:]:
        highest = np.maximum(highest, column)
    masses = 1.0 + np.maximum(logits - highest[:, None], _DEEPEST) / (1 << _SQUARINGS)
    for _ in range(_SQUARINGS):
        masses = masses * masses
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
