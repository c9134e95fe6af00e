"""A tally of marginals of mixed columns, and the public rule for which of them it counts."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final

from hushsum.errors import UsageError
from hushsum.kernels import HammingKernel, positive_integer
from hushsum.records import DeclaredColumn
from hushsum.tables import MOST_CELLS, MOST_COLUMNS, Marginals
from hushsum.tally import Tally

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
        What each column holds: `CategoryColumn`, `FlagColumn` or `NumberColumn`. Frames and tables are read
        by the names of a dictionary; arrays by position.
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
        rule = "must be CategoryColumn, FlagColumn or NumberColumn, at least one"
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
