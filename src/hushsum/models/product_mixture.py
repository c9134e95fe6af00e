"""A mixture of products of columns, fitted to noisy marginals: post-processing, which spends nothing."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats

Codes = NDArray[np.int32]
Pair = tuple[int, int]

PARTS: Final = 5
"""Mixtures that are fitted from different starts; their mean errs less, since each follows other noise."""
MOST_COMPONENTS: Final = 100
FEWEST_COMPONENTS: Final = 64
"""Of a part; as many as there are labels between the two."""
ITERATIONS: Final = 1000
RATE: Final = 0.1
IMPLIED_WEIGHT: Final = 0.1
"""How much a pair that was not released counts against one that was: it is implied by others."""
_BELOW_ONE: Final = 1.0 - 2.0**-20
UNITS: Final = 1 << 24
"""Probabilities are stored as whole numbers of this part."""


@dataclass(frozen=True, slots=True, eq=False)
class ProductMixture:
    """Components of equal weight; within a component the columns are independent.

    ``tables`` has a row for each component and the labels of all columns side by side; those of one column
    add up to 1. Any marginals of records can be written so, given enough components.
    """

    sizes: tuple[int, ...]
    tables: Floats

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where each column begins in a row, and where the last one ends."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    def column(self, i: int) -> Floats:
        """The probabilities of a column's labels in every component."""
        starts = self.starts
        return self.tables[:, starts[i] : starts[i + 1]]

    def marginal(self, members: Sequence[int]) -> Floats:
        """The marginal of one or two columns, as probabilities."""
        if len(members) == 1:
            return np.asarray(self.column(members[0]).mean(axis=0))
        one, two = (self.column(i) for i in members)
        return np.asarray(one.T @ two) / len(self.tables)

    def log_probability(self, codes: Codes) -> Floats:
        """The logarithm of the probability of each record's labels."""
        total = np.zeros((len(codes), len(self.tables)))
        for i in range(len(self.sizes)):
            total += np.log(np.maximum(self.column(i), 1e-12)).T[codes[:, i]]
        largest = total.max(axis=1, keepdims=True)
        return np.asarray(largest[:, 0] + np.log(np.exp(total - largest).mean(axis=1)))

    def sample(self, number: int, random: np.random.Generator) -> Codes:
        """Labels of so many records, each component drawn equally often up to one.

        The draws of a column within a component are stratified: each alone has the law of the component, and
        together they have its frequencies up to one record. They are in the order of a Sobol sequence, which
        is moved by a random shift for each component, so that those of two columns are spread evenly over the
        products of both. That leaves less sampling error than independent draws.
        """
        many = len(self.tables)
        rest = random.permutation(many)[: number % many]
        component = random.permutation(np.concatenate([np.repeat(np.arange(many), number // many), rest]))
        often = np.bincount(component, minlength=many)
        first = np.cumsum(often) - often
        turn = np.empty(number, np.int64)
        turn[np.argsort(component, kind="stable")] = np.arange(number)
        turn -= first[component]
        even = _sobol(int(often.max()), len(self.sizes))
        shift = random.random((many, len(self.sizes)))
        codes = np.empty((number, len(self.sizes)), np.int32)
        for i, size in enumerate(self.sizes):
            steps = np.cumsum(self.column(i), axis=1)
            steps /= steps[:, -1:]
            # All components in one sorted list, component k in [k, k + 1].
            places = (steps + np.arange(many)[:, None]).ravel()
            ranks = np.empty(number, np.int64)
            at = (even[turn, i] + shift[component, i]) % 1.0
            ranks[np.lexsort((at, component))] = np.arange(number)
            within = (ranks - first[component] + random.random(number)) / often[component]
            found = np.searchsorted(places, component + np.minimum(within, _BELOW_ONE), side="right")
            codes[:, i] = np.clip(found - component * size, 0, size - 1)
        return codes

    def as_units(self) -> NDArray[np.int64]:
        """The tables as whole numbers, for a file."""
        return np.rint(self.tables * UNITS).astype(np.int64)

    @classmethod
    def from_units(cls, sizes: Sequence[int], units: NDArray[np.int64]) -> ProductMixture:
        """The mixture of a file; ValueError if it is none."""
        tables = np.asarray(units, np.float64)
        if tables.ndim != 2 or not len(tables) or tables.shape[1] != sum(sizes) or (tables < 0).any():
            raise ValueError("mixture")
        mixture = cls(tuple(sizes), tables)
        for i in range(len(sizes)):
            total = mixture.column(i).sum(axis=1, keepdims=True)
            if (total <= 0).any():
                raise ValueError("mixture")
            mixture.column(i)[:] /= total
        return mixture


def fit_mixture(
    sizes: Sequence[int], single: Sequence[Floats], pairs: Mapping[Pair, Floats], *, seed: int
) -> ProductMixture:
    """The mixture whose marginals are nearest to noisy ones, which are in units of probability.

    Least squares by gradient steps (Adam) on the logarithms of the probabilities, so that what is fitted is
    never negative and always consistent. Gram's matrix of the tables holds all marginals of two columns at
    once. A pair that was not released is implied by those on the path between its columns in a spanning tree
    of the released pairs, as in a Markov tree, and counts a tenth; without a path the columns are taken to be
    independent. The number of steps is fixed and small: more of them follow the noise. The result is the mean
    of several such mixtures, which are fitted from different starts.

    Notes
    -----
    Aydore et al., *Differentially private query release through adaptive projection*, ICML 2021, and Liu,
    Vietri and Wu, *Iterative methods for private synthetic data*, NeurIPS 2021, fit such mixtures; McKenna,
    Sheldon and Miklau, *Graphical-model based estimation*, ICML 2019, fit graphical models instead, whose
    cost grows exponentially where many pairs are released.
    """
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    width = int(starts[-1])
    goal, weight = np.zeros((width, width), np.float32), np.zeros((width, width), np.float32)
    ones = [_simplex(each) for each in single]
    released = {pair: _simplex(values.ravel()).reshape(values.shape) for pair, values in pairs.items()}
    tree = _implied(ones, released)
    for i, j in itertools.combinations(range(len(sizes)), 2):
        known = (i, j) in pairs
        values = pairs[i, j] if known else tree[i, j]
        rows, columns = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
        goal[rows, columns], goal[columns, rows] = values, values.T
        weight[rows, columns] = weight[columns, rows] = 1.0 if known else IMPLIED_WEIGHT
    level = np.concatenate(single).astype(np.float32)
    many = int(np.clip(width, FEWEST_COMPONENTS, MOST_COMPONENTS))
    random = np.random.default_rng(seed)
    logits = random.standard_normal((PARTS, many, width)).astype(np.float32)
    logits += np.log(np.maximum(np.concatenate(ones), 1e-4)).astype(np.float32)
    first, second = np.zeros_like(logits), np.zeros_like(logits)
    edges = starts[:-1]
    for step in range(1, ITERATIONS + 1):
        tables = _normalised(logits, edges, sizes)
        residual = weight * (tables.transpose(0, 2, 1) @ tables / many - goal)
        slope = (2.0 * tables @ residual + (tables.mean(axis=1, keepdims=True) - level)) / many
        slope = tables * (slope - np.add.reduceat(tables * slope, edges, axis=2).repeat(sizes, axis=2))
        first += 0.1 * (slope - first)
        second += 0.01 * (slope * slope - second)
        rate = RATE * np.sqrt(1.0 - step / ITERATIONS) if step > 0.3 * ITERATIONS else RATE
        move = (first / (1.0 - 0.9**step)) / (np.sqrt(second / (1.0 - 0.99**step)) + 1e-12)
        logits -= np.float32(rate) * move
    fitted = _normalised(logits, edges, sizes).reshape(-1, width).astype(np.float64)
    return ProductMixture.from_units(sizes, ProductMixture(tuple(sizes), fitted).as_units())


def _sobol(number: int, columns: int) -> Floats:
    """The first points of a Sobol sequence, shape (number, columns)."""
    from scipy.stats.qmc import Sobol

    points: Floats = Sobol(columns, scramble=False).random_base2((number - 1).bit_length())
    return points[:number]


def _normalised(logits: NDArray[np.float32], edges: NDArray[np.int64], sizes: Sequence[int]) -> Floats:
    powers = np.exp(logits - np.maximum.reduceat(logits, edges, axis=2).repeat(sizes, axis=2))
    return np.asarray(powers / np.add.reduceat(powers, edges, axis=2).repeat(sizes, axis=2))


def _simplex(values: Floats) -> Floats:
    """The nearest probabilities, in squared distance (Duchi et al. 2008)."""
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - 1.0) / np.arange(1, len(values) + 1)
    last = int(np.flatnonzero(ordered > excess)[-1])
    return np.asarray(np.maximum(values - excess[last], 0.0))


def _implied(single: Sequence[Floats], pairs: Mapping[Pair, Floats]) -> dict[Pair, Floats]:
    """The marginals of all pairs in a Markov forest: the spanning forest of strongest dependence."""
    number = len(single)
    found: dict[Pair, Floats] = {}
    part = list(range(number))

    def strength(pair: Pair) -> float:
        joint = pairs[pair]
        return -float(np.abs(joint - np.outer(joint.sum(axis=1), joint.sum(axis=0))).sum())

    def given(i: int, j: int) -> Floats:
        """The probabilities of column j given column i; those of column j alone where there is no data."""
        joint = found[i, j] if i < j else found[j, i].T
        total = joint.sum(axis=1, keepdims=True)
        return np.asarray(np.where(total > 0.0, joint / np.where(total > 0.0, total, 1.0), single[j]))

    for i, j in sorted(pairs, key=strength):
        if part[i] == part[j]:
            continue
        left = [k for k in range(number) if part[k] == part[i]]
        right = [k for k in range(number) if part[k] == part[j]]
        found[i, j] = pairs[i, j]
        for a in left:
            for b in right:
                if (a, b) != (i, j):
                    joint = found[i, j] if a == i else given(i, a).T @ found[i, j]
                    joint = joint if b == j else joint @ given(j, b)
                    found[min(a, b), max(a, b)] = joint if a < b else joint.T
        part = [part[i] if each == part[j] else each for each in part]
    for i, j in itertools.combinations(range(number), 2):
        found.setdefault((i, j), np.outer(single[i], single[j]))
    return found
