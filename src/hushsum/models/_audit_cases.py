"""Neighbours for audits of the mechanisms that live here; ``hushsum.auditing`` imports this."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum.auditing import (
    MechanismCase,
    Separated,
    allowed_distance,
    counted,
    normal_chances,
    register_mechanism,
)
from hushsum.kernels import GaussianKernel
from hushsum.privacy import EXACT_INTEGERS, LATTICE_GAUSSIAN, Claim, Mechanism, Promise, Relation
from hushsum.privacy.accounting import promise_of_one
from hushsum.records import Bounds
from hushsum.releases import CoefficientFunction

from ._accuracy import part_of, terms_of
from ._classifier import CALIBRATING, PrivateClassifier, after_scaling
from ._clusters import (
    LENGTHS_PART,
    SQUARES,
    Crowd,
    Measurement,
    Partition,
    PromiseParts,
    counted_cells,
    inertia_of,
    read,
    refined_centers,
    split_cells,
    vectors_by_cell,
)
from ._column_scaling import ColumnScaling
from ._density import FUNCTIONAL, FunctionalSums, KernelTable
from ._linear_rules import LogisticSteps
from ._outlier_scores import ScaledDensity, density_share

PROMISE = Promise.of(epsilon=8.0, delta=1e-6)
_CLAIM = Claim(
    promise=PROMISE,
    unit="record",
    records_per_unit=1,
    relation=Relation.ADD_REMOVE,
    mechanism=Mechanism.of(LATTICE_GAUSSIAN),
    arithmetic=EXACT_INTEGERS,
    secure=True,
)
_SEED = 7
# More than a grid counts.
_COLUMNS = 4


def _density(bandwidths: tuple[float, ...], promise: Promise) -> Separated:
    """One record, with a crowd elsewhere, in the coefficients of all kernels together."""
    planned = [
        KernelTable(GaussianKernel(dim=1, bandwidth=width), FUNCTIONAL, f"part{i}")
        for i, width in enumerate(bandwidths)
    ]
    sides = [FunctionalSums(planned, promise, _SEED, Bounds((-20.0,), (20.0,))) for _ in range(2)]
    for sums, records in zip(sides, ([[-3.0]] * 9, [[-3.0]] * 9 + [[4.0]]), strict=True):
        sums.add(np.array(records))

    claim = replace(_CLAIM, promise=promise)

    def release(side: int, seed: int | None) -> NDArray[np.float64]:
        return _joined([_table(each) for each in sides[side].release(claim).values()])

    exact = [_joined([table.reshape(-1) for table in sums._tables.values()]) for sums in sides]
    # The variance of a part's noise is proportional to the squared length of what a record adds to it.
    parts = [
        np.full(math.prod(basis.shape), 1.0 / basis.sensitivity(Relation.ADD_REMOVE).l2_squared)
        for basis in sides[0]._bases.values()
    ]
    difference = (_joined(parts) * (exact[1] - exact[0]))[np.newaxis]
    # A fiftieth of ε pays for the count, and the bound of a feature's length holds for all phases.
    allowed = allowed_distance(promise)
    return Separated((exact[0], exact[1]), release, difference, allowed, normal_chances(0.95 * allowed))


def _table(function: object) -> NDArray[np.int64]:
    assert isinstance(function, CoefficientFunction)
    return np.asarray(function.table, np.int64).reshape(-1)


def _joined(tables: list[NDArray[Any]]) -> NDArray[np.float64]:
    return np.concatenate(tables).astype(np.float64)


Evidence = tuple[float, float]
"""⟨noisy − expected, v⟩/σ² and ‖v‖²/σ² of released tables, v what the record adds to a table: the test of one
record more, and its mean with the record less that without.
"""


def _evidence(function: Any, expected: NDArray[np.float64], added: NDArray[np.float64]) -> Evidence:
    likelihood = float(((function.table - expected) * added).sum()) / function.cell_variance
    return likelihood, float(np.square(added).sum()) / function.cell_variance


def _together(seen: Sequence[Evidence]) -> Evidence:
    """Of all steps, also where what is released depends on earlier steps."""
    likelihood, information = (math.fsum(each) for each in zip(*seen, strict=True))
    return likelihood, information


def _separated(run: Callable[[int, int | None], Evidence], allowed: float) -> Separated:
    """Two sides that the evidence of a run distinguishes, in standard deviations."""

    def release(side: int, seed: int | None) -> NDArray[np.float64]:
        likelihood, information = run(side, seed)
        return np.array([likelihood / math.sqrt(information)])

    distance = math.sqrt(run(0, 0)[1])
    exact = np.zeros(1), np.array([distance])
    return Separated(exact, release, np.ones((1, 1)), allowed, normal_chances(distance))


class _Observed(PromiseParts):
    """Steps whose partitions and noisy tables an auditor sees, as everyone may; ``seen`` is the evidence."""

    def __init__(
        self, promise: Promise, record: NDArray[np.float64], present: bool, seed: int | None
    ) -> None:
        super().__init__(promise)
        self.record, self.present, self.seed = record, present, seed
        self.seen: list[Evidence] = []

    def measure(
        self,
        rows: NDArray[np.float64],
        partition: Partition,
        kind: str,
        part: Fraction,
        known: Crowd | None = None,
    ) -> Measurement:
        if self.seed is not None:
            self.seed += 1
        function = counted_cells(rows, partition, kind, apart=False)[0].release(
            count_share=0.001, insecure_noise_seed=self.seed, **terms_of(self.take(part))
        )
        assert isinstance(function, CoefficientFunction)
        exact, added = (
            counted(function.basis, vectors_by_cell(each, partition, kind)).astype(np.float64)
            for each in (rows, self.record)
        )
        self.seen.append(_evidence(function, exact - (added if self.present else 0.0), added))
        return read([function], kind, known)


def _clusters(number: int, promise: Promise) -> Separated:
    """A person with ``number`` equal records far from a crowd, in all steps of k-means.

    Each record has the whole length in each step.
    """
    record = np.full((number, 1), 0.9)
    spent = promise_of_one(promise, number)
    crowd = np.linspace(-0.7, -0.5, 300)[:, None]
    sides = crowd, np.concatenate((crowd, record))

    def run(side: int, seed: int | None) -> Evidence:
        # No two runs share the seed of a step: a run has fewer than 64.
        parts = _Observed(spent, record, side == 1, None if seed is None else 64 * seed)
        rows = sides[side]
        crowd = Crowd.located(rows, np.ones(1), parts)
        left = parts.left - LENGTHS_PART
        split_cells(rows, crowd, 2, parts, left / 2, SQUARES)
        centers, spread = np.array([[-0.6], [0.0]]), np.full(2, 0.1)
        inertia_of(rows, *refined_centers(rows, centers, spread, parts, left / 2), parts)
        return _together(parts.seen)

    return _separated(run, allowed_distance(promise))


def _scaled_classes(number: int, promise: Promise) -> Separated:
    """A person with ``number`` equal records near a corner of the bounds.

    Each record has the whole length, whatever the scaling of the columns is.

    Of the three steps the sums by class are audited, in units of the columns that were released in the same
    call, against the part of the promise that is left to them. An auditor sees the scaling too.
    """
    assert promise.epsilon is not None
    record, box = np.full((number, 2), 0.9), [(-1.0, 1.0)] * 2
    crowd = np.random.default_rng(_SEED).normal(-0.5, 0.1, size=(60, 2))
    codes = np.arange(60) % 2
    sides = (crowd, codes), (np.concatenate((crowd, record)), np.append(codes, [1] * number))

    def run(side: int, seed: int | None) -> Evidence:
        model = PrivateClassifier(
            epsilon=float(promise.epsilon or 0),
            delta=float(promise.delta),
            classes=[0, 1],
            method="discriminant",
            column_scaling="quantiles",
            rule="map",
            max_per_unit=number,
        ).fit(*sides[side], units=[*range(60), *[60] * number][: len(sides[side][1])])
        function, found = model.released_.parts["moments"], model.released_.arrays["scaling"]
        assert isinstance(function, CoefficientFunction)
        scaling = ColumnScaling.of(box, found)
        without, added = (
            counted(function.basis, np.column_stack((labels, scaling.units(rows)))).astype(np.float64)
            for rows, labels in ((crowd, codes), (record, np.ones(number)))
        )
        return _evidence(function, without, added)

    return _separated(run, allowed_distance(part_of(after_scaling(promise), 1 - CALIBRATING)))


def _scaled_density(number: int, promise: Promise) -> Separated:
    """A person with ``number`` equal records far from a crowd, in the density of an outlier detector.

    Of all steps the density is audited, whose bandwidth, size and units were released before, against the
    part of the promise that is left to it. An auditor sees these too.
    """
    record = np.full((number, _COLUMNS), 0.9)
    crowd = np.random.default_rng(_SEED).normal(-0.5, 0.1, size=(60, _COLUMNS))
    sides, box = (crowd, np.concatenate((crowd, record))), [(-1.0, 1.0)] * _COLUMNS
    spent = promise_of_one(promise, number)

    def run(side: int, seed: int | None) -> Evidence:
        function, scaling = ScaledDensity(box, spent, 60.0, _SEED).released(sides[side])
        without, added = (
            counted(function.basis, scaling.units(rows)).astype(np.float64) for rows in (crowd, record)
        )
        return _evidence(function, without, added)

    return _separated(run, allowed_distance(part_of(promise, density_share(_COLUMNS, promise))))


@dataclass(frozen=True, slots=True)
class _ObservedSteps(LogisticSteps):
    """Steps whose noisy sums an auditor sees, as everyone may; ``seen`` is the evidence."""

    record: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))
    present: bool = False
    noise_seed: int | None = None
    seen: list[Evidence] = field(default_factory=list)

    def slope(
        self,
        whole: NDArray[np.float64],
        codes: NDArray[np.int64],
        weights: NDArray[np.float64],
        promise: Promise,
    ) -> NDArray[np.float64]:
        seed = None if self.noise_seed is None else self.noise_seed + len(self.seen)
        tally = self.summed(whole, codes, weights)
        function = tally.release(count_share=0.001, insecure_noise_seed=seed, **terms_of(promise))
        assert isinstance(function, CoefficientFunction)
        ones = np.ones(len(self.record), np.int64)
        exact, added = (
            counted(function.basis, self.gradients(rows, labels, weights)).astype(np.float64)
            for rows, labels in ((whole, codes), (self.whole(self.record), ones))
        )
        self.seen.append(_evidence(function, exact - (added if self.present else 0.0), added))
        found = np.asarray(function.table[0], np.float64)
        return np.stack((-found, found)) / 2.0 / self.unit


def _gradients(number: int, promise: Promise) -> Separated:
    """A person with ``number`` equal records of longest gradients, in all steps of logistic regression."""
    record = np.full((number, 2), 1.5)
    spent = promise_of_one(promise, number)
    crowd = np.random.default_rng(_SEED).normal(0.0, 0.5, size=(300, 2))
    codes = np.arange(300) % 2
    sides = (crowd, codes), (np.concatenate((crowd, record)), np.append(codes, [1] * number))

    def run(side: int, seed: int | None) -> Evidence:
        # No two runs share the seed of a step: a run has fewer than 64.
        observed = _ObservedSteps(
            2, 2, spent, record=record, present=side == 1, noise_seed=None if seed is None else 64 * seed
        )
        # The number of records is that of both sides: the noisy counts are another part of the promise.
        vectors, labels = sides[side]
        observed.descent(vectors, labels, np.log([0.5, 0.5]), 300.0)
        return _together(observed.seen)

    return _separated(run, allowed_distance(promise))


_FUNCTIONAL = "PrivateDensity, functional"
for name, pair, make, thorough in (
    (_FUNCTIONAL, "one record", partial(_density, (2.0,)), False),
    (_FUNCTIONAL, "one record in two kernels", partial(_density, (0.5, 2.0)), True),
    *(
        (audited, unit, partial(neighbours, number), True)
        for audited, neighbours in (
            ("PrivateKMeans and PrivateMixture, all steps", _clusters),
            ("PrivateClassifier, all gradient steps", _gradients),
            ("PrivateClassifier, columns in units of their own", _scaled_classes),
            ("PrivateOutlierDetector, density of columns in units of their own", _scaled_density),
        )
        for number, unit in ((1, "one record"), (3, "a person with three records"))
    ),
):
    register_mechanism(MechanismCase(name, pair, make, PROMISE, thorough))
