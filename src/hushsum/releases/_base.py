"""What every released function can do, whatever it is made of: its answers, its description, its picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Protocol, TypedDict, Unpack, runtime_checkable

import numpy as np

from hushsum import _html
from hushsum._types import Floats, PathOrFile, RoleType, is_number
from hushsum.errors import HushsumError, UsageError, shown
from hushsum.kernels import Kernel, counts_records, kernel_as_json, kernel_in_words, records_in_words
from hushsum.privacy import Claim
from hushsum.records import Bounds, as_sets, bounds_in_words, column_groups, names_in_words, numbers_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Column = int | str
"""A column by its position or name."""

Range = tuple[float, float]
"""What is drawn of a column: from the first number to the second."""


class PlottedColumns(TypedDict, total=False):
    """Which columns ``f.plot`` draws, where, and of what; see there."""

    axes: Column | Sequence[Column] | None
    range: Range | Sequence[Range] | None
    at: float | Sequence[float] | None
    labels: Sequence[str] | None
    of: str


class PlotKeywords(PlottedColumns, total=False):
    """The keyword arguments of ``f.plot``; see there."""

    level: float
    simultaneous: bool | None
    log: bool


class Released(Protocol):
    """Whatever leaves: it says what it claims, and writes itself to a file."""

    @property
    def claim(self) -> Claim:
        """What the release promises."""

    def save(self, target: PathOrFile) -> None:
        """Write a ``.hush`` file."""


@runtime_checkable
class ReleasedFunction(Protocol, metaclass=RoleType):
    """A public function of private data: query it as often as you like, publish it, keep it.

    Queries spend nothing: every answer is computed from what was released. This is all that the command line,
    the service, the client and the models know of a released function, so a new kind that has it works in
    each of them; ``describe`` and ``plot`` come from `hushsum.releases.Presented`.
    """

    @property
    def claim(self) -> Claim:
        """What the release promises."""

    @property
    def kernel(self) -> Kernel:
        """The similarity whose sums it answers."""

    @property
    def count(self) -> float:
        """The estimated number of records."""

    @property
    def count_stderr(self) -> float:
        """The standard error of :attr:`count`; 0 where the number of records is public."""

    @property
    def dim(self) -> int | None:
        """The number of columns of a query; None where records are sets."""

    @property
    def columns(self) -> tuple[str, ...] | None:
        """What the columns are called, in the order in which arrays give them; None if not declared."""

    @property
    def bounds(self) -> Bounds | None:
        """The declared box that holds the records: those outside were clipped to it; None if not declared."""

    @property
    def producer(self) -> str:
        """Which version of Hushsum made it."""

    def __call__(self, Q: object) -> Floats:
        """Mean kernel values f(q)/N, shape (n_queries,)."""

    def sum(self, Q: object) -> Floats:
        """Kernel sums f(q) = Σ k(x, q), shape (n_queries,)."""

    def query(
        self,
        Q: object,
        *,
        of: str = "mean",
        level: float = 0.95,
        simultaneous: bool = False,
        threads: int = 1,
    ) -> Answers:
        """Values with standard errors and intervals; ``of`` is ``"mean"`` or ``"sum"``.

        Each interval holds with probability ``level``, or with ``simultaneous`` all of this call together do.
        ``threads`` is how many threads may be used, where that helps.
        """

    def details(self) -> tuple[Detail, ...]:
        """What is particular to this kind, for :meth:`describe`."""

    def describe(self) -> Description:
        """Its public facts, the same for every kind; print them, or take ``as_json()``."""

    def plot(
        self,
        ax: Axes | None = None,
        **keywords: Unpack[PlotKeywords],
    ) -> Axes:
        """Draw a curve with its error band, a heat map, or a slice of a function of more columns."""

    def save(self, target: PathOrFile) -> None:
        """Write the function to a ``.hush`` file."""


Points = Floats | tuple[tuple[Any, ...], ...]
"""Queries: rows of numbers, shape (n_queries, dim), one tuple of members for each set, or one of the values
of each column where some columns are of sets.
"""

_NUMBERS: Final = ("value", "stderr", "lower", "upper", "bound")
_MOST_SHOWN: Final = 10
_LEAST_SQUARE: Final = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What a released function answers at each query.

    ``value`` ± ``stderr``, an interval from ``lower`` to ``upper`` at ``level``, and ``bound``: the largest
    standard error that any data with these answers could have, but for one case in a thousand. All arrays
    have shape (n_queries,). ``points`` are the queries, in the order of the function's columns: shape
    (n_queries, dim), or a tuple of sets.

    With ``simultaneous`` all intervals together hold with probability ``level``; otherwise each of them does.

    The standard error holds for queries chosen without regard to the hash functions. It is too small for a
    query found by optimising the function itself, and where fewer than about ten rows meet a heavy cluster;
    ``bound`` holds there too.
    """

    value: Floats
    stderr: Floats
    lower: Floats
    upper: Floats
    bound: Floats
    level: float
    points: Points
    simultaneous: bool = False

    def __len__(self) -> int:
        return len(self.value)

    @property
    def kind(self) -> str:
        """What the intervals are: ``"intervals"`` or ``"simultaneous intervals"``."""
        return "simultaneous intervals" if self.simultaneous else "intervals"

    def __iter__(self) -> Iterator[dict[str, float]]:
        """One dictionary per query."""
        for i in range(len(self)):
            yield {name: float(getattr(self, name)[i]) for name in _NUMBERS}

    def _repr_html_(self) -> str:
        """The first answers as a table, for notebooks."""
        rows = [
            [_point(self.points[i]), *(f"{getattr(self, name)[i]:.4g}" for name in _NUMBERS)]
            for i in range(min(len(self), _MOST_SHOWN))
        ]
        more = len(self) - len(rows)
        return _html.block(
            f"{len(self)} answers, {self.level:.0%} {self.kind}",
            _html.table(("at", *_NUMBERS), rows),
            _html.paragraph(f"and {more} more") if more else "",
        )


def query_points(Q: object, *, dim: int | None, columns: Sequence[str] | None) -> Points:
    """Queries as plain rows of ``dim`` numbers, or as sets where ``dim`` is None; data are read once.

    >>> query_points(3, dim=1, columns=None)
    array([[3.]])
    """
    if dim is None:
        sets = as_sets(Q)
        edges = sets.indptr.tolist()
        return tuple(tuple(sets.values[start:end].tolist()) for start, end in pairwise(edges))
    parts = numbers_of(Q, dim=dim, columns=columns)
    values = np.empty((len(parts[0].values), dim), np.float64)
    for part in parts:
        values[:, part.start : part.start + part.values.shape[1]] = part.values
    return values


def mixed_points(Q: object, *, dim: int, columns: Sequence[str] | None) -> Points:
    """Queries with columns of sets, as rows of plain values.

    >>> mixed_points([[1.5, [7, 9]]], dim=2, columns=None)
    ((1.5, (7, 9)),)
    """
    values = []
    for group in column_groups(Q, [(column,) for column in range(dim)], dim=dim, columns=columns):
        column: Any = group
        if hasattr(column, "iloc"):
            column = column.iloc[:, 0].tolist()
        elif hasattr(column, "column"):
            column = column.column(0).to_pylist()
        elif isinstance(column, np.ndarray):
            column = column[:, 0].tolist()
        values.append([tuple(each) if isinstance(each, list | np.ndarray) else each for each in column])
    return tuple(zip(*values, strict=True))


def check_question(of: str, level: float) -> None:
    """Refuse a ``query`` for something else than means or sums, or at an impossible level."""
    if of not in ("mean", "sum"):
        raise UsageError("of", "must be 'mean' or 'sum'", got=shown(of))
    check_level(level)


def check_level(level: float) -> None:
    """Refuse a level of an interval that is not between 0 and 1."""
    if not is_number(level) or not 0.0 < level < 1.0:
        raise UsageError("level", "must be between 0 and 1", got=shown(level), remedy="try 0.95")


@dataclass(frozen=True, slots=True, eq=False)
class Quotient:
    """A kernel sum over the number of records, both estimated: how an interval of f(q)/N̂ is found.

    Parameters
    ----------
    sums, number : the estimates.
    sum_variance, number_variance, covariance : of their errors.
    """

    sums: Floats
    number: float
    sum_variance: Floats
    number_variance: float
    covariance: Floats | float = 0.0

    @property
    def value(self) -> Floats:
        """The mean kernel values."""
        return self.sums / self.number

    @property
    def stderr(self) -> Floats:
        """To the first order in the error of the number."""
        return np.asarray(np.sqrt(np.maximum(self._variance(self.value), 0.0)) / self.number)

    def interval(self, reach: Floats | float) -> tuple[Floats, Floats]:
        """All r for which ``sums − r·number`` is within ``reach`` standard deviations of 0 (Fieller's
        interval, which is not symmetric).

        Where 0 is within reach of the number itself the interval has no end on one side, or on both; it is
        then as long as one with a hundredth of the squared number in the denominator.
        """
        square = reach * reach
        a = self.number**2 - square * self.number_variance
        b = self.sums * self.number - square * self.covariance
        c = self.sums**2 - square * self.sum_variance
        within = np.maximum(a, _LEAST_SQUARE * self.number**2)
        inside = b * b - a * c
        # Of the two solutions (b ± root)/a, the one nearer to 0 is c/(b ± root), whatever the sign of a.
        far = b + np.where(b < 0.0, -1.0, 1.0) * np.sqrt(np.maximum(inside, 0.0))
        near = np.where(far != 0.0, c / np.where(far != 0.0, far, 1.0), 0.0)
        ends = np.sort(np.stack(np.broadcast_arrays(near, far / within)), axis=0)
        whole = (np.abs(b) + reach * np.sqrt(self.sum_variance) * self.number) / within
        lower, upper = np.where(inside < 0.0, -whole, ends[0]), np.where(inside < 0.0, whole, ends[1])
        return np.asarray(lower), np.asarray(upper)

    def _variance(self, value: Floats) -> Floats:
        """Of ``sums − value·number``."""
        variance: Floats = self.sum_variance + value**2 * self.number_variance - 2.0 * value * self.covariance
        return variance


def normal_answers(
    value: Floats, stderr: Floats, level: float, points: Points, *, simultaneous: bool = False
) -> Answers:
    """Answers whose error is about normal with a known standard deviation, which is then its own bound.

    NaN where it is not known. Simultaneous ones are Bonferroni's.
    """
    check_level(level)
    reach = _normal_reach(level, len(value), simultaneous) * stderr
    return Answers(value, stderr, value - reach, value + reach, stderr.copy(), level, points, simultaneous)


def quotient_answers(
    quotient: Quotient, level: float, points: Points, *, simultaneous: bool = False
) -> Answers:
    """The same for mean kernel values, whose number of records is an estimate too."""
    check_level(level)
    stderr = quotient.stderr
    lower, upper = quotient.interval(_normal_reach(level, len(stderr), simultaneous))
    return Answers(quotient.value, stderr, lower, upper, stderr.copy(), level, points, simultaneous)


def normal_quantile(level: float, blocks: int | None = None) -> float:
    """How many standard errors an interval reaches: Student's t where they come from blocks, else normal."""
    from scipy.special import ndtri, stdtrit

    rank = 0.5 + level / 2.0
    return float(ndtri(rank) if blocks is None else stdtrit(blocks - 1, rank))


def _normal_reach(level: float, number: int, simultaneous: bool) -> float:
    return normal_quantile(1.0 - (1.0 - level) / max(number, 1) if simultaneous else level)


def _point(point: Floats | tuple[Any, ...]) -> str:
    numbers = [
        "{" + _point(each) + "}" if isinstance(each, tuple) else f"{float(each):g}"
        for each in point[:_MOST_SHOWN]
    ]
    return ", ".join(numbers) + (", …" if len(point) > _MOST_SHOWN else "")


class Presented:
    """``describe``, ``plot`` and ``_repr_html_`` from what a released function has; a kind inherits them."""

    def describe(self: ReleasedFunction) -> Description:
        """Its public facts, the same for every kind; print them, or take ``as_json()``."""
        return Description(
            claim=self.claim,
            kernel=self.kernel,
            count=self.count,
            count_stderr=self.count_stderr,
            dim=self.dim,
            columns=self.columns,
            bounds=self.bounds,
            producer=self.producer,
            details=self.details(),
            error=_error_in_the_middle(self),
        )

    def plot(
        self: ReleasedFunction,
        ax: Axes | None = None,
        **keywords: Unpack[PlotKeywords],
    ) -> Axes:
        """Draw a curve with its error band, a heat map, or a slice of a function of more columns.

        Spends nothing, like every query.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw. Default: a new pyplot figure, with the claim below it.
        axes : int or str, or two of them, optional
            The columns to draw, by position or name, the first one across. Default: the first two; longitude
            across and latitude up, where columns have these names.
        range : (low, high), or one pair for each axis, optional
            What to draw. Default: the declared bounds.
        at : float or tuple of float, optional
            Values of the columns that are not drawn, or one for all. Default: the middle of the bounds.
        labels : tuple of str, optional
            Names of the axes. Default: the names of the columns.
        of : {"mean", "sum"}
            Mean kernel values f(q)/N or kernel sums f(q).
        level : float, default 0.95
            Of the intervals.
        simultaneous : bool, optional
            Whether the intervals hold at all points together, not at each. Default: for heat maps, whose
            dashed line encloses what stands out of the noise.
        log : bool, default False
            A logarithmic scale of colours, from three standard errors on, for heat maps.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        UsageError
            if the function has no columns of numbers, or neither bounds nor a range says what to draw.
        """
        # Here and not above: drawing is not part of importing Hushsum.
        from hushsum.plotting import View, function_picture

        return function_picture(self, View.of(self, **keywords)).show(ax)

    def _repr_html_(self: ReleasedFunction) -> str:
        """The claim in words, the facts, and a small picture of one or two columns; for notebooks."""
        about = self.describe()
        return _html.block(
            "Released function",
            _html.paragraph(about.claim.sentence()),
            _html.facts(about.facts()),
            _small(self),
        )


def _error_in_the_middle(function: ReleasedFunction) -> float | None:
    """The standard error of a kernel sum in the middle of the declared bounds; None where there is none."""
    if function.bounds is None or function.dim != function.bounds.dim:
        return None
    error = float(function.query(function.bounds.centre[np.newaxis], of="sum").stderr[0])
    return error if np.isfinite(error) else None


def _small(function: ReleasedFunction) -> str:
    """A small picture, where there is one that shows the whole function."""
    if function.dim not in (1, 2) or function.bounds is None:
        return ""
    try:
        from hushsum.plotting import View, function_picture

        small = function_picture(function, View.of(function), small=True)
        return _html.picture(small.thumbnail(), "The released function within its bounds")
    except (ImportError, HushsumError):
        # Without matplotlib, or with columns that cannot be axes, only the facts are shown.
        return ""


UNKNOWN_ERRORS: Final = "not known: answers have no interval"
"""The description of a function whose method has no error estimate."""

COMMON_FACTS: Final = (
    "kind", "claim", "kernel", "dim", "columns", "bounds", "estimated_count", "error", "producer",
)  # fmt: skip
"""The names in JSON of the facts that every function has."""


@dataclass(frozen=True, slots=True)
class Detail:
    """One fact about a kind of function: its ``name`` and ``value`` in JSON, and for people in words.

    Without ``words`` people are not shown it, since another detail says it.
    """

    name: str
    value: object
    words: str | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Description:
    """What may be said about a released function: everything here is public. Print it for a table.

    ``details`` are what its kind has beside the facts that every function has. ``error`` is the standard
    error of a kernel sum in the middle of the bounds, where it is known.
    """

    claim: Claim
    kernel: Kernel
    count: float
    count_stderr: float
    dim: int | None
    columns: tuple[str, ...] | None
    bounds: Bounds | None
    producer: str
    details: tuple[Detail, ...] = ()
    error: float | None = None

    def as_json(self) -> dict[str, Any]:
        """The facts as JSON values."""
        return {
            "kind": "released function",
            "claim": self.claim.in_numbers(),
            "kernel": kernel_as_json(self.kernel),
            "dim": self.dim,
            "columns": None if self.columns is None else list(self.columns),
            "bounds": None if self.bounds is None else self.bounds.as_json(),
            "estimated_count": {"value": self.count, "stderr": self.count_stderr},
            "error": self.error,
            **{detail.name: detail.value for detail in self.details},
            "producer": self.producer,
        }

    def facts(self) -> list[tuple[str, str]]:
        """Names and values for people, in the order in which they are shown."""
        error = self.count_stderr
        count = f"{self.count:.0f} ± {error:.5g} (estimated)" if error else f"{self.count:.0f} (public)"
        return [
            ("claim", repr(self.claim)),
            ("kernel", kernel_in_words(self.kernel)),
            ("columns", "not named" if self.columns is None else names_in_words(self.columns)),
            ("bounds", bounds_in_words(self.bounds)),
            *((each.label or each.name, each.words) for each in self.details if each.words is not None),
            ("records", count),
            *([] if self.error is None else [("error", self._error_in_words(self.error))]),
            ("producer", self.producer),
        ]

    def _error_in_words(self, error: float) -> str:
        where = "in the middle of the bounds"
        if not counts_records(self.kernel):
            return f"± {error:.2g} of a sum of similarities {where}"
        share = f", {100 * error / self.count:.2g} % of all" if self.count > 0 else ""
        return f"{records_in_words(error)} near a point {where}{share}"

    def __str__(self) -> str:
        rows = self.facts()
        width = max(len(name) for name, _ in rows)
        return "\n".join([self.claim.sentence(), "", *(f"{name:<{width}}  {value}" for name, value in rows)])


PUBLIC_SAMPLE: Final = "the sample that parameters and answers were derived from is public"


class ForwardedFacts(Presented):
    """A reader of ``function`` and public points, whose claim, kernel, count, columns and bounds are those of
    that function. The points are read, and stored, as they are, so the claim states that they are public.
    """

    function: Any

    @property
    def claim(self) -> Claim:
        """What the release promises, and that the public points are public."""
        claim: Claim = self.function.claim
        if PUBLIC_SAMPLE in claim.assumptions:
            return claim
        return replace(claim, assumptions=(*claim.assumptions, PUBLIC_SAMPLE))

    @property
    def kernel(self) -> Kernel:
        """The similarity whose sums it answers."""
        kernel: Kernel = self.function.kernel
        return kernel

    @property
    def count(self) -> float:
        """The estimated number of records."""
        return float(self.function.count)

    @property
    def count_stderr(self) -> float:
        """The standard error of :attr:`count`."""
        return float(self.function.count_stderr)

    @property
    def dim(self) -> int | None:
        """The number of columns of a query."""
        dim: int | None = self.function.dim
        return dim

    @property
    def columns(self) -> tuple[str, ...] | None:
        """What the columns are called; None if not declared."""
        columns: tuple[str, ...] | None = self.function.columns
        return columns

    @property
    def bounds(self) -> Bounds | None:
        """The declared box that records were clipped to; None if not declared."""
        bounds: Bounds | None = self.function.bounds
        return bounds

    @property
    def producer(self) -> str:
        """Which version of Hushsum made the release."""
        return str(self.function.producer)
