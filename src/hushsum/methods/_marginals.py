"""A tally of marginals of mixed columns, the public rule for which of them it counts, and the private choice
of those to release: a spanning tree of pairs of dependent columns.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import UsageError
from hushsum.kernels import HammingKernel, positive_integer
from hushsum.privacy import Question, ReleaseNoise
from hushsum.records import DeclaredColumn
from hushsum.tables import MOST_CELLS, MOST_COLUMNS, Marginals
from hushsum.tally import Tally, exact_cells, with_cells

__all__ = [
    "DEFAULT_CELLS", "FINENESS", "SCORE_SENSITIVITY", "all_pairs", "chosen_tree", "dependence_of_counts",
    "exact_counts", "marginals", "only_chosen", "positions_of", "tree_marginals",
]  # fmt: skip

DEFAULT_CELLS: Final = 1 << 16
"""The largest marginal of two columns that the public rule counts."""


def marginals(
    columns: Mapping[str, DeclaredColumn] | Sequence[DeclaredColumn],
    *,
    sets: Sequence[Sequence[str | int]] | None = None,
    most_cells: int = DEFAULT_CELLS,
    max_per_unit: int | None = None,
) -> Tally:
    """An empty tally of marginals: counts of mixed columns, alone and in pairs.

    Works well for tables of some tens of columns with up to some tens of labels each. The noise of a cell
    grows with the number of marginals: as its root with δ or ρ, and linearly under pure ε.

    Parameters
    ----------
    columns : dict of str to column, or list of columns
        What each column holds: `CategoryColumn`, `DateColumn`, `FlagColumn` or `NumberColumn`. Frames and
        tables are read by the names of a dictionary; arrays by position.
    sets : list of lists of columns, optional
        The columns of each marginal, by name or position. Default: every column, and every two columns whose
        marginal has at most ``most_cells`` cells.
    most_cells : int
        See ``sets``.
    max_per_unit : int, optional
        As for `race`: at most this many records of a person are counted, and the person is protected.

    Returns
    -------
    Tally
        Read with the Hamming kernel: with power 2, where all pairs are counted, otherwise with power 1, for
        which every column alone must be.

    Privacy
    -------
    See `hushsum.tables._marginals.Marginals`: with m marginals Δ1 = m and Δ2 = √m.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.models import CategoryColumn, NumberColumn
    >>> columns = {"age": NumberColumn(0, 100, bins=4), "sex": CategoryColumn(["f", "m"])}
    >>> tally = hs.methods.marginals(columns)
    >>> f = tally.add([[30, "f"], [70, "m"]] * 5000).release(epsilon=1.0, delta=1e-6)
    >>> bool(f([[30, "f"]])[0] > 1.5 * f([[30, "m"]])[0])
    True
    >>> hs.PrivateSynthesizer().fit_released(f).sample(3, random_state=0).num_rows
    3
    """
    declared = list(columns.values()) if isinstance(columns, Mapping) else list(columns)
    names = [str(name) for name in columns] if isinstance(columns, Mapping) else None
    if not 1 <= len(declared) <= MOST_COLUMNS or not all(
        isinstance(each, DeclaredColumn) for each in declared
    ):
        rule = "must be CategoryColumn, DateColumn, FlagColumn or NumberColumn, at least one"
        raise UsageError("columns", rule, got="something else", remedy="declare each column")
    sizes = [each.size for each in declared]
    limit = positive_integer("most_cells", most_cells, at_most=MOST_CELLS)
    chosen = all_pairs(sizes, limit) if sets is None else positions_of(sets, len(declared), names)
    basis = Marginals.of(declared, chosen, names)
    counted = set(chosen)
    every_pair = all(pair in counted for pair in itertools.combinations(range(len(declared)), 2))
    every_column = all((i,) in counted for i in range(len(declared)))
    kernel = HammingKernel(dim=len(declared), power=2 if every_pair and every_column else 1)
    return Tally(basis, kernel, max_per_unit=max_per_unit)


def all_pairs(sizes: Sequence[int], most_cells: int = DEFAULT_CELLS) -> list[tuple[int, ...]]:
    """The public rule: every column alone, and every two of which the marginal is small enough.

    >>> all_pairs([2, 3, 1000], most_cells=100)
    [(0,), (1,), (2,), (0, 1)]
    """
    single: list[tuple[int, ...]] = [(i,) for i in range(len(sizes))]
    pairs = itertools.combinations(range(len(sizes)), 2)
    return single + [(i, j) for i, j in pairs if sizes[i] * sizes[j] <= most_cells]


def positions_of(
    sets: Sequence[Sequence[str | int]], dim: int, names: Sequence[str] | None
) -> list[tuple[int, ...]]:
    """Sets of columns as rising positions.

    >>> positions_of([["b", "a"], [0]], 2, ["a", "b"])
    [(0, 1), (0,)]
    """
    known: dict[Any, int] = {i: i for i in range(dim)}
    known |= {name: i for i, name in enumerate(names or ())}
    try:
        return [tuple(sorted(known[each] for each in given)) for given in sets]
    except (KeyError, TypeError):
        pass
    raise UsageError(
        "sets",
        "must be lists of declared columns, by name or position",
        got="others" if isinstance(sets, Sequence) else type(sets).__name__,
        remedy='write for example [["age"], ["age", "sex"]]',
    )


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
