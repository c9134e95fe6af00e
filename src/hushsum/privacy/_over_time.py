"""From a promise to the noise of every step of a stream: one claim over all steps.

`stream_noise` chooses between two mechanisms, both with and without a horizon. `Factorisation`, with
discrete Gaussian noise, is for ρ and (ε, δ). `TreeSums`, with discrete Laplace noise, is for pure ε.

Factorisation
=============
It publishes running sums from a state of a few tables, whatever the number of steps.

Let x_1, x_2, … be integer vectors, one per step, and c_0 = 2^f. The mechanism publishes

    T_t = c_0·x_t + s_1 + … + s_d + Z_t,        s_i ← s_i + w_i·x_t  afterwards,                         (1)
                                                s_i ← ⌊θ_i·s_i⌉  after that, if q_i divides t,

with independent discrete Gaussian noise Z_t. What is published and the buffers s_i are integers, of buffers
in units of 2⁻⁶, to which their sum is rounded in T; θ_i is a multiple of 2⁻²⁴, and q_i a power of two. Up
to the rounding T_t is Σ_j c_{t,j}·x_j + Z_t, where c_{t,t} = c_0 and c_{t,j} = Σ_i w_i·θ_i^(number of
multiples of q_i among j, …, t − 1). The increments are read back by the same recursion,

    x̂_t = (T_t − ŝ_1 − … − ŝ_d)/c_0,        ŝ_i ← ŝ_i + w_i·x̂_t, and ŝ_i ← θ_i·ŝ_i when s_i decays,      (2)

and running sums, windows and decayed sums are sums of x̂: a function of the published T alone, so whatever
floating point does in (2) is post-processing. The errors of ŝ and of a sum obey a linear recursion with the
draws Z, which is the same for every 2^m steps from a multiple of 2^m on: the covariance of any two steps
takes O(log t) small matrices.

**Which weights.** With c_{t,j} = c_{t−j} = binom(2k, k)/4^k, the series of (1 − z)^{−1/2}, the largest
standard deviation is Σ_{k<n} c_k² times that of one release, which grows like 1 + ln(n)/π (Fichtenberger,
Henzinger & Upadhyay 2023). That c is a mixture of geometric sequences (c_k = ∫ θ^k dθ/(π√(θ(1−θ)))), and
three or four of them approximate it so well that the error grows by less than 0.5 %: at 365 steps 2.949
with three, 2.944 for c itself (Dvijotham, McMahan, Pillutla, Steinke & Thakurta 2024 call this a buffered
linear Toeplitz matrix). The exact c would need every x_j again at every step: a state that grows with the
steps.

**With a horizon** all q_i are 1. **Without one** slow buffers decay rarely, by 1/64 to 1/32 at a time:
rounding at every step would move a buffer that remembers 2²⁸ steps by up to 2²⁸ units. The weights are a
little smaller the older a record is (Jacobsen & Fawaz 2025), and after every 2²⁸ steps the buffers are
emptied: a record is in no output after that, and sums go on from what has been published. So the lengths
below are finite for ever. At all steps up to 2²⁴ the variance is at most 1.26 times that of the exact
weights for the horizon 2²⁴; up to 2²⁸ it grows like a power of ln t, and from then on linearly.

Privacy
-------
*How a unit can change.* Let V be the sum over the unit's records of c_{·,j}·v, j being the
step of a record and v what it adds, as a vector over all steps and cells; a bounds ‖v‖. The column of
weights c_{·,1} of the first step is at lag k at least that of any other: among k steps in a row there are
⌊k/q⌋ multiples of q or more, and from the first step on exactly as many. Let ‖c‖ be its length, computed to
the last output in which a record can be. All weights are at least 0, so the inner product κ of two columns
of lengths p and r lies between 0 and p·r.

- It *appears* at a step, or *disappears*: ‖V‖ ≤ ‖c‖·a. *Twice*, or m times, at any steps: m times that, by
  the triangle inequality.
- It is *replaced inside a step*: ‖c‖·‖v − v'‖. It is replaced by another *at another step*, or itself
  *moved*: ‖V − V'‖² = p²·‖v‖² + r²·‖v'‖² − 2κ·⟨v, v'⟩, which is linear in κ. At κ = 0 it is at most
  2·‖c‖²·a²; at κ = p·r it is ‖p·v − r·v'‖², convex in (p, r), so at most ‖c‖²·max(a², ‖v − v'‖²). Not the
  sensitivity of one release: a coordinate in which all records agree hides that a record was replaced,
  but not that it moved.
- It is *removed* again by a record of opposite sign: ‖V‖² = (p² + r² − 2κ)·‖v‖² ≤ 2·‖c‖²·a².

*Rounding.* A cell of a buffer depends on that cell's own history alone. Two histories of one cell differ in
s_i by the exact difference and an error e_i, which is 0 before the first change, grows to at most θ_i·|e_i|
+ 1 where s_i decays, since two roundings differ from the exact values by at most ½ each, and does not
change elsewhere: |e_i| ≤ min(1/(1 − θ_i), how often s_i decays). The sum of buffers is rounded once more in
T. A unit that touches L cells so moves T by at most ‖c‖·(the length above) + √L·‖e‖, each of the n outputs
in which a record can be having an error of at most 1 + 2⁻⁶·Σ|e_i|. The declared length is this sum, in
integers rounded upwards; `fraction_bits` is chosen so that the second term is small.

*Emptying* the buffers happens at steps that are fixed, so it is the same for neighbours; a record before
it and one after it are in no common output, κ = 0 above. Records with which a unit changes may then have n
outputs each: L is multiplied by their number.

*Adaptively.* Given equal earlier outputs, everything but the unit is equal, also where later records were
chosen by earlier outputs, and whether there are later steps at all. So output t of neighbours differs by
d_t, with Σ_t ‖d_t‖² ≤ Δ² on every path, and noise of variance σ² gives Δ²/(2σ²)-zCDP (adaptive composition;
Feldman & Zrnic 2021). For (ε, δ), Gaussian noise with adaptively chosen shifts of that total length is as
private as one shift by Δ (Denisov, McMahan, Rush, Smith & Thakurta 2022; Smith & Thakurta 2022); rounding
its outputs is post-processing, and in each of the at most n·L touched numbers discrete noise is within
1/(24σ²) in total variation of rounded noise (`hushsum.privacy.accounting`).

Sums of intervals
=================
Noisy sums of intervals add up to a running sum, and form a tree.

Step t publishes the noisy sum of one interval that ends at t: of b^l steps, b being the ``base``, where l
is how often b divides t, and at most ``levels`` − 1. (With base 2 this is a Fenwick tree, the binary tree
of Dwork, Naor, Pitassi & Rothblum 2010 and Chan, Shi & Song 2011.) The running sum at t is the sum of as
many intervals as t has digit sum in base b, all digits from the last level on counting as one number. With
one level every step publishes itself. The last level never ends, so a tree needs no horizon: its levels are
then those that are best up to step 2²⁴, after which the variance grows linearly.

Discrete Laplace noise has the scale levels·Δ1/ε, so fewer levels are worth more than with Gaussian noise:
at 365 steps base 16 with two levels has 0.63 of the deviation of fresh sums, base 2 with nine levels 1.3
times as much. The base and the number of levels are chosen by the largest deviation over all steps.

Privacy
-------
A step j is in one interval of each level at most: those of one level do not overlap. One
unit moves all outputs together by at most ``levels`` times the sum of the absolute values of what its
records add, wherever they stand: it *appears*, *disappears* or appears *twice* (the sums add up); it is
*replaced* inside a step, or *moved* to another one, or both (it leaves and comes: twice the length, even
where replacing inside a step would move less); it is *removed* again by a record of opposite sign (a second
record). Discrete Laplace noise of scale Δ1/ε then gives ε, exactly; adaptively, since given equal earlier
outputs the output of a step differs by what the unit adds to it, and these differences add up to Δ1 at most
on every path.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

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

__all__ = [
    "LAST_STEP", "MOST_STEPS", "Factorisation", "StreamNoise", "StreamUnit", "TreeSums", "View",
    "root_coefficients", "spent_delta", "spent_epsilon", "spent_rho", "stream_noise",
]  # fmt: skip


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
    >>> View(window=30).in_words()
    'the last 30 steps'
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

    def kept(self, horizon: int | None) -> int:
        """How many past increments must be remembered: those of a window, which are to be forgotten."""
        if self.window is None or (horizon is not None and self.window >= horizon):
            return 0
        return self.window

    def in_words(self) -> str:
        """What a function of the stream is about."""
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


class _Shown(ABC):
    """The noise of what steps show: of running sums, of their differences, or of sums that decay."""

    __slots__ = ()

    def gains(self, view: View, steps: Integers) -> Floats:
        """The variance of the view after each of some steps, for noise of variance 1 in every output."""
        return self.covariances(view, steps, steps)

    def covariances(self, view: View, first: Integers, second: Integers) -> Floats:
        """The covariance of the views after two steps, for each pair of steps, for the same noise."""
        if view.decay is not None:
            return self._covariances(first, second, float(view.decay))
        if view.window is None:
            return self._covariances(first, second, 1.0)
        one, other = (np.maximum(each - view.window, 0) for each in (first, second))
        found = self._covariances(np.stack([first, first, one, one]), np.stack([second, other] * 2), 1.0)
        return np.asarray(found[0] - found[1] - found[2] + found[3], np.float64)

    @abstractmethod
    def _covariances(self, first: Integers, second: Integers, rate: float) -> Floats:
        """Of the sums after two steps in which a step has ``rate`` times the weight of the next one."""


_LARGEST_BASE = 64
# The steps up to which the levels of a tree without a horizon, and the noise of its plan, are chosen.
_FAR = 1 << 24


@dataclass(frozen=True, slots=True)
class TreeSums(_Shown):
    """Sums of intervals of lengths 1, b, b², …, one for each level; without an end if ``horizon`` is None.

    >>> TreeSums.best(365, View())
    TreeSums(horizon=365, base=16, levels=2)
    """

    name: ClassVar[str] = "interval sums"
    unit: ClassVar[int] = 1
    """What an increment is multiplied by in an output."""

    horizon: int | None
    base: int
    levels: int

    def __post_init__(self) -> None:
        far = _FAR if self.horizon is None else self.horizon
        if any(type(each) is not int or each < 1 for each in (far, self.base, self.levels)):
            raise ValueError("numbers")
        if self.base < 2 or self.levels > far.bit_length() or self._whole > far:
            raise ValueError("levels")

    @classmethod
    @lru_cache(maxsize=64)
    def best(cls, horizon: int | None, view: View) -> TreeSums:
        """The base and levels whose largest deviation is the smallest; without a horizon, up to step 2²⁴.

        A running sum has the most intervals at one of the steps whose last digits are the largest ones.
        """
        far = _FAR if horizon is None else horizon
        longest = min(far, view.window or far)

        def largest(plan: TreeSums) -> float:
            if view.decay is not None:
                return 1.0
            last = [max(far // plan.base**level * plan.base**level - 1, 1) for level in range(plan.levels)]
            ends = np.array([*range(1, min(far, MOST_STEPS) + 1 if longest < far else 1), *last, far])
            starts = np.maximum(ends - longest, 0)
            all_of = plan._common(ends, ends) + plan._common(starts, starts)
            return float((all_of - 2 * plan._common(ends, starts)).max())

        found = [cls(horizon, 2, 1)]
        # Where each output's weight decays, sums of intervals are of no use.
        for base in range(2, 1 if view.decay is not None else min(_LARGEST_BASE, far) + 1):
            levels = 2
            while base ** (levels - 1) <= longest:
                found.append(cls(horizon, base, levels))
                levels += 1
        return min(found, key=lambda each: each.levels**2 * largest(each))

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

    def _covariances(self, first: Integers, second: Integers, rate: float) -> Floats:
        low, high = np.minimum(first, second), np.maximum(first, second)
        if rate < 1.0:
            if self.levels > 1:
                raise ValueError("levels")
            alone = (1.0 - rate ** (2.0 * low)) / (1.0 - rate**2)
            return np.asarray(alone * rate ** (high - low), np.float64)
        return self._common(low, high).astype(np.float64)

    def _common(self, first: Integers, second: Integers) -> Integers:
        """How many intervals are in both of two running sums.

        Of the first digit that differs the smaller number, of higher digits all, of lower ones none.
        """
        total, equal = np.zeros_like(first), np.ones(first.shape, bool)
        for level in range(self.levels - 1, -1, -1):
            one, other = (each // self.base**level for each in (first, second))
            if level < self.levels - 1:
                one, other = one % self.base, other % self.base
            total += np.where(equal, np.minimum(one, other), 0)
            equal &= one == other
        return total

    def room(self, secret: Integers) -> int:
        """How large the sum of a coordinate of all later increments may be, so that it stays in 64 bits."""
        return _ROOM - int(np.abs(secret).max(initial=0))

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
MOST_WEIGHT = 4 << DECAY_BITS
MOST_BUFFERS = 12
MOST_FRACTION_BITS = 32
# How much finer buffers are than outputs.
STATE_BITS = 6
# Without a horizon, buffers are emptied after this many steps, and again.
RENEWAL_BITS = 28
# How many times a buffer without a horizon decays, at most, while it falls to 1/e.
_TICKS = 64
# By how much another buffer must lower the largest deviation.
_WORTH = 1.005
_BOUND_BITS = 60
_BLOCK = 1 << 15
# What the coordinates of a state may reach; noise comes to it.
_ROOM = 7 << 60


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

    ``column_squared`` bounds ‖c‖², ``rounding_squared`` bounds ‖e‖².
    """

    column_squared: int
    rounding_squared: int


@dataclass(frozen=True, slots=True)
class Factorisation(_Shown):
    """The weights c of the mechanism "Factorisation" at the top of the module, for ``horizon`` steps.

    Parameters
    ----------
    horizon : int or None
        The horizon n; None for a stream without an end.
    fraction_bits : int
        f: c_0 = 2^f.
    decays : tuple of int
        θ_i in units of 2⁻²⁴.
    weights : tuple of int
        w_i/c_0 in units of 2⁻²⁴.
    periods : tuple of int
        log₂ q_i.

    Examples
    --------
    >>> plan = Factorisation.best(365, View(), fraction_bits=20)
    >>> squared = plan.bounds().column_squared * plan.gains(View(), np.array([365]))[0]
    >>> plan.tables, round(float(squared) ** 0.5, 2)
    (3, 2.95)
    """

    name: ClassVar[str] = "factorisation"

    horizon: int | None
    fraction_bits: int
    decays: tuple[int, ...]
    weights: tuple[int, ...]
    periods: tuple[int, ...]

    def __post_init__(self) -> None:
        numbers = (self.reach, self.fraction_bits, *self.decays, *self.weights, *self.periods)
        if any(type(each) is not int or each < 0 for each in numbers):
            raise ValueError("numbers")
        if self.reach < 1 or self.fraction_bits > MOST_FRACTION_BITS:
            raise ValueError("horizon")
        if len(self.decays) > MOST_BUFFERS:
            raise ValueError("buffers")
        if not len(self.decays) == len(self.weights) == len(self.periods):
            raise ValueError("buffers")
        if any(each >= 1 << DECAY_BITS for each in self.decays):
            raise ValueError("decays")
        if sum(self.weights) > MOST_WEIGHT:
            raise ValueError("weights")
        if any(each >= RENEWAL_BITS for each in self.periods):
            raise ValueError("periods")

    @classmethod
    def best(cls, horizon: int | None, view: View, *, fraction_bits: int) -> Factorisation:
        """The fewest buffers of which one more would lower the largest deviation by less than 0.5 %."""
        return replace(_best_buffers(horizon, view), fraction_bits=fraction_bits)

    @property
    def reach(self) -> int:
        """The number of outputs in which a record can be, at most."""
        return 1 << RENEWAL_BITS if self.horizon is None else self.horizon

    @property
    def unit(self) -> int:
        """c_0."""
        return 1 << self.fraction_bits

    @property
    def tables(self) -> int:
        """How many tables of exact sums the mechanism keeps, the buffers s; and reading, the buffers ŝ."""
        return len(self.decays)

    @property
    def _fine_weights(self) -> tuple[int, ...]:
        """w_i as it is used, in units of a buffer."""
        return tuple(each << self.fraction_bits + STATE_BITS >> DECAY_BITS for each in self.weights)

    def _rates(self) -> Floats:
        return np.array(self.decays, np.float64) / (1 << DECAY_BITS)

    def _shares(self) -> Floats:
        return np.array(self._fine_weights, np.float64) / (self.unit << STATE_BITS)

    def bounds(self) -> FactorBounds:
        """Upper bounds on what all outputs together show, in exact arithmetic."""
        return _bounds(self)

    def _covariances(self, first: Integers, second: Integers, rate: float) -> Floats:
        low, high = np.minimum(first, second).reshape(-1), np.maximum(first, second).reshape(-1)
        size = self.tables + 1
        levels = range(int(high.max(initial=0)).bit_length())
        blocks = [_block(self, rate, level) for level in levels]
        joint = np.zeros((len(low), size, size))
        for level in reversed(levels):
            steps, noise = blocks[level]
            taken = (low >> level & 1).astype(bool)
            if taken.any():
                joint[taken] = steps @ joint[taken] @ steps.T + noise
        # From here on what the earlier step shows is fixed, and new draws are independent of it.
        shared, at = joint[:, :, -1], low.copy()

        def go(level: int, taken: NDArray[np.bool_]) -> None:
            if taken.any():
                shared[taken] = shared[taken] @ blocks[level][0].T
                at[taken] += 1 << level

        for level in levels:
            # A block that ends where longer ones do: what decays with these decays now.
            ends = (at > low) & (at % (1 << level) == 0)
            shared[ends] *= self._left(level)
            go(level, (at >> level & 1).astype(bool) & (at + (1 << level) <= high))
        for level in reversed(levels):
            go(level, at + (1 << level) <= high)
        return np.asarray(shared[:, -1].reshape(np.shape(first)) / self.unit**2, np.float64)

    def _left(self, level: int) -> Floats:
        """What is left of the buffers, and of a sum, by what happens after every 2^level steps."""
        if self.horizon is None and level == RENEWAL_BITS:
            return np.append(np.zeros(self.tables), 1.0)
        return np.append(np.where(np.array(self.periods) == level, self._rates(), 1.0), 1.0)

    def room(self, secret: Integers) -> int:
        """How large the sum of a coordinate of all later increments may be, so that it stays in 64 bits."""
        blocks = (secret[:, at : at + _BLOCK] for at in range(0, secret.shape[1], _BLOCK))
        largest = max((int(np.abs(each).sum(axis=0).max()) for each in blocks), default=0)
        # An increment is in the buffers with all weights, and in an output with c_0.
        return max(_ROOM - largest, 0) // max(sum(self._fine_weights), 2 * self.unit)

    def advance(self, secret: Integers, increment: Integers, step: int) -> Integers:
        """c_0·x + Σ s, and then the buffers of the next step, in place: exact.

        ``secret`` has the shape (tables, cells), ``increment`` (cells,).
        """
        output = np.empty_like(increment)
        half, low = 1 << (DECAY_BITS - 1), (1 << DECAY_BITS) - 1
        due = self._due(step)
        for start in range(0, len(increment), _BLOCK):
            part = slice(start, start + _BLOCK)
            x = increment[part]
            total = np.full_like(x, 1 << (STATE_BITS - 1))
            for s, decay, weight, decays in zip(
                secret[:, part], self.decays, self._fine_weights, due, strict=True
            ):
                total += s
                s += weight * x
                if decays:
                    # ⌊θ·s⌉ without leaving 64 bits: the high and the low part of s one by one.
                    s[:] = (s >> DECAY_BITS) * decay + ((s & low) * decay + half >> DECAY_BITS)
            output[part] = (x << self.fraction_bits) + (total >> STATE_BITS)
        if self._renewed(step):
            secret[:] = 0
        return output

    def read(self, public: Floats, output: Integers, step: int) -> Floats:
        """x̂ of this step from an output with noise, by (2); the buffers ŝ change in place."""
        estimate = np.empty(len(output))
        rates, shares, due = self._rates(), self.unit * self._shares(), self._due(step)
        for start in range(0, len(output), _BLOCK):
            part = slice(start, start + _BLOCK)
            buffers = public[:, part]
            found = (output[part].astype(np.float64) - buffers.sum(axis=0)) / self.unit
            for buffer, rate, share, decays in zip(buffers, rates, shares, due, strict=True):
                buffer += share * found
                if decays:
                    buffer *= rate
            estimate[part] = found
        if self._renewed(step):
            public[:] = 0.0
        return estimate

    def _due(self, step: int) -> list[bool]:
        """Which buffers decay after a step."""
        return [step % (1 << each) == 0 for each in self.periods]

    def _renewed(self, step: int) -> bool:
        return self.horizon is None and step % (1 << RENEWAL_BITS) == 0


@lru_cache(maxsize=512)
def _block(plan: Factorisation, rate: float, level: int) -> tuple[Floats, Floats]:
    """What 2^level steps, from a multiple of it on, do to the errors of the buffers ŝ and to that of a sum:
    a matrix, and the covariance of what the draws of these steps add. In units of c_0.
    """
    size, shares = plan.tables + 1, plan._shares()
    if level == 0:
        steps, noise = np.eye(size), np.append(shares, 1.0)
        steps[:-1, :-1] -= shares[:, np.newaxis]
        steps[-1], steps[-1, -1] = -1.0, rate
        added = np.outer(noise, noise)
    else:
        half, drawn = _block(plan, rate, level - 1)
        steps, added = half @ half, half @ drawn @ half.T + drawn
    left = plan._left(level)
    return left[:, np.newaxis] * steps, np.outer(left, left) * added


@lru_cache(maxsize=64)
def _bounds(plan: Factorisation) -> FactorBounds:
    """‖c‖² of a record of the first step, no column being larger in any place, and ‖e‖².

    Σ_k θ_i^⌊k/q_i⌋·θ_j^⌊k/q_j⌋ over 2^(m+1) lags is 1 + (the product after 2^m) times that over 2^m.
    """
    weights, one = plan._fine_weights, 1 << _BOUND_BITS
    pairs = [(i, j) for i in range(plan.tables) for j in range(i + 1)]
    sums, factors, left = dict.fromkeys(pairs, one), dict.fromkeys(pairs, one), [one] * plan.tables
    total = dict.fromkeys(pairs, 0)
    reach, found = plan.reach, []
    for level in range(reach.bit_length()):
        for i, (decay, period) in enumerate(zip(plan.decays, plan.periods, strict=True)):
            if level == period:
                left[i] = decay << _BOUND_BITS - DECAY_BITS
            elif level > period:
                left[i] = -(-(left[i] ** 2) >> _BOUND_BITS)
        products = {(i, j): -(-left[i] * left[j] >> _BOUND_BITS) for i, j in pairs}
        found.append((sums, products))
        sums = {pair: each + -(-each * products[pair] >> _BOUND_BITS) for pair, each in sums.items()}
    for level in reversed(range(reach.bit_length())):
        if reach >> level & 1:
            sums, products = found[level]
            for pair in pairs:
                total[pair] += -(-factors[pair] * sums[pair] >> _BOUND_BITS)
                factors[pair] = -(-factors[pair] * products[pair] >> _BOUND_BITS)
    column = (plan.unit << STATE_BITS) ** 2 << _BOUND_BITS
    for i, j in pairs:
        # Lag 0, for which the weight is c_0, is in the sum as the product of two 1.
        column += (1 if i == j else 2) * weights[i] * weights[j] * (total[i, j] - one)
    errors = Fraction(0)
    for decay, period in zip(plan.decays, plan.periods, strict=True):
        errors += min(Fraction(1 << DECAY_BITS, (1 << DECAY_BITS) - decay), Fraction((reach >> period) + 1))
    error = 1 + errors / (1 << STATE_BITS) if plan.tables else Fraction(0)
    return FactorBounds(
        column_squared=-(-column >> _BOUND_BITS + 2 * STATE_BITS),
        rounding_squared=math.ceil((reach - 1) * error**2),
    )


@lru_cache(maxsize=64)
def _best_buffers(horizon: int | None, view: View) -> Factorisation:
    """The fewest buffers that are good enough, with the most fraction bits.

    1 − θ_i^{1/q_i} are in geometric progression between two ends, which are searched; the shares are the best
    fit of non-negative ones to binom(2k, k)/4^k·g^k. g is 1 for running sums; for decayed sums it is the
    decay, and for windows a few values are tried. Running sums without a horizon have another factor,
    1/√(1 + ln(1 + k)/10), with which Σ c_k² grows like ln ln k, and later steps pay for earlier ones
    (Jacobsen & Fawaz 2025). Everything is public: horizon and view.
    """
    best = (math.inf, Factorisation(horizon, MOST_FRACTION_BITS, (), (), ()))
    if horizon == 1:
        return best[1]
    fewest = 6 if horizon is None and view == View() else 1
    for buffers in range(fewest, MOST_BUFFERS + 1):
        found = min(
            (_fitted(horizon, view, rate, buffers) for rate in _tilts(horizon, view)),
            key=lambda each: each[0],
        )
        if math.isfinite(found[0]) and found[0] * _WORTH > best[0]:
            break
        best = min(best, found, key=lambda each: each[0])
    return best[1]


def _tilts(horizon: int | None, view: View) -> tuple[float, ...]:
    if view.decay is not None:
        return (float(view.decay),)
    if window := view.kept(horizon):
        return tuple(1.0 - share / window for share in (0.0, 0.5, 1.0, 2.0) if share < window)
    return (1.0,)


def _fitted(horizon: int | None, view: View, tilt: float, buffers: int) -> tuple[float, Factorisation]:
    from scipy.optimize import minimize, nnls

    # What is shown forgets, and nothing changes beyond some times the length of its memory.
    memory = math.inf if view == View() else (view.window or 1.0 / (1.0 - tilt))
    reach = int(min(1 << RENEWAL_BITS if horizon is None else horizon, max(64.0 * memory, 256.0)))
    # Of many lags some hundred, denser where the weights change faster, each for its neighbours.
    lags = np.unique(np.geomspace(1, reach - 1, 600).astype(np.int64))
    wanted = tilt ** (lags - 0.0) / np.sqrt(np.pi * (lags + 0.25 + 1 / (32 * lags)))
    if horizon is None and view == View():
        wanted /= np.sqrt(1.0 + np.log1p(lags) / 10.0)
    importance = np.sqrt(np.diff(lags, append=reach) / (wanted + 1e-12))
    worst = np.array([reach])

    def plan(ends: Floats) -> Factorisation | None:
        low, high = (min(float(each), math.log(0.75)) for each in ends)
        gaps = np.exp(np.linspace(max(low, -30.0), max(high, -30.0), buffers))
        periods = np.zeros(buffers, np.int64)
        if horizon is None:
            periods = np.clip(np.floor(-np.log2(gaps * _TICKS / 2)), 0, RENEWAL_BITS - 1).astype(np.int64)
        powers = (1.0 - gaps) ** lags[:, np.newaxis] * importance[:, np.newaxis]
        shares = nnls(powers, wanted * importance)[0]
        kept = [
            (
                min(round((1.0 - gap) ** (1 << int(period)) * (1 << DECAY_BITS)), (1 << DECAY_BITS) - 1),
                round(share * (1 << DECAY_BITS)),
                int(period),
            )
            for gap, share, period in zip(gaps, shares, periods, strict=True)
            if share >= 1 / (1 << DECAY_BITS)
        ]
        if sum(each[1] for each in kept) > MOST_WEIGHT:
            return None
        decays, weights, logs = zip(*kept, strict=True) if kept else ((), (), ())
        return Factorisation(horizon, MOST_FRACTION_BITS, decays, weights, logs)

    def error(ends: Floats) -> float:
        found = plan(ends)
        if found is None:
            return math.inf
        return math.sqrt(found.bounds().column_squared * float(found.gains(view, worst)[0]))

    slow = max(0.5 / reach, 1.0 - tilt) if view.decay is not None else 0.5 / reach
    start = np.array([math.log(min(slow, 0.5)), math.log(0.6)])
    found = minimize(
        error, start, method="Nelder-Mead", options={"maxiter": 80, "xatol": 3e-2, "fatol": 1e-4}
    )
    return found.fun, plan(found.x) or Factorisation(horizon, MOST_FRACTION_BITS, (), (), ())


def length_above(linear_squared: Fraction | int, touched: int, bounds: FactorBounds) -> int:
    """The square of ‖c‖·√linear_squared + √touched·‖e‖, rounded upwards to an integer."""
    linear = root_above(bounds.column_squared * Fraction(linear_squared))
    rounding = root_above(touched * bounds.rounding_squared)
    return math.ceil((linear + rounding) ** 2)


# The longest horizon; and beyond it, of a stream without one, that a file can state.
MOST_STEPS = 1 << 14
LAST_STEP = 1 << 40
# What rounding may add to the sensitivity, and the lattice to δ.
_SMALL = Fraction(1, 1000)

# With fewer, weights are too coarse.
_FEWEST_BITS = 12

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

    ``table`` is drawn in every cell of the table at every step, ``count`` beside the number of records, which
    enters with 2^``count_bits`` for each of them, so that rounding is as little for it as for a table whose
    cells count in small fractions of a record.
    """

    strategy: Strategy
    view: View
    table: IntegerNoise
    count: IntegerNoise
    count_bits: int = 0

    @property
    def count_variance(self) -> float:
        """The variance of the noise of the count in an output, in records."""
        return self.count.variance / (1 << 2 * self.count_bits)

    @property
    def intervals(self) -> bool:
        """Whether outputs are sums of intervals, which is for pure ε."""
        return isinstance(self.strategy, TreeSums)

    @property
    def mechanism(self) -> str:
        """The name of the mechanism in claims."""
        return INTERVALS if self.intervals else FACTORISED

    @property
    def horizon(self) -> int | None:
        """The horizon; None for a stream without an end."""
        return self.strategy.horizon

    def at(self, step: int) -> tuple[IntegerNoise, IntegerNoise]:
        """The noise of a cell, and of the number of records, in what is shown at a step."""
        # The weights of a hostile file may grow without bound.
        with np.errstate(over="ignore", invalid="ignore"):
            gain = float(self.strategy.gains(self.view, np.array([step]))[0])
        if not 0.0 < gain < math.inf:
            raise ValueError("noise")
        table, count = (
            IntegerNoise(self.mechanism, short_above(variance * gain))
            for variance in (self.table.variance, self.count_variance)
        )
        return table, count

    def covariances(self, steps: Sequence[int]) -> Floats:
        """What the noise of some steps has in common, for noise of variance 1 in every output: a matrix."""
        first, second = np.meshgrid(np.array(steps, np.int64), np.array(steps, np.int64))
        return self.strategy.covariances(self.view, first, second)

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
            "count_bits": self.count_bits,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> StreamNoise:
        """The noise of a file's header; ValueError if there is none like it."""
        if set(data) != {"strategy", "view", "table", "count", "count_bits"}:
            raise ValueError("stream")
        noise = cls(
            strategy_from_json(data["strategy"]),
            View.from_json(data["view"]),
            IntegerNoise.from_json(data["table"]),
            IntegerNoise.from_json(data["count"]),
            data["count_bits"],
        )
        if type(noise.count_bits) is not int or not 0 <= noise.count_bits <= MOST_FRACTION_BITS:
            raise ValueError("bits")
        drawn = LAPLACE if noise.intervals else GAUSSIAN
        if (noise.horizon or 0) > MOST_STEPS or {noise.table.mechanism, noise.count.mechanism} != {drawn}:
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

    def changes(self, *, endless: bool) -> tuple[StepChange, StepChange]:
        """The change of the table and that of the number of records; ``endless`` without a horizon.

        >>> one = {Relation.ADD_REMOVE: Sensitivity(100, 100, 1), Relation.REPLACE: Sensitivity(200, 200, 1)}
        >>> StreamUnit(one, Relation.REPLACE, None, False, 5000).changes(endless=False)
        (StepChange(l1=200, l2_squared=200, touched=200), StepChange(l1=2, l2_squared=2, touched=1))
        """
        one, none = Sensitivity(1, 1, 1), Sensitivity(0, 0, 0)
        alone, replaced = (self.record[each] for each in (Relation.ADD_REMOVE, Relation.REPLACE))
        table, count = self._change(alone, replaced, self.cells), self._change(one, none, 1)
        if not endless:
            return table, count
        # The change of the number of records is how many of them there are.
        return replace(table, touched=table.touched * count.l1), replace(count, touched=count.l1)

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
    promise: Promise, unit: StreamUnit, *, horizon: int | None, view: View, count_share: Fraction
) -> StreamNoise:
    """The noise that keeps a promise over all steps together.

    Pure ε: sums of intervals with discrete Laplace noise. ρ, or ε and δ: the factorisation with discrete
    Gaussian noise. The number of records is one more coordinate, which takes ``count_share`` of the budget,
    under both relations: a replaced record may stand at another step, so the number at each step is private.
    """
    table, count = unit.changes(endless=horizon is None)
    if promise.pure:
        intervals = TreeSums.best(horizon, view)
        # A unit moves one sum of each level. No vector is longer in L2 than in L1.
        l1 = intervals.levels * table.l1
        change = UnitChange(Sensitivity(l1, l1**2, l1), intervals.levels * count.l1, 1)
        noise = calibrate(promise, change, cells=unit.cells, count_share=count_share, mechanism=LAPLACE)
        return StreamNoise(intervals, view, noise.table, noise.count)
    return _factorised(promise, table, count, horizon, view, proper_share(count_share))


def _factorised(
    promise: Promise, table: StepChange, count: StepChange, horizon: int | None, view: View, share: Fraction
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

    def little(change: StepChange, bounds: FactorBounds) -> bool:
        """Whether rounding adds next to nothing to the length."""
        return (
            change.touched * bounds.rounding_squared <= _SMALL**2 * bounds.column_squared * change.l2_squared
        )

    def fine_lattice(bounds: FactorBounds) -> bool:
        """Whether discrete noise is so near to rounded noise that δ hardly grows."""
        if epsilon is None:
            return True
        gap = plan_with(0).reach * table.touched / (24.0 * variance_near(bounds, Fraction(0)))
        return gap * (1.0 + math.exp(min(float(epsilon), 700.0))) <= float(_SMALL * delta)

    small = max(fewest(lambda bounds: little(table, bounds)), _FEWEST_BITS)
    fine = max(small, fewest(fine_lattice))
    most = fewest(lambda bounds: variance_near(bounds, share) > _LARGEST_VARIANCE) - 1
    # Where the lattice cannot be fine, as for a large ε, the noise comes from ρ, which does not need it.
    plan = plan_with(max(0, min(fine if fine < most else small, most)))
    bits = bisect_left(
        range(MOST_FRACTION_BITS), True, key=lambda bits: little(_finer(count, bits), plan.bounds())
    )
    count = _finer(count, bits)
    # Multiplied by λ = σ/σ_c, the count is one more part of the vector that has noise σ, so that together
    # their squared length is Δ2²/(1 − share).
    of_table, of_count = _lengths(plan, table, count)
    whole = math.ceil(Fraction(of_table) / (1 - share))
    # λ² of the n numbers of the count weigh in the distance of the lattices, as λ²·n cells.
    ratio = Fraction(of_table) * share / ((1 - share) * of_count)
    if epsilon is None:
        variance = Fraction(whole) / (2 * rho)
    else:
        touched = math.ceil(plan.reach * (table.touched + count.touched * max(ratio, Fraction(1))))
        variance = vector_variances(epsilon=epsilon, delta=delta, l2_squared=whole, cells=touched).variance
    of_count_noise = IntegerNoise(GAUSSIAN, variance / ratio)
    return StreamNoise(plan, view, IntegerNoise(GAUSSIAN, variance), of_count_noise, bits)


def _finer(count: StepChange, bits: int) -> StepChange:
    """The change of the number of records where each enters with 2^bits."""
    return replace(count, l1=count.l1 << bits, l2_squared=count.l2_squared << 2 * bits)


def _changes(noise: StreamNoise, unit: StreamUnit) -> tuple[StepChange, StepChange]:
    """What a unit changes in the table, and in the number of records as it enters."""
    table, count = unit.changes(endless=noise.horizon is None)
    return table, _finer(count, noise.count_bits)


def _lengths(plan: Factorisation, table: StepChange, count: StepChange) -> tuple[int, int]:
    """Δ2² of all outputs of the table, and of all outputs of the count."""
    of_table, of_count = (
        length_above(each.l2_squared, each.touched, plan.bounds()) for each in (table, count)
    )
    return of_table, of_count


def spent_rho(noise: StreamNoise, unit: StreamUnit) -> Fraction:
    """ρ of all outputs of a factorised stream together."""
    assert isinstance(noise.strategy, Factorisation)
    lengths = _lengths(noise.strategy, *_changes(noise, unit))
    return lengths[0] / (2 * noise.table.parameter) + lengths[1] / (2 * noise.count.parameter)


def spent_delta(noise: StreamNoise, unit: StreamUnit, epsilon: Fraction) -> float:
    """An upper bound on δ(ε) of all outputs of a factorised stream together."""
    assert isinstance(noise.strategy, Factorisation)
    table, count = _changes(noise, unit)
    lengths = _lengths(noise.strategy, table, count)
    ratio = noise.table.parameter / noise.count.parameter
    return vector_delta(
        epsilon,
        l2_squared=math.ceil(lengths[0] + ratio * lengths[1]),
        cells=math.ceil(noise.strategy.reach * (table.touched + count.touched * max(ratio, Fraction(1)))),
        variance=noise.table.parameter,
    )


def spent_epsilon(noise: StreamNoise, unit: StreamUnit) -> Fraction:
    """ε of all outputs of a stream of interval sums together."""
    assert isinstance(noise.strategy, TreeSums)
    table, count = _changes(noise, unit)
    levels = noise.strategy.levels
    return levels * table.l1 / noise.table.parameter + levels * count.l1 / noise.count.parameter
