"""Compare two released functions: where they differ, how far the distributions are apart, and a test."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol, Unpack, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hushsum import _html
from hushsum._types import Floats, RoleType
from hushsum.errors import HushsumError, ServiceRefused, UsageError
from hushsum.kernels import answer_in_words
from hushsum.releases import (
    Answers,
    ForwardedFacts,
    NoisyTable,
    PlottedColumns,
    Points,
    ReleasedFunction,
    released_table,
)

from ._difference import DifferenceErrors, Tables, check_settings, public_points, share_release
from ._two_sample_test import (
    Coordinates,
    SquaredDistance,
    TwoSampleTest,
    separate_test,
    squared_distance,
    table_test,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hushsum.plotting import Picture, View

__all__ = ["Comparison", "Region", "compare"]


ASSUMPTION: Final = (
    "The records of the two releases are taken as independent samples, each record drawn by itself; the "
    "noise of the two releases is independent."
)
_CURVE_POINTS: Final = 201
_MAP_POINTS: Final = 33
_SMALL_MAP_POINTS: Final = 21
_MOST_NAMED: Final = 3
# The similarity from which on two points are named as one.
_ALIKE: Final = 0.5


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
class Comparison(_html.Described):
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
        """The p-value of the test."""
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
            raise UsageError("about", "must be 'distributions' or 'records'", got=type(about).__name__)
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
        distances = (("distributions", self.mmd_squared), ("records", self.mmd_squared_of_records))
        for of, found in distances:
            if found is not None:
                rows.append((f"MMD² of {of}", f"{found.value:.4g} ± {found.stderr:.2g}"))
        rows.append(("where", self._where()))
        first, second = self.names
        counts = f"{first} about {self.f.count:,.0f}, {second} about {self.g.count:,.0f}"
        method = f"{self.test.method}, {len(self.points)} points"
        return [*rows, ("records", counts), ("method", method), ("assumes", ASSUMPTION)]

    def as_json(self) -> dict[str, Any]:
        """The comparison as JSON values."""
        distances = {"mmd_squared": self.mmd_squared, "mmd_squared_of_records": self.mmd_squared_of_records}
        return {
            "kind": "comparison",
            "names": list(self.names),
            "p_value": self.p_value,
            "significance": self.significance,
            "differ": self.differ,
            "statistic": self.test.statistic,
            "method": self.test.method,
            **{name: None if found is None else asdict(found) for name, found in distances.items()},
            "captured": self.captured,
            "regions": [
                {"sign": each.sign, "low": list(each.low), "high": list(each.high)} for each in self.regions
            ],
            "estimated_counts": [self.f.count, self.g.count],
            "assumes": ASSUMPTION,
        }

    def plot(self, ax: Axes | None = None, **shown: Unpack[PlottedColumns]) -> Axes:
        """Draw f − g: a curve with its simultaneous band, or a map with lines around what is significant.

        Parameters as of ``f.plot``.
        """
        return self.picture(self.view(**shown)).show(ax)

    def view(self, **shown: Unpack[PlottedColumns]) -> View:
        """The view that a picture of the comparison shows; ``shown`` is as of ``f.plot``."""
        from hushsum.plotting import View

        return View.of(self.f, **shown, level=1.0 - self.significance, simultaneous=True)

    def picture(self, view: View, *, small: bool = False) -> Picture:
        """The difference with its band, or a map of it; the result of the test stands below."""
        from hushsum.plotting import Picture, shown_answers

        dim = self.f.dim
        assert dim is not None
        number = _CURVE_POINTS if len(view.axes) == 1 else _SMALL_MAP_POINTS if small else _MAP_POINTS
        points, steps = view.points(dim, number)
        found = self.difference(points, of=view.quantity, level=view.level, simultaneous=True)
        words = answer_in_words(self.f.kernel, view.quantity).replace("near here", "near each point")
        verdict = "the distributions differ" if self.differ else "no difference is shown"
        said = f"Two-sample test: {verdict}, p = {self.p_value:.2g}. Intervals allow for noise and sampling."
        name = "difference" if len(steps) == 1 else "difference; solid: significantly above 0, dashed: below"
        return Picture(
            f"Difference of {words}, {self.names[0]} − {self.names[1]}",
            f"{view.note(self.f.columns)} {said}".strip(),
            shown_answers(view, steps, found, difference=True),
            (*view.labels, name),
        )

    def _repr_html_(self) -> str:
        """The result in words and a small picture of one or two columns; for notebooks."""
        picture = ""
        if self.f.dim in (1, 2) and self.f.bounds is not None:
            # Without matplotlib the words are what there is to see.
            with suppress(ImportError, HushsumError):
                small = self.picture(self.view(), small=True)
                picture = _html.picture(small.thumbnail(), "The difference within the bounds")
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
    runs = [(part[0], part[-1]) for part in np.split(np.arange(len(x)), edges) if signs[part[0]]]
    return tuple(Region(int(signs[i]), (float(x[i]),), (float(x[j]),)) for i, j in runs)


def _place(region: Region, columns: tuple[str, ...] | None) -> str:
    names = columns or tuple(f"column {i}" for i in range(len(region.low)))
    if len(region.low) == 1 and region.low != region.high:
        return f"for {names[0]} from {region.low[0]:.4g} to {region.high[0]:.4g}"
    at = ", ".join(f"{name} = {value:.4g}" for name, value in list(zip(names, region.low, strict=True))[:4])
    return f"near {at}" + (", …" if len(region.low) > 4 else "")


_POINTS: Final = 128
_POINTS_OF_MORE_COLUMNS: Final = 256
# Points of Bonferroni's inequality.
_SEPARATE: Final = 40


@runtime_checkable
class _Remote(Protocol, metaclass=RoleType):
    def local(self) -> ReleasedFunction:
        """The function itself."""


def compare(
    f: ReleasedFunction,
    g: ReleasedFunction,
    *,
    at: object = None,
    significance: float = 0.05,
    cluster_size: float = 1.0,
    names: Sequence[str] = ("f", "g"),
) -> Comparison:
    """Compare two released functions: the difference with its error band, MMD², and a two-sample test.

    Post-processing: it spends nothing. The null distribution of the test contains the noise of both releases
    and the sampling error of both sets of records, estimated from what was released.

    It works best for two releases with the same basis (equal ``seed``, sizes and bounds): then the error of
    the basis has no part in the test. Functions with different bases, or of methods that state no covariance
    of their errors, are compared point by point with Bonferroni's inequality, which detects less.

    Parameters
    ----------
    f, g : ReleasedFunction
        Of the same kernel, columns and bounds, of different records, and not derived from one release.
        Functions in a service are downloaded where their owner allows it.
    at : queries, optional
        2 to 1000 public points at which to compare. Default: points where the functions show records, and
        points all over the bounds. Required for functions without bounds, and of sets.
    significance : float, default 0.05
        The level of the test.
    cluster_size : float, default 1
        The average number of correlated records, such as those of one person: sampling variances are
        multiplied by it.
    names : pair of str
        What the two are called in descriptions.

    Returns
    -------
    Comparison

    Raises
    ------
    UsageError
        if the two cannot be compared: other kernels, columns or bounds, one release twice, steps of one
        stream.

    Privacy
    -------
    Everything is computed from released functions; no claim changes. Releases of the same persons add up, as
    for any two releases.

    Notes
    -----
    Samples are assumed to be independent. Two releases of the *same* records differ by noise alone: the test
    then rejects less often than its level. The test without noise is that of Gretton et al., *A kernel
    two-sample test*, JMLR 2012, with the null distribution of its limit.

    Examples
    --------
    >>> import numpy as np
    >>> import hushsum as hs
    >>> rng = np.random.default_rng(0)
    >>> kernel = hs.GaussianKernel(dim=1, bandwidth=0.5)
    >>> first, second = (hs.grid(kernel, bounds=(-4, 4)) for _ in range(2))
    >>> f = first.add(rng.normal(0.0, 1.0, (5000, 1))).release(epsilon=1.0)
    >>> g = second.add(rng.normal(0.5, 1.0, (5000, 1))).release(epsilon=1.0)
    >>> result = hs.compare(f, g)
    >>> result.differ, bool(result.mmd_squared.value > 3 * result.mmd_squared.stderr)
    (True, True)
    """
    check_settings("significance", significance, cluster_size, example="0.05")
    if isinstance(names, str) or len(names) != 2:
        raise UsageError("names", "must be two names")
    f, g = _at_hand("f", f), _at_hand("g", g)
    _check_comparable(f, g)
    tables = _aligned(f, g)
    pair = f, g = (f, g) if tables is None else tables
    points = public_points(pair, at, _POINTS if f.dim == 1 else _POINTS_OF_MORE_COLUMNS)
    if np.array_equal(f(points), g(points)):
        raise _same_release()
    errors = DifferenceErrors.at(pair, tables, points, cluster_size=cluster_size)
    labels = (str(names[0]), str(names[1]))
    coordinates = None if tables is None else Coordinates.of_table(tables[0], points)
    if tables is None or coordinates is None:
        some = points[:: max(1, len(points) // _SEPARATE)]
        variances = errors.variances(some, alpha=significance / len(some))
        test = separate_test(errors.values(some), np.sqrt(variances))
        return Comparison(f, g, test, None, None, None, significance, labels, errors)
    found = coordinates.values(errors.values(points))
    noise = coordinates.covariance(errors.noise(points))
    sampling = coordinates.covariance(errors.sampling(points))
    return Comparison(
        f,
        g,
        table_test(tables, points, coordinates, cluster_size=cluster_size),
        squared_distance(found, noise + sampling),
        squared_distance(found, noise),
        coordinates.captured,
        significance,
        labels,
        errors,
    )


def _at_hand(name: str, function: object) -> ReleasedFunction:
    if not isinstance(function, ReleasedFunction):
        remedy = "release a tally, or load a file with hs.load"
        raise UsageError(name, "must be a released function", got=type(function).__name__, remedy=remedy)
    if not isinstance(function, _Remote):
        return function
    try:
        return function.local()
    except ServiceRefused:
        # It may be queried and not be downloaded: its answers and standard errors are enough.
        return function


def _check_comparable(f: ReleasedFunction, g: ReleasedFunction) -> None:
    for what, same in (
        ("kernel", f.kernel == g.kernel),
        ("columns", f.columns == g.columns),
        ("bounds", f.bounds == g.bounds),
    ):
        if not same:
            rule = f"functions that are compared must have the same {what}"
            remedy = "release both with the same parameters"
            also = ", or read a grid with_kernel(...)" if what == "kernel" else ""
            raise UsageError(rule, got="others", remedy=remedy + also)
    one, other = _table_of(f), _table_of(g)
    if one is None or other is None:
        return
    steps = one.stream_step, other.stream_step
    if steps[0] is not None and steps[1] is not None and steps[0].stream == steps[1].stream:
        raise UsageError(
            "steps of one stream share records and noise", got="two of them", remedy="use hs.drift(steps)"
        )
    if share_release(one, other):
        raise _same_release()


def _same_release() -> UsageError:
    return UsageError(
        "functions that are compared must be different releases, with noise of their own",
        got="one release twice, or one derived from the other",
        remedy="give the other release",
    )


def _table_of(function: Any) -> NoisyTable | None:
    """The table that a function reads, directly or through another one."""
    while isinstance(function, ForwardedFacts):
        function = function.function
    return function if isinstance(function, NoisyTable) else None


def _aligned(f: ReleasedFunction, g: ReleasedFunction) -> Tables | None:
    """Both with the rows that both have, if they are then tables of one basis."""
    first, second = released_table(f), released_table(g)
    if not isinstance(first, NoisyTable) or not isinstance(second, NoisyTable):
        return None
    rows = min(first.rows, second.rows)
    try:
        one, other = first.first_rows(rows), second.first_rows(rows)
    except UsageError:
        return None
    return (one, other) if one.basis.fingerprint == other.basis.fingerprint else None
