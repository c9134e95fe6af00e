"""Neighbours for audits of streams; ``hushsum.auditing`` imports this.

An auditor sees every step. A record of the first step is in all of them, which is the worst place for it; a
record that moves to the last step leaves all and comes to one; two records of a person are twice as much; a
record that is removed again is two. Two records of different steps attain what is declared where both are
forgotten before the end, as in sums that decay: of running sums they attain 0.77 of it in three steps, and
0.88 in a hundred. So do the few steps of a stream without a horizon. Functions are rounded to whole counts,
so the record is counted in many rows, whose noise is far above that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from hushsum._types import Floats
from hushsum.auditing import MechanismCase, Separated, allowed_distance, normal_chances, register_mechanism
from hushsum.kernels import EuclideanKernel
from hushsum.methods import race
from hushsum.privacy import Promise, ReleaseRequest

from ._stream import PreparedStream, StreamRequest, prepare_stream

PROMISE = Promise.of(epsilon=8.0, delta=1e-6)
STEPS = 3
_ROWS = 100
_RECORD = [[0.5]]
_PERSON = [0]

Change = Callable[[PreparedStream], PreparedStream]
Placed = tuple[tuple[int, int], ...]
"""The steps of the records of a unit, each with 1, or with -1 where a record is removed."""


def stream_pair(
    places: tuple[Placed, Placed],
    relation: str,
    change: Change = lambda prepared: prepared,
    *,
    max_per_unit: int | None = None,
    removals: bool = False,
    promise: Promise = PROMISE,
    horizon: int | None = STEPS,
    decay: Fraction | None = None,
) -> Separated:
    """A stream with the records of a unit at some steps against the same with them at others, or nowhere.

    What is looked at is, for each step, the sum of the cells that the record is in, and the number of
    records: in the direction that noise of their covariance hides least.
    """
    tally = race(EuclideanKernel(dim=1, bandwidth=1.0), rows=_ROWS, width=4, max_per_unit=max_per_unit)
    units = None if max_per_unit is None else _PERSON
    touched = np.asarray(race(EuclideanKernel(dim=1, bandwidth=1.0), rows=_ROWS, width=4).add(_RECORD)._table)
    cells = touched.astype(bool)

    def prepare(seed: int | None) -> PreparedStream:
        request = ReleaseRequest(
            epsilon=promise.epsilon,
            delta=promise.delta or None,
            rho=promise.rho,
            relation=relation,
            insecure_noise_seed=seed,
        )
        return change(
            prepare_stream(
                tally, StreamRequest(release=request, horizon=horizon, decay=decay, removals=removals)
            )
        )

    fresh, repeatable = prepare(None), prepare(0)

    def shown(placed: Placed) -> Floats:
        """The sums and the numbers of records without noise."""
        there = np.zeros(STEPS)
        for step, sign in placed:
            there[step - 1 :] += sign * np.power(float(decay or 1), np.arange(STEPS - step + 1))
        return np.concatenate((_ROWS * there, there))

    def release(side: int, seed: int | None) -> Floats:
        prepared = fresh
        if seed is not None:
            prepared = replace(repeatable, terms=replace(repeatable.terms, insecure_noise_seed=seed))
        stream = prepared.start()
        found = np.empty((2, STEPS))
        for step in range(STEPS):
            for sign in (sign for at, sign in places[side] if at == step + 1):
                (stream.add if sign > 0 else stream.remove)(_RECORD, units=units, threads=1)
            function = stream.step(threads=1)
            found[:, step] = function.table[cells].sum(), function.noisy_count
        return found.reshape(-1)

    noise = fresh.terms.noise
    gains = noise.covariances(range(1, STEPS + 1))
    covariance = np.kron(np.diag([_ROWS * noise.table.variance, noise.count_variance]), gains)
    first, second = (shown(each) for each in places)
    best: Floats = np.asarray(np.linalg.solve(covariance, second - first), np.float64)
    distance = math.sqrt(float((second - first) @ best))
    return Separated(
        (first, second), release, best[np.newaxis], allowed_distance(promise), normal_chances(distance)
    )


FIRST, LAST = ((1, 1),), ((STEPS, 1),)
TWICE, REMOVED = ((1, 1), (1, 1)), ((1, 1), (STEPS, -1))
_NAME = "Stream"
_FADING = Fraction(1, 2)
_CASES: tuple[tuple[str, tuple[Placed, Placed], str, dict[str, Any]], ...] = (
    ("a record of the first step", ((), FIRST), "add/remove", {}),
    ("a record moved from the first to the last step", (FIRST, LAST), "replace", {"decay": _FADING}),
    ("a person with two records", ((), TWICE), "add/remove", {"max_per_unit": 2}),
    ("a record that is removed again", ((), REMOVED), "add/remove", {"removals": True, "decay": _FADING}),
    ("a record, without a horizon", ((), FIRST), "add/remove", {"horizon": None, "decay": _FADING}),
    ("a record moved, without a horizon", (FIRST, LAST), "replace", {"horizon": None, "decay": _FADING}),
)


def _case(places: tuple[Placed, Placed], relation: str, more: dict[str, Any], promise: Promise) -> Separated:
    return stream_pair(places, relation, promise=promise, **more)


for number, (pair, places, relation, more) in enumerate(_CASES):
    case = partial(_case, places, relation, more)
    register_mechanism(MechanismCase(_NAME, pair, case, PROMISE, thorough=number > 0))
