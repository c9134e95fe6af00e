"""The sensitivity half for persons: tallies with a cap, and persons who try to get past it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hushsum.auditing.adversarial_records import Pool
from hushsum.auditing.sensitivity import SensitivityAudit, counted, furthest
from hushsum.bases.base import Basis
from hushsum.privacy.calibration import Sensitivity
from hushsum.privacy.claim import PERSON, Relation
from hushsum.tally.tally import Tally

_COMPARED = 64

Visit = tuple[str, object]
"""Who, and the record."""


def audit_persons(
    basis: Basis, pool: Pool, relation: Relation, rng: np.random.Generator, *, cap: int, rounds: int = 24
) -> tuple[SensitivityAudit, int]:
    """Compare capped tallies of people with and without one person, or with another in their place.

    The person brings more records than the cap allows: all equal, so that they meet in one cell of every row,
    or all different; at once, or spread over batches among others. Also returns how far the
    count moved.
    """
    found = Sensitivity(0, 0, 0)
    count_found = 0
    number = 0
    far = _furthest_apart(basis, pool)
    for left, right in _pairs(pool, relation, rng, far, cap=cap, rounds=rounds):
        (table, count), (other_table, other_count) = (
            _counted(basis, visits, cap, rng) for visits in (left, right)
        )
        found = furthest(found, table - other_table)
        count_found = max(count_found, abs(count - other_count))
        number += 1
    declared = basis.unit_change(PERSON, cap, relation).table
    return SensitivityAudit(relation, declared, found, number), count_found


def _pairs(
    pool: Pool,
    relation: Relation,
    rng: np.random.Generator,
    far: Sequence[tuple[int, int]],
    *,
    cap: int,
    rounds: int,
) -> Iterator[tuple[list[Visit], list[Visit]]]:
    for i in range(rounds):
        crowd = [
            (f"p{rng.integers(5)}", pool[j]) for j in rng.integers(0, len(pool), int(rng.integers(0, 30)))
        ]
        # First those who differ the most, by either norm: what a search by chance may miss.
        ones = far[i] if i < len(far) else (None, None)
        left = _joined(crowd, _visits(pool, rng, cap, together=i % 2 == 0, which=ones[0]), rng)
        if relation is Relation.ADD_REMOVE:
            yield left, crowd
        else:
            absent = i % 6 == 5
            another = [] if absent else _visits(pool, rng, cap, together=i % 2 == 0, which=ones[1])
            yield left, _joined(crowd, another, rng)


def _furthest_apart(basis: Basis, pool: Pool) -> list[tuple[int, int]]:
    """Two records of the pool whose vectors differ as much as any two, by the sum of differences and by that
    of their squares.
    """
    vectors = np.array([counted(basis, [pool[i]]).ravel() for i in range(min(len(pool), _COMPARED))])
    sums, squares = np.zeros((2, len(vectors), len(vectors)))
    for i, one in enumerate(vectors):
        apart = np.abs(vectors - one).astype(np.float64)
        sums[i], squares[i] = apart.sum(axis=1), np.square(apart).sum(axis=1)
    places = (np.unravel_index(int(each.argmax()), each.shape) for each in (sums, squares))
    return [(int(first), int(second)) for first, second in places]


def _visits(
    pool: Pool, rng: np.random.Generator, cap: int, *, together: bool, which: int | None = None
) -> list[Visit]:
    number = cap + 3
    if which is not None:
        chosen = np.full(number, which)
    else:
        chosen = np.full(number, rng.integers(len(pool))) if together else rng.integers(0, len(pool), number)
    return [("adversary", pool[i]) for i in chosen]


def _joined(crowd: list[Visit], visits: list[Visit], rng: np.random.Generator) -> list[Visit]:
    """The crowd in its order, the person's visits in theirs, shuffled into each other."""
    merged = [*crowd]
    for place, visit in zip(
        np.sort(rng.integers(0, len(crowd) + 1, len(visits)))[::-1], visits[::-1], strict=True
    ):
        merged.insert(int(place), visit)
    return merged


def _counted(
    basis: Basis, visits: list[Visit], cap: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], int]:
    """Through a real tally, in batches. These visits are made up, so the secret state may be looked at."""
    tally = Tally(basis, max_per_unit=cap)
    step = int(rng.integers(1, 12))
    for start in range(0, len(visits), step):
        part = visits[start : start + step]
        tally.add([record for _, record in part], units=[who for who, _ in part], threads=1)
    state = tally._state()
    return state["table"], int(state["count"])
