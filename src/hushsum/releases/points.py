"""Released points: public, weighted, with kernel sums that stand for those of the private records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hushsum._types import Floats, PathOrFile
from hushsum.errors import UsageError
from hushsum.kernels.base import Batch, Kernel
from hushsum.releases.answers import Answers, check_question, normal_answers, query_points
from hushsum.releases.presentation import Detail
from hushsum.releases.real_function import RealFunction, check_kernel

_CELLS_AT_A_TIME = 1 << 21
_QUERIES_AT_A_TIME = 512


@dataclass(frozen=True, eq=False, kw_only=True)
class PointsFunction(RealFunction):
    """Weighted public points, answering ``Σ w·k(p, q)`` for any query and any kernel, for ever.

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
    answer_stderr : float or None
        Where the weights' noise is not independent: the most that the standard deviation of the noise in a
        mean kernel value is, for this kernel; None where that is not known.

    Privacy
    -------
    Points and weights were computed from what was released, so using them spends nothing.
    """

    points: Floats
    weights: Floats
    weight_variance: float | None
    answer_stderr: float | None

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

    def query(self, Q: object, *, of: str = "mean", level: float = 0.95, threads: int = 1) -> Answers:
        """Values with the standard error of the noise, or a bound of it; NaN where the method knows neither.

        ``of`` is ``"mean"`` for f(q)/N̂ or ``"sum"`` for f(q). How far the points themselves are from the
        records (cells, a network, a span of kernels) is bias and no part of it.
        """
        check_question(of, level)
        points = query_points(Q, dim=self.dim, columns=self.columns)
        sums, squares = self._sums(points, squares=self.weight_variance is not None)
        number = max(self.count, 1.0)
        if self.weight_variance is not None:
            variance = self.weight_variance * squares
        else:
            bound = np.nan if self.answer_stderr is None else self.answer_stderr
            variance = np.full(len(sums), (number * bound) ** 2)
        if of == "mean":
            value = sums / number
            variance = (variance + value**2 * self.count_variance) / number**2
            return normal_answers(value, np.sqrt(variance), level, points)
        return normal_answers(sums, np.sqrt(variance), level, points)

    def details(self) -> tuple[Detail, ...]:
        """The method and the number of points."""
        number = len(self.weights)
        return (
            Detail("method", self.method, self.method),
            Detail("points", number, f"{number} synthetic points with weights"),
            Detail("weight_variance", self.weight_variance),
            Detail("answer_stderr", self.answer_stderr),
        )

    def with_kernel(self, kernel: Kernel) -> PointsFunction:
        """The same points under another kernel or bandwidth; spends nothing."""
        check_kernel(kernel, self.bounds.dim)
        same = kernel == self.kernel
        return replace(self, kernel=kernel, answer_stderr=self.answer_stderr if same else None)

    def save(self, target: PathOrFile) -> None:
        """Write a ``.hush`` file; to a path atomically."""
        from hushsum.releases.float_file import save_points

        save_points(self, target)

    @cached_property
    def _live(self) -> tuple[Floats, Floats]:
        """Points of a weight, centred on the box as queries are, and their weights."""
        used = self.weights != 0.0
        return self.points[used] - self.bounds.centre, self.weights[used]

    def _queries(self, Q: object) -> Floats:
        rows = self.kernel.prepare(Q, self.bounds, clip=False, columns=self.columns).arrays[0]
        return rows.astype(np.float64)

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
