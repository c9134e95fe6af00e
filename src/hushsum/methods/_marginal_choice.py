"""The private choice of marginals to release: a spanning tree of pairs of dependent columns."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum.kernels import HammingKernel
from hushsum.privacy import Question, ReleaseNoise
from hushsum.tables import Marginals
from hushsum.tally import Tally, exact_cells, with_cells

FINENESS = 1 << 10
"""Scores are counted in 1024ths of a record, rounded down."""

_MOST_IN_64_BITS = 1 << 31
SCORE_SENSITIVITY = 2 * FINENESS
"""How far one record present or absent moves a score; proven in `dependence_of_counts`."""


def chosen_tree(tally: Tally, epsilon: Fraction, noise: ReleaseNoise) -> list[int]:
    """The marginals of single columns and a private spanning tree of pairs. Spends ``epsilon``.

    Edges are chosen one after the other, as Kruskal's algorithm does, by permute-and-flip with the score of
    `dependence_of_counts`, among the counted pairs that join two parts of the forest. What is returned is
    public; the scores are not.

    Privacy
    -------
    Unit: one record of a tally without persons. Neighbours: add/remove. There are as many choices as columns
    less one, or fewer where the counted pairs do not connect them, a public number; each spends an equal part
    of ``epsilon``, and parts add up. Which pairs are candidates depends on earlier choices alone.

    Notes
    -----
    McKenna, Miklau and Sheldon, *Winning the NIST contest: a scalable and general approach to differentially
    private synthetic data*, 2021, choose a tree by the exponential mechanism.
    """
    basis = tally.basis
    assert isinstance(basis, Marginals)
    positions = {members: i for i, members in enumerate(basis.sets)}
    single = [position for members, position in positions.items() if len(members) == 1]
    pairs = [members for members in positions if len(members) == 2]
    edges = _tree_size(pairs, len(basis.encodings))
    if not edges:
        return single
    table = exact_cells(tally)
    scores = {
        pair: dependence_of_counts(np.asarray(basis.marginal(table, positions[pair]), np.int64))
        for pair in pairs
    }
    part = list(range(len(basis.encodings)))
    chosen: list[int] = []
    for _ in range(edges):
        open_ = [(i, j) for i, j in pairs if part[i] != part[j]]
        question = Question([scores[pair] for pair in open_], epsilon / edges, SCORE_SENSITIVITY)
        i, j = open_[noise.choice(question)]
        chosen.append(positions[i, j])
        part = [part[i] if each == part[j] else each for each in part]
    return sorted(single + chosen)


def _tree_size(pairs: Sequence[tuple[int, ...]], columns: int) -> int:
    part = list(range(columns))
    for i, j in pairs:
        part = [part[i] if each == part[j] else each for each in part]
    return columns - len(set(part))


def tree_marginals(columns: int, pairs: Sequence[tuple[int, ...]]) -> int:
    """How many marginals `chosen_tree` returns where every column alone is counted; public."""
    return columns + _tree_size(pairs, columns)


def only_chosen(tally: Tally, chosen: Sequence[int]) -> Tally:
    """A tally of some of the marginals, over the same records; secret."""
    basis = tally.basis
    assert isinstance(basis, Marginals)
    fewer, cells = basis.only(chosen)
    return with_cells(tally, fewer, HammingKernel(dim=len(basis.encodings)), cells)


def dependence_of_counts(counts: NDArray[np.int64]) -> int:
    """How many records would have to move to make two columns independent, in 1024ths; secret.

    With counts c(x, π) of the pairs of values, marginals a(x) and b(π) and n records it is
    ``½·Σ|c(x, π) − a(x)·b(π)/n|``, n times the score R of PrivBayes, rounded down.

    Privacy
    -------
    One record more, at (x₀, π₀), moves it by less than 2. Σ|c| changes by 1. The product becomes
    ``(a + e_x)(b + e_π)/(n + 1)``, which differs from ``ab/n`` by ``−ab/(n(n + 1)) + (a·e_π + e_x·b +
    e_x·e_π)/(n + 1)``, in L1 by at most ``(n + 2n + 1)/(n + 1) < 3``. So the half sum moves by less than
    (1 + 3)/2, and the rounded one by at most 2·1024. A record replaced is one less and one more: twice that.
    The sum is computed in integers, as ``Σ|n·c − a·b|``.

    >>> dependence_of_counts(np.array([[50, 0], [0, 50]])) / FINENESS
    50.0
    """
    records = int(counts.sum())
    if not records:
        return 0
    table = exact_counts(counts, records)
    product = np.outer(table.sum(axis=1), table.sum(axis=0))
    return int(np.abs(records * table - product).sum()) * FINENESS // (2 * records)


def exact_counts(counts: NDArray[Any], records: int) -> NDArray[Any]:
    """Counts whose products do not overflow: the sums of a score are below 2·records².

    >>> many = np.diag([1 << 33] * 2)
    >>> dependence_of_counts(many) == (1 << 33) * FINENESS
    True
    """
    return counts if records < _MOST_IN_64_BITS else counts.astype(object)
