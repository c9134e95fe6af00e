r"""A running sum by a factorisation whose state is a few tables, whatever the number of steps.

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
(`hushsum.privacy.accounting.discrete_gaussian_vectors`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from hushsum._types import Floats, Integers
from hushsum.privacy.over_time.stream_views import View

DECAY_BITS = 24
MOST_BUFFERS = 8
MOST_FRACTION_BITS = 32
_GUARD_BITS = 20
_TOLERANCE = 1.005
"""How much larger than with the exact weights the largest deviation may be."""

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
class Bounds:
    """What all outputs of a factorisation show of one unit, in integers rounded upwards.

    ``column_squared`` bounds ‖c‖², ``rounding_squared`` bounds ‖e‖², ``gain`` bounds Σ c_k.
    """

    column_squared: int
    rounding_squared: int
    gain: int


@dataclass(frozen=True, slots=True)
class Factorisation:
    """The weights c of the mechanism in this module's text, for ``steps`` steps.

    Parameters
    ----------
    steps : int
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
    >>> len(plan.decays), round(plan.largest_ratio(View()), 2)
    (3, 2.95)
    """

    name: ClassVar[str] = "factorisation"

    steps: int
    fraction_bits: int
    decays: tuple[int, ...]
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        numbers = (self.steps, self.fraction_bits, *self.decays, *self.weights)
        if any(type(each) is not int or each < 0 for each in numbers):
            raise ValueError("numbers")
        if self.steps < 1 or self.fraction_bits > MOST_FRACTION_BITS:
            raise ValueError("steps")
        if len(self.decays) != len(self.weights) or len(self.decays) > MOST_BUFFERS:
            raise ValueError("buffers")
        if any(each >= 1 << DECAY_BITS for each in self.decays):
            raise ValueError("decays")
        if sum(self.weights) > 1 << DECAY_BITS:
            raise ValueError("weights")

    @classmethod
    def best(cls, steps: int, view: View, *, fraction_bits: int) -> Factorisation:
        """The fewest buffers whose largest deviation is within 0.5 % of that of the exact weights."""
        decays, weights = _best_buffers(steps, view)
        kept = [
            (round(decay * (1 << DECAY_BITS)), round(weight * (1 << DECAY_BITS)))
            for decay, weight in zip(decays, weights, strict=True)
        ]
        kept = [(min(p, (1 << DECAY_BITS) - 1), w) for p, w in kept if w > 0]
        return cls(steps, fraction_bits, tuple(p for p, _ in kept), tuple(w for _, w in kept))

    @property
    def unit(self) -> int:
        """c_0."""
        return 1 << self.fraction_bits

    @property
    def gain(self) -> int:
        """How often an increment is in the outputs and the state at most, for bounds on their size."""
        return self.bounds().gain

    @property
    def secret_tables(self) -> int:
        """How many tables of exact sums the mechanism keeps: the buffers s."""
        return len(self.decays)

    @property
    def public_tables(self) -> int:
        """How many tables reading keeps: the buffers ŝ."""
        return len(self.decays)

    def coefficients(self) -> Floats:
        """c_0, …, c_{n−1}."""
        return self.unit * _weights(self._rates(), self._shares(), self.steps)

    def bounds(self) -> Bounds:
        """Upper bounds on what all outputs together show, in exact arithmetic."""
        return _bounds(self)

    def rows(self, view: View) -> Floats:
        """b_0, …, b_{n−1}: the noise of the view at step t is Σ_k b_k·Z_{t−k}."""
        return view.series(_inverse(self._rates(), self._shares(), self.steps)) / self.unit

    def row(self, step: int, view: View) -> Floats:
        """What the noise of each output so far weighs in the view at a step, shape (step,)."""
        return self.rows(view)[step - 1 :: -1] if step < self.steps else self.rows(view)[::-1]

    def gains(self, view: View) -> Floats:
        """The variance of the view after each step, where the noise of an output has variance 1."""
        result: Floats = np.cumsum(self.rows(view) ** 2)
        return result

    def largest_ratio(self, view: View) -> float:
        """The largest standard deviation over all steps, in units of that of one release."""
        column = float((self.coefficients() ** 2).sum())
        return math.sqrt(column * float(self.gains(view)[-1]))

    def advance(self, secret: Integers, increment: Integers, step: int) -> Integers:
        """c_0·x + Σ s, and then the buffers of the next step, in place: exact.

        ``secret`` has the shape (secret_tables, cells), ``increment`` (cells,).
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

    def as_json(self) -> dict[str, Any]:
        """The weights for a file's header."""
        return {
            "name": self.name,
            "steps": self.steps,
            "fraction_bits": self.fraction_bits,
            "decays": list(self.decays),
            "weights": list(self.weights),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Factorisation:
        """The weights of a file's header; ValueError if they are none."""
        if set(data) != {"name", "steps", "fraction_bits", "decays", "weights"}:
            raise ValueError("factorisation")
        return cls(data["steps"], data["fraction_bits"], tuple(data["decays"]), tuple(data["weights"]))


def _weights(rates: Floats, shares: Floats, steps: int) -> Floats:
    """c/c_0: a mixture of geometric sequences after the first."""
    powers: Floats = rates[None, :] ** np.arange(steps - 1)[:, None]
    return np.concatenate([[1.0], powers @ shares])


def _inverse(rates: Floats, shares: Floats, steps: int) -> Floats:
    """The series of c_0/c. Reading is x̂ = T − 1ᵀŝ, ŝ ← (Θ − w·1ᵀ)·ŝ + w·T: powers of one small matrix."""
    result = np.zeros(steps)
    result[0] = 1.0
    if not len(rates) or steps == 1:
        return result
    matrix = np.diag(rates) - np.outer(shares, np.ones(len(rates)))
    values, vectors = np.linalg.eig(matrix)
    amounts = -(np.ones(len(rates)) @ vectors) * np.linalg.solve(vectors, shares)
    result[1:] = ((values[None, :] ** np.arange(steps - 1)[:, None]) @ amounts).real
    return result


@lru_cache(maxsize=64)
def _bounds(plan: Factorisation) -> Bounds:
    guard = 1 << _GUARD_BITS
    terms = [-(-weight * plan.unit * guard >> DECAY_BITS) for weight in plan.weights]
    errors = [guard] * len(plan.weights)
    column, rounding, gain = (plan.unit * guard) ** 2, 0, plan.unit * guard
    for _ in range(1, plan.steps):
        lag, error = sum(terms), sum(errors)
        column, rounding, gain = column + lag**2, rounding + error**2, gain + lag
        terms = [-(-each * p >> DECAY_BITS) for each, p in zip(terms, plan.decays, strict=True)]
        errors = [-(-each * p >> DECAY_BITS) + guard for each, p in zip(errors, plan.decays, strict=True)]
    scale = guard**2
    return Bounds(-(-column // scale), -(-rounding // scale), -(-gain // guard))


@lru_cache(maxsize=64)
def _best_buffers(steps: int, view: View) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """θ and w/c_0 of the fewest buffers that are good enough.

    1 − θ_i are in geometric progression between two ends, which are searched; the shares are the best fit of
    non-negative ones to binom(2k, k)/4^k·g^k. g is 1 for running sums; for decayed sums it is the decay, and
    for windows a few values are tried. Everything is public: horizon and view.
    """
    if steps == 1:
        return (), ()
    rates = _tilts(steps, view)
    ideal = min(_ratio(_tilted(steps, rate), view) for rate in rates)
    best: tuple[float, Floats, Floats] | None = None
    for buffers in range(1, MOST_BUFFERS + 1):
        for rate in rates:
            found = _fitted(steps, view, _tilted(steps, rate), buffers)
            if best is None or found[0] < best[0]:
                best = found
        assert best is not None
        if best[0] <= _TOLERANCE * ideal:
            break
    assert best is not None
    return tuple(best[1].tolist()), tuple(best[2].tolist())


def _tilts(steps: int, view: View) -> tuple[float, ...]:
    if view.decay is not None:
        return (float(view.decay),)
    if view.kept(steps):
        return tuple(
            1.0 - share / view.kept(steps) for share in (0.0, 0.5, 1.0, 2.0) if share < view.kept(steps)
        )
    return (1.0,)


def _tilted(steps: int, rate: float) -> Floats:
    return root_coefficients(steps) * rate ** np.arange(steps)


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


def _fitted(steps: int, view: View, target: Floats, buffers: int) -> tuple[float, Floats, Floats]:
    from scipy.optimize import minimize, nnls

    # Of many lags some hundred, denser where the weights change faster, each for its neighbours.
    lags = np.unique(np.geomspace(1, steps - 1, 600).astype(np.int64)) - 1
    spacing = np.sqrt(np.diff(lags, append=steps - 1))
    wanted = target[1:][lags]
    importance = spacing / np.sqrt(wanted + 1e-12)

    def shares(ends: Floats) -> tuple[Floats, Floats]:
        low, high = (min(float(each), math.log(0.98)) for each in ends)
        rates: Floats = 1.0 - np.exp(np.linspace(max(low, -30.0), max(high, -30.0), buffers))
        powers = rates[None, :] ** lags[:, None] * importance[:, None]
        return rates, nnls(powers, wanted * importance)[0]

    def error(ends: Floats) -> float:
        rates, amounts = shares(ends)
        column = float((_weights(rates, amounts, steps) ** 2).sum())
        if amounts.sum() > 1.0:
            return math.inf
        return math.sqrt(column * float((view.series(_inverse(rates, amounts, steps)) ** 2).sum()))

    slow = max(0.5 / steps, 1.0 - float(view.decay)) if view.decay is not None else 0.5 / steps
    start = np.array([math.log(min(slow, 0.5)), math.log(0.6)])
    found = minimize(
        error, start, method="Nelder-Mead", options={"maxiter": 80, "xatol": 1e-2, "fatol": 1e-6}
    )
    rates, amounts = shares(found.x)
    return float(found.fun), rates, amounts


def length_above(linear_squared: Fraction | int, touched: int, bounds: Bounds) -> int:
    """The square of ‖c‖·√linear_squared + √touched·‖e‖, rounded upwards to an integer."""
    linear = _root_above(bounds.column_squared * Fraction(linear_squared))
    rounding = _root_above(Fraction(touched * bounds.rounding_squared))
    return math.ceil((linear + rounding) ** 2)


def _root_above(square: Fraction) -> Fraction:
    """A rational above the root, by 2⁻⁴⁰ at most."""
    whole = math.ceil(square * (1 << 80))
    return Fraction(math.isqrt(whole) + 1, 1 << 40)
