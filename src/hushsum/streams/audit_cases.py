"""Neighbours for audits of streams; ``hushsum.auditing.registry`` imports this.

An auditor sees every step. A record of the first step is in all of them, which is the worst place for it; a
record that moves to the last step leaves all and comes to one. The functions are rounded to whole counts, so
the record is counted in many rows, whose noise is far above that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from hushsum._types import Floats
from hushsum.auditing.gaussian_smoke_test import Separated, allowed_distance, normal_chances
from hushsum.auditing.registry import MechanismCase, register_mechanism
from hushsum.kernels.euclidean import EuclideanKernel
from hushsum.methods.race import race
from hushsum.privacy.claim import Promise
from hushsum.privacy.release_request import ReleaseRequest
from hushsum.streams.start import PreparedStream, StreamRequest, prepare_stream

PROMISE = Promise.of(epsilon=8.0, delta=1e-6)
STEPS = 3
_ROWS = 100
_RECORD = [[0.5]]
_NONE = 0

Change = Callable[[PreparedStream], PreparedStream]


def stream_pair(
    steps_of_record: tuple[int, int],
    relation: str,
    change: Change = lambda prepared: prepared,
    *,
    promise: Promise = PROMISE,
) -> Separated:
    """A stream with a record at one step against the same with it at another, or nowhere (0).

    What is looked at is, for each step, the sum of the cells that the record is in, and the number of
    records: in the direction that noise of their covariance hides least.
    """
    tally = race(EuclideanKernel(dim=1, bandwidth=1.0), rows=_ROWS, width=4)
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
        return change(prepare_stream(tally, StreamRequest(request, STEPS)))

    fresh, repeatable = prepare(None), prepare(0)

    def shown(step: int) -> Floats:
        """Without noise: the sums and the numbers."""
        there = np.arange(1, STEPS + 1) >= step if step else np.zeros(STEPS, bool)
        return np.concatenate((_ROWS * there.astype(np.float64), there.astype(np.float64)))

    def release(side: int, seed: int | None) -> Floats:
        prepared = fresh
        if seed is not None:
            prepared = replace(repeatable, terms=replace(repeatable.terms, insecure_noise_seed=seed))
        stream = prepared.start()
        found = np.empty((2, STEPS))
        for step in range(STEPS):
            if steps_of_record[side] == step + 1:
                stream.add(_RECORD, threads=1)
            function = stream.step(threads=1)
            found[:, step] = function.table[cells].sum(), function.noisy_count
        return found.reshape(-1)

    noise = fresh.terms.noise
    gains = np.array(
        [[noise.correlation_gain(s, t) for t in range(1, STEPS + 1)] for s in range(1, STEPS + 1)]
    )
    covariance = np.kron(np.diag([_ROWS * noise.table.variance, noise.count.variance]), gains)
    first, second = (shown(step) for step in steps_of_record)
    best: Floats = np.asarray(np.linalg.solve(covariance, second - first), np.float64)
    distance = math.sqrt(float((second - first) @ best))
    return Separated(
        (first, second), release, best[np.newaxis], allowed_distance(promise), normal_chances(distance)
    )


def _case(places: tuple[int, int], relation: str, promise: Promise) -> Separated:
    return stream_pair(places, relation, promise=promise)


_NAME = "Stream"
for pair, places, relation, thorough in (
    ("a record of the first step", (_NONE, 1), "add/remove", False),
    ("a record moved from the first to the last step", (1, STEPS), "replace", True),
):
    register_mechanism(MechanismCase(_NAME, pair, partial(_case, places, relation), PROMISE, thorough))
