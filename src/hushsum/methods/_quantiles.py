"""Private quantiles and bounds, chosen by how many records lie below each point of a declared grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.declaration import shows_keywords
from hushsum.errors import DataRefused, UsageError
from hushsum.kernels import check_cap
from hushsum.privacy import PERMUTE_AND_FLIP, Claim, Question, Relation, exact
from hushsum.records import Bounds, DeclaredBounds, ParameterCheck, UnitCap, column_names_of, numbers_of

from ._private_choice import ChoiceKeywords, ChoiceRequest

__all__ = ["PrivateBounds", "Ranks", "private_bounds", "private_quantiles", "rank_sensitivity"]


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


Pair = tuple[float, float]

MOST_STEPS = 1 << 16
_LARGEST_DENOMINATOR = 1_000_000


@dataclass(frozen=True, slots=True)
class PrivateQuantiles:
    """Quantiles that were paid for: ``values[j][i]`` is the ``q[i]``-quantile of column j; public."""

    q: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]
    claim: Claim


@dataclass(frozen=True, slots=True)
class PrivateBounds(Sequence[Pair]):
    """Bounds that a release chose privately, one pair (low, high) per column, in the form that ``bounds=``
    takes; public.
    """

    pairs: tuple[Pair, ...]
    claim: Claim

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: Any) -> Any:
        return self.pairs[index]


@shows_keywords(ChoiceKeywords, relation=Relation.ADD_REMOVE)
def private_quantiles(
    X: object,
    q: float | Sequence[float],
    *,
    bounds: DeclaredBounds,
    epsilon: float,
    grid: int | Sequence[float] | Floats = 1000,
    units: object = None,
    **keywords: Unpack[ChoiceKeywords],
) -> PrivateQuantiles:
    """Quantiles of every column, each a point of a declared grid. Spends ``epsilon``.

    Works well where many records lie between two grid points' ranks: a quantile is off by about
    ``2·(columns·quantiles/epsilon)·ln(steps)`` ranks. With few records, or hundreds of columns, it is noise.

    Parameters
    ----------
    X : records of shape (n, columns)
        Private; arrays, frames or Arrow data of numbers.
    q : float or list of float
        From 0 to 1.
    bounds : (low, high) for all columns, a list of them, or a dictionary by column name
        Declared: what a value may be at all. They may be wide; a grid of even steps then is coarse.
    epsilon : float
        For all columns and quantiles together; each gets an equal share, exactly.
    grid : int or list of float
        Even steps between the bounds, or the points themselves, the same for all columns (for instance
        ``np.geomspace(1, 1e9, 200)`` for incomes).
    units
        Whose records they are, as for ``Tally.add``; with ``max_per_unit``.
    **keywords
        ``relation``, ``max_per_unit``, ``budget``, ``idempotency_key`` and ``insecure_noise_seed`` as for
        ``Tally.release``.

    Raises
    ------
    UsageError, ClaimError
        if a parameter breaks its rule.
    DataRefused
        if the records are not finite numbers.
    BudgetExhausted
        if the budget has too little left; nothing is released.

    Privacy
    -------
    Pure ε. For each column and quantile one grid point is chosen by permute-and-flip with rank scores (Smith
    2011), exact integers; the score's sensitivity is proven in ``Ranks.scores``, and the shares add up. The
    values are then put in order, which spends nothing.

    Examples
    --------
    >>> ages = [[float(age)] for age in range(18, 90)] * 100
    >>> private_quantiles(ages, [0.5], bounds=(0, 120), epsilon=1.0, grid=120, insecure_noise_seed=1).values
    ((53.0,),)
    """
    levels = _quantiles(q)
    bounds = _in_order(bounds, X)
    columns = _columns(X, bounds)
    grids = _grids(bounds, columns, grid)
    cap = keywords.get("max_per_unit")
    check_cap(units, cap)
    request = ChoiceRequest.of(PERMUTE_AND_FLIP, epsilon, **keywords)
    claim, share = request.claim, request.epsilon / (columns * len(levels))
    values = _values(X, columns, units, cap)
    ParameterCheck(Bounds.of(bounds, columns), columns=column_names_of(X)).warn(values)

    def make() -> dict[str, object]:
        questions = []
        for column, points in enumerate(grids):
            ranks = Ranks.of(values[:, column], points)
            for each in levels:
                moved = rank_sensitivity(each, claim.relation, claim.records_per_unit)
                questions.append(Question(ranks.scores(each), share, moved))
        chosen = iter(request.positions(questions))
        return {
            "values": [_by_rank([float(points[next(chosen)]) for _ in levels], levels) for points in grids]
        }

    subject: dict[str, object] = {
        "choice": "quantiles",
        "q": [str(each) for each in levels],
        "grid": [[float(points[0]), float(points[-1]), len(points)] for points in grids],
    }
    result = request.spend(subject, make)
    return PrivateQuantiles(
        q=tuple(float(each) for each in levels),
        values=tuple(tuple(row) for row in result["values"]),
        claim=claim,
    )


@shows_keywords(ChoiceKeywords, relation=Relation.ADD_REMOVE)
def private_bounds(
    X: object,
    *,
    within: DeclaredBounds,
    epsilon: float,
    tail: float = 0.01,
    grid: int | Sequence[float] | Floats = 1000,
    units: object = None,
    **keywords: Unpack[ChoiceKeywords],
) -> PrivateBounds:
    """Bounds for every column that leave about ``tail`` of the records out on each side. Spends ``epsilon``.

    The ``tail`` and ``1 − tail`` quantiles, moved one grid point outwards; parameters as for
    :func:`private_quantiles`, with ``within`` for the widest bounds that can be, which are declared.

    Works well where ``tail`` times the number of records is well above ``4·columns/epsilon·ln(steps)`` ranks.
    Below that a bound may land anywhere in the empty part of a wide range: take a larger tail or fewer steps.

    Examples
    --------
    >>> import hushsum as hs
    >>> ages = [[float(age)] for age in range(18, 90)] * 100
    >>> bounds = hs.private_bounds(ages, within=(0, 120), epsilon=1.0, grid=120, insecure_noise_seed=1)
    >>> list(bounds)
    [(17.0, 90.0)]
    >>> tally = hs.race(hs.EuclideanKernel(dim=1, bandwidth=5.0), bounds=bounds)
    """
    within = _in_order(within, X)
    share = exact("tail", tail)
    if not 0 < share < Fraction(1, 2):
        raise UsageError("tail", "must be above 0 and below 0.5", got=f"{tail:g}", remedy="try 0.01")
    levels = [float(share), float(1 - share)]
    found = private_quantiles(X, levels, bounds=within, epsilon=epsilon, grid=grid, units=units, **keywords)
    grids = _grids(within, len(found.values), grid)
    pairs = []
    for (low, high), points in zip(found.values, grids, strict=True):
        first = max(int(np.searchsorted(points, low)) - 1, 0)
        last = min(int(np.searchsorted(points, high)) + 1, len(points) - 1)
        pairs.append((float(points[first]), float(points[last])))
    return PrivateBounds(tuple(pairs), found.claim)


def _quantiles(q: float | Sequence[float]) -> list[Fraction]:
    try:
        given: list[float] = np.ravel(np.asarray(q)).tolist()
    except (ValueError, TypeError):
        given = []
    if not given:
        raise UsageError(
            "q", "must name at least one quantile", got="none", remedy="give numbers such as [0.01, 0.99]"
        )
    levels = [exact("q", each) for each in given]
    for each in levels:
        if not 0 <= each <= 1:
            raise UsageError("q", "must be from 0 to 1", got=f"{float(each):g}", remedy="0.5 is the median")
        if each.denominator > _LARGEST_DENOMINATOR:
            raise UsageError("q", "must have at most six decimals", got=f"{float(each)!r}", remedy="round it")
    return levels


def _by_rank(values: list[float], levels: list[Fraction]) -> list[float]:
    """The values, each given to the quantile of its rank; post-processing."""
    places = sorted(range(len(levels)), key=lambda i: levels[i])
    return [value for _, value in sorted(zip(places, sorted(values), strict=True))]


def _in_order(bounds: DeclaredBounds, X: object) -> Sequence[Pair] | Pair:
    """Bounds by name in the order of the records' columns; others as they are."""
    if not isinstance(bounds, Mapping):
        return bounds
    box = Bounds.of(bounds, len(bounds), column_names_of(X))
    assert box is not None
    return list(zip(box.low, box.high, strict=True))


def _columns(X: object, bounds: Sequence[Pair] | Pair) -> int:
    """The number of columns, which is public: of the bounds, or of the data where one pair serves all."""
    if isinstance(bounds, Sequence | np.ndarray) and len(bounds) and np.ndim(bounds[0]):
        return len(bounds)
    shape = getattr(X, "shape", None)
    if shape is None:
        try:
            shape = np.asarray(X).shape
        except (ValueError, TypeError):
            shape = ()  # refused below, in words that show no value
    return int(shape[1]) if len(shape) > 1 else 1


def _grids(bounds: Sequence[Pair] | Pair, columns: int, grid: int | Sequence[float] | Floats) -> list[Floats]:
    box = Bounds.of(bounds, columns)
    assert box is not None
    if isinstance(grid, int) and not isinstance(grid, bool):
        if not 1 <= grid <= MOST_STEPS:
            raise UsageError(
                "grid", f"must be from 1 to {MOST_STEPS} steps", got=f"{grid}", remedy="try 1000"
            )
        return [np.linspace(low, high, grid + 1) for low, high in zip(box.low, box.high, strict=True)]
    given = np.asarray(grid)
    points = given.astype(np.float64) if given.dtype.kind in "iuf" else np.empty(0)
    if points.ndim != 1 or not 2 <= len(points) <= MOST_STEPS + 1 or not np.all(np.diff(points) > 0):
        raise UsageError(
            "grid", "must be a number of steps, or 2 or more rising points", remedy="try np.geomspace(...)"
        )
    if not np.isfinite(points).all():
        raise UsageError("grid", "must have finite points", remedy="leave infinity out")
    inside = [points[(points >= low) & (points <= high)] for low, high in zip(box.low, box.high, strict=True)]
    if any(len(each) < 2 for each in inside):
        raise UsageError(
            "grid", "must have at least 2 points within the bounds of every column", remedy="add some"
        )
    return inside


def _values(X: object, columns: int, units: object, max_per_unit: int | None) -> Floats:
    parts = numbers_of(X, dim=columns)
    values = np.concatenate([part.values.astype(np.float64) for part in parts], axis=1)
    if not np.isfinite(values).all():
        raise DataRefused(
            "records", "must be finite", got="NaN or infinity", remedy="fill them with a public constant"
        )
    if max_per_unit is None:
        return values
    kept: Floats = values[UnitCap(max_per_unit).plan(units, len(values))[0]]
    return kept
