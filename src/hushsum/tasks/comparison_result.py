"""The result of a comparison: the difference with its errors, the test, and what it says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum import _html
from hushsum._types import Floats
from hushsum.errors import HushsumError, UsageError
from hushsum.releases.answers import Answers, Points
from hushsum.releases.base import ReleasedFunction
from hushsum.tasks.difference_errors import DifferenceErrors
from hushsum.tasks.two_sample_test import SquaredDistance, TwoSampleTest

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hushsum.releases.plot import Column, Range

ASSUMPTION: Final = (
    "The records of the two releases are taken as independent samples, each record drawn by itself; the "
    "noise of the two releases is independent."
)
_CURVE_POINTS: Final = 201
_MOST_NAMED: Final = 3
_ALIKE: Final = 0.5
"""The similarity from which on two points are named as one."""


@dataclass(frozen=True, slots=True)
class Region:
    """Where f − g is significantly not 0: ``sign`` is 1 where the first function is larger, −1 where it is
    smaller.

    ``low`` and ``high`` are the ends of an interval of one column; in more columns both are one point, the
    one with the largest difference in standard errors around it.
    """

    sign: int
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two released functions compared; made by :func:`hushsum.compare`. Nothing in it is secret.

    Attributes
    ----------
    f, g : ReleasedFunction
        The functions; of two sketches with different numbers of rows, the rows that both have.
    test : TwoSampleTest
        Of the hypothesis that both are functions of samples of one distribution.
    mmd_squared : SquaredDistance or None
        MMD², the squared distance of the two *distributions* in the kernel's space, as far as the points
        reach: unbiased, so it may be negative. None where the dependence of errors is not known.
    mmd_squared_of_records : SquaredDistance or None
        The same for the two sets of records themselves: only noise is taken off.
    captured : float or None
        The part of the kernel's squared length at the points that the test and MMD² use.
    significance : float
        The level of the test; intervals hold with probability 1 − significance.
    names : pair of str
        What the functions are called in descriptions.
    """

    f: ReleasedFunction
    g: ReleasedFunction
    test: TwoSampleTest
    mmd_squared: SquaredDistance | None
    mmd_squared_of_records: SquaredDistance | None
    captured: float | None
    significance: float
    names: tuple[str, str]
    errors: DifferenceErrors

    def __repr__(self) -> str:
        return f"Comparison(p_value={self.p_value:.3g}, {self.test.method}, kernel={self.f.kernel!r})"

    @property
    def p_value(self) -> float:
        """Of the test."""
        return self.test.p_value

    @property
    def differ(self) -> bool:
        """Whether the test rejects that both come from one distribution, at the level ``significance``."""
        return self.p_value <= self.significance

    @property
    def points(self) -> Points:
        """The public points at which the functions were compared."""
        return self.errors.points

    def difference(
        self,
        Q: object,
        *,
        of: str = "mean",
        level: float | None = None,
        simultaneous: bool = False,
        about: str = "distributions",
    ) -> Answers:
        """f − g at queries, with standard errors and intervals.

        Parameters
        ----------
        Q : queries as the functions take them
        of : {"mean", "sum"}
            Mean kernel values, or kernel sums, whose numbers of records differ.
        level : float, optional
            Of the intervals. Default: 1 − ``significance``.
        simultaneous : bool
            Whether all intervals together hold with that probability, not each of them.
        about : {"distributions", "records"}
            What the intervals are for: the distributions that the records come from, with noise and sampling
            error, or the two sets of records, with noise alone.
        """
        if about not in ("distributions", "records"):
            raise UsageError(
                parameter="about", rule="must be 'distributions' or 'records'", got=type(about).__name__
            )
        return self.errors.query(
            Q,
            of=of,
            level=1.0 - self.significance if level is None else level,
            simultaneous=simultaneous,
            sampling=about == "distributions",
        )

    def significant(self, Q: object, *, of: str = "mean") -> NDArray[np.int8]:
        """1 where f is significantly larger, −1 where it is smaller, 0 where nothing can be said, by
        simultaneous intervals over these queries; shape (n_queries,).
        """
        return _signs(self.difference(Q, of=of, simultaneous=True))

    @cached_property
    def regions(self) -> tuple[Region, ...]:
        """Where the functions differ significantly: intervals of one column, else points, strongest first."""
        f = self.f
        if f.dim == 1 and f.bounds is not None:
            x = np.linspace(f.bounds.low[0], f.bounds.high[0], _CURVE_POINTS)
            return _runs(x, self.significant(x[:, np.newaxis]))
        if not isinstance(self.points, np.ndarray):
            return ()
        found = self.difference(self.points, simultaneous=True)
        signs = _signs(found)
        order = np.argsort(-np.abs(found.value) / np.maximum(found.stderr, 1e-300))
        chosen: list[int] = []
        for i in order.tolist():
            # One point for what the kernel does not tell apart.
            similar = (
                f.kernel.similarity(self.points[chosen], self.points[i : i + 1]) if chosen else np.zeros(1)
            )
            if signs[i] and float(np.max(similar)) < _ALIKE:
                chosen.append(i)
        places = [tuple(self.points[i].tolist()) for i in chosen]
        return tuple(Region(int(signs[i]), at, at) for i, at in zip(chosen, places, strict=True))

    def describe(self) -> list[tuple[str, str]]:
        """Names and values for people."""
        verdict = "the distributions differ" if self.differ else "no difference is shown"
        rows = [("test", f"{verdict}: p = {self.p_value:.3g}, level {self.significance:g}")]
        if self.mmd_squared is not None and self.mmd_squared_of_records is not None:
            for label, found in (
                ("MMD² of distributions", self.mmd_squared),
                ("MMD² of records", self.mmd_squared_of_records),
            ):
                rows.append((label, f"{found.value:.4g} ± {found.stderr:.2g}"))
        rows.append(("where", self._where()))
        counts = (
            f"{name} about {each.count:,.0f}" for name, each in zip(self.names, (self.f, self.g), strict=True)
        )
        rows.append(("records", ", ".join(counts)))
        rows.append(("method", f"{self.test.method}, {len(self.points)} points"))
        rows.append(("assumes", ASSUMPTION))
        return rows

    def __str__(self) -> str:
        rows = self.describe()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)

    def as_json(self) -> dict[str, Any]:
        """The comparison as JSON values."""

        def distance(found: SquaredDistance | None) -> dict[str, float] | None:
            return None if found is None else {"value": found.value, "stderr": found.stderr}

        return {
            "kind": "comparison",
            "names": list(self.names),
            "p_value": self.p_value,
            "significance": self.significance,
            "differ": self.differ,
            "statistic": self.test.statistic,
            "method": self.test.method,
            "mmd_squared": distance(self.mmd_squared),
            "mmd_squared_of_records": distance(self.mmd_squared_of_records),
            "captured": self.captured,
            "regions": [
                {"sign": each.sign, "low": list(each.low), "high": list(each.high)} for each in self.regions
            ],
            "estimated_counts": [self.f.count, self.g.count],
            "assumes": ASSUMPTION,
        }

    def plot(
        self,
        ax: Axes | None = None,
        *,
        axes: Column | tuple[Column, ...] | None = None,
        range: Range | tuple[Range, ...] | None = None,
        at: float | tuple[float, ...] | None = None,
        labels: tuple[str, ...] | None = None,
        of: str = "mean",
    ) -> Axes:
        """Draw f − g: a curve with its simultaneous band, or a map with lines around what is significant.

        Parameters as of ``f.plot``.
        """
        from hushsum.releases.plot import View
        from hushsum.tasks.comparison_picture import draw_comparison

        view = View.of(
            self.f, axes=axes, range=range, at=at, labels=labels, of=of, level=1.0 - self.significance
        )
        return draw_comparison(self, view, ax)

    def _repr_html_(self) -> str:
        """The result in words and a small picture of one or two columns; for notebooks."""
        picture = ""
        if self.f.dim in (1, 2) and self.f.bounds is not None:
            try:
                from hushsum.tasks.comparison_picture import comparison_thumbnail

                picture = _html.picture(comparison_thumbnail(self), "The difference within the bounds")
            except (ImportError, HushsumError):
                # Without matplotlib the words are what there is to see.
                picture = ""
        return _html.block("Comparison", _html.facts(self.describe()), picture)

    def _where(self) -> str:
        if not self.regions:
            return "nowhere significant at all points together"
        columns = self.f.columns
        said = []
        for each in self.regions[:_MOST_NAMED]:
            larger, smaller = self.names if each.sign > 0 else self.names[::-1]
            said.append(f"{larger} above {smaller} {_place(each, columns)}")
        more = len(self.regions) - len(said)
        return "; ".join(said) + (f"; and {more} more" if more > 0 else "")


def _signs(found: Answers) -> NDArray[np.int8]:
    return (found.lower > 0.0).astype(np.int8) - (found.upper < 0.0).astype(np.int8)


def _runs(x: Floats, signs: NDArray[np.int8]) -> tuple[Region, ...]:
    """Intervals of equal signs other than 0."""
    edges = np.flatnonzero(np.diff(signs)) + 1
    runs = [(int(part[0]), int(part[-1])) for part in np.split(np.arange(len(x)), edges)]
    return tuple(
        Region(int(signs[first]), (float(x[first]),), (float(x[last]),))
        for first, last in runs
        if signs[first]
    )


def _place(region: Region, columns: tuple[str, ...] | None) -> str:
    names = columns or tuple(f"column {i}" for i in range(len(region.low)))
    if len(region.low) == 1 and region.low != region.high:
        return f"for {names[0]} from {region.low[0]:.4g} to {region.high[0]:.4g}"
    at = ", ".join(f"{name} = {value:.4g}" for name, value in list(zip(names, region.low, strict=True))[:4])
    return f"near {at}" + (", …" if len(region.low) > 4 else "")
