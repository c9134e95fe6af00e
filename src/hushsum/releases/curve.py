"""A released curve: mean kernel values at the points of a line, with noise that is smooth along it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hushsum._types import Floats, PathOrFile
from hushsum.errors import UsageError
from hushsum.releases.answers import Answers, check_question, normal_answers, query_points
from hushsum.releases.presentation import UNKNOWN_ERRORS, Detail
from hushsum.releases.real_function import RealFunction


@dataclass(frozen=True, eq=False, kw_only=True)
class CurveFunction(RealFunction):
    """Values at even steps from one end of the bounds to the other, straight lines between them.

    Made by ``pfda`` or by ``hushsum.load``; not by hand. Outside the bounds the nearest end answers. The
    kernel is fixed: another one needs another release.

    Parameters
    ----------
    values : array of shape (n_points,)
        Mean kernel values, noise included.
    errors : array of shape (n_points,)
        The standard deviation of the noise in each of them; the noise is correlated along the curve.
    kernel : Kernel
        Of one column.
    bounds : Bounds
        Of one column; the first value is at its low end, the last at its high end.
    count, count_variance, claim, method, producer, columns
        As for `RealFunction`.

    Privacy
    -------
    The values were released together, so using them spends nothing.
    """

    values: Floats
    errors: Floats

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bounds.dim != 1 or self.values.ndim != 1 or len(self.values) < 2:
            raise UsageError(rule="a curve has one column and at least two values", got="another shape")
        if self.values.shape != self.errors.shape:
            raise UsageError(rule="a curve has one error for each value", got="another number")
        for array in (self.values, self.errors):
            array.flags.writeable = False

    def __repr__(self) -> str:
        return self._shown(f"curve={len(self.values)}")

    def __call__(self, Q: object) -> Floats:
        """Mean kernel values f(q)/N, shape (n_queries,)."""
        return self._read(Q, self.values)

    def sum(self, Q: object) -> Floats:
        """Kernel sums f(q), shape (n_queries,)."""
        return self.count * self(Q)

    def query(
        self,
        Q: object,
        *,
        of: str = "mean",
        level: float = 0.95,
        simultaneous: bool = False,
        threads: int = 1,
    ) -> Answers:
        """Values without intervals: all of their errors are NaN.

        Much of the error is the bias of the smoothing penalty, of which the release says nothing; ``errors``
        has the standard deviation of the noise alone.
        """
        check_question(of, level)
        points = query_points(Q, dim=self.dim, columns=self.columns)
        value = self._read(points, self.values)
        unknown = np.full(len(value), np.nan)
        return normal_answers(value if of == "mean" else self.count * value, unknown, level, points)

    def details(self) -> tuple[Detail, ...]:
        """The method and the number of steps."""
        number = len(self.values)
        return (
            Detail("method", self.method, self.method),
            Detail("steps", number, f"{number} values, straight lines between them", label="curve"),
            Detail("error_bars", UNKNOWN_ERRORS, UNKNOWN_ERRORS, label="error bars"),
        )

    def save(self, target: PathOrFile) -> None:
        """Write a ``.hush`` file; to a path atomically."""
        from hushsum.releases.real_function_file import save_curve

        save_curve(self, target)

    @cached_property
    def _places(self) -> Floats:
        centre = float(self.bounds.centre[0])
        places = np.linspace(self.bounds.low[0] - centre, self.bounds.high[0] - centre, len(self.values))
        places.flags.writeable = False
        return places

    def _read(self, Q: object, numbers: Floats) -> Floats:
        rows = self.kernel.prepare(Q, self.bounds, clip=False, columns=self.columns).arrays[0]
        queries = rows[:, 0].astype(np.float64)
        return np.interp(queries, self._places, numbers)
