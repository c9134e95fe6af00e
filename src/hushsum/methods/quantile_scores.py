"""How many records lie below each point of a declared grid: what a private quantile is chosen by."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.privacy.claim import Relation


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ranks:
    """For each grid point, the number of records below it and the number not above it; secret."""

    below: NDArray[np.int64]
    not_above: NDArray[np.int64]
    count: int

    @classmethod
    def of(cls, values: Floats, grid: Floats) -> Ranks:
        """Compare every value with the grid, in double precision; a record's part depends on it alone."""
        points = len(grid)
        left = np.bincount(np.searchsorted(grid, values, side="right"), minlength=points + 1)
        right = np.bincount(np.searchsorted(grid, values, side="left"), minlength=points + 1)
        # searchsorted(side="right") ≤ j means value < grid[j]; side="left" ≤ j means value ≤ grid[j].
        below = np.cumsum(left)[:points].astype(np.int64)
        not_above = np.cumsum(right)[:points].astype(np.int64)
        return cls(below, not_above, len(values))

    def __repr__(self) -> str:
        return f"<Ranks CONFIDENTIAL points={len(self.below)}>"

    def scores(self, q: Fraction) -> list[int]:
        """How near each point is to the q-quantile: minus the distance in ranks, times q's denominator.

        With q = a/b, L records below a point g, E at it and G above, the point is exact if
        ``L ≤ q·n ≤ L + E``. The score is ``−max(b·L − a·n, a·n − b·(L+E), 0)``, n = L + E + G; integers.

        Privacy
        -------
        ``b·L − a·n = (b−a)·L − a·E − a·G`` and ``a·n − b(L+E) = a·G − (b−a)·(L+E)``: a record more moves each
        by a or by b − a, up or down, and so their maximum by at most max(a, b−a). A record replaced leaves n
        alone and moves b·L and b·(L+E) by at most b. See `rank_sensitivity`.
        """
        target = q.numerator * self.count
        short = target - q.denominator * self.not_above
        over = q.denominator * self.below - target
        scores: list[int] = (-np.maximum(np.maximum(short, over), 0)).tolist()
        return scores


def rank_sensitivity(q: Fraction, relation: Relation, records_per_unit: int) -> int:
    """How far one unit moves a score of `Ranks.scores`: max(a, b−a) for a record more, b for one replaced.

    A person with up to m records is m records more, or m replaced.

    >>> rank_sensitivity(Fraction(1, 100), Relation.ADD_REMOVE, 1)
    99
    """
    a, b = q.numerator, q.denominator
    return (max(a, b - a) if relation is Relation.ADD_REMOVE else b) * records_per_unit
