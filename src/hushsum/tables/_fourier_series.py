"""Fourier coefficients of the records: the spectral, or orthogonal series, estimate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.kernels import Batch, Kernel, positive_integer
from hushsum.privacy import Relation, Sensitivity
from hushsum.tables._base import Table
from hushsum.tables._declared_box import (
    BoxBasis,
    BoxReading,
    Complexes,
    blocks,
    check_power,
    contracted,
    cosine_and_sine,
    exponential_of_minus,
    gaussian_width,
    larger,
    queries_of,
)
from hushsum.tables._registry import register

MAX_FREQUENCY = 1 << 10
_LEAST_WEIGHT = 64
"""Below this many steps a coefficient is mostly rounding, and its kernel coefficient below 1e-4."""

_NEGLIGIBLE = 1e-4
"""Of the variance of the noise: a bound on other errors below this takes their place."""


@register
@dataclass(frozen=True, kw_only=True)
class FourierSeries(BoxBasis):
    """Cosines and sines of each record up to a frequency, on the box widened by some bandwidths.

    The kernel sum is a convolution, so its coefficients are the records' times the kernel's own: the table is
    read by multiplying with them. The series is periodic; the padding keeps one end of the box from being
    felt at the other.

    Parameters
    ----------
    frequencies : int
        M, the highest frequency in each column: ((2M + 1)^d − 1)/2 pairs of coefficients.
    padding : float
        How many bandwidths the period exceeds the width of the box.
    taper : float
        A pair's weight is k̂ to this power: 0 gives equal shares of the budget, as published. 2/3 minimises
        Laplace noise of an answer and 1/2 Gaussian noise, which is then a path of the Gaussian process whose
        covariance is the kernel. Pairs whose weight would be below 64, or half of the scale, are left out.

    Privacy
    -------
    A pair (⌊W cos⌋, ⌊W sin⌋), rounded toward 0, has squares that sum to at most W² and so sizes that sum to
    at most √2·W: Δ1 = W₀ + Σ⌊√2·W⌋, Δ2² = W₀² + ΣW². A record replaced leaves the constant as it was and
    moves a pair by at most 2W; or, of a person, it has no counterpart and moves all as above. The computed
    squares exceed W² by less than 1, and are integers.

    Notes
    -----
    Hall, Rinaldo and Wasserman, *Differential privacy for functions and functional data*, JMLR 2013;
    Wasserman and Zhou, *A statistical framework for differential privacy*, JASA 2010, section 6.
    """

    name: ClassVar[str] = "fourier-series"
    in_pages: ClassVar[bool] = True

    kernel: Kernel
    frequencies: int
    padding: float = 4.0
    taper: float = 0.0

    def __post_init__(self) -> None:
        gaussian_width(self.kernel, "fourier_series")
        super().__post_init__()
        highest = positive_integer("frequencies", self.frequencies, at_most=MAX_FREQUENCY)
        object.__setattr__(self, "frequencies", highest)
        if not (math.isfinite(self.padding) and self.padding >= 0.0):
            raise UsageError(
                "padding", "must be finite and at least 0", got=f"{self.padding}", remedy="try 4"
            )
        if not 0.0 <= self.taper <= 1.0:
            raise UsageError("taper", "must be from 0 to 1", got=f"{self.taper}", remedy="try 0.5")
        check_power("2·frequencies + 1", 2 * highest + 1, self.dim)

    def counted_kernel(self) -> Kernel:
        """The kernel that the coefficients are made for."""
        return self.kernel

    @cached_property
    def period(self) -> Floats:
        """The width of the padded box in each column."""
        return 2.0 * self.half + self.padding * gaussian_width(self.kernel, self.name)

    @cached_property
    def _decays(self) -> list[Floats]:
        """What each order of a column adds to −log k̂: from 0, never falling, shape (frequencies + 1,) each.

        Correctly rounded operations alone: weights and their rounding agree on every machine.
        """
        found = []
        for column in range(self.dim):
            phases = np.arange(self.frequencies + 1) * self._widths[column]
            decay = 2.0 * math.pi * math.pi * phases * phases
            decay[0] = 0.0
            found.append(decay)
        return found

    @property
    def _widths(self) -> Floats:
        return gaussian_width(self.kernel, self.name) / self.period

    def _reach(self, before: Floats, decay: Floats) -> NDArray[np.int64]:
        """The highest order of a column that is kept, for each decay of the columns before it.

        Sums and products are rounded without changing their order, so what is kept has no gaps, and the order
        is found by halving.
        """
        if self.taper == 0.0:
            return np.full(len(before), self.frequencies)
        # Weights of at least _LEAST_WEIGHT, or half of the scale: powers of two, as the scale is one.
        most = max(self.scale.bit_length() - _LEAST_WEIGHT.bit_length(), 1) * math.log(2.0)
        reach = np.zeros(len(before), np.int64)
        for bit in range(self.frequencies.bit_length() - 1, -1, -1):
            further = reach + (1 << bit)
            decays = before + decay[np.minimum(further, self.frequencies)]
            kept = (further <= self.frequencies) & (decays * self.taper <= most)
            reach = np.where(kept, further, reach)
        return reach

    @cached_property
    def _pairs(self) -> int:
        """How many pairs are kept, with the constant: counted by the sizes of all columns but one, so that a
        short file does not cost what it declares.
        """
        if self.taper == 0.0:
            return int((2 * self.frequencies + 1) ** self.dim // 2 + 1)
        decay, times = np.zeros(1), np.ones(1, np.int64)
        for added in self._decays[:-1]:
            reach = self._reach(decay, added)
            place, order = _ranges(reach * 0, reach)
            decay, times = decay[place] + added[order], times[place] * np.where(order > 0, 2, 1)
        return int((times * (2 * self._reach(decay, self._decays[-1]) + 1)).sum() // 2 + 1)

    @cached_property
    def series(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """Frequencies of the pairs (P, dim), their integer weights, and k̂; the constant comes first."""
        frequency, decay = np.zeros((1, 0), np.int64), np.zeros(1)
        for column, added in enumerate(self._decays):
            reach = self._reach(decay, added)
            place, order = _ranges(-reach if column else reach * 0, reach)
            frequency = np.column_stack((frequency[place], order))
            decay = decay[place] + added[np.abs(order)]
        # Of two opposite frequencies, the one whose first order that is not 0 is positive.
        first = np.take_along_axis(frequency, (frequency != 0).argmax(axis=1)[:, np.newaxis], axis=1)[:, 0]
        frequency, decay = frequency[first >= 0], decay[first >= 0]
        place = np.lexsort((*frequency.T[::-1], np.square(frequency).sum(axis=1)))
        frequency, decay = frequency[place], decay[place]
        if self.taper > 0.0:
            weight = np.rint(self.scale * exponential_of_minus(decay * self.taper)).astype(np.int64)
            weight[0] = round(self.scale / math.sqrt(2.0))
        else:
            weight = np.full(len(frequency), self.scale, np.int64)
        constant = math.prod(float(width) * math.sqrt(2.0 * math.pi) for width in self._widths)
        return frequency, weight, constant * exponential_of_minus(decay)

    @property
    def shape(self) -> tuple[int, int]:
        """(1, coefficients): the constant, then a cosine and a sine for each pair."""
        return 1, 2 * self._pairs - 1

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """From the pairs' weights; see the class."""
        first = int(self.series[1][0])
        weights = [
            (int(w), int(n)) for w, n in zip(*np.unique(self.series[1][1:], return_counts=True), strict=True)
        ]
        added = Sensitivity(
            l1=first + sum(n * math.isqrt(2 * w * w) for w, n in weights),
            l2_squared=first * first + sum(n * w * w for w, n in weights),
            largest=max(first, *(w for w, _ in weights), 0),
        )
        if relation is Relation.ADD_REMOVE:
            return added
        exchanged = Sensitivity(
            l1=sum(n * math.isqrt(8 * w * w) for w, n in weights),
            l2_squared=sum(4 * n * w * w for w, n in weights),
            largest=2 * max((w for w, _ in weights), default=0),
        )
        return larger(added, exchanged)

    def numbers_per_record(self) -> int:
        """How many numbers a block holds for one record."""
        return 4 * len(self.series[1])

    def _add(self, table: NDArray[np.int64], records: Floats, step: int) -> None:
        frequency, weight, _ = self.series
        real, imaginary = self.waves(records)
        table[0, 0] += step * len(records) * int(weight[0])
        table[0, 1 : len(frequency)] += step * np.trunc(weight[1:] * real[:, 1:]).astype(np.int64).sum(axis=0)
        table[0, len(frequency) :] += step * np.trunc(weight[1:] * imaginary[:, 1:]).astype(np.int64).sum(
            axis=0
        )

    def waves(self, points: Floats) -> tuple[Floats, Floats]:
        """cos and sin of 2π·m·x for each pair, shape (n, P): products of the columns' own waves."""
        frequency = self.series[0]
        real, imaginary = np.ones((1, 1)), np.zeros((1, 1))
        for column in range(self.dim):
            order = np.arange(self.frequencies + 1, dtype=np.float64)
            turns = points[:, column, np.newaxis] / self.period[column]
            cosine, sine = cosine_and_sine(order * turns)
            chosen = frequency[:, column]
            cosine, sine = cosine[:, np.abs(chosen)], sine[:, np.abs(chosen)] * np.sign(chosen)
            real, imaginary = real * cosine - imaginary * sine, real * sine + imaginary * cosine
        return real, imaginary

    def _reading(self, kernel: Kernel) -> SeriesReading:
        return SeriesReading(self, kernel)


def _ranges(low: NDArray[np.int64], high: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All integers from each low to its high, in turn: the place of the pair, and the integer."""
    length = high - low + 1
    place = np.repeat(np.arange(len(low)), length)
    return place, np.arange(len(place)) - np.repeat(np.cumsum(length) - length - low, length)


@dataclass(frozen=True)
class SeriesReading(BoxReading):
    """The records' coefficients times the kernel's own."""

    basis: FourierSeries
    kernel: Kernel

    def _inside(self, queries: Floats) -> NDArray[np.bool_]:
        """Where the series means the kernel sum; further out the sum is taken to be 0."""
        return np.asarray((np.abs(queries) <= 0.5 * self.basis.period).all(axis=1))

    def evaluate(self, table: Table, batch: Batch, *, threads: int) -> Floats:
        """Σ k̂·(coefficient/W)·wave, each pair twice for its mirror image: summed over one column after the
        other, since a wave is the product of those of the columns.
        """
        coefficients, orders = self._coefficients(table), 2 * int(self._highest[-1]) + 1
        numbers = 2 * (int((2 * self._highest + 1).sum()) + -(-len(coefficients) // orders))
        answers = np.empty(len(batch))
        for start, stop in blocks(len(batch), numbers):
            queries = queries_of(batch)[start:stop]
            part = contracted(coefficients, self._column_waves(queries)).real
            answers[start:stop] = np.where(self._inside(queries), part, 0.0)
        return answers

    def _coefficients(self, table: Table) -> Complexes:
        """c with an answer Re Σ c_m·e^{2πi·m·q}, for m from 0 to the highest order that is kept in the first
        column, and from its negative in the others, the last fastest; flat.
        """
        frequency, weight, kernel = self.basis.series
        pairs, highest = len(frequency), self._highest
        gain = 2.0 * kernel[1:] / weight[1:]
        flat = table.reshape(-1).astype(np.float64)
        dense = np.zeros((highest[0] + 1, *(2 * highest[1:] + 1)), np.complex128)
        place = (frequency[:, 0], *(frequency[:, 1:] + highest[1:]).T)
        constant = kernel[0] / weight[0] * flat[0]
        dense[place] = np.concatenate(([constant], gain * (flat[1:pairs] - 1j * flat[pairs:])))
        return dense.reshape(-1)

    @cached_property
    def _highest(self) -> NDArray[np.int64]:
        """The highest order that is kept in each column, shape (dim,)."""
        return np.asarray(np.abs(self.basis.series[0]).max(axis=0))

    def _column_waves(self, queries: Floats) -> list[Complexes]:
        """e^{2πi·m·q} in each column, for the same m."""
        found: list[Complexes] = []
        for column in range(self.basis.dim):
            order = np.arange(self._highest[column] + 1, dtype=np.float64)
            turns = queries[:, column, np.newaxis] / self.basis.period[column]
            cosine, sine = cosine_and_sine(order * turns)
            waves = cosine + 1j * sine
            found.append(waves if column == 0 else np.concatenate((waves[:, :0:-1].conj(), waves), axis=1))
        return found

    def method_variance(self, table: Table, batch: Batch, count: float, variance: float) -> Floats:
        """As for every box; a bound on it where that is far below the noise, as with many frequencies."""
        if self.kernel != self.basis.kernel:
            return super().method_variance(table, batch, count, variance)
        errors: Floats = self._largest_error(queries_of(batch)) ** 2 * float(self._heaps(table).sum())
        large = errors > _NEGLIGIBLE * variance * self.noise_gain(batch)
        if large.any():
            some = Batch((batch.arrays[0][large],), int(large.sum()))
            errors[large] = super().method_variance(table, some, count, variance)
        return errors

    def _largest_error(self, queries: Floats) -> Floats:
        """How far the series is from the kernel, at most, for a record anywhere in the box.

        Coefficients are positive, so those left out add at most their sum, which is what is left of the
        periodic kernel at 0. The kernels of a column's other periods are at least ``gap`` away from a query.
        """
        width, period = gaussian_width(self.kernel, self.basis.name), self.basis.period / np.sqrt(2.0)
        far = np.exp(-np.square(period / width))
        gap = np.maximum(self.basis.period - np.abs(queries) - self.basis.half, 0.0)
        others = 2.0 * np.exp(-0.5 * np.square(gap / width)) / (1.0 - far)
        kernel = self.basis.series[2]
        left_out = float(np.prod(1.0 + 2.0 * far / (1.0 - far)) - kernel[0] - 2.0 * kernel[1:].sum())
        return np.asarray(np.prod(1.0 + others, axis=1) - 1.0 + max(left_out, 0.0))

    def noise_gain(self, batch: Batch) -> Floats:
        """The same at every query in the box: cos² + sin² = 1."""
        _, weight, kernel = self.basis.series
        gain = (kernel[0] / weight[0]) ** 2 + ((2.0 * kernel[1:] / weight[1:]) ** 2).sum()
        return np.where(self._inside(queries_of(batch)), float(gain), 0.0)

    @cached_property
    def _lattice_waves(self) -> tuple[Floats, Floats]:
        return self.basis.waves(self._lattice[0])

    def _read_lattice(self, queries: Floats) -> Floats:
        kernel = self.basis.series[2].copy()
        kernel[1:] *= 2.0
        real, imaginary = self._lattice_waves
        at_query = self.basis.waves(queries)
        read = (at_query[0] * kernel) @ real.T + (at_query[1] * kernel) @ imaginary.T
        return np.asarray(np.where(self._inside(queries)[:, np.newaxis], read, 0.0))

    def total(self, table: Table) -> tuple[float, float]:
        """The constant coefficient counts the records."""
        first = float(self.basis.series[1][0])
        return float(table[0, 0]) / first, 1.0 / first**2
