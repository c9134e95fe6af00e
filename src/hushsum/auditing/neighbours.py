"""Neighbouring datasets that differ in one record, put where a counting loop would go wrong.

The loops work in tiles, panels and blocks, with tails of their own, on several threads: so the record is
added, replaced and taken out at the front, in the middle and at the end of batches of every size from 1 to
70 (and around larger blocks when thorough), and the two datasets are split and threaded differently.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from hushsum.auditing.adversarial_records import Pool
from hushsum.auditing.sensitivity import Dataset, Pair
from hushsum.privacy.claim import Relation

LARGEST_BATCH = 70
_BLOCKS = (127, 128, 129, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025)


def neighbours(
    pool: Pool, relation: Relation, rng: np.random.Generator, *, thorough: bool = False
) -> Iterator[Pair]:
    """Pairs for `audit_sensitivity`."""
    yield from _bare(pool, relation, rng, everything=thorough)
    sizes = [*range(1, LARGEST_BATCH + 1), *(_BLOCKS if thorough else _BLOCKS[1:3])]
    for size in sizes:
        places = {0, size // 2, size} if thorough else {int(rng.choice([0, size // 2, size]))}
        for place in places:
            yield _pair(pool, relation, rng, size, place)


def _bare(pool: Pool, relation: Relation, rng: np.random.Generator, *, everything: bool) -> Iterator[Pair]:
    """One record and nothing else: every record of the pool against none, or against another one."""
    alone = [Dataset([[record]], repeated=True) for record in pool]
    if relation is Relation.ADD_REMOVE:
        nothing = Dataset([], repeated=True)
        for each in alone:
            yield nothing, each
        return
    number = len(pool)
    partners = range(1, number) if everything and number <= 128 else rng.integers(1, number, 4).tolist()
    for i, each in enumerate(alone):
        for step in partners:
            yield each, alone[(i + step) % number]


def _pair(pool: Pool, relation: Relation, rng: np.random.Generator, size: int, place: int) -> Pair:
    """``size`` records, and the same with one more at ``place``, or with one replaced there."""
    others = [pool[i] for i in rng.integers(0, len(pool), size)]
    one, another = (pool[i] for i in rng.integers(0, len(pool), 2))
    left = [*others[:place], one, *others[place:]]
    if relation is Relation.REPLACE:
        return _laid_out(left, rng), _laid_out([*others[:place], another, *others[place:]], rng)
    if rng.random() < 0.25:
        return _laid_out(left, rng), Dataset(_split(left, rng), removed=[one], threads=_threads(rng))
    return _laid_out(left, rng), _laid_out(others, rng)


def _laid_out(records: list[object], rng: np.random.Generator) -> Dataset:
    return Dataset(_split(records, rng), threads=_threads(rng))


def _split(records: list[object], rng: np.random.Generator) -> list[list[object]]:
    """One batch, or two, or several."""
    number = len(records)
    cuts = np.sort(rng.integers(1, number, rng.integers(0, 4))).tolist() if number > 1 else []
    edges = [0, *cuts, number]
    return [records[a:b] for a, b in pairwise(edges) if a < b]


def _threads(rng: np.random.Generator) -> int:
    return int(rng.choice([1, 2, 3]))
