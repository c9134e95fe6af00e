"""Released points: public, weighted, with kernel sums that stand for those of the private records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hushsum._types import Floats, PathOrFile
from hushsum.bases.bins import cell_errors
from hushsum.errors import UsageError
from hushsum.kernels.base import Batch, Kernel
from hushsum.releases.answers import (
    Answers,
    Quotient,
    check_question,
    normal_answers,
    query_points,
    quotient_answers,
)
from hushsum.releases.point_errors import MOST_POINTS, FeatureErrors, PrincipalErrors
from hushsum.releases.presentation import UNKNOWN_ERRORS, Detail
from hushsum.releases.real_function import RealFunction, check_kernel

_CELLS_AT_A_TIME = 1 << 21
_QUERIES_AT_A_TIME = 512


@dataclass(frozen=True, eq=False, kw_only=True)
class PointsFunction(RealFunction):
    """Weighted public points, answering ``Σ w·k(p, q)`` for any query and any kernel.

    Made by a method such as ``histogram`` or ``mwem``, or by ``hushsum.load``; not by hand. The points are
    synthetic: none of them is a record.

    Parameters
    ----------
    points : array of shape (n_points, dim)
        In the units of the data, inside ``bounds``.
    weights : array of shape (n_points,)
        They sum to about the number of records; some may be negative.
    kernel, bounds, count, count_variance, claim, method, producer, columns
        As for `RealFunction`.
    weight_variance : float or None
        The variance of the noise in every weight, where it is independent over the points; None otherwise.
    cell_width : tuple of float, optional
        Of points that are middles of cells: the cells' widths, for the error of reading records there.
    feature_errors : FeatureErrors, optional
        Of points whose weights were fitted to noisy functions of them, for at most 4096 points.

    Notes
    -----
    Where neither ``weight_variance`` nor ``feature_errors`` is known, the errors of answers are NaN.

    Privacy
    -------
    Points and weights were computed from what was released, so using them spends nothing.
    """

    points: Floats
    weights: Floats
    weight_variance: float | None
    cell_width: tuple[float, ...] | None = None
    feature_errors: FeatureErrors | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.points.ndim != 2 or self.points.shape != (len(self.weights), self.bounds.dim):
            raise UsageError(
                parameter="points",
                rule="must have one row a weight and one column a bound",
                remedy="give both alike",
            )
        for array in (self.points, self.weights):
            array.flags.writeable = False

    def __repr__(self) -> str:
        return self._shown(f"points={len(self.weights)}")

    def __call__(self, Q: object) -> Floats:
        """Mean kernel values f(q)/N̂, shape (n_queries,)."""
        return self.sum(Q) / max(self.count, 1.0)

    def sum(self, Q: object) -> Floats:
        """Kernel sums Σ w·k(p, q), shape (n_queries,); costs points × queries."""
        return self._sums(Q, squares=False)[0]

    def query(
        self,
        Q: object,
        *,
        of: str = "mean",
        level: float = 0.95,
        simultaneous: bool = False,
        threads: int = 1,
    ) -> Answers:
        """Values with standard errors and intervals; NaN where the method has no error estimate.

        ``of`` is ``"mean"`` for f(q)/N̂ or ``"sum"`` for f(q). ``f.describe()`` says what error bars contain.
        """
        check_question(of, level)
        points = query_points(Q, dim=self.dim, columns=self.columns)
        sums, squares = self._sums(points, squares=self.weight_variance is not None)
        number = max(self.count, 1.0)
        if self.weight_variance is not None:
            variance = self.weight_variance * squares
            if self.cell_width is not None:
                variance += self._cell_errors(points)
        elif self._principal is not None:
            variance = number**2 * self._principal.variance(self._queries(points), sums / number)
        else:
            variance = np.full(len(sums), np.nan)
        if of == "mean":
            mean = Quotient(sums, number, variance, self.count_variance)
            return quotient_answers(mean, level, points, simultaneous=simultaneous)
        return normal_answers(sums, np.sqrt(variance), level, points, simultaneous=simultaneous)

    def details(self) -> tuple[Detail, ...]:
        """The method and the number of points."""
        number = len(self.weights)
        return (
            Detail("method", self.method, self.method),
            Detail("points", number, f"{number} synthetic points with weights"),
            Detail("weight_variance", self.weight_variance),
            Detail("error_bars", self._error_bars(), self._error_bars(), label="error bars"),
        )

    def _error_bars(self) -> str:
        if self.cell_width is not None:
            return "noise, and records read at the middles of cells"
        if self._knows_features:
            return "noise, and an estimate of what the points do not show"
        if self.weight_variance is None:
            return UNKNOWN_ERRORS
        return "noise alone"

    def with_kernel(self, kernel: Kernel) -> PointsFunction:
        """The same points under another kernel or bandwidth; spends nothing."""
        check_kernel(kernel, self.bounds.dim)
        same = kernel == self.kernel
        if same:
            return self
        return replace(self, kernel=kernel, feature_errors=None)

    def save(self, target: PathOrFile) -> None:
        """Write a ``.hush`` file; to a path atomically."""
        from hushsum.releases.real_function_file import save_points

        save_points(self, target)

    @cached_property
    def _live(self) -> tuple[Floats, Floats]:
        """Points of a weight, centred on the box as queries are, and their weights."""
        used = self.weights != 0.0
        return self.points[used] - self.bounds.centre, self.weights[used]

    @property
    def _knows_features(self) -> bool:
        return self.feature_errors is not None and len(self.points) <= MOST_POINTS

    @cached_property
    def _principal(self) -> PrincipalErrors | None:
        if self.feature_errors is None or not self._knows_features:
            return None
        shares = self.weights / max(self.count, 1.0)
        return PrincipalErrors(self.kernel, self.points - self.bounds.centre, shares, self.feature_errors)

    def _queries(self, Q: object) -> Floats:
        rows = self.kernel.prepare(Q, self.bounds, clip=False, columns=self.columns).arrays[0]
        return rows.astype(np.float64)

    def _cell_errors(self, Q: object) -> Floats:
        """The squared error of reading records at the middles of cells, from the noisy weights."""
        assert self.cell_width is not None
        queries, centres = self._queries(Q), self.points - self.bounds.centre
        errors, width = np.zeros(len(queries)), np.array(self.cell_width)
        step = max(1, _CELLS_AT_A_TIME // len(centres))
        for start in range(0, len(queries), step):
            part = queries[start : start + step]
            errors[start : start + step] = cell_errors(
                self.kernel, centres, width, self.weights, Batch((part,), len(part))
            )
        return errors

    def _sums(self, Q: object, *, squares: bool) -> tuple[Floats, Floats]:
        """Σ w·k and, if requested, Σ k² over all points, some points and queries at a time."""
        queries = self._queries(Q)
        points, weights = self._live
        if squares:
            points, weights = self.points - self.bounds.centre, self.weights
        sums, gains = np.zeros(len(queries)), np.zeros(len(queries))
        step = max(1, _CELLS_AT_A_TIME // min(len(queries), _QUERIES_AT_A_TIME))
        for j in range(0, len(queries), _QUERIES_AT_A_TIME):
            part = slice(j, j + _QUERIES_AT_A_TIME)
            batch = Batch((queries[part],), len(queries[part]))
            for i in range(0, len(points), step):
                some = points[i : i + step]
                values = self.kernel._pairwise(Batch((some,), len(some)), batch)
                sums[part] += weights[i : i + step] @ values
                if squares:
                    gains[part] += np.einsum("ij,ij->j", values, values)
        return sums, gains
