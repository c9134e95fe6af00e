"""Released tables read with the help of public points, and the files of both.

The non-negative version of a released function reads it with places that have weights of 0 or more.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Final, Self

import numpy as np

from hushsum._types import Floats, Integers
from hushsum.errors import UsageError
from hushsum.files import REAL, Header, decode_array, encode_array, encoded_size, narrowest_type
from hushsum.kernels import PROFILES, Batch, Kernel, ProfileKernel
from hushsum.privacy import Statement
from hushsum.records import Bounds
from hushsum.tables import WHOLE, Explained, FeatureReading, GridReading, GridWeights, explain

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
from ._points import PointsFunction
from ._tables import CoefficientFunction, NoisyTable

__all__ = [
    "FEWEST_POINTS", "MOST_POINTS", "PUBLIC_SAMPLE", "CombinedFunction", "ForwardedFacts",
    "NonnegativeFunction", "SharpenedFunction", "combine", "nearest_probabilities", "sample_points",
]  # fmt: skip

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
    points: Floats

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


def _size_with_points(header: Header) -> int:
    """The size of points and release, from the header."""
    number, dim = header["points"]
    return encoded_size((number, dim), REAL, reals=True) + stored_integer(header["release"], 0, 1 << 62)


def _read_with_points(header: Header, payload: memoryview) -> tuple[NoisyTable, Floats]:
    """The released table and the points; ValueError for something else, or points that are not finite."""
    number, dim = header["points"]
    size = encoded_size((number, dim), REAL, reals=True)
    function = load_single(io.BytesIO(bytes(payload[size:])))
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
    if not isinstance(function, NoisyTable) or function.dim is None:
        rule = "must be a released table of records of numbers"
        raise UsageError("function", rule, got=type(function).__name__, remedy="release a tally")
    return CombinedFunction(function, sample_points(public, function.dim, function.columns))


def sample_points(public: object, dim: int | None, columns: Sequence[str] | None) -> Floats:
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
    CombinedFunction.kind,
    _size_with_points,
    lambda *file: CombinedFunction(*_read_with_points(*file)),
    "points",
    "release",
)


@dataclass(frozen=True, eq=False, repr=False)
class SharpenedFunction(ReadWithPoints):
    """Fourier features with public points that explain most of them: ``f.with_public_points(points)``.

    Answers are unbiased whatever the points, with smaller errors the better these resemble the records:
    sampling error comes only from what they leave unexplained. Where they explain nothing, answers are those
    of ``function``. The first answer takes the time of a fit: a tenth of a second for 500 points, five for
    2000.

    Privacy
    -------
    The points must be public, and then everything here is computed from what was released: nothing is spent.
    Points taken from the private records would be a leak.
    """

    kind = "sharpened"
    joined = "read with"

    function: CoefficientFunction

    def __post_init__(self) -> None:
        if not isinstance(self.function.reading, FeatureReading):
            rule = "sharpen Fourier features alone"
            remedy = "read it without them"
            raise UsageError("points", rule, got=f"a release of {self.function.basis.name}", remedy=remedy)
        if not 1 <= len(self.points) <= MOST_POINTS:
            remedy = "a few hundred to 2000 will do"
            raise UsageError("points", f"must be 1 to {MOST_POINTS}", got=len(self.points), remedy=remedy)
        self.points.flags.writeable = False

    @property
    def explained(self) -> float:
        """Which share of the released table's squares, noise included, the points explain in rows that they
        were not fitted to; 0 where they do not help.
        """
        return self._explained.share

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
    def _explained(self) -> Explained:
        return explain(self._reading.basis, self.function.table, self._batch)

    @cached_property
    def _remainder(self) -> CoefficientFunction:
        return replace(self.function, cells=self._explained.remainder)

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
        return self._reading.weighted_sums(self._batch, self._explained.weights, batch)


def sharpen(function: CoefficientFunction, points: object) -> SharpenedFunction:
    """Read a release of Fourier features with the help of public points, given as queries are."""
    basis = function.basis
    rows = basis.prepare_queries(points).arrays[0].astype(np.float64)
    bounds = basis.bounds
    if bounds is not None:
        # Prepared rows are relative to the centre of the box; points are kept as they were given.
        rows += np.array(bounds.low) / 2 + np.array(bounds.high) / 2
    return SharpenedFunction(function, rows)


def _build_sharpened(header: Header, payload: memoryview) -> SharpenedFunction:
    function, points = _read_with_points(header, payload)
    if not isinstance(function, CoefficientFunction):
        raise ValueError("points")
    if function.basis.prepare_queries(points).arrays[0].shape != points.shape:
        raise ValueError("points")
    return SharpenedFunction(function, points)


register(SharpenedFunction.kind, _size_with_points, _build_sharpened, "points", "release")


_FINE, _COARSE = 0.25, 0.5
_FEW_PLACES: Final = 1 << 15
MOST_PLACES: Final = 1 << 18
"""Places are a quarter of the kernel's width apart where that gives at most 2^15 of them, else half of it;
a function that needs more than 2^18 has no non-negative version.
"""

_FEWEST_CELLS: Final = 8
_ITERATIONS: Final = 150
_AT_A_TIME: Final = 1 << 14


def nearest_probabilities(values: Floats) -> Floats:
    """The nearest probabilities, in squared distance (Duchi et al. 2008).

    They are the values less one constant, and 0 where that is negative.

    >>> nearest_probabilities(np.array([0.6, 0.5, -0.2])).round(2).tolist()
    [0.55, 0.45, 0.0]
    """
    falling = np.sort(values)[::-1]
    excess = (np.cumsum(falling) - 1.0) / np.arange(1, len(values) + 1)
    return np.asarray(np.maximum(values - excess[np.flatnonzero(falling > excess)[-1]], 0.0))


@dataclass(frozen=True, eq=False, repr=False)
class NonnegativeFunction(ForwardedFacts):
    """Kernel sums of weighted places in the box: no weight is negative, and all sum to the released number of
    records. Made by ``f.nonnegative()``.

    So the answers are those of some dataset: none is negative, means are at most the kernel's largest value,
    and a map of densities integrates to the number of records. The places are a lattice, and synthetic.

    Attributes
    ----------
    function : ReleasedFunction
        What was released.
    places : GridReading
        The lattice, and how it is read.
    weights : array of integers
        Of the places, in units of 2⁻²⁰ records.

    Privacy
    -------
    Computed from what was released, so it spends nothing.

    Notes
    -----
    Standard errors are those of ``function``, and intervals are its intervals without the part below 0,
    widened where they do not contain the answer. Kernel sums of records are never negative, so they contain
    the truth whenever those of ``function`` do: their coverage is at least the same. The answer itself is
    biased: noise that would show records where none are is gone, and the records that it hid elsewhere are
    spread over the places that remain. ``bound`` allows for that by the distance between both answers.
    """

    kind = "nonnegative"

    places: GridReading
    weights: Integers

    def __post_init__(self) -> None:
        self.weights.flags.writeable = False

    def sum(self, Q: object) -> Floats:
        """Kernel sums, shape (n_queries,); none is negative."""
        basis = self.places.basis
        return self.places.evaluate(self.weights, basis.prepare_queries(self._points(Q)), threads=1)

    def nonnegative(self) -> NonnegativeFunction:
        """The function itself."""
        return self

    def _answers(self, points: Points, options: QueryOptions) -> Answers:
        found = self.function._answers(points, options)
        value = self.sum(points) / (max(self.count, 1.0) if options.of == "mean" else 1.0)
        return replace(
            found,
            value=value,
            lower=np.minimum(np.maximum(found.lower, 0.0), value),
            upper=np.maximum(found.upper, value),
            bound=found.bound + np.abs(value - found.value),
        )

    def details(self) -> tuple[Detail, ...]:
        """The release, and how many places have a weight."""
        used = int(np.count_nonzero(self.weights))
        words = f"kernel sums of {used} of {self.weights.size} places, none with a negative weight"
        return (*self.function.details(), Detail("places", used, words))

    def _payload(self) -> Payload:
        release = file_bytes(self.function)
        type_name = narrowest_type(self.weights)
        constants = self.places.constants_as_json()
        layout = {
            "cells": list(self.places.basis.cells),
            **({} if constants is None else {"constants": constants}),
            "weights": type_name,
            "release": len(release),
        }
        return layout, [encode_array(self.weights, type_name), release], None


def nonnegative_version(function: ReleasedFunction) -> NonnegativeFunction:
    """The nearest weights of places, in the kernel's space, that are not negative and sum to the number of
    records. It is kept for the functions that were used last.

    Raises
    ------
    UsageError
        for functions without bounds, for kernels that are not sums of products over columns or take negative
        values, and for boxes with too many places.

    Notes
    -----
    With the matrix K of kernel values between places and the released sums f there, the squared distance of
    the kernel sums of weights w is ``wᵀKw − 2·wᵀf`` but for a constant. It is minimised by projected
    gradients with momentum and restarts (Beck and Teboulle 2009; O'Donoghue and Candès 2015). K depends on
    differences alone, so products with it are convolutions.
    """
    if not isinstance(function, NoisyTable | PointsFunction):
        rule = "must be a released table, or weighted points, to have a non-negative version"
        raise UsageError("function", rule, got=type(function).__name__, remedy="take that of the release")
    places = _places(function)
    basis = places.basis
    axes = [
        np.linspace(low, high, number)
        for low, high, number in zip(basis.bounds.low, basis.bounds.high, basis.nodes, strict=True)
    ]
    points = np.stack([each.ravel() for each in np.meshgrid(*axes, indexing="ij")], axis=1)
    pieces = np.array_split(points, -(-len(points) // _AT_A_TIME))
    sums = np.concatenate([function.sum(piece) for piece in pieces])
    first = np.zeros(basis.nodes, np.int64)
    first.flat[0] = WHOLE
    kernel = places.evaluate(first, basis.prepare_queries(points), threads=1)
    count = max(function.count, 1.0)
    shares = _nearest_shares(kernel.reshape(basis.nodes), sums.reshape(basis.nodes) / count)
    weights = np.rint(shares * (count * WHOLE)).astype(np.int64)
    return NonnegativeFunction(function, places, weights.reshape(basis.shape))


def _places(function: ReleasedFunction) -> GridReading:
    """A lattice over the box."""
    kernel, bounds = function.kernel, function.bounds
    PROFILES.check(kernel, "a non-negative version")
    assert isinstance(kernel, ProfileKernel)
    if bounds is None:
        raise UsageError("bounds", "must be declared for a non-negative version", got="none")
    if kernel.signed or not kernel.positive_definite:
        rule = "must be positive definite, without negative values, for a non-negative version"
        raise UsageError("kernel", rule, got=kernel.name)
    for spacing, most in ((_FINE, _FEW_PLACES), (_COARSE, MOST_PLACES)):
        cells = [
            max(_FEWEST_CELLS, math.ceil(side / (spacing * width)))
            for side, width in zip(bounds.widths, kernel.column_widths(), strict=True)
        ]
        if math.prod(number + 1 for number in cells) <= most:
            basis = GridWeights(tuple(cells), bounds, (0,) * len(cells), function.columns)
            return GridReading(basis, kernel)
    rule = f"must be wide enough that {MOST_PLACES} places cover the box, for a non-negative version"
    raise UsageError("bandwidth", rule, remedy="release with a larger bandwidth or narrower bounds")


def _nearest_shares(kernel: Floats, sums: Floats) -> Floats:
    """Probabilities of a lattice's places with the sums ``sums``, where ``kernel`` are the values between the
    first place and all of them.
    """
    from scipy import fft

    axes, shape = tuple(range(kernel.ndim)), kernel.shape
    around = kernel
    for axis in axes:
        # A period that is even in every column: differences of both signs.
        behind = np.flip(np.take(around, range(1, around.shape[axis] - 1), axis), axis)
        around = np.concatenate([around, behind], axis=axis)
    period = around.shape
    transform = fft.rfftn(around).real
    inside = tuple(slice(0, each) for each in shape)
    step = 1.0 / float(transform.max())
    shares = np.full(shape, 1.0 / kernel.size)
    ahead, momentum = shares, 1.0
    for _ in range(_ITERATIONS):
        convolved = fft.irfftn(fft.rfftn(ahead, period) * transform, period)[inside]
        moved = nearest_probabilities((ahead - step * (convolved - sums)).ravel()).reshape(shape)
        if float(((ahead - moved) * (moved - shares)).sum()) > 0.0:
            momentum = 1.0
        following = (1.0 + math.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        ahead = moved + (momentum - 1.0) / following * (moved - shares)
        shares, momentum = moved, following
    return shares


def _cells(header: Header) -> tuple[int, ...]:
    cells: Sequence[object] = header["cells"]
    if not isinstance(cells, list):
        raise TypeError("cells")
    return tuple(stored_integer(each, 1, MOST_PLACES) for each in cells)


def _payload_size(header: Header) -> int:
    places = math.prod(number + 1 for number in _cells(header))
    if places > MOST_PLACES:
        raise ValueError("cells")
    return encoded_size((places,), header["weights"]) + stored_integer(header["release"], 0, 1 << 62)


def _build(header: Header, payload: memoryview) -> NonnegativeFunction:
    cells = _cells(header)
    size = len(payload) - stored_integer(header["release"], 0, len(payload))
    function = load_single(io.BytesIO(bytes(payload[size:])))
    if not isinstance(function, NoisyTable | PointsFunction) or function.bounds is None:
        raise ValueError("release")
    basis = GridWeights(cells, function.bounds, (0,) * len(cells), function.columns)
    places = GridReading(basis, function.kernel)
    if "constants" in header:
        places = places.with_constants(header["constants"])
    elif places.constants_as_json() is not None:
        raise ValueError("constants")
    weights = decode_array(payload[:size], basis.shape, header["weights"]).astype(np.int64)
    if (weights < 0).any() or narrowest_type(weights) != header["weights"]:
        raise ValueError("weights")
    return NonnegativeFunction(function, places, weights)


register(NonnegativeFunction.kind, _payload_size, _build, "cells", "constants", "weights", "release")
