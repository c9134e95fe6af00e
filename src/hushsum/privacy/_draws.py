"""The noise of a release of several steps (choices, counts, perturbations), drawn under one fresh key.

Each step is calibrated here from its sensitivity and its share of the budget; a method only states which
share a step gets. Integer steps are exact.

Noise on real numbers is for methods whose proof is about reals: normal, and the Gamma-radius (L2)
distribution, both made of `standard_normal`. That is an exact draw from a lattice 2³⁰ times finer than its
standard deviation, spread evenly between the points of the lattice; a lattice alone would show, since what it
is added to lies anywhere between. Floating-point sums round, so the noisy numbers are rounded to a public
step far coarser than that, and such a release claims ``"real arithmetic"``.

Noise for functions
===================
A function f of the data in the reproducing kernel Hilbert space of a kernel k is released as f + s·G, with G
one path of the Gaussian process of covariance k: the Gaussian mechanism in that space, for the sensitivity
Δ = sup‖f_D − f_D'‖ (Hall, Rinaldo and Wasserman 2013). In a finite feature space it is Gaussian noise on the
coefficients, here drawn as integers on a fine lattice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats, Integers
from hushsum.errors import Argument, ClaimError, Parameter, shown

from . import noise as samplers
from ._calibration import IntegerNoise, gamma_noise, laplace_noise
from ._claim import Claim, Mechanism, Promise, PromiseKind, Relation, register_mechanism
from .accounting import analytic_gaussian_sigma, rounding_gap, zcdp_rho
from .noise import EXPONENTIAL, PERMUTE_AND_FLIP, NoiseSource, Stopping

__all__ = [
    "ANALYTIC", "AS_PUBLISHED", "CALIBRATIONS", "EXACT_INTEGERS", "EXPONENTIAL", "LATTICE_GAUSSIAN",
    "MECHANISM", "PATH", "PERMUTE_AND_FLIP", "RANDOM_STOPPING", "REAL_ARITHMETIC", "REAL_GAUSSIAN",
    "SHUFFLED_MECHANISM", "LatticePart", "Question", "ReleaseNoise", "Stopping", "choice_claim",
    "choose_positions", "draw_candidates", "flip_coins", "gaussian_sigma", "hadamard_response",
    "lattice_variance", "lattice_variances", "local_source", "path_scale", "perturb_lattice",
    "random_places", "release_noise", "rounded", "rounded_reach", "sign_gain", "standard_normal",
]  # fmt: skip

RANDOM_STOPPING = "random stopping"
_MECHANISMS: dict[str, Callable[[Sequence[int], Fraction, NoiseSource], int]] = {
    PERMUTE_AND_FLIP: samplers.permute_and_flip,
    EXPONENTIAL: samplers.exponential_choice,
}


@dataclass(frozen=True, slots=True, repr=False)
class Question:
    """Integer scores of the candidates, how far one unit moves them, and the ε of this choice; secret.

    ``sensitivity`` bounds the move of any one score. ``monotone`` states that a unit moves no two scores in
    opposite directions, which halves the noise: proven by the caller, as for counts under add/remove.
    """

    scores: Sequence[int]
    epsilon: Fraction
    sensitivity: int
    monotone: bool = False

    @property
    def rate(self) -> Fraction:
        """ε over the largest rise minus the smallest: Δ where scores move one way, 2Δ otherwise."""
        return self.epsilon / (self.sensitivity if self.monotone else 2 * self.sensitivity)

    def __repr__(self) -> str:
        return f"<Question CONFIDENTIAL candidates={len(self.scores)}>"


def choose_positions(questions: Sequence[Question], *, insecure_noise_seed: int | None = None) -> list[int]:
    """The position chosen for each question, all from one fresh key; their ε add up."""
    with release_noise(insecure_noise_seed) as noise:
        return [noise.choice(question, mechanism=PERMUTE_AND_FLIP) for question in questions]


def draw_candidates(rule: Stopping, candidates: int, *, insecure_noise_seed: int | None) -> list[int]:
    """Which candidate each run takes, for a secret random number of runs."""
    with NoiseSource.for_release(insecure_noise_seed) as source:
        return samplers.draw_runs(rule, candidates, source)


def random_places(size: int, places: int, *, insecure_noise_seed: int | None) -> NDArray[np.int64]:
    """A secret random place for each of ``size`` units, independent of the data and of each other."""
    with NoiseSource.for_release(insecure_noise_seed) as source:
        return samplers.independent_places(size, places, source)


def flip_coins(against: Sequence[Fraction], *, insecure_noise_seed: int | None) -> list[bool]:
    """Independent coins, each true with probability 1/(1 + e^against), exactly: log-odds that move by r cost
    r²/8 of ρ, or r of pure ε.
    """
    with NoiseSource.for_release(insecure_noise_seed) as source:
        return samplers.log_odds_coins(against, source)


def choice_claim(
    promise: Promise,
    mechanism: str,
    *,
    relation: str | Relation,
    max_per_unit: int | None,
    insecure_noise_seed: int | None,
    arithmetic: str = "exact integers",
    assumptions: Sequence[str] = (),
) -> Claim:
    """What a choice claims; known before anything is drawn."""
    if max_per_unit is not None and (type(max_per_unit) is not int or max_per_unit < 1):
        rule = "must be an integer of at least 1"
        raise ClaimError("max_per_unit", rule, got=shown(max_per_unit), remedy="give a cap")
    return Claim(
        promise=promise,
        unit="record" if max_per_unit is None else "person",
        records_per_unit=max_per_unit or 1,
        relation=Relation.of(relation),
        mechanism=Mechanism.of(mechanism),
        arithmetic=arithmetic,
        secure=insecure_noise_seed is None,
        assumptions=tuple(assumptions),
    )


REAL_ARITHMETIC = "real arithmetic"
EXACT_INTEGERS = "exact integers"
REAL_GAUSSIAN = "gaussian"
_LATTICE_BITS = 30
_ROUNDING_BITS = 10


class ReleaseNoise:
    """What one release may draw; made by `release_noise` and over when its block ends."""

    __slots__ = ("_source",)

    def __init__(self, source: NoiseSource) -> None:
        self._source = source

    def choice(self, question: Question, *, mechanism: str = PERMUTE_AND_FLIP) -> int:
        """The position chosen by the scores; spends ``question.epsilon``, exactly."""
        return _MECHANISMS[mechanism](question.scores, question.rate, self._source)

    def laplace(
        self, counts: NDArray[np.int64], l1: int, epsilon: Fraction
    ) -> tuple[NDArray[np.int64], IntegerNoise]:
        """Integer counts that one unit moves by at most ``l1`` together, made ε-private, and their noise."""
        noise = laplace_noise(l1, epsilon)
        return counts + noise.draw(counts.size, self._source).reshape(counts.shape), noise

    def gamma(
        self, values: NDArray[np.int64], l2_squared: int, epsilon: Fraction
    ) -> tuple[NDArray[np.int64], IntegerNoise]:
        """Integers that one unit moves by at most √``l2_squared`` in L2, made ε-private by noise of the
        Gamma-radius distribution, and that noise.
        """
        noise = gamma_noise(l2_squared, values.size, epsilon)
        return values + noise.draw(values.size, self._source).reshape(values.shape), noise

    def integer_gaussian(self, values: NDArray[np.int64], variance: Fraction) -> NDArray[np.int64]:
        """Integers with discrete Gaussian noise of that variance: Δ2²/(2·variance)-zCDP, exactly."""
        noise = samplers.discrete_gaussian(values.size, variance, self._source)
        return values + noise.reshape(values.shape)

    def gaussian(self, values: Floats, l2: float, epsilon: Fraction, delta: Fraction) -> tuple[Floats, float]:
        """Real numbers that one unit moves by at most ``l2`` in L2, made (ε, δ)-private, and their σ.

        They are rounded to a public step (`rounded`).
        """
        sigma = gaussian_sigma(l2, epsilon, delta)
        noise = standard_normal(values.size, self._source).reshape(values.shape)
        return rounded(values + sigma * noise, sigma), sigma

    def normal(self, size: int) -> Floats:
        """Independent standard normal numbers."""
        return standard_normal(size, self._source)

    def symmetric(self, size: int) -> Floats:
        """A symmetric matrix, its upper triangle independent standard normal numbers."""
        upper = np.triu(self.normal(size * size).reshape(size, size))
        whole: Floats = upper + np.triu(upper, 1).T
        return whole

    def coin(self, exponent: float) -> bool:
        """True with probability e^(−exponent), exactly, for a float that is not negative."""
        return samplers.flip(Fraction(exponent), self._source.stream().more_bits(0))

    def gamma_vector(self, size: int, scale: float) -> Floats:
        """A vector b of density ∝ exp(−‖b‖/scale): a uniform direction, and a Gamma(size, scale) length.

        Half the sum of 2·size squared normal numbers has the Gamma(size, 1) distribution.
        """
        length = 0.5 * float(np.sum(self.normal(2 * size) ** 2))
        direction = self.normal(size)
        vector: Floats = direction * (scale * length / float(np.linalg.norm(direction)))
        return vector


@contextmanager
def release_noise(insecure_noise_seed: int | None = None) -> Iterator[ReleaseNoise]:
    """A fresh key of the operating system for one release, wiped at the end; a seed makes it repeatable, for
    tests.

    >>> with release_noise(insecure_noise_seed=1) as noise:
    ...     noise.gamma_vector(3, 1.0).shape
    (3,)
    """
    with NoiseSource.for_release(insecure_noise_seed) as source:
        yield ReleaseNoise(source)


def gaussian_sigma(l2: float, epsilon: Fraction, delta: Fraction) -> float:
    """The least σ for an L2 sensitivity: the analytic Gaussian mechanism, for every ε.

    >>> round(gaussian_sigma(2.0, Fraction(1), Fraction(1, 10**6)), 2)
    8.45
    """
    return analytic_gaussian_sigma(epsilon, delta, l2)


def standard_normal(size: int, source: NoiseSource) -> Floats:
    """Independent normal numbers 2⁻³⁰·(k + U): k discrete Gaussian of variance 2⁶⁰, exactly, and U uniform
    between −½ and ½, of 52 bits.

    k alone would leave a lattice of step σ·2⁻³⁰ around the exact value, which distinguishes values that are
    off each other's lattice. k is within 2⁻⁶⁰/24 in total variation of a normal number of deviation 2³⁰,
    rounded (the lemma of `hushsum.privacy.accounting`). Between integers the
    density of that one is flat but for a part of |k|·2⁻⁶¹: a total variation below 2⁻³². Sums with exact
    values go through `rounded` before they are released, 2¹⁹ points of the lattice to a step: only those cut
    by the end of a step count then, and less than 2⁻⁵⁰ is left beside the rounding of floating point.

    >>> standard_normal(3, NoiseSource.insecure(1)).shape
    (3,)
    """
    whole = samplers.discrete_gaussian(size, Fraction(1 << (2 * _LATTICE_BITS)), source).astype(np.float64)
    between = ((source.stream().words(size) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52 - 0.5
    normal: Floats = 2.0**-_LATTICE_BITS * (whole + between)
    return normal


def rounded(values: Floats, sigma: float) -> Floats:
    """Noisy numbers to the nearest multiples of a power of two, at most σ/2¹⁰: post-processing, σ is public.

    The lowest bits of a floating-point sum depend on how large the exact value was; none of them is left. It
    adds less than 10⁻⁷ to the variance.

    >>> rounded(np.array([0.30004]), 1.0) * 1024
    array([307.])
    """
    step = 2.0 ** (math.floor(math.log2(sigma)) - _ROUNDING_BITS)
    rounded: Floats = step * np.rint(values / step)
    return rounded


def rounded_reach(tail: float) -> float:
    """The number of σ by which a number with noise σ·`standard_normal`, then `rounded`, exceeds the exact one
    with probability at most ``tail``.

    That is a quantile of the normal distribution, plus what drawing and rounding can add. Rounding moves a
    number by half a step, 2⁻¹¹·σ, at most. The noise is above r only if its lattice point k ≥ r·2³⁰ − ½, and
    the sum of a falling function from k on is below its integral from k − 1 on, so its tail beyond r is at
    most that of the normal distribution beyond r − 2·2⁻³⁰. A part of 1e−12 covers the rounding of the
    quantile.

    >>> rounded_reach(1e-6)  # doctest: +ELLIPSIS
    4.7539...
    """
    from scipy.special import ndtri

    quantile = float(-ndtri(tail))
    return quantile + abs(quantile) * 1e-12 + 2.0 ** -(_ROUNDING_BITS + 1) + 2.0 ** (1 - _LATTICE_BITS)


ANALYTIC = "analytic"
AS_PUBLISHED = "as-published"
CALIBRATIONS = (ANALYTIC, AS_PUBLISHED)
PATH = "gaussian process path"
LATTICE_GAUSSIAN = "discrete gaussian on coefficients"

# Parts of δ that may cover the difference between discrete and rounded Gaussian noise.
_ROUNDING_SHARES = (Fraction(1, 1000), Fraction(1, 50), Fraction(1, 5))


def path_scale(sensitivity: float, promise: Promise, *, calibration: str = ANALYTIC) -> float:
    """s of f + s·G for a function that one unit moves by at most ``sensitivity`` in the norm of the space.

    ``"analytic"`` is the least s, for every ε (Balle and Wang 2018). ``"as-published"`` is the paper's
    Δ·√(2 ln(2/δ))/ε, which is proven for ε ≤ 1 and larger.

    Raises
    ------
    ClaimError
        without δ, which no Gaussian noise can do without; or for a published scale beyond its proof.

    >>> promise = Promise.of(epsilon=0.4, delta=0.001)
    >>> round(path_scale(1.0, promise), 2), round(path_scale(1.0, promise, calibration="as-published"), 2)
    (5.56, 9.75)
    """
    if calibration not in CALIBRATIONS:
        raise ClaimError("calibration", f"must be one of {', '.join(CALIBRATIONS)}", got=shown(calibration))
    if promise.pure:
        remedy = ("give ", Argument("delta", 1e-6))
        raise ClaimError("delta", "must be above 0 for functional perturbation", got="none", remedy=remedy)
    if promise.epsilon is None:
        assert promise.rho is not None
        return sensitivity / math.sqrt(2.0 * float(promise.rho)) * (1.0 + 1e-12)
    if calibration == ANALYTIC:
        return analytic_gaussian_sigma(promise.epsilon, promise.delta, sensitivity)
    if promise.epsilon > 1:
        rule, got = "must be up to 1 for the published calibration", f"{float(promise.epsilon):g}"
        raise ClaimError("epsilon", rule, got=got, remedy=("leave out ", Parameter("calibration")))
    published = math.sqrt(2.0 * math.log(2.0 / float(promise.delta))) / float(promise.epsilon)
    return sensitivity * published * (1.0 + 1e-12)


def lattice_variance(l2: int, cells: int, promise: Promise, *, calibration: str = ANALYTIC) -> Fraction:
    """The least proven variance of discrete Gaussian noise on ``cells`` integers, which one unit moves by a
    vector no longer than ``l2``.

    >>> promise = Promise.of(epsilon=1.0, delta=1e-6)
    >>> round(float(lattice_variance(1 << 20, 1000, promise)) ** 0.5 / (1 << 20), 3)
    4.225
    """
    return lattice_variances([LatticePart(l2**2, cells)], promise, calibration=calibration)[0]


class LatticePart(NamedTuple):
    """Some integers of a release, which all get noise of the same variance, and a bound on how far one unit
    moves them.
    """

    l2_squared: int
    cells: int


def lattice_variances(
    parts: Sequence[LatticePart], promise: Promise, *, calibration: str = ANALYTIC
) -> list[Fraction]:
    """The variance of discrete Gaussian noise for each of several parts that are released together under one
    promise. Of n parts, each is calibrated as if a unit moved it √n times as far.

    Rounding a Gaussian release of integers is post-processing, so the analytic calibration holds for rounded
    noise. Discrete noise differs from it by `rounding_gap` in total variation, which costs (1 + e^ε) times
    that in δ: as small a part of δ as will do is set aside for it. Where the lattice is too coarse for that,
    and under ρ, the variance is n·l2²/(2ρ), which needs no lattice finer than integers. All parts take the
    same of these ways: one that is calibrated over the reals beside one that is calibrated through ρ would
    leave no single δ for both.

    >>> promise = Promise.of(epsilon=1.0, delta=1e-6)
    >>> two = lattice_variances([LatticePart(1 << 40, 500)] * 2, promise)
    >>> [round(float(each) ** 0.5 / (1 << 20) / 2**0.5, 3) for each in two]
    [4.225, 4.225]
    """
    moved = [len(parts) * each.l2_squared for each in parts]
    rho = promise.rho
    if promise.epsilon is not None:
        for share in _ROUNDING_SHARES:
            kept = Promise(promise.epsilon, promise.delta * (1 - share), None)
            sigmas = [path_scale(_length(square), kept, calibration=calibration) for square in moved]
            variances = [Fraction(math.ceil(sigma * sigma * (1.0 + 1e-12))) for sigma in sigmas]
            gaps = [rounding_gap(each.cells, own) for each, own in zip(parts, variances, strict=True)]
            spent = (1.0 + math.exp(min(float(promise.epsilon), 700.0))) * math.fsum(gaps)
            if spent * (1.0 + 1e-12) <= float(promise.delta * share):
                return variances
        rho = Fraction(zcdp_rho(promise.epsilon, promise.delta))
    assert rho is not None
    return [Fraction(square) / (2 * rho) for square in moved]


def _length(square: int) -> float:
    """Not below the root of an integer."""
    return float(math.isqrt(square - 1) + 1) * (1.0 + 1e-12) if square else 0.0


def perturb_lattice(
    values: Integers, variance: Fraction, *, insecure_noise_seed: int | None = None
) -> Integers:
    """The integers plus exact discrete Gaussian noise from a fresh key, wiped at the end.

    >>> import numpy as np
    >>> perturb_lattice(np.zeros(2, np.int64), Fraction(1 << 40), insecure_noise_seed=1).shape
    (2,)
    """
    with release_noise(insecure_noise_seed) as noise:
        return noise.integer_gaussian(values, variance)


MECHANISM = register_mechanism("hadamard response", PromiseKind.PURE)
# Amplification by shuffling, evaluated in `hushsum.privacy.accounting`.
SHUFFLED_MECHANISM = register_mechanism("hadamard response, shuffled", PromiseKind.APPROXIMATE)


class Response(NamedTuple):
    """A row and a column, both uniform and independent of the person, and one noisy sign."""

    row: int
    column: int
    negative: bool


def hadamard_response(
    cell_of: Callable[[int], int], *, rows: int, order: int, epsilon: Fraction, source: NoiseSource
) -> Response:
    """The response of a person whose cell in row r is ``cell_of(r)``.

    Parameters
    ----------
    cell_of : callable
        Secret. It is called once, for the row that was drawn.
    rows, order : int
        How many rows there are, and the order of the Hadamard matrix: a power of two, at least the number of
        cells of a row.
    epsilon : Fraction
    source : NoiseSource
        Open, of this report alone.

    Privacy
    -------
    ε-differential privacy in the local model: for every two persons, that is for every two functions
    ``cell_of``, and every response. Row and column do not depend on the person. Given them, the true sign is
    H[cell, column] = ±1, and the sign that is sent is the other one with probability 1/(1 + e^ε), exactly
    (`log_odds_coins`). So every sign has probability e^ε/(1 + e^ε) or 1/(1 + e^ε), and the ratio for two
    persons is 1, e^ε or e^−ε. That the drawn row decides which hash function is evaluated reveals nothing:
    the row is part of the response.

    Notes
    -----
    Acharya, Sun and Zhang, *Hadamard response*, AISTATS 2019, with one bit per person.

    Examples
    --------
    >>> with NoiseSource.insecure(3) as source:
    ...     hadamard_response(lambda row: 5, rows=4, order=8, epsilon=Fraction(1), source=source).row < 4
    True
    """
    row = int(samplers.independent_places(1, rows, source)[0])
    column = int(samplers.independent_places(1, order, source)[0])
    [other] = samplers.log_odds_coins([epsilon], source)
    return Response(row, column, ((cell_of(row) & column).bit_count() % 2 == 1) != other)


def local_source(insecure_noise_seed: int | None) -> NoiseSource:
    """The randomness of one report. With a seed it can be repeated, for tests."""
    return NoiseSource.for_release(insecure_noise_seed)


def sign_gain(epsilon: Fraction) -> float:
    """The mean of a noisy sign over the true one, tanh(ε/2).

    >>> round(sign_gain(Fraction(1)), 4)
    0.4621
    """
    return math.tanh(float(epsilon) / 2.0)
