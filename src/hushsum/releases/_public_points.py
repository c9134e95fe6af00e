"""Released tables read with the help of public points, and the files of both."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.files import REAL, Header, decode_array, encode_array, encoded_size
from hushsum.kernels import Batch, Kernel
from hushsum.privacy import Statement
from hushsum.records import Bounds
from hushsum.tables import FOLDS, FeatureReading, Table, drawn_points, explain, mean_weights, unexplained

from ._base import (
    Answers,
    Detail,
    LocalFunction,
    Payload,
    Points,
    PublicFacts,
    QueryOptions,
    ReleasedFunction,
    file_bytes,
    load_single,
    normal_answers,
    query_points,
    register,
    stored_integer,
)
from ._noisy_table import NoisyTable
from ._table_answers import CoefficientFunction

PUBLIC_SAMPLE: Final = "the sample that parameters and answers were derived from is public"


@dataclass(frozen=True, eq=False, repr=False)
class ForwardedFacts(LocalFunction):
    """A reader of ``function``, whose claim, kernel, count, columns and bounds are those of that function."""

    function: LocalFunction

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.function!r}, {self.claim!r})"

    @property
    def facts(self) -> PublicFacts:
        """The facts of the function."""
        return self.function.facts

    def stating(self, statement: Statement) -> Self:
        """The same with this statement, which is one of the function."""
        return replace(self, function=self.function.stating(statement))

    @property
    def kernel(self) -> Kernel:
        """The similarity whose sums it answers."""
        return self.function.kernel

    @property
    def count(self) -> float:
        """The estimated number of records."""
        return self.function.count

    @property
    def count_stderr(self) -> float:
        """The standard error of :attr:`count`."""
        return self.function.count_stderr

    @property
    def columns(self) -> tuple[str, ...] | None:
        """What the columns are called; None if not declared."""
        return self.function.columns

    @property
    def bounds(self) -> Bounds | None:
        """The declared box that records were clipped to; None if not declared."""
        return self.function.bounds

    def stated(self) -> Header:
        """The facts are those of the release, whose file is in this one."""
        return {"type": self.kind}


@dataclass(frozen=True, eq=False, repr=False)
class ReadWithPoints(ForwardedFacts):
    """A reader of a released table and public points. The points are read, and stored, as they are, so the
    claim states that they are public.
    """

    joined: ClassVar[str]
    """How the function and the points go together, in words."""

    function: NoisyTable
    points: NDArray[np.float64]

    @property
    def facts(self) -> PublicFacts:
        """The facts of the function; the claim also has the assumption that the public points are public."""
        facts, known = self.function.facts, self.function.claim.assumptions
        if PUBLIC_SAMPLE in known:
            return facts
        return replace(facts, claim=replace(facts.claim, assumptions=(*known, PUBLIC_SAMPLE)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.function!r}, points={len(self.points)}, {self.claim!r})"

    def details(self) -> tuple[Detail, ...]:
        """The release, and the number of public points it is read with."""
        number = len(self.points)
        return (*self.function.details(), Detail("points", number, f"{self.joined} {number} public points"))

    def _payload(self) -> Payload:
        release = file_bytes(self.function)
        layout = {"points": list(self.points.shape), "release": len(release)}
        return layout, [encode_array(self.points, REAL), release], None


def _payload_size(header: Header) -> int:
    """The size of points and release, from the header."""
    number, dim = header["points"]
    return encoded_size((number, dim), REAL, reals=True) + stored_integer(header["release"], 0, 1 << 62)


def _read(
    header: Header, payload: memoryview, start: int | None = None
) -> tuple[NoisyTable, NDArray[np.float64]]:
    """The released table, which starts after the points or where that is given, and the points; ValueError
    for something else, or points that are not finite.
    """
    number, dim = header["points"]
    size = encoded_size((number, dim), REAL, reals=True)
    function = load_single(io.BytesIO(bytes(payload[start or size :])))
    points = decode_array(payload[:size], (number, dim), REAL).copy()
    if not isinstance(function, NoisyTable) or not np.isfinite(points).all():
        raise ValueError("points")
    return function, points


FEWEST_POINTS: Final = 10
MOST_POINTS: Final = 10_000
# Public points at which both estimates are compared.
_COMPARED: Final = 200
_NUMBERS_AT_A_TIME: Final = 1 << 22


@dataclass(frozen=True, eq=False, repr=False)
class CombinedFunction(ReadWithPoints):
    """Mean kernel values from a release and from a public sample, weighted by their inverse variances.

    Where noise is large beside the sampling error of the public points, answers come mostly from these; with
    many private records, mostly from the release. It helps if both are samples of one kind. Where they
    differ, the difference is estimated from the release at the public points and added to the variance of
    the public estimate, so that a sample of something else loses its weight.

    Attributes
    ----------
    function : ReleasedFunction
    points : array of shape (n_points, dim)
        The public sample.

    Privacy
    -------
    The points must be public. Then everything here is computed from what was released: nothing is spent.
    Points taken from the private records would be a leak.

    Notes
    -----
    Intervals allow for noise, for the sampling error of both and for the estimated difference; for what the
    sample shows too much or too little of at one query, they do not.
    """

    kind = "public combination"
    joined = "combined with"

    def __post_init__(self) -> None:
        _check_points(self.points, self.function.dim)
        self.points.flags.writeable = False

    def __call__(self, Q: object) -> Floats:
        """Mean kernel values, shape (n_queries,)."""
        return self.query(Q).value

    def sum(self, Q: object) -> Floats:
        """Kernel sums, shape (n_queries,)."""
        return self.query(Q, of="sum").value

    def _answers(self, points: Points, options: QueryOptions) -> Answers:
        """The combined answers of the release and the public points, with normal intervals."""
        queries = np.asarray(points)
        private = self.function.query(queries, threads=options.threads)
        public, variance = self._public(queries)
        variance = variance + self.difference
        noise = np.maximum(np.square(private.stderr), 1e-300)
        share = variance / (variance + noise)
        value = share * private.value + (1.0 - share) * public
        stderr = np.sqrt(share * noise)
        if options.of == "sum":
            stderr = np.hypot(stderr * self.count, value * self.count_stderr)
            value = value * self.count
        return normal_answers(value, stderr, options.level, queries, simultaneous=options.simultaneous)

    def public_share(self, Q: object) -> Floats:
        """The weight of the public sample in each answer, from 0 to 1."""
        queries = np.asarray(self._points(Q))
        noise = np.square(self.function.query(queries).stderr)
        variance = self._public(queries)[1] + self.difference
        return np.asarray(noise / np.maximum(noise + variance, 1e-300))

    @cached_property
    def difference(self) -> float:
        """The estimated mean square of the difference between both kernel means beyond their variances."""
        step = max(1, len(self.points) // _COMPARED)
        at = self.points[::step][:_COMPARED]
        private = self.function.query(at)
        public, variance = self._public(at)
        # Each point is one of the sample: it would meet itself.
        number = len(self.points)
        itself = np.array([float(self.kernel.similarity(each[None], each[None])[0, 0]) for each in at])
        others = (public * number - itself) / (number - 1)
        excess = np.square(private.value - others) - np.square(private.stderr) - variance
        return max(0.0, float(excess.mean()))

    def _public(self, queries: Floats) -> tuple[Floats, Floats]:
        """Kernel means of the public sample, and their variances as estimates of the private ones."""
        box = self.bounds
        rows = self.points if box is None else np.clip(self.points, box.low, box.high)
        means, squares = np.zeros(len(queries)), np.zeros(len(queries))
        for start in range(0, len(queries), at_a_time := max(1, _NUMBERS_AT_A_TIME // len(rows))):
            values = self.kernel.similarity(rows, queries[start : start + at_a_time])
            means[start : start + at_a_time] = values.mean(axis=0)
            squares[start : start + at_a_time] = values.var(axis=0)
        number = len(rows)
        # No spread in the sample says little: as if one more point had seen a similarity of 1.
        spread = (squares * number + np.square(1.0 - means)) / number
        return means, spread * (1.0 / number + 1.0 / max(self.count, 1.0))


def combine(function: ReleasedFunction, public: object) -> CombinedFunction:
    """Combine a released function with a public sample of the same kind of records, by their variances.

    Post-processing: it spends nothing, and it can be saved.

    Parameters
    ----------
    function : ReleasedFunction
        A released table, as tallies release them, of records of numbers.
    public : array-like of shape (n_rows, dim), or a frame with the columns of the function
        Public, 10 to 10,000 rows.

    Examples
    --------
    >>> import numpy as np
    >>> import hushsum as hs
    >>> rng = np.random.default_rng(0)
    >>> tally = hs.grid(hs.GaussianKernel(dim=1, bandwidth=0.3), bounds=(-4, 4))
    >>> f = tally.add(rng.normal(size=(500, 1))).release(epsilon=0.05)
    >>> g = combine(f, rng.normal(size=(400, 1)))
    >>> bool(g.query([[0.0]]).stderr[0] < f.query([[0.0]]).stderr[0])
    True
    """
    table = released_table(function)
    if not isinstance(table, NoisyTable) or table.dim is None:
        rule = "must be a released table of records of numbers"
        raise UsageError("function", rule, got=type(function).__name__, remedy="release a tally")
    return CombinedFunction(table, sample_points(public, table.dim, table.columns))


def sample_points(public: object, dim: int | None, columns: Sequence[str] | None) -> NDArray[np.float64]:
    """A public sample as the points that a function of ``dim`` columns is combined with.

    Raises
    ------
    UsageError
        for another width or number of rows, and for functions of sets.
    DataRefused
        for anything but rows of finite numbers.
    """
    points = np.array(query_points(public, dim=dim, columns=columns), np.float64) if dim else np.zeros(0)
    _check_points(points, dim)
    return points


def _check_points(points: Floats, dim: int | None) -> None:
    if dim is None or points.ndim != 2 or points.shape[1] != dim:
        rule = "must be rows of as many numbers as queries have"
        raise UsageError("public", rule, got="others", remedy="give rows like the records")
    if not FEWEST_POINTS <= len(points) <= MOST_POINTS:
        rule = f"must have {FEWEST_POINTS} to {MOST_POINTS} rows"
        raise UsageError("public", rule, got=len(points), remedy="give a part of them, or leave it out")


register(
    CombinedFunction.kind, _payload_size, lambda *file: CombinedFunction(*_read(*file)), "points", "release"
)


@dataclass(frozen=True, eq=False, repr=False)
class SharpenedFunction(ReadWithPoints):
    """Fourier features with points that explain most of them: ``f.sharpened()``,
    ``f.with_public_points(points)``.

    Answers are unbiased whatever the points, with smaller errors the better these resemble the records:
    sampling error comes only from what they leave unexplained. Where they explain nothing, answers are those
    of ``function``. The fit takes a tenth of a second for 500 points, five for 2000.

    Privacy
    -------
    Points that were found in the release alone (``drawn``) and everything that is computed from them are
    post-processing: nothing is spent. Points that were given must be public; if they were taken from the
    private records, that would be a leak.
    """

    kind = "sharpened"
    joined = "read with"

    function: CoefficientFunction
    weights: Floats
    drawn: bool = False

    def __post_init__(self) -> None:
        if not 1 <= len(self.points) <= MOST_POINTS:
            remedy = "a few hundred to 2000 will do"
            raise UsageError("points", f"must be 1 to {MOST_POINTS}", got=len(self.points), remedy=remedy)
        for each in (self.points, self.weights):
            each.flags.writeable = False

    @property
    def facts(self) -> PublicFacts:
        """The facts of the function; of points that were given the claim states that they are public."""
        return self.function.facts if self.drawn else super().facts

    def details(self) -> tuple[Detail, ...]:
        """The release, and the number of points it is read with."""
        number = len(self.points)
        text = f"{self.joined} {number} {'points found in it' if self.drawn else 'public points'}"
        return (*self.function.details(), Detail("points", number, text))

    def _payload(self) -> Payload:
        release = file_bytes(self.function)
        layout = {
            "points": list(self.points.shape),
            "folds": len(self.weights),
            "origin": _DRAWN if self.drawn else _PUBLIC,
            "release": len(release),
        }
        return layout, [encode_array(self.points, REAL), encode_array(self.weights, REAL), release], None

    @cached_property
    def explained(self) -> float:
        """Which share of the released table's squares, noise included, the points explain; 0 where they do
        not help.
        """
        if not self.weights.any():
            return 0.0
        left, whole = (
            float(np.square(each.table[: self._reading.basis.features], dtype=np.float64).sum())
            for each in (self._remainder, self.function)
        )
        return 1.0 - left / max(whole, 1.0)

    def __call__(self, Q: object, *, nonnegative: bool = False, threads: int = 1) -> Floats:
        """Mean kernel values f(q)/N̂, shape (n_queries,); parameters as for ``sum``."""
        return self.sum(Q, nonnegative=nonnegative, threads=threads) / max(self.count, 1.0)

    def sum(self, Q: object, *, nonnegative: bool = False, threads: int = 1) -> Floats:
        """Kernel sums f(q) = Σ k(x, q), shape (n_queries,)."""
        points = self._points(Q)
        sums = self._remainder.sum(points, threads=threads) + self._of_points(points)
        return np.maximum(sums, 0.0) if nonnegative else sums

    def _answers(self, points: Points, options: QueryOptions) -> Answers:
        """From the spread over features of what is unexplained."""
        return self._remainder._answers(points, options, self._of_points(points))

    @cached_property
    def _remainder(self) -> CoefficientFunction:
        if not self.weights.any():
            return self.function
        basis, table = self._reading.basis, self.function.table
        return replace(self.function, cells=unexplained(basis, table, self._batch, self.weights))

    @property
    def _reading(self) -> FeatureReading:
        assert isinstance(self.function.reading, FeatureReading)
        return self.function.reading

    @cached_property
    def _batch(self) -> Batch:
        return self._reading.basis.prepare_queries(self.points)

    def _of_points(self, Q: object) -> Floats:
        """The exact kernel sums of the weighted points."""
        batch = self._reading.basis.prepare_queries(Q)
        weights = mean_weights(self._reading.basis, self.weights)
        return self._reading.weighted_sums(self._batch, weights, batch)


def sharpen(function: CoefficientFunction, points: object) -> SharpenedFunction:
    """Read a release of Fourier features with the help of public points, given as queries are; of None, with
    those that are found in it.
    """
    basis, reading = function.basis, function.reading
    if not isinstance(reading, FeatureReading):
        rule = "sharpen Fourier features alone"
        raise UsageError("points", rule, got=f"a release of {basis.name}", remedy="read it without them")
    drawn = points is None
    if drawn:
        rows = drawn_points(reading, function.table, function.cell_variance, function.count)
        # Where there is none, one that has no weight.
        rows = rows if len(rows) else np.zeros((1, rows.shape[1]))
    else:
        rows = basis.prepare_queries(points).arrays[0].astype(np.float64)
    if basis.bounds is not None:
        # Prepared rows are relative to the centre of the box; points are kept as they were given.
        rows += basis.bounds.centre
    if not 1 <= len(rows) <= MOST_POINTS:
        return SharpenedFunction(function, rows, np.zeros((FOLDS, len(rows))), drawn)
    found = explain(reading.basis, function.table, basis.prepare_queries(rows))
    weights = found.weights
    table = function.table[: reading.basis.features]
    if drawn and not _resembles(table, function.cell_variance, found.share):
        weights = np.zeros_like(weights)
    return SharpenedFunction(function, rows, weights, drawn)


def sharpened(function: ReleasedFunction) -> ReleasedFunction:
    """The release read with points that are found in it, where these explain it; else the release itself."""
    if isinstance(function, CoefficientFunction):
        found = sharpen(function, None)
        return found if found.weights.any() else function
    return function


def released_table(function: Any) -> Any:
    """The release that a sharpened function reads; anything else as it is."""
    return function.function if isinstance(function, SharpenedFunction) else function


def _resembles(table: Table, variance: float, share: float) -> bool:
    """Whether points explain all but a twentieth of what is not noise in the squares of a table.

    With less, what is left of evenly spread frequencies may have a larger error than the whole, since that
    of a smooth function cancels.
    """
    whole = float(np.square(table, dtype=np.float64).sum())
    signal = whole - table.size * variance
    return (1.0 - share) * whole - (whole - signal) <= _LEFT * signal


_LEFT: Final = 0.05
# Where points come from, in files.
_DRAWN, _PUBLIC = "release", "public"


def _sharpened_size(header: Header) -> int:
    """The size of points, weights and release, from the header."""
    folds, (number, _) = header["folds"], header["points"]
    return _payload_size(header) + encoded_size((folds, number), REAL, reals=True)


def _build_sharpened(header: Header, payload: memoryview) -> SharpenedFunction:
    folds, (number, dim) = header["folds"], header["points"]
    if folds != FOLDS or type(folds) is not int or header["origin"] not in (_DRAWN, _PUBLIC):
        raise ValueError("folds")
    start = encoded_size((number, dim), REAL, reals=True)
    end = start + encoded_size((folds, number), REAL, reals=True)
    weights = decode_array(payload[start:end], (folds, number), REAL).copy()
    function, points = _read(header, payload, end)
    if not isinstance(function, CoefficientFunction) or not np.isfinite(weights).all():
        raise ValueError("points")
    if function.basis.prepare_queries(points).arrays[0].shape != points.shape:
        raise ValueError("points")
    return SharpenedFunction(function, points, weights, header["origin"] == _DRAWN)


register(SharpenedFunction.kind, _sharpened_size, _build_sharpened, "points", "folds", "origin", "release")
