"""From a promise to the noise of every step of a stream: one claim over all steps.

`stream_noise` chooses between two mechanisms. `Factorisation`, with discrete Gaussian noise, is for ρ and
(ε, δ). `TreeSums`, with discrete Laplace noise, is for pure ε.

Factorisation
=============
It publishes running sums from a state of a few tables, whatever the number of steps.

Let x_1, …, x_n be integer vectors, one per step, and c a sequence of weights. The mechanism publishes

    T_t = c_0·x_t + s_1 + … + s_d + Z_t,        s_i ← ⌊θ_i·s_i + w_i·c_0·x_t⌉  afterwards,                 (1)

with independent discrete Gaussian noise Z_t. Up to the rounding of the buffers s_i this is
Σ_j c_{t−j}·x_j + Z_t, where c_0 = 2^f and c_k = c_0·Σ_i w_i·θ_i^{k−1}. What is published and the buffers are
integers; θ_i and w_i are multiples of 2⁻²⁴ from 0 to 1. The increments are read back by the same recursion,

    x̂_t = (T_t − ŝ_1 − … − ŝ_d)/c_0,        ŝ_i ← θ_i·ŝ_i + w_i·c_0·x̂_t  afterwards,            (2)

and running sums, windows and decayed sums are sums of x̂: a function of the published T alone, so whatever
floating point does in (2) is post-processing. The noise of such a sum is Σ_s b_{t−s}·Z_s with the series
b(z) = a(z)/c(z), a being 1/(1 − z) for running sums.

**Which weights.** With c_k = binom(2k, k)/4^k, the series of (1 − z)^{−1/2}, b is c itself, and the largest
standard deviation, ‖b‖·‖c‖ = Σ_{k<n} c_k² times that of one release, grows like 1 + ln(n)/π (Fichtenberger,
Henzinger & Upadhyay 2023). That c is a mixture of geometric sequences (c_k = ∫ θ^k dθ/(π√(θ(1−θ)))), and
three or four of them approximate it so well that the error grows by less than 0.5 %: at 365 steps 2.949 with
three, 2.944 for c itself (Dvijotham, McMahan, Pillutla, Steinke & Thakurta 2024 call this a buffered linear
Toeplitz matrix). The exact c would need every x_j again at every step: a state that grows with the steps.

Privacy
-------
*How a unit can change.* Let V be the sum over the unit's records of c_{t−j}·v, j being the step of a record
and v what it adds, as a vector over all steps and cells; ‖c‖² = Σ_{k<n} c_k², and a bounds ‖v‖. All c_k ≥ 0,
so the inner product of two shifts of c lies between 0 and ‖c‖².

- It *appears* at a step, or *disappears*: ‖V‖ ≤ ‖c‖·a. *Twice*, or m times, at any steps: m times that, by
  the triangle inequality.
- It is *replaced inside a step*: ‖c‖·‖v − v'‖. It is replaced by another *at another step*, or itself
  *moved*: ‖V − V'‖² = ‖c‖²·(‖v‖² + ‖v'‖²) − 2κ·⟨v, v'⟩ with 0 ≤ κ ≤ ‖c‖², which is linear in κ: at most
  ‖c‖²·max(2a², ‖v − v'‖²). Not the sensitivity of one release: a coordinate in which all records agree
  hides that a record was replaced, but not that it moved.
- It is *removed* again by a record of opposite sign: ‖V‖² = 2·(‖c‖² − κ)·‖v‖² ≤ 2·‖c‖²·a².

*Rounding.* A cell of a buffer depends on that cell's own history alone. Two histories of one cell differ in
s_i by the exact difference and an error e_i, with |e_i| ≤ θ_i·|e_i| + 1 from step to step, since two
roundings differ from the exact values by at most ½ each, and e_i is 0 before the first change. A
unit that touches L cells so moves T by at most ‖c‖·(the length above) + √L·‖e‖, e being the sum of these
bounds over i at each lag. The declared length is this sum, in integers rounded upwards; `fraction_bits` is
chosen so that the second term is small.

*Adaptively.* Given equal earlier outputs, everything but the unit is equal, also where later records were
chosen by earlier outputs. So output t of neighbours differs by d_t, with Σ_t ‖d_t‖² ≤ Δ² on every path, and
noise of variance σ² gives Δ²/(2σ²)-zCDP (adaptive composition; Feldman & Zrnic 2021). For (ε, δ), Gaussian
noise with adaptively chosen shifts of that total length is as private as one shift by Δ (Denisov, McMahan,
Rush, Smith & Thakurta 2022; Smith & Thakurta 2022); rounding its outputs is post-processing, and in each of
the at most n·L touched numbers discrete noise is within 1/(24σ²) in total variation of rounded noise
(`hushsum.privacy.accounting`).

Sums of intervals
=================
Noisy sums of intervals add up to a running sum, and form a tree.

Step t publishes the noisy sum of one interval that ends at t: of b^l steps, b being the ``base``, where l is
how often b divides t, and at most ``levels`` − 1. (With base 2 this is a Fenwick tree, the binary tree of
Dwork, Naor, Pitassi & Rothblum 2010 and Chan, Shi & Song 2011.) The running sum at t is the sum of as many
intervals as t has digit sum in base b, all digits from the last level on counting as one number. With one
level every step publishes itself.

Discrete Laplace noise has the scale levels·Δ1/ε, so fewer levels are worth more than with Gaussian noise: at
365 steps base 16 with two levels has 0.63 of the deviation of fresh sums, base 2 with nine levels 1.3 times
as much. The base and the number of levels are chosen by the largest deviation over all steps.

Privacy
-------
A step j is in one interval of each level at most: those of one level do not overlap. One unit moves all
outputs together by at most ``levels`` times the sum of the absolute values of what its records add, wherever
they stand: it *appears*, *disappears* or appears *twice* (the sums add up); it is *replaced* inside a step,
or *moved* to another one, or both (it leaves and comes: twice the length, even where replacing inside a step
would move less); it is *removed* again by a record of opposite sign (a second record). Discrete Laplace
noise of scale Δ1/ε then gives ε, exactly; adaptively, since given equal earlier outputs the output of a step
differs by what the unit adds to it, and these differences add up to Δ1 at most on every path.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from hushsum._types import Floats, Integers
from hushsum.errors import Parameter, UsageError, shown
from hushsum.files import stored_rational

from ._calibration import (
    FACTORISED,
    GAUSSIAN,
    INTERVALS,
    LAPLACE,
    IntegerNoise,
    Sensitivity,
    UnitChange,
    calibrate,
    root_above,
)
from ._claim import Promise, Relation, exact
from .accounting import proper_share, short_above, vector_delta, vector_variances, zcdp_rho
from .noise import NoiseSource


@dataclass(frozen=True, slots=True)
class View:
    """A public linear function of the steps so far; every view of a stream is post-processing.

    Parameters
    ----------
    window : int, optional
        The sum of the last ``window`` steps alone.
    decay : Fraction, optional
        The sum of all steps, each with ``decay`` times the weight of the next one.

    Examples
    --------
    >>> View(window=2).series(np.ones(4))
    array([1., 2., 2., 2.])
    >>> View(decay=Fraction(1, 2)).series(np.array([1.0, 0.0, 0.0]))
    array([1.  , 0.5 , 0.25])
    """

    window: int | None = None
    decay: Fraction | None = None

    @classmethod
    def of(cls, window: object = None, decay: object = None) -> View:
        """Check the two parameters of a stream; at most one of them may be given.

        Raises
        ------
        UsageError
            for both, a window below 1, or a decay that is not between 0 and 1.
        """
        if window is not None and decay is not None:
            raise UsageError("window", ("or ", Parameter("decay"), " may be given, not both"), got="both")
        if window is not None and (type(window) is not int or window < 1):
            raise UsageError("window", "must be an integer of at least 1", got=shown(window))
        if decay is None:
            return cls(window if isinstance(window, int) else None)
        rate = exact("decay", decay)  # type: ignore[arg-type]  # which refuses what is not a number
        if not 0 < rate < 1 or rate.denominator > 10**9:
            rule = "must lie between 0 and 1, with nine decimals at most"
            remedy = "0.97 halves a step's weight in 23 steps"
            raise UsageError("decay", rule, got=shown(decay), remedy=remedy)
        return cls(decay=rate)

    def series(self, increments: Floats) -> Floats:
        """The coefficients of the view of a series: of its sums, windows or decayed sums."""
        if self.decay is not None:
            rate, total = float(self.decay), 0.0
            result = np.empty(len(increments))
            for i, each in enumerate(increments.tolist()):
                total = rate * total + each
                result[i] = total
            return result
        sums: Floats = np.cumsum(increments)
        if self.window is not None and self.window < len(sums):
            sums[self.window :] -= np.cumsum(increments[: -self.window])
        return sums

    def kept(self, horizon: int) -> int:
        """How many past increments must be remembered: those of a window, which are to be forgotten."""
        return 0 if self.window is None or self.window >= horizon else self.window

    def in_words(self) -> str:
        """What a function of the stream is about.

        >>> View(window=30).in_words()
        'the last 30 steps'
        """
        if self.window is not None:
            return f"the last {self.window} steps" if self.window > 1 else "the last step"
        if self.decay is not None:
            return f"all steps, each with {float(self.decay):g} of the weight of the next one"
        return "all steps so far"

    def as_json(self) -> dict[str, Any]:
        """The view for a file's header."""
        return {"window": self.window, "decay": None if self.decay is None else str(self.decay)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> View:
        """The view of a file's header; ValueError if there is none like it."""
        if set(data) != {"window", "decay"}:
            raise ValueError("view")
        decay = None if data["decay"] is None else stored_rational(data["decay"])
        try:
            return cls.of(data["window"], decay)
        except UsageError:
            raise ValueError("view") from None


@dataclass(frozen=True, slots=True)
class StepChange:
    """Bounds on what one unit adds to the vectors of all steps together, wherever its records stand.

    ``l1`` is the sum of absolute values. ``l2_squared`` is the square of the length that remains after a
    convolution with weights of at least 0 and length 1. ``touched`` is how many coordinates may change.
    """

    l1: int
    l2_squared: int
    touched: int


_LARGEST_BASE = 64


@dataclass(frozen=True, slots=True)
class TreeSums:
    """Sums of intervals over ``horizon`` steps, of lengths 1, b, b², …, one for each level.

    >>> TreeSums(365, 2, 9).row(7, View()).tolist()
    [0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0]
    >>> TreeSums.best(365, View())
    TreeSums(horizon=365, base=16, levels=2)
    """

    name: ClassVar[str] = "interval sums"
    unit: ClassVar[int] = 1
    """What an increment is multiplied by in an output."""
    gain: ClassVar[int] = 1
    """How often an increment is in the outputs and the state at most, for bounds on their size."""

    horizon: int
    base: int
    levels: int

    def __post_init__(self) -> None:
        if any(type(each) is not int or each < 1 for each in (self.horizon, self.base, self.levels)):
            raise ValueError("numbers")
        if self.base < 2 or self.levels > self.horizon.bit_length() or self._whole > self.horizon:
            raise ValueError("levels")

    @classmethod
    @lru_cache(maxsize=64)
    def best(cls, horizon: int, view: View) -> TreeSums:
        """The base and levels whose largest deviation is the smallest."""
        found = [cls(horizon, 2, 1)]
        # Where each output's weight decays, sums of intervals are of no use.
        for base in range(2, 1 if view.decay is not None else min(_LARGEST_BASE, horizon) + 1):
            levels = 2
            while base ** (levels - 1) <= horizon:
                found.append(cls(horizon, base, levels))
                levels += 1
        return min(found, key=lambda each: each.levels**2 * float(each.gains(view).max()))

    @property
    def _whole(self) -> int:
        """The length of the longest intervals."""
        return int(self.base ** (self.levels - 1))

    @property
    def tables(self) -> int:
        """How many tables of exact sums the mechanism keeps, and reading keeps with noise: the unfinished
        interval of each level but the first.
        """
        return self.levels - 1

    def level(self, step: int) -> int:
        """The level of the interval that ends at a step."""
        level = 0
        while level < self.levels - 1 and step % self.base ** (level + 1) == 0:
            level += 1
        return level

    def _intervals(self, step: int) -> list[int]:
        """The steps whose outputs make up the running sum."""
        ends: list[int] = []
        while step % self._whole:
            ends.append(step)
            step -= self.base ** self.level(step)
        return [*range(self._whole, step + 1, self._whole), *reversed(ends)]

    def row(self, step: int, view: View) -> Floats:
        """What the noise of each output so far weighs in the view at a step, shape (step,)."""
        if view.decay is not None:
            if self.levels > 1:
                raise ValueError("levels")
            weights: Floats = np.power(float(view.decay), np.arange(step - 1, -1, -1.0))
            return weights
        row = np.zeros(step)
        row[np.array(self._intervals(step), np.intp) - 1] = 1.0
        if view.window is not None and view.window < step:
            row[np.array(self._intervals(step - view.window), np.intp) - 1] -= 1.0
        return row

    def gains(self, view: View) -> Floats:
        """The variance of the view after each step, where the noise of an output has variance 1."""
        ends = np.arange(1, self.horizon + 1)
        if view.decay is not None:
            rate = float(view.decay) ** 2
            return np.asarray((1.0 - rate**ends) / (1.0 - rate), np.float64)
        window = self.horizon if view.window is None else view.window
        return self._lengths(ends, np.maximum(ends - window, 0)).astype(np.float64)

    def _lengths(self, ends: Integers, starts: Integers) -> Integers:
        """How many intervals are in one of two running sums and not in the other.

        Of the first digit that differs, the smaller number of intervals is in both; of higher digits all, of
        lower ones none.
        """
        total = np.zeros_like(ends)
        equal = np.ones(len(ends), bool)
        for level in range(self.levels - 1, -1, -1):
            size = self.base**level
            one, other = ends // size, starts // size
            if level < self.levels - 1:
                one, other = one % self.base, other % self.base
            total += np.where(equal, np.abs(one - other), one + other)
            equal &= one == other
        return total

    def advance(self, secret: Integers, increment: Integers, step: int) -> Integers:
        """The exact sum of the interval that ends at this step; finished sums are forgotten."""
        level = self.level(step)
        secret += increment
        output: Integers = secret[level - 1].copy() if level else increment.copy()
        secret[:level] = 0
        return output

    def read(self, public: Floats, output: Integers, step: int) -> Floats:
        """By how much the running sum grows with an output."""
        level = self.level(step)
        growth: Floats = output.astype(np.float64)
        if level:
            growth -= public[level - 1]
        public += growth
        public[:level] = 0.0
        return growth


DECAY_BITS = 24
MOST_BUFFERS = 8
MOST_FRACTION_BITS = 32
_GUARD_BITS = 20
# How much larger than with the exact weights the largest deviation may be.
_TOLERANCE = 1.005

_BLOCK = 1 << 15
_LONG = 1 << 11


def root_coefficients(size: int) -> Floats:
    """The power series of (1 − z)^{−1/2}: binom(2k, k)/4^k, whose square is that of all ones.

    >>> root_coefficients(4).tolist()
    [1.0, 0.5, 0.375, 0.3125]
    """
    k = np.arange(1, size)
    return np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])[:size]


@dataclass(frozen=True, slots=True)
class FactorBounds:
    """What all outputs of a factorisation show of one unit, in integers rounded upwards.

    ``column_squared`` bounds ‖c‖², ``rounding_squared`` bounds ‖e‖², ``gain`` bounds Σ c_k.
    """

    column_squared: int
    rounding_squared: int
    gain: int


@dataclass(frozen=True, slots=True)
class Factorisation:
    """The weights c of the mechanism "Factorisation" at the top of the module, for ``horizon`` steps.

    Parameters
    ----------
    horizon : int
        The horizon n.
    fraction_bits : int
        f: c_0 = 2^f.
    decays : tuple of int
        θ_i in units of 2⁻²⁴.
    weights : tuple of int
        w_i in units of 2⁻²⁴.

    Examples
    --------
    >>> plan = Factorisation.best(365, View(), fraction_bits=20)
    >>> deviation = (sum(plan.coefficients() ** 2) * plan.gains(View())[-1]) ** 0.5
    >>> plan.tables, round(float(deviation), 2)
    (3, 2.95)
    """

    name: ClassVar[str] = "factorisation"

    horizon: int
    fraction_bits: int
    decays: tuple[int, ...]
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        numbers = (self.horizon, self.fraction_bits, *self.decays, *self.weights)
        if any(type(each) is not int or each < 0 for each in numbers):
            raise ValueError("numbers")
        if self.horizon < 1 or self.fraction_bits > MOST_FRACTION_BITS:
            raise ValueError("horizon")
        if len(self.decays) != len(self.weights) or len(self.decays) > MOST_BUFFERS:
            raise ValueError("buffers")
        if any(each >= 1 << DECAY_BITS for each in self.decays):
            raise ValueError("decays")
        if sum(self.weights) > 1 << DECAY_BITS:
            raise ValueError("weights")

    @classmethod
    def best(cls, horizon: int, view: View, *, fraction_bits: int) -> Factorisation:
        """The fewest buffers whose largest deviation is within 0.5 % of that of the exact weights."""
        decays, weights = _best_buffers(horizon, view)
        kept = [
            (round(decay * (1 << DECAY_BITS)), round(weight * (1 << DECAY_BITS)))
            for decay, weight in zip(decays, weights, strict=True)
        ]
        kept = [(min(p, (1 << DECAY_BITS) - 1), w) for p, w in kept if w > 0]
        return cls(horizon, fraction_bits, tuple(p for p, _ in kept), tuple(w for _, w in kept))

    @property
    def unit(self) -> int:
        """c_0."""
        return 1 << self.fraction_bits

    @property
    def gain(self) -> int:
        """How often an increment is in the outputs and the state at most, for bounds on their size."""
        return self.bounds().gain

    @property
    def tables(self) -> int:
        """How many tables of exact sums the mechanism keeps, the buffers s; and reading, the buffers ŝ."""
        return len(self.decays)

    def coefficients(self) -> Floats:
        """c_0, …, c_{n−1}."""
        return self.unit * _weights(self._rates(), self._shares(), self.horizon)

    def bounds(self) -> FactorBounds:
        """Upper bounds on what all outputs together show, in exact arithmetic."""
        return _bounds(self)

    def rows(self, view: View) -> Floats:
        """b_0, …, b_{n−1}: the noise of the view at step t is Σ_k b_k·Z_{t−k}."""
        return view.series(_inverse(self._rates(), self._shares(), self.horizon)) / self.unit

    def row(self, step: int, view: View) -> Floats:
        """What the noise of each output so far weighs in the view at a step, shape (step,)."""
        return self.rows(view)[step - 1 :: -1] if step < self.horizon else self.rows(view)[::-1]

    def gains(self, view: View) -> Floats:
        """The variance of the view after each step, where the noise of an output has variance 1."""
        return np.asarray(np.cumsum(self.rows(view) ** 2))

    def advance(self, secret: Integers, increment: Integers, step: int) -> Integers:
        """c_0·x + Σ s, and then the buffers of the next step, in place: exact.

        ``secret`` has the shape (tables, cells), ``increment`` (cells,).
        """
        output = np.empty_like(increment)
        half, low = 1 << (DECAY_BITS - 1), (1 << DECAY_BITS) - 1
        for start in range(0, len(increment), _BLOCK):
            part = slice(start, start + _BLOCK)
            x = increment[part]
            total = x << self.fraction_bits
            scaled = total.copy()
            for i, (decay, weight) in enumerate(zip(self.decays, self.weights, strict=True)):
                s = secret[i, part]
                total += s
                # ⌊θ·s + w·y⌉ without leaving 64 bits: the high and the low parts of s and y one by one.
                rest = (s & low) * decay + (scaled & low) * weight + half
                secret[i, part] = (
                    (s >> DECAY_BITS) * decay + (scaled >> DECAY_BITS) * weight + (rest >> DECAY_BITS)
                )
            output[part] = total
        return output

    def read(self, public: Floats, output: Integers, step: int) -> Floats:
        """x̂ of this step from an output with noise, by (2); the buffers ŝ change in place."""
        estimate = np.empty(len(output))
        rates, shares = self._rates(), self.unit * self._shares()
        for start in range(0, len(output), _BLOCK):
            part = slice(start, start + _BLOCK)
            buffers = public[:, part]
            found = (output[part].astype(np.float64) - buffers.sum(axis=0)) / self.unit
            for i, weight in enumerate(shares):
                buffers[i] = rates[i] * buffers[i] + weight * found
            estimate[part] = found
        return estimate

    def _rates(self) -> Floats:
        return np.array(self.decays, np.float64) / (1 << DECAY_BITS)

    def _shares(self) -> Floats:
        return np.array(self.weights, np.float64) / (1 << DECAY_BITS)


def _weights(rates: Floats, shares: Floats, horizon: int) -> Floats:
    """c/c_0: a mixture of geometric sequences after the first."""
    powers: Floats = rates[None, :] ** np.arange(horizon - 1)[:, None]
    return np.concatenate([[1.0], powers @ shares])


def _inverse(rates: Floats, shares: Floats, horizon: int) -> Floats:
    """The series of c_0/c. Reading is x̂ = T − 1ᵀŝ, ŝ ← (Θ − w·1ᵀ)·ŝ + w·T: powers of one small matrix."""
    result = np.zeros(horizon)
    result[0] = 1.0
    if not len(rates) or horizon == 1:
        return result
    matrix = np.diag(rates) - np.outer(shares, np.ones(len(rates)))
    values, vectors = np.linalg.eig(matrix)
    amounts = -(np.ones(len(rates)) @ vectors) * np.linalg.solve(vectors, shares)
    result[1:] = ((values[None, :] ** np.arange(horizon - 1)[:, None]) @ amounts).real
    return result


@lru_cache(maxsize=64)
def _bounds(plan: Factorisation) -> FactorBounds:
    guard = 1 << _GUARD_BITS
    terms = [-(-weight * plan.unit * guard >> DECAY_BITS) for weight in plan.weights]
    errors = [guard] * len(plan.weights)
    column, rounding, gain = (plan.unit * guard) ** 2, 0, plan.unit * guard
    for _ in range(1, plan.horizon):
        lag, error = sum(terms), sum(errors)
        column, rounding, gain = column + lag**2, rounding + error**2, gain + lag
        terms = [-(-each * p >> DECAY_BITS) for each, p in zip(terms, plan.decays, strict=True)]
        errors = [-(-each * p >> DECAY_BITS) + guard for each, p in zip(errors, plan.decays, strict=True)]
    scale = guard**2
    return FactorBounds(-(-column // scale), -(-rounding // scale), -(-gain // guard))


@lru_cache(maxsize=64)
def _best_buffers(horizon: int, view: View) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """θ and w/c_0 of the fewest buffers that are good enough.

    1 − θ_i are in geometric progression between two ends, which are searched; the shares are the best fit of
    non-negative ones to binom(2k, k)/4^k·g^k. g is 1 for running sums; for decayed sums it is the decay, and
    for windows a few values are tried. Everything is public: horizon and view.
    """
    if horizon == 1:
        return (), ()
    rates = _tilts(horizon, view)
    ideal = min(_ratio(_tilted(horizon, rate), view) for rate in rates)
    best: tuple[float, Floats, Floats] | None = None
    for buffers in range(1, MOST_BUFFERS + 1):
        for rate in rates:
            found = _fitted(horizon, view, _tilted(horizon, rate), buffers)
            if best is None or found[0] < best[0]:
                best = found
        assert best is not None
        if best[0] <= _TOLERANCE * ideal:
            break
    assert best is not None
    return tuple(best[1].tolist()), tuple(best[2].tolist())


def _tilts(horizon: int, view: View) -> tuple[float, ...]:
    if view.decay is not None:
        return (float(view.decay),)
    if window := view.kept(horizon):
        return tuple(1.0 - share / window for share in (0.0, 0.5, 1.0, 2.0) if share < window)
    return (1.0,)


def _tilted(horizon: int, rate: float) -> Floats:
    return root_coefficients(horizon) * rate ** np.arange(horizon)


def _ratio(weights: Floats, view: View) -> float:
    """The largest deviation with these weights, by the series of their inverse in full."""
    if view.window is None:
        return float((weights**2).sum())
    # A window forgets: beyond some times its length nothing changes, and this is what to compare with only.
    weights = weights[: max(_LONG, 4 * view.window)]
    size = len(weights)
    inverse = np.zeros(size)
    inverse[0] = 1.0
    for k in range(1, size):
        inverse[k] = -np.dot(weights[1 : k + 1], inverse[k - 1 :: -1])
    return math.sqrt(float((weights**2).sum()) * float((view.series(inverse) ** 2).sum()))


def _fitted(horizon: int, view: View, target: Floats, buffers: int) -> tuple[float, Floats, Floats]:
    from scipy.optimize import minimize, nnls

    # Of many lags some hundred, denser where the weights change faster, each for its neighbours.
    lags = np.unique(np.geomspace(1, horizon - 1, 600).astype(np.int64)) - 1
    spacing = np.sqrt(np.diff(lags, append=horizon - 1))
    wanted = target[1:][lags]
    importance = spacing / np.sqrt(wanted + 1e-12)

    def shares(ends: Floats) -> tuple[Floats, Floats]:
        low, high = (min(float(each), math.log(0.98)) for each in ends)
        rates: Floats = 1.0 - np.exp(np.linspace(max(low, -30.0), max(high, -30.0), buffers))
        powers = rates[None, :] ** lags[:, None] * importance[:, None]
        return rates, nnls(powers, wanted * importance)[0]

    def error(ends: Floats) -> float:
        rates, amounts = shares(ends)
        column = float((_weights(rates, amounts, horizon) ** 2).sum())
        if amounts.sum() > 1.0:
            return math.inf
        return math.sqrt(column * float((view.series(_inverse(rates, amounts, horizon)) ** 2).sum()))

    slow = max(0.5 / horizon, 1.0 - float(view.decay)) if view.decay is not None else 0.5 / horizon
    start = np.array([math.log(min(slow, 0.5)), math.log(0.6)])
    found = minimize(
        error, start, method="Nelder-Mead", options={"maxiter": 80, "xatol": 1e-2, "fatol": 1e-6}
    )
    rates, amounts = shares(found.x)
    return float(found.fun), rates, amounts


def length_above(linear_squared: Fraction | int, touched: int, bounds: FactorBounds) -> int:
    """The square of ‖c‖·√linear_squared + √touched·‖e‖, rounded upwards to an integer."""
    linear = root_above(bounds.column_squared * Fraction(linear_squared))
    rounding = root_above(touched * bounds.rounding_squared)
    return math.ceil((linear + rounding) ** 2)


MOST_STEPS = 1 << 14
# What rounding may add to the sensitivity, and the lattice to δ.
_SMALL = Fraction(1, 1000)

# The largest variance of the noise of an output. The sampler draws below 2⁷⁸.
_LARGEST_VARIANCE = 2.0**76

Strategy = Factorisation | TreeSums


def strategy_as_json(strategy: Strategy) -> dict[str, Any]:
    """The strategy for a file's header."""
    return {"name": strategy.name, **asdict(strategy)}


def strategy_from_json(data: dict[str, Any]) -> Strategy:
    """The strategy of a file's header; ValueError if there is none like it."""
    kinds: dict[str, type[Strategy]] = {each.name: each for each in (Factorisation, TreeSums)}
    kind = kinds.get(data["name"])
    if kind is None or set(data) != {"name", *(each.name for each in fields(kind))}:
        raise ValueError("strategy")
    stored: dict[str, Any] = {
        each.name: tuple(value) if isinstance(value := data[each.name], list) else value
        for each in fields(kind)
    }
    return kind(**stored)


@dataclass(frozen=True)
class StreamNoise:
    """The strategy of a stream, what it shows, and the noise of each of its outputs.

    ``table`` is drawn in every cell of the table at every step, ``count`` beside the number of records.
    """

    strategy: Strategy
    view: View
    table: IntegerNoise
    count: IntegerNoise

    @property
    def intervals(self) -> bool:
        """Whether outputs are sums of intervals, which is for pure ε."""
        return isinstance(self.strategy, TreeSums)

    @property
    def mechanism(self) -> str:
        """The name of the mechanism in claims."""
        return INTERVALS if self.intervals else FACTORISED

    @property
    def horizon(self) -> int:
        """The horizon."""
        return self.strategy.horizon

    @cached_property
    def gains(self) -> Floats:
        """The variance of what is shown at each step for noise of variance 1 in every output."""
        return self.strategy.gains(self.view)

    def at(self, step: int) -> tuple[IntegerNoise, IntegerNoise]:
        """The noise of a cell, and of the number of records, in what is shown at a step."""
        gain = float(self.gains[step - 1])
        table, count = (
            IntegerNoise(self.mechanism, short_above(each.variance * gain))
            for each in (self.table, self.count)
        )
        return table, count

    def correlation_gain(self, first: int, second: int) -> float:
        """The covariance of what two steps show, for noise of variance 1 in every output."""
        one, other = (self.strategy.row(step, self.view) for step in (first, second))
        shared = min(first, second)
        return float(np.dot(one[:shared], other[:shared]))

    def add_to(
        self, output: Integers, step: int, *, insecure_noise_seed: int | None, threads: int = 1
    ) -> None:
        """Add new noise, from a fresh key, to the exact output of a step, in place; the count is its last
        number.
        """
        seed = None if insecure_noise_seed is None else insecure_noise_seed * MOST_STEPS + step
        with NoiseSource.for_release(seed) as source:
            output[:-1] += self.table.draw(len(output) - 1, source, threads=threads)
            output[-1:] += self.count.draw(1, source)

    def as_json(self) -> dict[str, Any]:
        """For a file's header."""
        return {
            "strategy": strategy_as_json(self.strategy),
            "view": self.view.as_json(),
            "table": self.table.as_json(),
            "count": self.count.as_json(),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> StreamNoise:
        """The noise of a file's header; ValueError if there is none like it."""
        if set(data) != {"strategy", "view", "table", "count"}:
            raise ValueError("stream")
        noise = cls(
            strategy_from_json(data["strategy"]),
            View.from_json(data["view"]),
            IntegerNoise.from_json(data["table"]),
            IntegerNoise.from_json(data["count"]),
        )
        drawn = LAPLACE if noise.intervals else GAUSSIAN
        if noise.horizon > MOST_STEPS or {noise.table.mechanism, noise.count.mechanism} != {drawn}:
            raise ValueError("noise")
        if isinstance(noise.strategy, TreeSums) and noise.view.decay and noise.strategy.levels > 1:
            raise ValueError("levels")
        return noise


@dataclass(frozen=True, slots=True)
class StreamUnit:
    """Whom a stream protects, and what that unit can change.

    ``record`` is how far one record moves the table, for both relations; ``per_unit`` the cap on a person's
    records over the whole horizon, removals included, and None where the unit is one record; ``removals``
    whether a record may be removed again, by one of opposite sign; ``cells`` the size of the table.
    """

    record: Mapping[Relation, Sensitivity]
    relation: Relation
    per_unit: int | None
    removals: bool
    cells: int

    def changes(self) -> tuple[StepChange, StepChange]:
        """The change of the table and that of the number of records.

        >>> one = {Relation.ADD_REMOVE: Sensitivity(100, 100, 1), Relation.REPLACE: Sensitivity(200, 200, 1)}
        >>> StreamUnit(one, Relation.REPLACE, None, False, 5000).changes()
        (StepChange(l1=200, l2_squared=200, touched=200), StepChange(l1=2, l2_squared=2, touched=1))
        """
        one, none = Sensitivity(1, 1, 1), Sensitivity(0, 0, 0)
        alone, replaced = (self.record[each] for each in (Relation.ADD_REMOVE, Relation.REPLACE))
        return self._change(alone, replaced, self.cells), self._change(one, none, 1)

    def _change(self, alone: Sensitivity, replaced: Sensitivity, cells: int) -> StepChange:
        # A record and its removal are 2·(‖c‖² − κ) apart, not 4; a person's removals count as records.
        pair, many = 2 if self.removals and self.per_unit is None else 1, self.per_unit or 1
        if self.relation is Relation.ADD_REMOVE:
            l1, squared = pair * alone.l1, pair * alone.l2_squared
        elif self.removals:
            l1, squared = 2 * pair * alone.l1, 4 * pair * alone.l2_squared
        else:
            l1 = max(replaced.l1, 2 * alone.l1)
            squared = max(replaced.l2_squared, 2 * alone.l2_squared)
        return StepChange(many * l1, many**2 * squared, min(cells, many * l1))


def stream_noise(
    promise: Promise, unit: StreamUnit, *, horizon: int, view: View, count_share: Fraction
) -> StreamNoise:
    """The noise that keeps a promise over all steps together.

    Pure ε: sums of intervals with discrete Laplace noise. ρ, or ε and δ: the factorisation with discrete
    Gaussian noise. The number of records is one more coordinate, which takes ``count_share`` of the budget,
    under both relations: a replaced record may stand at another step, so the number at each step is private.
    """
    table, count = unit.changes()
    if promise.pure:
        intervals = TreeSums.best(horizon, view)
        # A unit moves one sum of each level. No vector is longer in L2 than in L1.
        l1 = intervals.levels * table.l1
        change = UnitChange(Sensitivity(l1, l1**2, l1), intervals.levels * count.l1, 1)
        noise = calibrate(promise, change, cells=unit.cells, count_share=count_share, mechanism=LAPLACE)
        return StreamNoise(intervals, view, noise.table, noise.count)
    return _factorised(promise, table, count, horizon, view, proper_share(count_share))


def _factorised(
    promise: Promise, table: StepChange, count: StepChange, horizon: int, view: View, share: Fraction
) -> StreamNoise:
    epsilon, delta = promise.epsilon, promise.delta
    rho = promise.rho if epsilon is None else Fraction(zcdp_rho(epsilon, delta))
    assert rho is not None

    def plan_with(bits: int) -> Factorisation:
        return Factorisation.best(horizon, view, fraction_bits=bits)

    def fewest(enough: Callable[[FactorBounds], bool]) -> int:
        return bisect_left(range(MOST_FRACTION_BITS), True, key=lambda bits: enough(plan_with(bits).bounds()))

    def variance_near(bounds: FactorBounds, share: Fraction) -> float:
        return float(bounds.column_squared * table.l2_squared / (2 * rho * (1 - share)))

    def little_rounding(bounds: FactorBounds) -> bool:
        """Whether rounding adds next to nothing to both lengths."""
        return all(
            each.touched * bounds.rounding_squared <= _SMALL**2 * bounds.column_squared * each.l2_squared
            for each in (table, count)
        )

    def fine_lattice(bounds: FactorBounds) -> bool:
        """Whether discrete noise is so near to rounded noise that δ hardly grows."""
        if epsilon is None:
            return True
        gap = horizon * table.touched / (24.0 * variance_near(bounds, Fraction(0)))
        return gap * (1.0 + math.exp(min(float(epsilon), 700.0))) <= float(_SMALL * delta)

    small = fewest(little_rounding)
    fine = max(small, fewest(fine_lattice))
    most = fewest(lambda bounds: variance_near(bounds, share) > _LARGEST_VARIANCE) - 1
    # Where the lattice cannot be fine, as for a large ε, the noise comes from ρ, which does not need it.
    plan = plan_with(max(0, min(fine if fine < most else small, most)))
    # Multiplied by λ = σ/σ_c, the count is one more part of the vector that has noise σ, so that together
    # their squared length is Δ2²/(1 − share).
    of_table, of_count = _lengths(plan, table, count)
    whole = math.ceil(Fraction(of_table) / (1 - share))
    # λ² of the n numbers of the count weigh in the distance of the lattices, as λ²·n cells.
    ratio = Fraction(of_table) * share / ((1 - share) * of_count)
    if epsilon is None:
        variance = Fraction(whole) / (2 * rho)
    else:
        touched = math.ceil(horizon * (table.touched + max(ratio, Fraction(1))))
        variance = vector_variances(epsilon=epsilon, delta=delta, l2_squared=whole, cells=touched).variance
    return StreamNoise(plan, view, IntegerNoise(GAUSSIAN, variance), IntegerNoise(GAUSSIAN, variance / ratio))


def _lengths(plan: Factorisation, table: StepChange, count: StepChange) -> tuple[int, int]:
    """Δ2² of all outputs of the table, and of all outputs of the count."""
    of_table, of_count = (
        length_above(each.l2_squared, each.touched, plan.bounds()) for each in (table, count)
    )
    return of_table, of_count


def spent_rho(noise: StreamNoise, unit: StreamUnit) -> Fraction:
    """ρ of all outputs of a factorised stream together."""
    assert isinstance(noise.strategy, Factorisation)
    lengths = _lengths(noise.strategy, *unit.changes())
    return lengths[0] / (2 * noise.table.parameter) + lengths[1] / (2 * noise.count.parameter)


def spent_delta(noise: StreamNoise, unit: StreamUnit, epsilon: Fraction) -> float:
    """An upper bound on δ(ε) of all outputs of a factorised stream together."""
    assert isinstance(noise.strategy, Factorisation)
    table, count = unit.changes()
    lengths = _lengths(noise.strategy, table, count)
    ratio = noise.table.parameter / noise.count.parameter
    return vector_delta(
        epsilon,
        l2_squared=math.ceil(lengths[0] + ratio * lengths[1]),
        cells=math.ceil(noise.horizon * (table.touched + max(ratio, Fraction(1)))),
        variance=noise.table.parameter,
    )


def spent_epsilon(noise: StreamNoise, unit: StreamUnit) -> Fraction:
    """ε of all outputs of a stream of interval sums together."""
    assert isinstance(noise.strategy, TreeSums)
    table, count = unit.changes()
    levels = noise.strategy.levels
    return levels * table.l1 / noise.table.parameter + levels * count.l1 / noise.count.parameter
