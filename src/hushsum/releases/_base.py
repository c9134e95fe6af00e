"""What every released function can do, whatever it is made of: answers, description, picture, file.

Then a release between its check and its publication, and the bundle of all that a model released under one
claim.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import (
    IO,
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Generic,
    NamedTuple,
    Protocol,
    Self,
    TypedDict,
    TypeVar,
    Unpack,
    runtime_checkable,
)

import numpy as np
from numpy.typing import NDArray

from hushsum import _html, files, privacy
from hushsum._types import Floats, PathOrFile, RoleType, is_number
from hushsum.errors import FileRefused, HushsumError, PerSurface, UsageError, shown
from hushsum.files import Buffer, FileKind, Header, Section
from hushsum.kernels import Kernel, counts_records, kernel_as_json, kernel_in_words, records_in_words
from hushsum.privacy import Booking, Budget, Claim, ReleaseRequest, Statement
from hushsum.records import Bounds, as_sets, bounds_in_words, column_groups, names_in_words, numbers_of
from hushsum.tables import Basis, Reading, load_baselines
from hushsum.version import PRODUCER

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "COMMON_FACTS", "UNKNOWN_ERRORS", "Answers", "Bundle", "Column", "Description", "Detail", "Payload",
    "PlotKeywords", "PlottedColumns", "Points", "Prepared", "Presented", "PublicFacts", "QueryOptions",
    "Quotient", "Range", "Released", "ReleasedFunction", "check_level", "check_question", "file_bytes",
    "function_in", "load_function", "load_released", "normal_answers", "normal_quantile", "query_points",
    "register", "stored_integer",
]  # fmt: skip

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
        """The declared box of the records; records outside of it were clipped.

        None if no box was declared.
        """

    @property
    def producer(self) -> str:
        """Which version of Hushsum made it."""

    @property
    def statement(self) -> Statement:
        """What its owner stated with it."""

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

    def plot(self, ax: Axes | None = None, **keywords: Unpack[PlotKeywords]) -> Axes:
        """Draw a curve with its error band, a heat map, or a slice of a function of more columns."""

    def nonnegative(self) -> ReleasedFunction:
        """The version whose answers are those of records: never negative, and consistent with the count."""

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


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """What a query requests beside its points; see :meth:`ReleasedFunction.query`."""

    of: str
    level: float
    simultaneous: bool
    threads: int

    def normal_reach(self, number: int) -> float:
        """How many standard errors the intervals of this number of normal errors reach: simultaneous ones
        are Bonferroni's.
        """
        if not self.simultaneous:
            return normal_quantile(self.level)
        return normal_quantile(1.0 - (1.0 - self.level) / max(number, 1))


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
        """The standard error of the means, to the first order in the error of the number."""
        value = self.value
        variance = self.sum_variance + value**2 * self.number_variance - 2.0 * value * self.covariance
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)) / self.number)

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

    def answers(
        self, reach: float, points: Points, options: QueryOptions, *, most: Floats | None = None
    ) -> Answers:
        """The sums or the quotients with intervals of ``reach`` standard errors.

        ``most`` is the largest variance of a sum, for the bound; by default it is that of the sum itself.
        """
        largest = self if most is None else replace(self, sum_variance=most)
        if options.of == "sum":
            value, stderr, bound = self.sums, np.sqrt(self.sum_variance), np.sqrt(largest.sum_variance)
            lower, upper = value - reach * stderr, value + reach * stderr
        else:
            value, stderr, bound = self.value, self.stderr, largest.stderr
            lower, upper = self.interval(reach)
        return Answers(value, stderr, lower, upper, bound, options.level, points, options.simultaneous)


def normal_answers(
    value: Floats, stderr: Floats, level: float, points: Points, *, simultaneous: bool = False
) -> Answers:
    """Answers whose error is about normal with a known standard deviation, which is then its own bound.

    NaN where it is not known. Simultaneous ones are Bonferroni's.
    """
    check_level(level)
    reach = QueryOptions("mean", level, simultaneous, 1).normal_reach(len(value)) * stderr
    return Answers(value, stderr, value - reach, value + reach, stderr.copy(), level, points, simultaneous)


def normal_quantile(level: float, blocks: int | None = None) -> float:
    """How many standard errors an interval reaches: Student's t where they come from blocks, else normal."""
    from scipy.special import ndtri, stdtrit

    rank = 0.5 + level / 2.0
    return float(ndtri(rank) if blocks is None else stdtrit(blocks - 1, rank))


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
        return Description(self, self.details(), _error_in_the_middle(self))

    def plot(self: ReleasedFunction, ax: Axes | None = None, **keywords: Unpack[PlotKeywords]) -> Axes:
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
    """A small picture of the whole function; empty without bounds or for more than two columns."""
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
    "statement",
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

    function: ReleasedFunction
    details: tuple[Detail, ...]
    error: float | None

    @property
    def claim(self) -> Claim:
        """What the release promises."""
        return self.function.claim

    def as_json(self) -> dict[str, Any]:
        """The facts as JSON values."""
        f = self.function
        return {
            "kind": "released function",
            "claim": f.claim.in_numbers(),
            "kernel": kernel_as_json(f.kernel),
            "dim": f.dim,
            "columns": None if f.columns is None else list(f.columns),
            "bounds": None if f.bounds is None else f.bounds.as_json(),
            "estimated_count": {"value": f.count, "stderr": f.count_stderr},
            "error": self.error,
            **{detail.name: detail.value for detail in self.details},
            "producer": f.producer,
            **privacy.stated_json(f.statement),
        }

    def facts(self) -> list[tuple[str, str]]:
        """Names and values for people, in the order in which they are shown."""
        f, error = self.function, self.function.count_stderr
        count = f"{f.count:.0f} ± {error:.5g} (estimated)" if error else f"{f.count:.0f} (public)"
        return [
            ("claim", repr(f.claim)),
            ("kernel", kernel_in_words(f.kernel)),
            ("columns", "not named" if f.columns is None else names_in_words(f.columns)),
            ("bounds", bounds_in_words(f.bounds)),
            *((each.label or each.name, each.words) for each in self.details if each.words is not None),
            ("records", count),
            *([] if self.error is None else [("error", self._error_in_words(self.error))]),
            ("producer", f.producer),
            *((name, str(value)) for name, value in f.statement.as_json().items()),
        ]

    def _error_in_words(self, error: float) -> str:
        where, count = "in the middle of the bounds", self.function.count
        if not counts_records(self.function.kernel):
            return f"± {error:.2g} of a sum of similarities {where}"
        share = f", {100 * error / count:.2g} % of all" if count > 0 else ""
        return f"{records_in_words(error)} near a point {where}{share}"

    def __str__(self) -> str:
        rows = self.facts()
        width = max(len(name) for name, _ in rows)
        return "\n".join([self.claim.sentence(), "", *(f"{name:<{width}}  {value}" for name, value in rows)])


@dataclass(frozen=True, slots=True)
class PublicFacts:
    """What every release states beside its answers; each kind holds one, and its file's header has it.

    What an owner may state is a field of `Statement`; another fact is a field here, with its entry in
    ``as_json`` and its reading in ``from_json``.
    """

    claim: Claim
    producer: str = PRODUCER
    statement: Statement = field(default_factory=Statement)

    def as_json(self) -> Header:
        """For the header of a file."""
        return {
            "claim": self.claim.as_json(),
            "producer": self.producer,
            **privacy.stated_json(self.statement),
        }

    @classmethod
    def from_json(cls, header: Header) -> PublicFacts:
        """The facts of a file's header."""
        statement = Statement.from_json(header.get("statement", {}))
        return cls(Claim.from_json(header["claim"]), stored_text(header["producer"]), statement)


Payload = tuple[Header, Sequence[Buffer | Section], Section | None]
"""How the arrays of a file are laid out, for its header; their bytes; and those that are read by pages."""


class StoredRelease(ABC):
    """A release that has a ``.hush`` file of its own.

    Each kind of release defines its header and the arrays that follow. It is pickled as the bytes of that
    file, which are validated like any other file when they are read.
    """

    kind: ClassVar[str]
    """The type in the header of its files."""

    if TYPE_CHECKING:

        @property
        def facts(self) -> PublicFacts:
            """What the release states beside its answers."""

    @property
    def claim(self) -> Claim:
        """What the release promises."""
        return self.facts.claim

    @property
    def producer(self) -> str:
        """Which version of Hushsum made it."""
        return self.facts.producer

    @property
    def statement(self) -> Statement:
        """What its owner stated with it."""
        return self.facts.statement

    def stating(self, statement: Statement) -> Self:
        """The same with this statement."""
        made: Any = self
        stated: Self = replace(made, facts=replace(self.facts, statement=statement))
        return stated

    def stated(self) -> Header:
        """The header of its file, without the layout of the arrays."""
        return {"type": self.kind, **self.facts.as_json()}

    @abstractmethod
    def _payload(self) -> Payload:
        """What follows the header."""

    def save(self, target: PathOrFile) -> None:
        """Write a ``.hush`` file; to a path atomically."""
        layout, sections, paged = self._payload()
        files.write_container(target, FileKind.RELEASED, {**self.stated(), **layout}, sections, paged=paged)

    def __reduce__(self) -> tuple[Callable[[bytes], Released], tuple[bytes]]:
        return _from_bytes, (file_bytes(self),)


if TYPE_CHECKING:
    _Declared = ReleasedFunction
else:
    # A property of the protocol would be the default of the field of that name in the dataclass of a kind.
    _Declared = ABC


class LocalFunction(Presented, StoredRelease, _Declared):
    """A released function that is in memory: a kind says how it answers, and what its file holds."""

    @property
    def dim(self) -> int | None:
        """The number of columns of a query; None where records are sets."""
        return self.kernel.dim

    def __call__(self, Q: object) -> Floats:
        """Mean kernel values f(q)/N̂, shape (n_queries,)."""
        return self.sum(Q) / max(self.count, 1.0)

    def query(
        self,
        Q: object,
        *,
        of: str = "mean",
        level: float = 0.95,
        simultaneous: bool = False,
        threads: int = 1,
    ) -> Answers:
        """Values with standard errors and intervals.

        Parameters
        ----------
        Q : records as the kernel takes them
            Queries.
        of : {"mean", "sum"}
            f(q)/N̂ or f(q). The error of N̂ is part of both.
        level : float
            The probability with which each interval holds.
        simultaneous : bool
            Whether all intervals of this call together hold with that probability.
        threads : int
            How many threads may be used, where that helps.
        """
        check_question(of, level)
        return self._answers(self._points(Q), QueryOptions(of, level, simultaneous, threads))

    @abstractmethod
    def _answers(self, points: Points, options: QueryOptions) -> Answers:
        """The answers at points that were read once."""

    def nonnegative(self) -> ReleasedFunction:
        """The version whose answers are those of some dataset: post-processing, nothing is spent.

        No answer is negative, and all of them fit together: they are kernel sums of weighted places in the
        box that sum to the released number of records. Where noise is large, a map of it is much nearer to
        the truth; single answers are biased. It is a released function of its own, with intervals, and can
        be saved; see `hushsum.releases.NonnegativeFunction`. For one to four columns with bounds.

        Raises
        ------
        UsageError
            where there is none: without bounds, for kernels that are not sums of products over columns or
            take negative values, and for boxes of too many bandwidths.

        Examples
        --------
        >>> import hushsum as hs
        >>> tally = hs.grid(hs.GaussianKernel(dim=1, bandwidth=0.1), bounds=(-1, 1))
        >>> f = tally.add([[0.5]] * 200).release(epsilon=0.1, insecure_noise_seed=0).nonnegative()
        >>> bool(f([[-0.9], [-0.5], [0.0], [0.9]]).min() >= 0.0)
        True
        """
        return self._nonnegative

    @cached_property
    def _nonnegative(self) -> ReleasedFunction:
        # Here and not above: the module derives its kind from this class.
        from ._public_points import nonnegative_version

        return nonnegative_version(self)

    def _points(self, Q: object) -> Points:
        return query_points(Q, dim=self.dim, columns=self.columns)


class LocalTable(LocalFunction):
    """A released function that reads a table: it answers for the kernel and the columns of its reading."""

    reading: Reading

    @property
    def basis(self) -> Basis:
        """What the table counts."""
        return self.reading.basis

    @property
    def kernel(self) -> Kernel:
        """The similarity whose sums it answers."""
        return self.reading.kernel

    @property
    def columns(self) -> tuple[str, ...] | None:
        """What the columns are called, in the order in which arrays give them; None if not declared."""
        return self.basis.columns

    @property
    def bounds(self) -> Bounds | None:
        """The declared box that holds the records; None if not declared."""
        return self.basis.box


class _Codec(NamedTuple):
    """How the files of a kind are read: the size of the payload that a header announces, what is built of
    both, and the names of the header that describe the payload.
    """

    payload_size: Callable[[Header], int]
    build: Callable[[Header, memoryview], StoredRelease]
    layout: tuple[str, ...]

    def read(self, header: Header, payload: memoryview) -> Released:
        """What a file holds; ValueError unless its header is what would be written, so that it has no names
        whose meaning is unknown.
        """
        found = self.build(header, payload)
        layout = {name: header[name] for name in self.layout if name in header}
        files.check_spelling(header, {**found.stated(), **layout})
        return found


_CODECS: dict[str, _Codec] = {}


def register(
    kind: str,
    payload_size: Callable[[Header], int],
    build: Callable[[Header, memoryview], StoredRelease],
    *layout: str,
) -> None:
    """Make a kind of release known, so that its files can be read."""
    _CODECS[kind] = _Codec(payload_size, build, layout)


def check_names(values: Header, *names: str) -> None:
    """ValueError unless a part of a header has these values and no others, whose meaning would be unknown."""
    if set(values) != set(names):
        raise ValueError("names")


def stored_integer(value: object, low: int, high: int) -> int:
    """An integer of a header; ValueError unless it is one within these limits."""
    if type(value) is not int or not low <= value <= high:
        raise ValueError("number")
    return value


def stored_text(value: object) -> str:
    """A text of a header; TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError("text")
    return value


def load_released(source: PathOrFile) -> Released:
    """What a ``.hush`` file holds: a released function, or the :class:`hushsum.releases.Bundle` of a model.

    Raises
    ------
    FileRefused
        if the file is damaged, of a later version or of another kind, such as a confidential tally.
    UsageError
        if there is no such file.
    """
    return _read(source, lambda kind: None)


def load_function(source: PathOrFile) -> ReleasedFunction:
    """The released function in a ``.hush`` file; the bundle of a model is refused."""

    def check(kind: object) -> None:
        if kind == "bundle":
            remedy = PerSurface("read it with hushsum.load", "use hushsum predict", "predict with it")
            raise FileRefused("the file holds a model, not one released function", remedy=remedy)

    return function_in(_read(source, check))


def load_single(source: IO[bytes]) -> ReleasedFunction:
    """The released table or points in the bytes of a file; nothing that holds a further file, so that none
    nests.
    """

    def check(kind: object) -> None:
        if kind not in ("table", "points"):
            raise FileRefused(
                "the file inside this file must be a released table, or points", remedy="get a fresh copy"
            )

    return function_in(_read(source, check))


def function_in(released: Released) -> ReleasedFunction:
    """What a codec made, which is a function unless it is a bundle."""
    if not isinstance(released, ReleasedFunction):
        raise TypeError(f"{type(released).__name__} is not a released function")
    return released


def file_bytes(released: Released) -> bytes:
    """The bytes of the ``.hush`` file."""
    buffer = io.BytesIO()
    released.save(buffer)
    return buffer.getvalue()


def _from_bytes(payload: bytes) -> Released:
    return load_released(io.BytesIO(payload))


def _read(source: PathOrFile, check: Callable[[object], None]) -> Released:
    def codec(header: Header) -> _Codec:
        name = header.get("type")
        check(name)
        if name not in _CODECS:
            load_baselines()
        if name not in _CODECS:
            raise FileRefused(
                f"the file holds a function of type {name!r}, which this version of Hushsum does not have",
                remedy="upgrade it",
            )
        return _CODECS[name]

    header, payload = files.read_container(
        source, FileKind.RELEASED, lambda header: codec(header).payload_size(header)
    )
    return files.build_from(header, payload, codec(header).read)


R = TypeVar("R", bound=Released)


@dataclass(frozen=True, slots=True)
class Prepared(Generic[R]):
    """A release that has been checked and not drawn: everything that can be refused was refused before.

    Attributes
    ----------
    claim : Claim
        What it will promise; known before anything is drawn.
    subject : mapping
        The description in the ledger: public. What the request states is added to it.
    make : callable
        Draws the noise, without spending: `spend` is what to call.
    request : ReleaseRequest
        Where it is debited, if `spend` is given no other place, and what is stated with it.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.privacy import ReleaseRequest
    >>> tally = hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=10).add([[1.0]] * 100)
    >>> prepared = tally.prepare(ReleaseRequest(epsilon=1.0))
    >>> prepared.claim.mechanism
    'discrete laplace'
    >>> f = prepared.spend()
    """

    claim: Claim
    subject: Mapping[str, object]
    make: Callable[[], R]
    request: ReleaseRequest = field(default_factory=ReleaseRequest)

    def __post_init__(self) -> None:
        object.__setattr__(self, "subject", {**self.subject, **self.request.statement.as_json()})

    def price(self, budget: Budget) -> object:
        """What the release costs in a budget, whether or not as much is left."""
        return budget.cost(self.claim)

    def _drawn(self) -> R:
        """What was made, with what the request states."""
        made = self.make()
        if self.request.statement == Statement():
            return made
        assert isinstance(made, StoredRelease)
        return made.stating(self.request.statement)

    def spend(self, booking: Booking | None = None, sink: Callable[[bytes], object] | None = None) -> R:
        """Debit the claim, draw, stage and publish: what was released. A retry returns the staged bytes.

        Parameters
        ----------
        booking : Booking, optional
            Where it is debited. Without one, and without that of the request, nothing is recorded.
        sink : callable, optional
            Brings the bytes of the file to their reader, before they count as published.

        Raises
        ------
        UsageError
            if the staged bytes claim something else: they were staged for another release.
        BudgetExhausted, ClaimError, AlreadyPublished
            as `hushsum.privacy.stage` does.
        """
        booking = self.request.booking if booking is None else booking
        if booking is None and sink is None:
            return self._drawn()
        released: list[Any] = []
        drawn = b""

        def file() -> bytes:
            nonlocal drawn
            released.append(self._drawn())
            drawn = file_bytes(released[0])
            return drawn

        def deliver(payload: bytes) -> None:
            if not released or payload != drawn:
                released[:] = [load_released(io.BytesIO(payload))]
                if released[0].claim != self.claim:
                    raise privacy.another_release()
            if sink is not None:
                sink(payload)

        privacy.spend(booking, self.claim, self.subject, file, deliver=deliver)
        function: R = released[0]
        return function


_MOST_ENTRIES = 4096
_LONGEST_NAME = 200
_MOST_AXES = 8
_LARGEST = 1 << 62


@dataclass(frozen=True, eq=False)
class Bundle(StoredRelease):
    """Named released functions and small public arrays that were paid for together; public, frozen.

    A model releases one, so that a budget is debited once for all of it. Made by the models of
    ``hushsum.models`` or by ``hushsum.load``; not by hand.

    Attributes
    ----------
    facts : PublicFacts
        The claim is what all parts together promise. The claims of the parts are those of their own noise:
        of parts that saw different records each may be the whole claim, otherwise they add up to it.
    about : mapping
        Public facts as JSON values: which model, its parameters, the columns, and under which assumptions
        the claim holds.
    parts : mapping of str to ReleasedFunction
        Of a file, each is read when it is first used: who reads a model checks the names before.
    arrays : mapping of str to array
        Of ``float64`` or ``int64``, read-only.

    Privacy
    -------
    Everything here is public, so using it spends nothing.
    """

    kind = "bundle"

    facts: PublicFacts
    about: Mapping[str, Any]
    parts: Mapping[str, ReleasedFunction] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        files.canonical_json(dict(self.about))
        arrays = {name: _frozen(values) for name, values in self.arrays.items()}
        parts = self.parts if isinstance(self.parts, _StoredParts) else MappingProxyType(dict(self.parts))
        object.__setattr__(self, "parts", parts)
        for name, value in (("about", dict(self.about)), ("arrays", arrays)):
            object.__setattr__(self, name, MappingProxyType(value))

    def __repr__(self) -> str:
        inside = ", ".join([*self.parts, *self.arrays])
        return f"Bundle({self.about.get('model', 'no model')!r}: {inside}; claim={self.claim!r})"

    def stated(self) -> Header:
        """The header of its file, without the layout of parts and arrays."""
        return {**super().stated(), "about": dict(self.about)}

    def _payload(self) -> Payload:
        parts = {name: file_bytes(part) for name, part in self.parts.items()}
        types = {name: _type_of(values) for name, values in self.arrays.items()}
        layout = {
            "parts": [{"name": name, "size": len(payload)} for name, payload in parts.items()],
            "arrays": [
                {"name": name, "type": types[name], "shape": list(values.shape)}
                for name, values in self.arrays.items()
            ],
        }
        arrays = [files.encode_array(values, types[name]) for name, values in self.arrays.items()]
        return layout, [*parts.values(), *arrays], None


class _StoredParts(Mapping[str, ReleasedFunction]):
    """The parts of a file by name, each read when it is first used."""

    def __init__(self, stored: dict[str, memoryview]) -> None:
        self._stored = stored
        self._read: dict[str, ReleasedFunction] = {}

    def __getitem__(self, name: str) -> ReleasedFunction:
        if name not in self._read:
            self._read[name] = load_function(io.BytesIO(self._stored[name]))
        return self._read[name]

    def __contains__(self, name: object) -> bool:
        return name in self._stored

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)


def _frozen(values: NDArray[Any]) -> NDArray[Any]:
    """A read-only copy, of integers or of reals."""
    kind = np.asarray(values).dtype.kind
    if kind not in "biuf":
        raise TypeError("a bundle holds arrays of numbers")
    array = np.array(values, dtype=np.float64 if kind == "f" else np.int64)
    array.flags.writeable = False
    return array


def _type_of(values: NDArray[Any]) -> str:
    return files.REAL if values.dtype.kind == "f" else files.narrowest_type(values)


def _payload_size(header: Header) -> int:
    """The sum of what the header lists; arithmetic on Python's integers, so nothing overflows."""
    _check_entries(header["parts"], "name", "size")
    _check_entries(header["arrays"], "name", "type", "shape")
    return sum(_part_sizes(header)) + sum(_array_sizes(header))


def _part_sizes(header: Header) -> list[int]:
    return [stored_integer(entry["size"], 0, _LARGEST) for entry in header["parts"]]


def _array_sizes(header: Header) -> list[int]:
    return [files.encoded_size(_shape(entry), entry["type"], reals=True) for entry in header["arrays"]]


def _check_entries(entries: object, *fields: str) -> None:
    if not isinstance(entries, list) or len(entries) > _MOST_ENTRIES:
        raise ValueError("entries")
    for entry in entries:
        check_names(entry, *fields)
    names = [entry["name"] for entry in entries]
    if any(not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME for name in names):
        raise ValueError("name")
    if len(set(names)) != len(names):
        raise ValueError("one name twice")


def _shape(entry: dict[str, Any]) -> tuple[int, ...]:
    shape = entry["shape"]
    if not isinstance(shape, list) or len(shape) > _MOST_AXES:
        raise ValueError("shape")
    return tuple(stored_integer(each, 0, _LARGEST) for each in shape)


def _build(header: Header, payload: memoryview) -> Bundle:
    if not isinstance(header["about"], dict):
        raise TypeError("about")
    sizes = [*_part_sizes(header), *_array_sizes(header)]
    pieces = (payload[end - size : end] for size, end in zip(sizes, accumulate(sizes), strict=True))
    parts = {entry["name"]: next(pieces) for entry in header["parts"]}
    arrays = {}
    for entry in header["arrays"]:
        values = files.decode_array(next(pieces), _shape(entry), entry["type"])
        if not np.isfinite(values).all():
            raise ValueError("not finite")
        arrays[entry["name"]] = values
    return Bundle(PublicFacts.from_json(header), header["about"], _StoredParts(parts), arrays)


register(Bundle.kind, _payload_size, _build, "parts", "arrays")
