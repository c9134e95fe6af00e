"""Exact integer noise, drawn here and nowhere else.

Every sampler is a function of real uniforms whose bits come from ChaCha20 under a key used for one release.
A draw is decided only when no unseen bit and no rounding error could change it, so the probabilities are
those of the formula, tails included, and a pure ε may be claimed (against adversaries that cannot break the
cipher).

The parts follow each other in this order: where the random bits of a release come from; discrete Laplace,
discrete Gaussian and centred binomial noise; Poisson and Skellam noise and shares of Laplace noise, with
intervals of decimals; the Gamma-radius distribution; private selection, of which the rest of this text is
about.

Coins
-----
`log_odds_coins` flips independent coins. A coin of log-odds −x falls with probability 1/(1 + e^x). For
rational x that probability is enclosed by integer bounds of e^(−|x|) and compared with as many random bits as
the decision needs, so that both outcomes keep their probabilities however small they are. A coin of b bits
would draw a probability below 2⁻ᵇ as 0: an outcome that one of two neighbours can never have, which no ε and
no ρ bounds.

Choices by scores
-----------------
`permute_and_flip` and `exponential_choice` choose one candidate of a finite list. Both prefer high scores by
the weights ``v_i = exp(rate·score_i)``. Scores are integers and the rate is rational, so every coin below has
the probability ``e^(−x)`` of a rational x, and is decided by comparing integers with proven bounds of it; no
floating-point number takes part.

*What the rate pays.* Let one unit move the scores so that the largest rise minus the smallest (falls are
negative) is at most B. Then both mechanisms are pure ``rate·B``. For scores of sensitivity Δ, B is 2Δ; where
a unit moves all scores one way, as counts under add/remove, B is Δ.

*Proof for permute-and-flip.* Give every candidate an independent arrival time, uniform in [0, 1]. The r-th is
taken if its own coin falls, and no coin fell before it arrived: with V = max v,

    P(r) = (v_r/V) ∫₀¹ Π_{s≠r} (1 − t·v_s/V) dt = v_r ∫₀^{1/V} Π_{s≠r} (1 − z·v_s) dz.

Three facts can be read off: scaling all v changes nothing; P(r) falls as another v_s rises, since integrand
and range shrink; P(r)/v_r falls as v_r rises, since the range shrinks. A neighbour's scores have ``v'_r ≤
v_r·e^(rate·h)`` and ``v'_s ≥ v_s·e^(rate·l)`` with h − l ≤ B. So P'(r) is at most the value at
(v_r·e^(rate·h), v_s·e^(rate·l)), which by scaling is the value at (v_r·e^(rate·(h−l)), v_s), which is at most
``e^(rate·B)·P(r)``. ∎ The exponential mechanism, ``P(r) = v_r/Σv``, has the same three properties.

The number of coins depends on the scores, and so does the time a draw takes: for the owner's eyes only.

Random stopping
---------------
`draw_runs` draws the number of runs for a procedure that releases only the best of many private releases.

A run Q picks a candidate at random and makes its release, which is pure ε. The number of runs K is drawn
first, from a distribution that is public and independent of the data; Q runs K times, and only the best
result is returned. K, the losers and how long it took stay secret.

*What it costs.* K follows the truncated negative binomial distribution: ``P(K = k) ∝ (1−γ)^k Π_{l=1}^{k−1}
(l+η)/(l+1)``, k ≥ 1, whose generating function G has ``G'(t) = C·(1 − (1−γ)t)^(−1−η)``. Let b and a be the
probabilities of a run that is worse than y's score, and of one not better. The best is y with probability

    P(y) = q(y)/(a−b) · (G(a) − G(b)) = q(y) ∫₀¹ G'(b + u·(a−b)) du,

whichever of equally good runs is returned, if the rule between them does not look at them (here: the first).
With a neighbour's data q(y), 1−a and 1−b each grow or shrink by at most e^ε, so ``1 − (1−γ)(b + u(a−b)) = γ +
(1−γ)(u(1−a) + (1−u)(1−b))`` does too, and P(y) changes by at most ``e^ε·(e^ε)^(1+η)``: the whole is pure
(2+η)ε, for every γ. ∎ No term for the stop, no truncation, no δ.

Geometric (η = 1) costs 3ε, and logarithmic (η = 0, ``P(K = k) ∝ (1−γ)^k/k``) 2ε, with more weight on few
runs.

References
----------
McSherry & Talwar 2007 (the exponential mechanism); McKenna & Sheldon 2020 (permute-and-flip: never a larger
expected loss than the exponential mechanism at the same ε); Dong, Durfee & Rogers 2020 (the range B);
Liu & Talwar 2019 (random stopping, 3ε); Papernot & Steinke 2022 (the family of distributions, (2+η)ε).
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import count
from types import TracebackType
from typing import Final, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from hushsum._native import StreamKey, extension_nonce, fill_gaussian, fill_laplace
from hushsum._types import Floats, Integers
from hushsum.errors import SecretRefused, UsageError, shown

__all__ = [
    "EXPONENTIAL", "LARGEST_SKELLAM", "MOST_RUNS", "PERMUTE_AND_FLIP", "SMALLEST_SHARED_SCALE",
    "SMALLEST_SKELLAM", "NoiseSource", "Stopping", "centred_binomial", "check_trials", "discrete_gaussian",
    "discrete_laplace", "discrete_laplace_share", "draw_runs", "exponential_choice",
    "exponential_distribution", "flip", "flip_log_odds", "gamma_radius", "gamma_radius_variance",
    "gaussian_variance", "independent_places", "laplace_variance", "log_odds_coins", "noise_was_drawn",
    "permute_and_flip", "permute_and_flip_distribution", "skellam",
]  # fmt: skip


_MOST_WORDS = 1 << 34
_MOST_DRAWS = 1 << 24
_ONE_RELEASE = "a source serves one release: make a fresh one"


_DRAWN: Final = threading.Event()


def noise_was_drawn() -> bool:
    """Whether this process has drawn noise for any release."""
    return _DRAWN.is_set()


class NoiseSource:
    """The key of one release, and the streams that its draws take from it.

    ``with source:`` opens the release; the key is wiped at the end of the block, and the source refuses a
    second one. Every draw (a table, a count) gets a ChaCha20 nonce of its own, so no keystream is used
    twice. A source refuses to work in a child process, to be copied and to be pickled: equal noise on two
    tallies would reveal their difference. A restored snapshot of a virtual machine cannot be recognised:
    make the source after the restart.

    Examples
    --------
    >>> with NoiseSource.insecure(7) as source:
    ...     source
    NoiseSource(secure=False)
    """

    __slots__ = ("__weakref__", "_closed", "_draws", "_key", "_lock", "_opened", "_secure")

    def __init__(self, key: StreamKey, *, secure: bool) -> None:
        self._key = key
        self._secure = secure
        self._draws = 0
        self._opened = False
        self._closed = False
        self._lock = threading.Lock()

    @classmethod
    def for_release(cls, insecure_noise_seed: int | None) -> Self:
        """A fresh source for one release; with a seed, one that can be repeated, for tests."""
        return cls.fresh() if insecure_noise_seed is None else cls.insecure(insecure_noise_seed)

    @classmethod
    def fresh(cls) -> Self:
        """A source with 256 new bits of the operating system's generator; they never leave native memory."""
        return cls(StreamKey(), secure=True)

    @classmethod
    def insecure(cls, seed: int) -> Self:
        """A source that everyone who knows ``seed`` can repeat: for tests, worthless for privacy.

        Raises
        ------
        UsageError
            If ``seed`` is negative.
        """
        if seed < 0:
            remedy = "any integer from 0 will do"
            raise UsageError("seed", "must not be negative", got=f"{seed}", remedy=remedy)
        digest = hashlib.sha256(b"hushsum insecure noise seed " + str(seed).encode("ascii")).digest()
        return cls(StreamKey(digest), secure=False)

    @property
    def secure(self) -> bool:
        """Whether the key came from the operating system; a release from another one must be marked."""
        return self._secure

    def __enter__(self) -> Self:
        with self._lock:
            self._refuse_if_unusable()
            if self._opened or self._draws:
                raise SecretRefused("noise source already used", remedy=_ONE_RELEASE)
            self._opened = True
        _DRAWN.set()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Wipe the key; every later draw is refused."""
        with self._lock:
            self._closed = True
            self._key.clear()

    def stream(self) -> NoiseStream:
        """The stream of the next draw.

        Raises
        ------
        SecretRefused
            If the release is over or the process is a child of the one that made the source.
        """
        with self._lock:
            self._refuse_if_unusable()
            if self._draws == _MOST_DRAWS:
                rule = f"noise source exhausted after {_MOST_DRAWS} draws"
                raise SecretRefused(rule, remedy="split the release")
            self._draws += 1
            return NoiseStream(self._key, self._draws - 1)

    def _refuse_if_unusable(self) -> None:
        if self._closed:
            raise SecretRefused("noise source closed", remedy=_ONE_RELEASE)
        if not self._key.usable:
            self._key.clear()
            rule = "noise source made in another process"
            raise SecretRefused(rule, remedy="make a fresh one after the fork")

    def __repr__(self) -> str:
        return f"NoiseSource(secure={self._secure})"

    def _refuse_copy(self, *_: object) -> NoReturn:
        rule = "noise source cannot be copied or pickled"
        raise SecretRefused(rule, remedy="make a fresh one where it is needed")

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = __getstate__ = _refuse_copy


class NoiseStream:
    """The bits of one draw: a key that cannot be read and the number of the draw."""

    __slots__ = ("draw", "key")

    def __init__(self, key: StreamKey, draw: int) -> None:
        self.key = key
        self.draw = draw

    def more_bits(self, index: int, *, acceptance: bool = False) -> Callable[[int], int]:
        """A function that gives the i-th further 64 bits of the value at ``index``."""
        nonce = extension_nonce(self.draw, acceptance, index)

        def word(i: int) -> int:
            block = self.key.keystream(*nonce, counter=i // 8, blocks=1)
            return int.from_bytes(block[i % 8 * 8 :][:8], "little")

        return word

    def words(self, number: int) -> NDArray[np.uint64]:
        """So many times 64 bits, of a stream from which nothing else is taken."""
        nonce = extension_nonce(self.draw, False, 0)
        block = self.key.keystream(*nonce, counter=0, blocks=-(-number // 8))
        return np.frombuffer(block, "<u8", count=number)

    def __repr__(self) -> str:
        return "NoiseStream()"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise SecretRefused("noise stream cannot be copied or pickled")


def check_parameter(name: str, value: Fraction, smallest: Fraction, largest: Fraction) -> Fraction:
    """The parameter as a Fraction within its range."""
    if not isinstance(value, (int, Fraction)):
        raise UsageError(
            name, "must be a Fraction or an integer", got=type(value).__name__, remedy="use Fraction(...)"
        )
    if not smallest <= value <= largest:
        # Not as a float: a number so large has none.
        got, other = ("less", "smaller") if value < smallest else ("more", "larger")
        rule = f"the {name} of noise must be from {float(smallest):.3g} to {float(largest):.3g}"
        raise UsageError(rule, got=got, remedy=f"choose a {other} epsilon or rho")
    return Fraction(value)


def check_draw(size: int, threads: int) -> None:
    """Refuse a negative size and fewer than one thread."""
    if size < 0:
        raise UsageError("size", "must not be negative", got=f"{size}")
    if threads < 1:
        raise UsageError("threads", "must be at least 1", got=f"{threads}")


def words_of(more: Callable[[int], int]) -> Callable[[], int]:
    """The words ``more(0), more(1), …``, one per call."""
    count = iter(range(_MOST_WORDS))
    return lambda: more(next(count))


def below(limit: int, word: Callable[[], int]) -> int:
    """A uniform integer from 0 to ``limit − 1``, by rejection; ``limit`` is from 1 to 2⁶³.

    >>> below(10, iter([2**64 - 1, 123]).__next__)
    3
    """
    fair = (1 << 64) // limit * limit
    while (value := word()) >= fair:
        pass
    return value % limit


def independent_places(size: int, places: int, source: NoiseSource) -> Integers:
    """A place from 0 to ``places − 1`` for each of ``size`` things, independent and alike in distribution.

    Exactly uniform: a word that would favour the first places is drawn again.

    >>> independent_places(4, 10, NoiseSource.insecure(1)).shape
    (4,)
    """
    stream = source.stream()
    # A nonce that no other draw with this key uses: choices take theirs with index 0, or without the mark.
    nonce = extension_nonce(stream.draw, True, 1)
    fair = (1 << 64) // places * places
    words = np.empty(size, np.uint64)
    missing, used = np.arange(size), 0
    while missing.size:
        blocks = -(-missing.size // 8)
        data = stream.key.keystream(*nonce, counter=used, blocks=blocks)
        words[missing] = np.frombuffer(data, "<u8", count=missing.size)
        missing, used = missing[words[missing] > np.uint64(fair - 1)], used + blocks
    return (words % np.uint64(places)).astype(np.int64)


class LazyUniform:
    """A real uniform U on [0, 1) of which only as many bits are drawn as a decision needs.

    It is known to lie in ``[prefix, prefix + 1) / 2^bits``, which each `refine` halves 64 times.

    Parameters
    ----------
    prefix, bits : int
        The first ``bits`` binary digits of U.
    more : callable
        ``more(i)`` gives the i-th further group of 64 digits as an integer; it is called with i = 0, 1, 2, …
        in order.
    """

    __slots__ = ("_more", "_requested", "bits", "prefix")

    def __init__(self, prefix: int, bits: int, more: Callable[[int], int]) -> None:
        self.prefix = prefix
        self.bits = bits
        self._more = more
        self._requested = 0

    def refine(self) -> None:
        """Draw 64 more digits."""
        self.prefix = self.prefix << 64 | self._more(self._requested)
        self.bits += 64
        self._requested += 1

    def surely_below(self, low: int, bits: int) -> bool:
        """Whether every completion is below every number from ``low / 2^bits`` on; ``bits >= self.bits``."""
        return (self.prefix + 1) << (bits - self.bits) <= low

    def surely_above(self, high: int, bits: int) -> bool:
        """Whether no completion is below a number up to ``high / 2^bits``; ``bits >= self.bits``."""
        return self.prefix << (bits - self.bits) >= high

    def below(self, bounds: Callable[[int], tuple[int, int]]) -> bool:
        """Whether U lies below a number that ``bounds(bits)`` encloses, in units of 2⁻ᵇⁱᵗˢ: U is refined
        until the bounds leave one answer.
        """
        while True:
            bits = self.bits + 64
            low, high = bounds(bits)
            if self.surely_below(low, bits):
                return True
            if self.surely_above(high, bits):
                return False
            self.refine()


LARGEST_SCALE = Fraction(1 << 40)
SMALLEST_SCALE = 1 / LARGEST_SCALE

MAGNITUDE_BITS = 52


def discrete_laplace(
    size: int, scale: Fraction, source: NoiseSource, *, threads: int = 1, widen: float = 0.0
) -> Integers:
    """Independent integers z with ``P(z) = (1−q)/(1+q) · q^|z|``, ``q = exp(−1/scale)``, exactly.

    Limits: scales from 2⁻⁴⁰ to 2⁴⁰. A magnitude of 2⁶³ has probability below exp(−2²²); it would wrap
    around, which is a function of the noisy integer and so costs no privacy. Above a scale of 10⁹ the exact
    path is taken more and more often (1 draw in 50,000 at 10⁹, 1 in 90 at 10¹²).

    *Why it is exact.* ``P(|Z| ≥ k) = T_k = 2q^k/(1+q)`` for k ≥ 1, so for a real uniform U the largest k
    with k = 0 or ``U < T_k`` has the distribution of |Z|; an independent bit gives the sign, and zero has
    none. ``U < T_k`` is ``k < offset − scale·ln U`` with ``offset = scale·ln(2/(1+q)) ≤ ½``. The native loop
    takes the floor of that in doubles from the first 52 bits of U, and keeps it if the distance to the next
    integer exceeds what all rounding errors and all unseen bits can do (bounds beside the code). Otherwise
    `decide_magnitude` draws further bits and compares integers.

    Parameters
    ----------
    size : int
        Number of draws.
    scale : Fraction
        Sensitivity Δ1 divided by ε.
    source : NoiseSource
        The randomness of this release; the call takes one stream from it.
    threads : int
        Native threads; the result does not depend on it.
    widen : float
        For tests: above 0 draws that doubles could decide take the exact path as well, which must not change
        them.

    Returns
    -------
    NDArray of shape (size,)
        64-bit integers.

    Raises
    ------
    UsageError
        If a parameter breaks its rule.
    SecretRefused
        If the source cannot be used.

    References
    ----------
    Ghosh, Roughgarden & Sundararajan 2012 (the geometric mechanism); von Neumann 1951 (deciding on the
    first bits).

    Examples
    --------
    >>> discrete_laplace(5, Fraction(1000), NoiseSource.insecure(1)).dtype
    dtype('int64')
    """
    check_draw(size, threads)
    shape = laplace_shape(check_parameter("scale", scale, SMALLEST_SCALE, LARGEST_SCALE))
    stream = source.stream()
    values = np.empty(size, dtype=np.int64)

    def decide(index: int, word: int, _: int) -> int:
        uniform = magnitude_uniform(word, MAGNITUDE_BITS, stream.more_bits(index))
        return wrapped(with_sign(decide_magnitude(shape, uniform), word))

    fill_laplace(stream.key, stream.draw, values, float(shape.scale), shape.offset, widen, threads, decide)
    return values


@dataclass(frozen=True, slots=True)
class LaplaceShape:
    """A scale and ``offset = scale·ln(2/(1+exp(−1/scale)))``, right to a relative 2⁻⁵²."""

    scale: Fraction
    offset: float


@lru_cache(maxsize=64)
def laplace_shape(scale: Fraction) -> LaplaceShape:
    """Compute the offset, then prove it: ``exp(−offset·(1 ± 2⁻⁵²)/scale)`` must enclose ``(1+q)/2``."""
    context = Context(prec=80, Emin=-(10**17), Emax=10**17, traps=[])
    real = context.divide(Decimal(scale.numerator), Decimal(scale.denominator))
    q = context.exp(context.divide(Decimal(-1), real))
    half = context.divide(context.add(Decimal(1), q), Decimal(2))
    offset = float(context.multiply(real, context.minus(context.ln(half))))
    bits = 256
    low, high = (bound + (1 << bits) for bound in exponential_bounds(1 / scale, bits))
    error = Fraction(1, 1 << 52)
    largest = exponential_bounds(Fraction(offset) * (1 - error) / scale, bits)[0]
    smallest = exponential_bounds(Fraction(offset) * (1 + error) / scale, bits)[1]
    if not 2 * smallest <= low <= high <= 2 * largest:
        raise ArithmeticError("offset of the discrete Laplace distribution not proven")
    return LaplaceShape(scale, offset)


def decide_magnitude(shape: LaplaceShape, uniform: LazyUniform) -> int:
    """The largest k with k = 0 or ``U < T_k``, refining U until the bounds of the T leave one k.

    A guess in doubles proposes three candidates; only a proof accepts one, so the guess cannot bias the
    result. It ends with probability 1, because the T_k are countable and U equals none of them almost
    surely.
    """
    scale = shape.scale
    while True:
        if uniform.prefix:
            minus_log = uniform.bits * math.log(2) - math.log(uniform.prefix)
            guess = math.floor(shape.offset + float(scale) * minus_log)
            for k in range(max(0, guess - 1), guess + 2):
                if _surely(k, scale, uniform):
                    return k
        uniform.refine()


def _surely(k: int, scale: Fraction, uniform: LazyUniform) -> bool:
    bits = uniform.bits + 64
    if not uniform.surely_above(_survival_bounds(k + 1, scale, bits)[1], bits):
        return False
    return k == 0 or uniform.surely_below(_survival_bounds(k, scale, bits)[0], bits)


def _survival_bounds(k: int, scale: Fraction, bits: int) -> tuple[int, int]:
    one = 1 << bits
    power_low, power_high = exponential_bounds(k / scale, bits)
    q_low, q_high = exponential_bounds(1 / scale, bits)
    return (power_low << bits + 1) // (one + q_high), -((-power_high << bits + 1) // (one + q_low))


def magnitude_uniform(word: int, bits: int, more: Callable[[int], int]) -> LazyUniform:
    """U of one draw: the low bits of its word, then its own stream."""
    return LazyUniform(word & (1 << bits) - 1, bits, more)


def with_sign(magnitude: int, word: int) -> int:
    """The magnitude with the sign that the highest bit of the word gives."""
    return -magnitude if word >> 63 else magnitude


def wrapped(value: int) -> int:
    """The value modulo 2⁶⁴, as a signed integer."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def laplace_variance(scale: Fraction) -> float:
    """The variance ``2q/(1−q)²``, ``q = exp(−1/scale)``, of the discrete Laplace distribution.

    Examples
    --------
    >>> laplace_variance(Fraction(1000))
    1999999.8333333...
    """
    half = 0.5 / float(check_parameter("scale", scale, SMALLEST_SCALE, LARGEST_SCALE))
    # 2q/(1−q)² is 1/(2 sinh²(1/(2·scale))), which does not cancel; sinh would overflow where q² is nothing
    # beside 1.
    return 0.5 / math.sinh(half) ** 2 if half < 100 else 2 * math.exp(-2 * half)


def exponential_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Integers with ``low <= e^(-x) · 2^bits <= high`` and ``high - low <= 2``.

    With ``y = x / 2^m < 2^-7`` in fixed point, the series of ``e^(-y)`` is summed in integers. A term is
    off by less than two units (one for its own cut, 2^-7 of the error of the term before), rounding y moves
    the result by at most one, and the alternating tail is smaller than the first term cut to zero: n terms
    give the sum within ``2n + 3`` units. Squaring m times rounds the lower bound down, the upper bound up,
    and doubles the width plus two each time. The guard bits keep the final width below one unit of
    ``2^-bits``.

    Parameters
    ----------
    x : Fraction
        Not negative.
    bits : int
        Binary places of the bounds.

    Examples
    --------
    >>> exponential_bounds(Fraction(0), 8)
    (256, 256)
    >>> low, high = exponential_bounds(Fraction(1), 20)
    >>> low <= 385749.4 <= high
    True
    """
    if x < 0:
        raise ValueError("x must not be negative")
    if x == 0:
        return 1 << bits, 1 << bits
    if x > bits:
        # e^(-bits) < 2^-bits: below one unit, and the squarings of a huge x are saved.
        return 0, 1
    halvings = int(x).bit_length() + 7
    precision = bits + halvings + bits.bit_length() + 12
    y = (x.numerator << precision) // (x.denominator << halvings)
    total = term = 1 << precision
    terms = 0
    while term:
        terms += 1
        term = (term * y >> precision) // terms
        total += -term if terms & 1 else term
    low, high = total - 2 * terms - 3, total + 2 * terms + 3
    for _ in range(halvings):
        low = low * low >> precision
        high = (high * high >> precision) + 1
    guard = precision - bits
    return low >> guard, min((high >> guard) + 1, 1 << bits)


LARGEST_VARIANCE = Fraction(1 << 78)
SMALLEST_VARIANCE = Fraction(1, 1 << 40)

# How many first bits of (U, V) the native loop's random words hold. The narrow words save a third of the
# keystream; beyond the limit they would send too many proposals to the exact path.
NARROW_BITS = (43, 20)
WIDE_BITS = (52, 32)
LARGEST_NARROW_SCALE = 1 << 22


def discrete_gaussian(
    size: int, variance: Fraction, source: NoiseSource, *, threads: int = 1, widen: float = 0.0
) -> Integers:
    """Independent integers z with ``P(z) ∝ exp(−z²/(2·variance))``, exactly.

    Limits: variances from 2⁻⁴⁰ to 2⁷⁸. ``variance`` is the parameter of the distribution; the variance of the
    draws is `gaussian_variance`, smaller when the parameter is below 1. Overflow is as remote, and as
    harmless, as for `discrete_laplace`.

    *Why it is exact.* With ``t = ⌊σ⌋ + 1`` a discrete Laplace proposal y of scale t is kept with
    probability ``exp(−g)``, ``g = (|y| − σ²/t)²/(2σ²)``: the product ``exp(−|y|/t − g)`` is
    ``exp(−y²/(2σ²))`` times a constant, so what is kept has the discrete Gaussian distribution. The proposal
    is exact (`discrete_laplace`). It is kept if ``−ln V > g`` for a real uniform V: decided in doubles from
    the first bits of V outside a proven margin, within it by `decide_acceptance` in integers. About 3 of 4
    proposals are kept; a chunk's proposals come from the chunk's own stream, one after another.

    Parameters
    ----------
    size : int
        Number of draws.
    variance : Fraction
        The parameter σ²; Δ2²/(2ρ) for ρ-zCDP.
    source : NoiseSource
        The randomness of this release; the call takes one stream from it.
    threads : int
        Native threads; the result does not depend on it.
    widen : float
        For tests: above 0 draws that doubles could decide take the exact path as well, which must not change
        them.

    Returns
    -------
    NDArray of shape (size,)
        64-bit integers.

    Raises
    ------
    UsageError
        If a parameter breaks its rule.
    SecretRefused
        If the source cannot be used.

    References
    ----------
    Canonne, Kamath & Steinke 2020, The discrete Gaussian for differential privacy, Algorithm 3.

    Examples
    --------
    >>> discrete_gaussian(5, Fraction(16900), NoiseSource.insecure(1)).dtype
    dtype('int64')
    """
    check_draw(size, threads)
    variance = check_parameter("variance", variance, SMALLEST_VARIANCE, LARGEST_VARIANCE)
    proposal = laplace_shape(Fraction(math.isqrt(math.floor(variance)) + 1))
    centre = variance / proposal.scale
    rate = 1 / (2 * variance)
    narrow = proposal.scale <= LARGEST_NARROW_SCALE
    magnitude_bits, acceptance_bits = NARROW_BITS if narrow else WIDE_BITS
    stream = source.stream()
    values = np.empty(size, dtype=np.int64)

    def decide(index: int, word: int, acceptance_word: int) -> int | None:
        magnitude = decide_magnitude(
            proposal, magnitude_uniform(word, magnitude_bits, stream.more_bits(index))
        )
        uniform = LazyUniform(acceptance_word, acceptance_bits, stream.more_bits(index, acceptance=True))
        if not decide_acceptance((magnitude - centre) ** 2 * rate, uniform):
            return None
        return wrapped(with_sign(magnitude, word))

    shape = float(proposal.scale), proposal.offset, float(centre), float(rate)
    fill_gaussian(stream.key, stream.draw, values, *shape, narrow, widen, threads, decide)
    return values


def decide_acceptance(exponent: Fraction, uniform: LazyUniform) -> bool:
    """Whether ``V < e^(−exponent)``."""
    return exponent == 0 or uniform.below(partial(exponential_bounds, exponent))


def gaussian_variance(variance: Fraction) -> float:
    """The variance of the discrete Gaussian distribution: below its parameter, and equal to it for large
    ones.

    For parameters from 1 by Poisson summation, ``v − 4π²v² Σ n² e^(−2π²vn²) / Σ e^(−2π²vn²)`` over all
    integers n; below by the direct sum. Both leave out less than a relative 10⁻¹⁷.

    Examples
    --------
    >>> gaussian_variance(Fraction(16900))
    16900.0
    >>> round(gaussian_variance(Fraction(1, 4)), 6)
    0.215013
    """
    v = float(check_parameter("variance", variance, SMALLEST_VARIANCE, LARGEST_VARIANCE))
    if v >= 1:
        terms = [(n, math.exp(-2 * math.pi**2 * v * n * n)) for n in (1, 2)]
        dual = 2 * sum(n * n * term for n, term in terms) / (1 + 2 * sum(term for _, term in terms))
        return v - 4 * math.pi**2 * v * (v * dual)
    weights = [(z, math.exp(-z * z / (2 * v))) for z in range(1, 12)]
    return 2 * sum(z * z * weight for z, weight in weights) / (1 + 2 * sum(weight for _, weight in weights))


LARGEST_TRIALS = 1 << 22
_BESIDE_SIGN = 63


def centred_binomial(size: int, trials: int | Fraction, source: NoiseSource, *, threads: int = 1) -> Integers:
    """Independent integers, the numbers of heads in ``trials`` fair coins minus half of them, exactly.

    Limits: an even number of trials, up to 2²².

    *Why it is exact.* ``P(|Z| ≥ k) = S_k``, a sum of binomial coefficients over 2^trials, so the largest k
    with k = 0 or ``U < S_k`` has the distribution of |Z|; an independent bit gives the sign, and zero has
    none. The S_k are enclosed in integer arithmetic, from the one in the middle outwards. Where the first 63
    bits of U leave two values of k possible, more bits are drawn and the S_k computed to as many.

    Parameters
    ----------
    size : int
        Number of draws.
    trials : int
        Even; four times the variance.
    source : NoiseSource
        The randomness of this release; the call takes two streams from it.

    Examples
    --------
    >>> centred_binomial(5, 1000, NoiseSource.insecure(1)).dtype
    dtype('int64')
    """
    check_draw(size, threads)
    trials = check_trials(trials)
    low, high = _table(trials)
    words, further = source.stream().words(size), source.stream()
    prefixes = words & np.uint64((1 << _BESIDE_SIGN) - 1)
    surely = len(low) - np.searchsorted(low, prefixes, side="right")
    perhaps = len(high) - np.searchsorted(high, prefixes, side="right")
    values = surely.astype(np.int64)
    for index in np.flatnonzero(surely != perhaps).tolist():
        values[index] = _decide_binomial(
            trials, LazyUniform(int(prefixes[index]), _BESIDE_SIGN, further.more_bits(index))
        )
    return np.where(words >> np.uint64(63), -values, values)


def check_trials(trials: int | Fraction) -> int:
    """An even number of trials within the limits, as an integer."""
    if trials != int(trials) or trials % 2 or not 2 <= trials <= LARGEST_TRIALS:
        raise UsageError("trials", f"must be an even integer from 2 to {LARGEST_TRIALS}", got="another one")
    return int(trials)


def _survivals(trials: int, bits: int, number: int) -> list[tuple[int, int]]:
    """Integers that enclose ``S_k·2^bits`` for k from 1 to ``number``."""
    guard = bits + 2 * trials.bit_length() + 16
    half = trials // 2
    # The coefficient in the middle is Π (2i − 1)/(2i). Each cut loses less than a unit, which later factors
    # do not enlarge.
    low = 1 << guard
    for i in range(1, half + 1):
        low = low * (2 * i - 1) // (2 * i)
    high = low + half
    rest_low, rest_high = (1 << guard) - high, (1 << guard) - low
    bounds = []
    for k in range(1, number + 1):
        bounds.append((max(rest_low, 0) >> guard - bits, -(-rest_high >> guard - bits)))
        up, down = half - k + 1, half + k
        low, high = low * up // down, -(-high * up // down)
        rest_low, rest_high = rest_low - 2 * high, rest_high - 2 * low
    return bounds


@lru_cache(maxsize=16)
def _table(trials: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The bounds for 63 bits, in rising order, as far as the first bits of a uniform can tell."""
    # By Hoeffding S_k ≤ 2·exp(−2k²/trials): below 2⁻⁶³ from 4.72·√trials on.
    number = min(math.isqrt(23 * trials) + 2, trials // 2 + 1)
    bounds = _survivals(trials, _BESIDE_SIGN, number)[::-1]
    low, high = zip(*bounds, strict=True)
    return np.array(low, np.uint64), np.array(high, np.uint64)


def _decide_binomial(trials: int, uniform: LazyUniform) -> int:
    while True:
        uniform.refine()
        number = min(math.isqrt(uniform.bits * trials) + 2, trials // 2 + 1)
        bounds = _survivals(trials, uniform.bits, number)
        surely = sum(uniform.prefix < low for low, _ in bounds)
        if surely == sum(uniform.prefix < high for _, high in bounds):
            return surely


@dataclass(frozen=True, slots=True)
class Interval:
    """A real number between two decimals; those of products, quotients and roots are positive."""

    low: Decimal
    high: Decimal

    @classmethod
    def around(cls, low: Decimal, high: Decimal, context: Context) -> Interval:
        """What lies between two numbers that were rounded correctly: their neighbours enclose the exact
        ones. The decimal module rounds exponentials, logarithms and roots correctly too.
        """
        return cls(context.next_minus(low), context.next_plus(high))

    @classmethod
    def between(cls, low: int, high: int, unit: int, context: Context) -> Interval:
        """The numbers from ``low/unit`` to ``high/unit``."""
        one = Decimal(unit)
        return cls.around(context.divide(Decimal(low), one), context.divide(Decimal(high), one), context)

    def exp(self, context: Context) -> Interval:
        """The exponential."""
        return Interval.around(context.exp(self.low), context.exp(self.high), context)

    def ln(self, context: Context) -> Interval:
        """The natural logarithm."""
        return Interval.around(context.ln(self.low), context.ln(self.high), context)

    def root(self, context: Context) -> Interval:
        """The square root."""
        return Interval.around(context.sqrt(self.low), context.sqrt(self.high), context)

    def times(self, other: Interval, context: Context) -> Interval:
        """The product."""
        low, high = context.multiply(self.low, other.low), context.multiply(self.high, other.high)
        return Interval.around(low, high, context)

    def over(self, other: Interval, context: Context) -> Interval:
        """The quotient."""
        low, high = context.divide(self.low, other.high), context.divide(self.high, other.low)
        return Interval.around(low, high, context)

    def plus(self, other: Interval, context: Context) -> Interval:
        """The sum."""
        low, high = context.add(self.low, other.low), context.add(self.high, other.high)
        return Interval.around(low, high, context)

    def negative(self) -> Interval:
        """The number with the other sign."""
        return Interval(self.high.copy_negate(), self.low.copy_negate())

    def not_negative(self) -> Interval:
        """The interval of a number that is known to be at least 0."""
        return Interval(max(self.low, Decimal(0)), self.high)


def decimals(digits: int) -> Context:
    """Decimal arithmetic of this precision that never overflows."""
    return Context(prec=digits, Emin=-(10**17), Emax=10**17, traps=[])


def fraction(value: Fraction, context: Context) -> Interval:
    """A rational number."""
    return Interval.between(value.numerator, value.numerator, value.denominator, context)


_ONE = Interval(Decimal(1), Decimal(1))


TABLE_DIGITS = 60


Mean = Callable[[int], Interval]
"""The mean of a distribution, enclosed with the given number of digits."""


@dataclass(frozen=True, slots=True)
class PoissonDistribution:
    """A mean, and 64-bit bounds of the distribution function as far as 64 bits can tell."""

    mean: Mean
    low: NDArray[np.uint64]
    high: NDArray[np.uint64]


def poisson_distribution(mean: Mean) -> PoissonDistribution:
    """The distribution of a mean of at most some thousands."""
    largest, unit = (1 << 64) - 1, 1 << 64
    about = float(mean(TABLE_DIGITS).high)
    bounds = _bounds(mean, int(about + 14 * math.sqrt(about) + 24), TABLE_DIGITS)
    low = [min(math.floor(Fraction(each.low) * unit), largest) for each in bounds]
    high = [min(math.ceil(Fraction(each.high) * unit), largest) for each in bounds]
    return PoissonDistribution(mean, np.array(low, np.uint64), np.array(high, np.uint64))


def poisson(size: int, distribution: PoissonDistribution, source: NoiseSource) -> Integers:
    """Independent Poisson variables: the smallest j with U < P(N ≤ j), for each of ``size`` uniforms.

    Where the first 64 bits of U leave two values possible, more bits are drawn and the bounds computed to as
    many digits.
    """
    words = source.stream().words(size)
    further = source.stream()
    numbers = np.searchsorted(distribution.high, words, side="right")
    within = np.minimum(numbers, len(distribution.low) - 1)
    doubtful = np.flatnonzero((numbers == len(distribution.low)) | (words >= distribution.low[within]))
    for index in doubtful.tolist():
        numbers[index] = _decide_poisson(
            distribution, LazyUniform(int(words[index]), 64, further.more_bits(index))
        )
    return numbers.astype(np.int64)


@lru_cache(maxsize=64)
def _bounds(mean: Mean, number: int, digits: int) -> list[Interval]:
    """Bounds of P(N ≤ j) for j from 0 to ``number − 1``."""
    context = decimals(digits + 20)
    enclosed = mean(digits)
    term = enclosed.negative().exp(context)
    bounds = [term]
    for j in range(1, number):
        term = term.times(enclosed, context).times(fraction(Fraction(1, j), context), context)
        total = bounds[-1].plus(term, context)
        bounds.append(Interval(total.low, min(total.high, Decimal(1))))
    return bounds


def _decide_poisson(distribution: PoissonDistribution, uniform: LazyUniform) -> int:
    number = len(distribution.low)
    while True:
        digits = uniform.bits // 3 + 40
        scale = 1 << uniform.bits
        for j, bound in enumerate(_bounds(distribution.mean, number, digits)):
            if uniform.prefix + 1 <= Fraction(bound.low) * scale:
                return j
            if uniform.prefix < Fraction(bound.high) * scale:
                break  # U may lie on either side
        uniform.refine()
        number *= 2


SMALLEST_SKELLAM = Fraction(1, 1 << 20)
LARGEST_SKELLAM = Fraction(1 << 12)


def skellam(size: int, variance: Fraction, source: NoiseSource, *, threads: int = 1) -> Integers:
    """Independent integers A − B with A and B Poisson of mean ``variance/2``, exactly.

    Draws add up to Skellam variables: n of one variance add up to one of n times the variance. This
    makes the distribution suitable for noise in shares, however small a share is.

    Limits: variances from 2⁻²⁰ to 2¹².

    Parameters
    ----------
    size : int
        Number of draws.
    variance : Fraction
        The sum of both means.
    source : NoiseSource
        The randomness of this release; the call takes four streams from it.

    References
    ----------
    Agarwal, Kairouz & Liu 2021, "The Skellam mechanism for differentially private federated learning".

    Examples
    --------
    >>> skellam(5, Fraction(1, 2), NoiseSource.insecure(1)).dtype
    dtype('int64')
    """
    check_draw(size, threads)
    distribution = _half(check_parameter("variance", variance, SMALLEST_SKELLAM, LARGEST_SKELLAM))
    gained, lost = poisson(size, distribution, source), poisson(size, distribution, source)
    return gained - lost


@lru_cache(maxsize=64)
def _half(variance: Fraction) -> PoissonDistribution:
    return poisson_distribution(partial(_mean, variance / 2))


def _mean(mean: Fraction, digits: int) -> Interval:
    return fraction(mean, decimals(digits + 20))


SMALLEST_SHARED_SCALE = Fraction(1, 64)
MOST_PARTS = 1 << 20
_SHARE_BITS = 52
# Prefixes of a uniform below this are left to the exact path, where first-order error bounds are not used.
_SHARE_FEWEST = 1 << 20
_CELLS_AT_A_TIME = 1 << 18


def discrete_laplace_share(
    size: int, scale: Fraction, parts: int, source: NoiseSource, *, threads: int = 1, widen: float = 1.0
) -> Integers:
    """Independent integers, ``parts`` of which add up to the discrete Laplace distribution of ``scale``,
    exactly.

    Each is the difference of two negative binomials NB(1/parts, q), ``q = exp(−1/scale)``, whose generating
    function ``((1−q)/(1−qz))^(1/parts)``, raised to ``parts``, is that of the geometric distribution; and
    discrete Laplace noise is the difference of two geometric variables.

    Limits: scales from 1/64 to 2⁴⁰, up to 2²⁰ parts. Above a scale of 10⁹ the exact path is taken more and
    more often.

    *Why it is exact.* With ``c = −ln(1−q)``, ``ln`` of the generating function of NB(r, q) is ``r·c·(G(z) −
    1)``, G that of the logarithmic distribution ``P(L = k) = q^k/(k·c)``. So the difference of two is a sum
    of N such variables with independent random signs, N ~ Poisson(2c/parts). N is read off a uniform by
    proven bounds of the Poisson distribution's distribution function. Given a uniform U, L is geometric:
    ``P(L > k) = W^k`` with ``W = 1 − (1−q)^U`` (Kemp 1981; integrate ``W^(k−1)(1−W)`` over U, by the
    substitution ``y = (1−q)^U``). So ``L = 1 + ⌊ln V/ln W⌋`` for a second uniform V: decided in doubles from
    the first 52 bits of U and V outside a margin for all rounding errors and unseen bits, and within it by
    `_decide_logarithmic`, which draws further bits until intervals of correctly rounded decimals leave one
    integer.

    Parameters
    ----------
    size : int
        Number of draws.
    scale : Fraction
        That of the sum: sensitivity Δ1 divided by ε.
    parts : int
        How many draws add up to it.
    source : NoiseSource
        The randomness of this release; the call takes some streams from it.
    widen : float
        For tests: above 1 draws that doubles could decide take the exact path as well, which must not change
        them.

    References
    ----------
    Ács & Castelluccia 2011 and Goryczka & Xiong 2015 (divisible noise); Kemp 1981 (the logarithmic
    distribution).

    Examples
    --------
    >>> discrete_laplace_share(5, Fraction(1000), 20, NoiseSource.insecure(1)).dtype
    dtype('int64')
    """
    check_draw(size, threads)
    scale = check_parameter("scale", scale, SMALLEST_SHARED_SCALE, LARGEST_SCALE)
    if type(parts) is not int or not 1 <= parts <= MOST_PARTS:
        raise UsageError("parts", f"must be an integer from 1 to {MOST_PARTS}", got=f"{parts}")
    if parts == 1:
        return discrete_laplace(size, scale, source, threads=threads)
    distribution = _share_distribution(scale, parts)
    values = np.empty(size, np.int64)
    for start in range(0, size, _CELLS_AT_A_TIME):
        many = min(_CELLS_AT_A_TIME, size - start)
        numbers = poisson(many, distribution.number, source)
        ends = np.cumsum(numbers)
        terms = _signed_logarithmic(int(ends[-1]), distribution, source, widen)
        # Differences of running sums; what wraps around wraps back.
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(terms)])
        values[start : start + many] = sums[ends] - sums[ends - numbers]
    return values


@dataclass(frozen=True, slots=True)
class _ShareDistribution:
    """``scale``, c rounded to a double, and the distribution of the number of terms."""

    scale: Fraction
    rate: float
    number: PoissonDistribution


@lru_cache(maxsize=64)
def _loss_rate(scale: Fraction, digits: int) -> Interval:
    """c = −ln(1 − exp(−1/scale))."""
    # 1 − q loses as many digits as 1/scale is small.
    context = decimals(digits + 20)
    kept = fraction(1 / scale, context).negative().exp(context)
    return _ONE.plus(kept.negative(), context).ln(context).negative()


def _steps(scale: Fraction, parts: int, digits: int) -> Interval:
    """2c/parts, the mean of the number of terms."""
    context = decimals(digits + 20)
    return _loss_rate(scale, digits).times(fraction(Fraction(2, parts), context), context)


@lru_cache(maxsize=64)
def _share_distribution(scale: Fraction, parts: int) -> _ShareDistribution:
    rate = _loss_rate(scale, TABLE_DIGITS)
    return _ShareDistribution(scale, float(rate.low), poisson_distribution(partial(_steps, scale, parts)))


def _signed_logarithmic(
    size: int, distribution: _ShareDistribution, source: NoiseSource, widen: float
) -> Integers:
    first, second = source.stream().words(size), source.stream().words(size)
    further = source.stream()
    u, v = first & np.uint64((1 << _SHARE_BITS) - 1), second & np.uint64((1 << _SHARE_BITS) - 1)
    quotient, margin = _quotients(u, v, distribution.rate)
    below = np.floor(quotient - widen * margin)
    # A huge margin compares false as well as a missing one.
    sure = (below == np.floor(quotient + widen * margin)) & (u >= _SHARE_FEWEST) & (v >= _SHARE_FEWEST)
    values = np.where(sure, below, 0.0).astype(np.int64) + 1
    for index in np.flatnonzero(~sure).tolist():
        uniforms = (
            LazyUniform(int(u[index]), _SHARE_BITS, further.more_bits(index)),
            LazyUniform(int(v[index]), _SHARE_BITS, further.more_bits(index, acceptance=True)),
        )
        values[index] = wrapped(_decide_logarithmic(distribution, *uniforms))
    return np.where(first >> np.uint64(63), -values, values)


def _quotients(u: NDArray[np.uint64], v: NDArray[np.uint64], rate: float) -> tuple[Floats, Floats]:
    """``ln V/ln W`` at the middles of what U and V may be, and twice a bound on its error.

    With ``a = c·U`` and ``g(a) = −ln(1 − e^(−a))``: an error of η of a moves g by ``(a + 3/2)·η`` of itself
    at most, since ``|a·g'/g| = a/((e^a − 1)·g) ≤ a + 1``. Either formula for g is within 2⁻⁴⁸ of itself if
    the library's functions are within 8 units in the last place. V is off by 2⁻⁵³ at most.
    """
    U, V = (u + 0.5) * 2.0**-_SHARE_BITS, (v + 0.5) * 2.0**-_SHARE_BITS
    a = rate * U
    with np.errstate(divide="ignore", invalid="ignore"):
        falls = np.where(a < math.log(2.0), -np.log(-np.expm1(-a)), -np.log1p(-np.exp(-a)))
        quotient = -np.log(V) / falls
        off = (a + 1.5) * (2.0**-53 / U + 2.0**-51) + 2.0**-47
        return quotient, 2.0 * (2.0**-53 / (V * falls) + quotient * off)


def _decide_logarithmic(distribution: _ShareDistribution, first: LazyUniform, second: LazyUniform) -> int:
    """``1 + ⌊ln V/ln W⌋``, refining U and V until the bounds leave one integer."""
    while True:
        digits = first.bits // 3 + 40
        context = decimals(digits)
        if first.prefix and second.prefix and second.prefix + 1 < 1 << second.bits:
            unit = 1 << first.bits
            U, V = (Interval.between(each.prefix, each.prefix + 1, unit, context) for each in (first, second))
            power = _loss_rate(distribution.scale, digits).times(U, context).negative().exp(context)
            falls = _ONE.plus(power.negative(), context).ln(context).negative()
            tall = V.ln(context).negative()
            if falls.low > 0 and tall.low >= 0:
                quotient = tall.over(falls, context)
                if math.floor(quotient.low) == math.floor(quotient.high):
                    return 1 + math.floor(quotient.low)
        first.refine()
        second.refine()


_MAGNITUDE = (1 << _BESIDE_SIGN) - 1
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


def gamma_radius(size: int, scale: Fraction, source: NoiseSource, *, widen: float = 0.0) -> Integers:
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
    batch: Integers
    place: Integers
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
        return (self.words >> np.uint64(_BESIDE_SIGN)).astype(bool)

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


def _inside_disc(words: NDArray[np.uint64], further: NoiseStream) -> Integers:
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
        LazyUniform(int(word) & _MAGNITUDE, _BESIDE_SIGN, further.more_bits(2 * place + i))
        for i, word in enumerate(words)
    ]


def _magnitudes(words: NDArray[np.uint64]) -> Floats:
    return ((words & np.uint64(_MAGNITUDE)).astype(np.float64) + 0.5) * 2.0**-_BESIDE_SIGN


def log_odds_coins(against: Sequence[Fraction], source: NoiseSource) -> list[bool]:
    """Independent coins, the i-th true with probability ``1/(1 + e^against[i])``, exactly.

    Parameters
    ----------
    against : sequence of Fraction
        The log-odds against each outcome; secret.
    source : NoiseSource
        The randomness of this release; the call takes one stream from it.

    Raises
    ------
    UsageError
        if one is neither a Fraction nor an integer.

    Examples
    --------
    >>> log_odds_coins([Fraction(-1000), Fraction(1000)], NoiseSource.insecure(1))
    [True, False]
    """
    if not all(isinstance(each, int | Fraction) for each in against):
        raise UsageError("log-odds must be Fractions", got="something else", remedy="use Fraction(...)")
    stream = source.stream()
    return [flip_log_odds(Fraction(each), stream.more_bits(i)) for i, each in enumerate(against)]


def flip_log_odds(against: Fraction, more: Callable[[int], int]) -> bool:
    """A coin that falls with probability 1/(1 + e^against), exactly; ``more(i)`` gives the i-th 64 random
    bits.
    """

    def bounds(bits: int) -> tuple[int, int]:
        # 1/(1 + e^x) is e^(−x)/(1 + e^(−x)) for x ≥ 0, and 1 minus that of −x below: it grows with e^(−|x|).
        low, high = exponential_bounds(abs(against), bits)
        one = 1 << bits
        low, high = (low << bits) // (one + low), -((-high << bits) // (one + high))
        return (low, high) if against >= 0 else (one - high, one - low)

    return LazyUniform(more(0), 64, lambda i: more(i + 1)).below(bounds)


def flip(x: Fraction, more: Callable[[int], int]) -> bool:
    """A coin that falls with probability e^(−x), exactly; ``more(i)`` gives the i-th 64 random bits."""
    return x == 0 or LazyUniform(more(0), 64, lambda i: more(i + 1)).below(partial(exponential_bounds, x))


PERMUTE_AND_FLIP = "permute and flip"
EXPONENTIAL = "exponential"
MOST_CANDIDATES = 1 << 20


def permute_and_flip(scores: Sequence[int], rate: Fraction, source: NoiseSource) -> int:
    """The position of one score: candidates in random order, each taken with probability e^(−rate·shortfall).

    The best candidate's coin always falls, so it ends after at most ``len(scores)`` coins.

    Parameters
    ----------
    scores : sequence of int
        Higher is better; secret.
    rate : Fraction
        ε/B, with B the largest rise minus the smallest that one unit can cause.
    source : NoiseSource
        The randomness of this release; the call takes one stream from it.

    Raises
    ------
    UsageError
        no scores, too many, scores that are not integers, or a rate that is not above 0.

    Examples
    --------
    >>> permute_and_flip([0, 1000, 3], Fraction(1), NoiseSource.insecure(1))
    1
    """
    best = _check(scores, rate)
    stream = source.stream()
    words = words_of(stream.more_bits(0, acceptance=True))
    order = list(range(len(scores)))
    for position in range(len(order)):
        other = position + below(len(order) - position, words)
        order[position], order[other] = order[other], order[position]
        candidate = order[position]
        if flip(rate * (best - scores[candidate]), stream.more_bits(position)):
            return candidate
    raise AssertionError("the best candidate's coin always falls")


def exponential_choice(scores: Sequence[int], rate: Fraction, source: NoiseSource) -> int:
    """The position of one score, with probability proportional to e^(rate·score), by rejection.

    Takes ``len(scores)`` coins a draw at worst, on average. Parameters and refusals as for
    `permute_and_flip`.

    Examples
    --------
    >>> exponential_choice([0, 1000, 3], Fraction(1), NoiseSource.insecure(1))
    1
    """
    best = _check(scores, rate)
    stream = source.stream()
    words = words_of(stream.more_bits(0, acceptance=True))
    coins = 0
    while True:
        candidate = below(len(scores), words)
        if flip(rate * (best - scores[candidate]), stream.more_bits(coins)):
            return candidate
        coins += 1


def _check(scores: Sequence[int], rate: Fraction) -> int:
    if not 1 <= len(scores) <= MOST_CANDIDATES:
        rule = f"must number from 1 to {MOST_CANDIDATES}"
        raise UsageError("candidates", rule, got=len(scores), remedy="list some")
    if not all(type(score) is int for score in scores):
        remedy = "count or round before choosing"
        raise UsageError("scores", "must be Python integers", got="something else", remedy=remedy)
    if not isinstance(rate, int | Fraction) or rate <= 0:
        remedy = "give ε divided by the range"
        raise UsageError("rate", "must be a Fraction above 0", got="something else", remedy=remedy)
    return max(scores)


def permute_and_flip_distribution(scores: Sequence[int], rate: float) -> list[float]:
    """The probability of each candidate under `permute_and_flip`, in floating point, for audits and tests.

    The integral of the proof above, by Gauss–Legendre quadrature, which is exact for its polynomial.

    The scores (−2Δ, 0) and (−Δ, −Δ) are a worst pair: the first candidate has probability e^(−ε)/2 and 1/2.

    >>> permute_and_flip_distribution([-1, -1], 0.5)
    [0.5, 0.5]
    """
    nodes, weights = np.polynomial.legendre.leggauss(len(scores) // 2 + 1)
    times, weights = (nodes + 1.0) / 2.0, weights / 2.0
    best = max(scores)
    kept = [math.exp(-rate * (best - score)) for score in scores]
    missed = [1.0 - times * each for each in kept]
    found = []
    for candidate, probability in enumerate(kept):
        earlier = np.prod([each for other, each in enumerate(missed) if other != candidate], axis=0)
        found.append(probability * float((weights * earlier).sum()))
    return found


def exponential_distribution(scores: Sequence[int], rate: float) -> list[float]:
    """The probability of each candidate under `exponential_choice`, in floating point, for audits and tests.

    >>> exponential_distribution([-1, -1], 0.5)
    [0.5, 0.5]
    """
    best = max(scores)
    weights = [math.exp(-rate * (best - score)) for score in scores]
    return [weight / sum(weights) for weight in weights]


_ETA = {"geometric": 1, "logarithmic": 0}
_DENOMINATOR = 1 << 40
MOST_RUNS = 10_000
"""The largest mean; a draw takes about that many steps."""


@dataclass(frozen=True, slots=True)
class Stopping:
    """A distribution of the number of runs: its name and γ; public.

    >>> rule = Stopping.with_mean("geometric", 20)
    >>> rule.gamma, rule.cost, rule.mean
    (Fraction(1, 20), 3, 20.0)
    """

    name: str
    gamma: Fraction

    def __post_init__(self) -> None:
        if self.name not in _ETA:
            raise UsageError("stopping", "must be 'geometric' or 'logarithmic'", got=shown(self.name))
        if not (isinstance(self.gamma, Fraction) and 0 < self.gamma <= 1):
            rule = "must be a Fraction above 0 and at most 1"
            raise UsageError("gamma", rule, remedy="give 1 over the mean of runs")
        if self.gamma.denominator > 1 << 62:
            raise UsageError("gamma", "must have a denominator of at most 2^62", remedy="round it")

    @classmethod
    def with_mean(cls, name: str, runs: float) -> Stopping:
        """The distribution with that mean number of runs, from 1 to 10,000.

        γ is found in floating point and then taken as the rational it is: any γ costs the same.
        """
        if not 1 <= runs <= MOST_RUNS:
            rule = f"must be from 1 to {MOST_RUNS} on average"
            raise UsageError("runs", rule, got=f"{runs:g}", remedy="try 20")
        low, high = -2.0 * math.log(MOST_RUNS) - 8.0, 0.0
        if name == "geometric":
            return cls(name, 1 / Fraction(runs).limit_denominator(_DENOMINATOR))
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if _logarithmic_mean(math.exp(middle)) > runs else (low, middle)
        gamma = Fraction(math.exp(high)).limit_denominator(_DENOMINATOR)
        return cls(name, min(gamma, Fraction(1)))

    @property
    def cost(self) -> int:
        """How many times the ε of one run the whole costs: 2 + η."""
        return 2 + _ETA[self.name]

    @property
    def mean(self) -> float:
        """The mean number of runs."""
        gamma = float(self.gamma)
        return 1.0 / gamma if self.name == "geometric" else _logarithmic_mean(gamma)

    def probability(self, runs: int) -> float:
        """``P(K = runs)``, in floating point, for plans and tests."""
        gamma = float(self.gamma)
        if self.name == "geometric" or gamma == 1.0:
            return gamma * (1.0 - gamma) ** (runs - 1)
        return (1.0 - gamma) ** runs / (runs * -math.log(gamma))


def draw_runs(rule: Stopping, candidates: int, source: NoiseSource) -> list[int]:
    """A candidate's position for each of K runs, exactly: K by the rule, every candidate uniform.

    K steps up from 1; before each step it stops with probability γ. The logarithmic distribution is the
    geometric one with k kept with probability 1/k, that is, with every step from l to l+1 survived with
    probability l/(l+1), and a new start where it is not.
    """
    word = words_of(source.stream().more_bits(0))
    return [below(candidates, word) for _ in range(_runs(rule, word))]


def _runs(rule: Stopping, word: Callable[[], int]) -> int:
    eta = _ETA[rule.name]
    runs = 1
    while below(rule.gamma.denominator, word) >= rule.gamma.numerator:
        runs = runs + 1 if below(runs + 1, word) < runs + eta else 1
    return runs


def _logarithmic_mean(gamma: float) -> float:
    return 1.0 if gamma > 1.0 - 1e-9 else (1.0 - gamma) / (gamma * -math.log(gamma))
