"""The Gamma-radius distribution: a vector of density ∝ exp(−‖b‖₂/scale), rounded to integers, drawn
exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import cached_property
from itertools import count

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats

from ._poisson import Interval, decimals, fraction
from ._samplers import LARGEST_SCALE, SMALLEST_SCALE, wrapped
from ._source import LazyUniform, NoiseSource, NoiseStream, check_draw, check_parameter

_BITS = 63
_MAGNITUDE = (1 << _BITS) - 1
# Eight times what a correctly rounded operation may be off by; logarithms of usual libraries keep it.
_ROUNDING = 2.0**-50
# Closer to the edge of the disc, doubles do not tell whether a point is inside.
_DOUBTFUL = 2.0**-40
# Closer to the centre or the edge of the disc, or for a smaller G, errors to the first order do not do, and
# the exact path is taken.
_MARGIN = 2.0**-20
# Prefixes of a uniform below this are left to decimals: to a prefix of 0 the error has no bound.
_FEWEST = np.uint64(1 << 20)
_FACTORS = 8


def gamma_radius(size: int, scale: Fraction, source: NoiseSource, *, widen: float = 0.0) -> NDArray[np.int64]:
    """One real vector b with ``size`` cells and a density ∝ ``exp(−‖b‖₂/scale)``, each cell rounded to the
    nearest integer, exactly.

    Limits: scales from 2⁻⁴⁰ to 2⁴⁰. Cells of a standard deviation of 2⁴⁰ take the exact path one time in
    twenty. A cell beyond 2⁶³ has probability below exp(−2²²); it would wrap around, which costs no privacy,
    as for `discrete_laplace`.

    *Why it has this distribution.* Given v, let b be normal with variance v in each of n cells, and let v =
    2·scale²·G, where G has the Gamma distribution of shape (n + 1)/2. The density of b is then proportional
    to ``∫ v^(−n/2) e^(−r²/2v) · v^((n−1)/2) e^(−v/(2·scale²)) dv`` with r = ‖b‖, which is ``∫ v^(−1/2)
    e^(−r²/2v − v/(2·scale²)) dv ∝ e^(−r/scale)``. G is a sum of exponential variables −ln U, and of half the
    square of a normal number where n is even. Normal numbers come in pairs ``(x, y)·√(−2·ln s/s)``, (x, y)
    uniform in the unit disc and s = x² + y².

    *Why it is exact.* b is a function of real uniforms. A cell is rounded in doubles where it is further from
    the next half than all rounding errors and unseen bits can move it. Otherwise it is enclosed in decimal
    arithmetic, whose logarithms and roots are correctly rounded, with as many further bits as it takes
    (interval refining).

    Parameters
    ----------
    size : int
        Number of cells.
    scale : Fraction
        Sensitivity Δ2 divided by ε.
    source : NoiseSource
        The randomness of this release; the call takes several streams from it.
    widen : float
        For tests: above 0 cells that doubles could decide take the exact path as well, which must not change
        them.

    Returns
    -------
    NDArray of shape (size,)
        64-bit integers. Not independent: they share one length.

    Raises
    ------
    UsageError
        If a parameter breaks its rule.
    SecretRefused
        If the source cannot be used.

    References
    ----------
    Hardt & Talwar 2010 (the K-norm mechanism); Andrews & Mallows 1974 (scale mixtures of normal
    distributions); Marsaglia & Bray 1964 (points in the disc); Haney et al. 2022 (interval refining).

    Examples
    --------
    >>> gamma_radius(5, Fraction(1000), NoiseSource.insecure(1)).dtype
    dtype('int64')
    """
    check_draw(size, 1)
    scale = check_parameter("scale", scale, SMALLEST_SCALE, LARGEST_SCALE)
    if size == 0:
        return np.zeros(0, np.int64)
    vector = _Vector(scale, _DiscPoints.of(-(-size // 2), source), _Mixture.of(size, source))
    cells, error = (each.reshape(-1)[:size] for each in vector.approximate)
    nearest = np.rint(cells)
    doubtful = 0.5 - np.abs(cells - nearest) <= error + widen
    # What is too large for doubles to tell integers apart is doubtful, and replaced.
    magnitudes = np.where(doubtful, 0.0, nearest).astype(np.int64)
    for cell in np.flatnonzero(doubtful).tolist():
        magnitudes[cell] = wrapped(vector.nearest(cell))
    return np.where(vector.points.negative.reshape(-1)[:size], -magnitudes, magnitudes)


def gamma_radius_variance(scale: Fraction, cells: int) -> float:
    """The variance of a cell before it is rounded, and a twelfth for rounding, which is less for scales below
    1.

    >>> gamma_radius_variance(Fraction(1000), 3)
    4000000.0833333335
    """
    # The squared length of n cells has the mean n(n + 1)·scale².
    return (
        float(check_parameter("scale", scale, SMALLEST_SCALE, LARGEST_SCALE)) ** 2 * (cells + 1) + 1.0 / 12.0
    )


@dataclass(frozen=True, repr=False)
class _DiscPoints:
    """Uniform points of the unit disc: for each coordinate a sign and a magnitude, of which 63 bits were
    drawn, and where its further bits come from.
    """

    words: NDArray[np.uint64]
    batch: NDArray[np.int64]
    place: NDArray[np.int64]
    streams: tuple[NoiseStream, ...]

    @classmethod
    def of(cls, number: int, source: NoiseSource) -> _DiscPoints:
        """The first ``number`` points of the square that are in the disc."""
        words, places, streams = [], [], []
        missing = number
        while missing:
            proposed = missing + missing // 3 + 16
            drawn = source.stream().words(2 * proposed).reshape(proposed, 2)
            streams.append(source.stream())
            inside = _inside_disc(drawn, streams[-1])[:missing]
            words.append(drawn[inside])
            places.append(inside)
            missing -= len(inside)
        batch = np.repeat(np.arange(len(places)), [len(each) for each in places])
        return cls(np.concatenate(words), batch, np.concatenate(places), tuple(streams))

    @property
    def negative(self) -> NDArray[np.bool_]:
        """The signs of both coordinates."""
        return (self.words >> np.uint64(_BITS)).astype(bool)

    @cached_property
    def approximate(self) -> tuple[Floats, Floats, Floats]:
        """Magnitudes; −ln(s)/s, s the squared distance from the centre; and a bound of its relative error.

        A magnitude is off by 2⁻⁵³ at most, so s by a relative 2⁻⁵⁰/√s, and −ln s by as much and its own
        rounding. Near the centre and the edge of the disc the bound is infinite.
        """
        magnitudes = _magnitudes(self.words)
        square = (magnitudes**2).sum(axis=1)
        inner = np.clip(square, _MARGIN, 1.0 - _MARGIN)
        logarithm = -np.log(inner)
        error = _ROUNDING * (4.0 + 4.0 / (np.sqrt(inner) * np.minimum(logarithm, 1.0)))
        return magnitudes, logarithm / inner, np.where(inner == square, error, np.inf)

    def enclosed(self, point: int, level: int, context: Context) -> tuple[list[Interval], Interval]:
        """The magnitudes of a point and −ln(s)/s, after 64·``level`` further bits of each coordinate."""
        stream, place = self.streams[self.batch[point]], int(self.place[point])
        lazy = _coordinates(self.words[point], stream, place)
        for uniform in lazy * level:
            uniform.refine()
        unit = 1 << lazy[0].bits
        magnitudes = [
            Interval.between(each.prefix, each.prefix + 1, unit, context).not_negative() for each in lazy
        ]
        low = sum(each.prefix**2 for each in lazy)
        high = sum((each.prefix + 1) ** 2 for each in lazy)
        square = Interval.between(low, min(high, unit**2), unit**2, context).not_negative()
        return magnitudes, square.ln(context).negative().not_negative().over(square, context)


@dataclass(frozen=True, repr=False)
class _Mixture:
    """G: uniforms of which 64 bits were drawn, and for an even number of cells one more point of the disc."""

    words: NDArray[np.uint64]
    further: NoiseStream
    half: _DiscPoints | None

    @classmethod
    def of(cls, cells: int, source: NoiseSource) -> _Mixture:
        words = source.stream().words((cells + 1) // 2)
        further = source.stream()
        return cls(words, further, None if cells % 2 else _DiscPoints.of(1, source))

    @cached_property
    def approximate(self) -> tuple[float, float]:
        """G, and a bound of its relative error."""
        if self.words.min() < _FEWEST:
            return self._from_decimals()
        prefixes = self.words.astype(np.float64) + 0.5
        total = math.fsum((-np.log(prefixes * 2.0**-64)).tolist())
        # Near 1 a uniform is off by 2⁻⁵³, and so is its logarithm; near 0 the unseen bits matter.
        error = _ROUNDING * (total + len(self.words)) + float((1.0 / prefixes).sum())
        if self.half is not None:
            magnitudes, quotient, relative = self.half.approximate
            added = float(magnitudes[0, 0] ** 2 * quotient[0])
            total += added
            # The magnitude lacks its unseen bits, below 2⁻⁶³, which the quotient multiplies by 2¹⁴ at most.
            error += added * float(relative[0]) + _ROUNDING * (4.0 + added)
        if total < _MARGIN or not error < _MARGIN * total:
            return self._from_decimals()
        return total, error / total + _ROUNDING

    def _from_decimals(self) -> tuple[float, float]:
        """G and a bound of its relative error by interval arithmetic, where first-order bounds fail."""
        context = decimals(40)
        enclosed = self.enclosed(0, context)
        total, width = float(enclosed.low), float(context.subtract(enclosed.high, enclosed.low))
        if not total > 0.0 or not width < _MARGIN * total:
            return 1.0, math.inf
        return total, width / total + _ROUNDING

    def enclosed(self, level: int, context: Context) -> Interval:
        """G after 64·``level`` further bits of every uniform."""
        prefixes = [int(word) for word in self.words]
        for index, word in enumerate(prefixes if level else []):
            uniform = LazyUniform(word, 64, self.further.more_bits(index))
            for _ in range(level):
                uniform.refine()
            prefixes[index] = uniform.prefix
        product = Interval(Decimal(1), Decimal(1))
        for start in range(0, len(prefixes), _FACTORS):
            some = prefixes[start : start + _FACTORS]
            factor = Interval(Decimal(math.prod(some)), Decimal(math.prod(each + 1 for each in some)))
            product = product.times(factor, context)
        two, bits = Decimal(2), Decimal(64 * (level + 1) * len(prefixes))
        total = Interval(bits, bits).times(Interval(two, two).ln(context), context)
        total = total.plus(product.ln(context).negative(), context)
        if self.half is not None:
            (magnitude, _), quotient = self.half.enclosed(0, level, context)
            total = total.plus(magnitude.times(magnitude, context).times(quotient, context), context)
        return total.not_negative()


@dataclass(frozen=True, repr=False)
class _Vector:
    """b: the magnitude of cell i is 2·scale·√(G·(−ln s)/s) times that of a coordinate."""

    scale: Fraction
    points: _DiscPoints
    mixture: _Mixture
    totals: dict[int, Interval] = field(default_factory=dict)
    """Enclosures of G that were computed, by level."""

    @property
    def approximate(self) -> tuple[Floats, Floats]:
        """Magnitudes of both cells of every pair, and bounds of their errors."""
        magnitudes, quotient, of_points = self.points.approximate
        total, of_mixture = self.mixture.approximate
        radius = (2.0 * float(self.scale)) * np.sqrt(total * quotient)
        cells: Floats = radius[:, None] * magnitudes
        relative = of_points + of_mixture + 4.0 * _ROUNDING
        return cells, cells * relative[:, None] + radius[:, None] * 2.0**-60

    def nearest(self, cell: int) -> int:
        """The integer next to the magnitude of a cell."""
        point, coordinate = divmod(cell, 2)
        for level in count():
            context = decimals(40 + 20 * level)
            magnitudes, quotient = self.points.enclosed(point, level, context)
            twice = fraction(2 * self.scale, context)
            radius = twice.times(self._total(level).times(quotient, context).root(context), context)
            found = radius.times(magnitudes[coordinate], context)
            low, high = (
                each.to_integral_value(ROUND_HALF_EVEN, context=context) for each in (found.low, found.high)
            )
            # Rounding is monotone: all numbers between have the same integer where both ends do.
            if low == high and high.is_finite():
                return int(low)
        raise AssertionError("unreachable")

    def _total(self, level: int) -> Interval:
        if level not in self.totals:
            self.totals[level] = self.mixture.enclosed(level, decimals(40 + 20 * level))
        return self.totals[level]


def _inside_disc(words: NDArray[np.uint64], further: NoiseStream) -> NDArray[np.int64]:
    """Which points of the square are in the disc."""
    square = (_magnitudes(words) ** 2).sum(axis=1)
    inside = square < 1.0
    for place in np.flatnonzero(np.abs(square - 1.0) < _DOUBTFUL).tolist():
        inside[place] = _surely_inside(*_coordinates(words[place], further, place))
    return np.flatnonzero(inside)


def _surely_inside(x: LazyUniform, y: LazyUniform) -> bool:
    """Whether x² + y² < 1, with as many bits as it takes."""
    while True:
        one = 1 << (2 * x.bits)
        if (x.prefix + 1) ** 2 + (y.prefix + 1) ** 2 <= one:
            return True
        if x.prefix**2 + y.prefix**2 >= one:
            return False
        x.refine()
        y.refine()


def _coordinates(words: NDArray[np.uint64], further: NoiseStream, place: int) -> list[LazyUniform]:
    """The magnitudes of the point that was drawn at this place."""
    return [
        LazyUniform(int(word) & _MAGNITUDE, _BITS, further.more_bits(2 * place + i))
        for i, word in enumerate(words)
    ]


def _magnitudes(words: NDArray[np.uint64]) -> Floats:
    magnitudes: Floats = ((words & np.uint64(_MAGNITUDE)).astype(np.float64) + 0.5) * 2.0**-_BITS
    return magnitudes
