"""Audits of noise: lower bounds on the privacy loss of a sampler, from draws for its worst pair of inputs.

A mechanism that keeps its claim is accused with probability at most `FALSE_ALARM`. ``power`` is the
probability that a copy with a fifth less noise is caught. No sampling shows faults in tails that draws do not
reach, such as noise cut off at forty deviations.

*Noise that is added* (`audit_laplace`, `audit_gaussian`). Only the cells in which the worst pair of
neighbours differ are simulated, and reduced to the statistic that their likelihood ratio depends on. For
additive noise Z and neighbours that move the statistic by s, an attacker who decides for the second dataset
when the output reaches t is right with probability P(Z ≥ t − s) (*near*) and wrong with probability P(Z ≥ t)
(*far*). Far implies near, so among the near draws the far ones are binomial, exactly, with the probability r
= P(far)/P(near). A claim bounds r from below: pure ε by e^(−ε), a trade-off curve by g(y)/y at y = P(near),
where g(y) is the least false alarm that an attacker of power y must accept; g is convex with g(0) = 0, so
g(y)/y grows with y. Hence

    claim broken  ⇐  upper bound on r  <  g(y)/y at the lower bound on y,

each bound by Clopper and Pearson at a share of the false-alarm rate. One sample serves both events, which
needs the square root of the draws that two independent samples need when ε is small. The test runs in both
directions, since a sampler need not be symmetric, each at half the rate. The power is exact for one
direction, so both together have at least that.

*Choices among a few outcomes* (`audit_choice`). For pure ε the largest log-ratio is reached by a single
outcome, so each outcome is tested in both directions, at an equal share of the false-alarm rate. Each side is
drawn a Poisson number of times; then the counts of an outcome are independent Poisson variables, and given
their sum the first is exactly binomial with the odds p/p': one Clopper–Pearson bound for the ratio instead of
one for each side.

*Mechanisms with Gaussian noise on many numbers* (`audit_separation`). What is released of either neighbour is
a vector; the auditor, who made up the data, knows both without noise and looks along given directions: the
one in which they differ most for their noise, and others in which a likely fault would show. Deciding for the
second neighbour beyond the middle is the best test of two normal distributions. Its hits on both sides bound
the distance μ of the distributions from below (Dong, Roth and Su 2022), which the claim allows to be 1/σ for
the least σ that keeps (ε, δ) at sensitivity 1. A bound on ε itself would have to count events of probability
δ, which no sample contains.

The number of releases that this takes is computed from the pair, for two promises: half the noise is caught,
and the bound on a sound mechanism is not so low that it carries no information. The first does not imply the
second: noise that is half of what it should be is easily distinguished, so it needs fewer releases.

*Releases of tallies* (`audit_smoke`). It catches gross faults only: noise divided by four, a forgotten factor
of a person's records, a count that was not paid for. With more than one row no test could see all of ε, so
one row is released.

The results of an audit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np

from hushsum import _html
from hushsum._types import Floats, Integers
from hushsum.errors import Parameter, UsageError
from hushsum.kernels import EuclideanKernel
from hushsum.privacy import COUNT_SHARE, Promise
from hushsum.privacy.accounting import analytic_gaussian_sigma
from hushsum.releases import TableFunction
from hushsum.tables import HashRows
from hushsum.tally import Tally

__all__ = [
    "STATED_POWER", "AuditReport", "AuditRow", "Half", "Separated", "allowed_distance", "audit_choice",
    "audit_gaussian", "audit_laplace", "audit_separation", "normal_chances", "report_of",
]  # fmt: skip


def binomial_bounds(hits: int, number: int, tail: float) -> tuple[float, float]:
    """Clopper and Pearson's bounds: each is on the wrong side of the probability in at most ``tail`` of all
    samples.

    >>> low, high = binomial_bounds(90, 100, 1e-3)
    >>> round(low, 3), round(high, 3)
    (0.775, 0.969)
    """
    from scipy.special import betaincinv

    low = 0.0 if hits == 0 else float(betaincinv(hits, number - hits + 1, tail))
    high = 1.0 if hits == number else float(betaincinv(hits + 1, number - hits, 1.0 - tail))
    return low, high


def lower_bounds(hits: Floats, number: int, tail: float) -> Floats:
    """The lower bounds of many counts, all above 0, at once."""
    from scipy.special import betaincinv

    return np.asarray(betaincinv(hits, number - hits + 1.0, tail), dtype=np.float64)


def at_most(hits: Floats, number: Floats, probability: Floats | float) -> Floats:
    """P(X ≤ hits) for binomial X; 0 below 0 and 1 from ``number`` on."""
    from scipy.stats import binom

    return np.asarray(binom.cdf(hits, number, probability))


def most_hits_below(number: Floats, probability: Floats, tail: float) -> Floats:
    """The most hits whose upper bound stays below ``probability``: −1 where none does.

    The bound is below p exactly when P(X ≤ hits) < tail under p, so this is the critical value of the test
    that rejects p from above.
    """
    from scipy.stats import binom

    return np.asarray(binom.ppf(tail, number, probability) - 1.0)


# The probability that an audit accuses a mechanism that keeps its claim; for each row of a report.
FALSE_ALARM = 1e-8

REQUIRED_POWER = 0.995
MOST_DRAWS = 1 << 27
_QUANTILES = 129
LEVELS: Floats = (np.arange(_QUANTILES) + 0.5) / _QUANTILES


def likely_hits(number: int, probability: float) -> Floats:
    """The hits of ``number`` draws, at least 1, at 129 quantiles of their distribution: to average over."""
    from scipy.special import ndtri

    spread = math.sqrt(number * probability * (1.0 - probability))
    return np.clip(np.rint(number * probability + ndtri(LEVELS) * spread), 1.0, number)


def one_direction_power(
    number: int,
    near: float,
    far_given_near: float,
    least_ratio: Callable[[Floats], Floats],
    *,
    near_tail: float,
    far_tail: float,
) -> float:
    """The probability that ``number`` draws of a mechanism with these probabilities break the claim.

    Exact but for averaging over quantiles of the number of near draws: for each, the critical number of far
    draws is found exactly and its binomial probability summed. ``least_ratio`` is g(y)/y of the claim. With
    ``near_tail`` = 0 the claim is taken not to depend on y.
    """
    hits = likely_hits(number, near)
    lowest = lower_bounds(hits, number, near_tail) if near_tail else np.full(hits.shape, near)
    critical = most_hits_below(hits, least_ratio(lowest), far_tail)
    return float(at_most(critical, hits, far_given_near).mean())


def draws_for(power: Callable[[int], float], quantity: str, value: float) -> int:
    """The least number of draws, to a few per cent, with the required power against a claim.

    Raises
    ------
    UsageError
        if no affordable number of draws has it.
    """
    number = 256
    while power(number) < REQUIRED_POWER:
        number *= 2
        if number > MOST_DRAWS:
            raise _too_strong(quantity, value)
    low, high = number // 2, number
    while high - low > high // 32:
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle) >= REQUIRED_POWER else (middle, high)
    return high


def _too_strong(quantity: str, value: float) -> UsageError:
    rule = (
        f"the claim {quantity} = {value:.3g} is too strong to be audited by {MOST_DRAWS:.0e} draws, or its "
        "telling events are too rare"
    )
    return UsageError(rule, remedy="audit a larger or a smaller move of the same noise")


_REACH = 12.0
_LARGEST_DEVIATION = 20_000.0


@dataclass(frozen=True, slots=True)
class Term:
    """``cells`` independent discrete Gaussians of one variance, each times an integer ``weight``."""

    cells: int
    variance: float
    weight: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class LatticeDistribution:
    """P(T ≥ k) of a symmetric integer statistic T."""

    deviation: float
    survival: Floats | None

    def reaches(self, threshold: int | Integers) -> Floats:
        """P(T ≥ threshold), one value for each threshold.

        Up to a deviation of 20,000 by Fourier sums, right to 1e−13. Beyond, the normal distribution with the
        threshold moved by ½, whose relative error is of the order of 1/deviation², far below what draws can
        see.
        """
        thresholds = np.asarray(threshold)
        if self.survival is None:
            from scipy.special import ndtr

            return np.asarray(ndtr((0.5 - thresholds) / self.deviation))
        middle = len(self.survival) // 2
        return np.asarray(self.survival[np.clip(thresholds + middle, 0, len(self.survival) - 1)])


@lru_cache(maxsize=64)
def distribution_of(*terms: Term) -> LatticeDistribution:
    """The distribution of the sum of the terms.

    >>> noise = distribution_of(Term(cells=1, variance=1.0))
    >>> round(float(noise.reaches(1)), 4)
    0.3005
    """
    deviation = math.sqrt(sum(term.cells * term.variance * term.weight**2 for term in terms))
    if deviation > _LARGEST_DEVIATION:
        return LatticeDistribution(deviation, None)
    half = math.ceil(_REACH * max(deviation, 1.0)) + 8 * max(term.weight for term in terms)
    size = 2 * half
    transform = np.ones(half + 1, dtype=np.complex128)
    for term in terms:
        reach = math.ceil(_REACH * max(math.sqrt(term.variance), 1.0))
        steps = np.arange(-reach, reach + 1)
        weights = np.exp(-(steps.astype(np.float64) ** 2) / (2.0 * term.variance))
        wrapped = np.zeros(size)
        np.add.at(wrapped, steps * term.weight % size, weights / weights.sum())
        transform *= np.fft.rfft(wrapped) ** term.cells
    masses = np.roll(np.fft.irfft(transform, size), half)
    survival = np.cumsum(masses[::-1])[::-1]
    return LatticeDistribution(deviation, np.clip(survival, 0.0, 1.0))


# Gives as many independent draws of one cell's noise as requested.
Draw = Callable[[int], Integers]

LESS_NOISE = 0.8
_AT_A_TIME = 1 << 22
_LAPLACE_TAIL = FALSE_ALARM / 2
_GAUSSIAN_TAIL = FALSE_ALARM / 4
_NEAR_LEVELS = (0.9, 0.7, 0.5, 0.35, 0.25, 0.17, 0.12, 0.08, 0.05)


def audit_laplace(
    draw: Draw, epsilon: float | Fraction, *, shift: int = 1, what: str = "discrete laplace"
) -> AuditRow:
    """Audit one cell that neighbours move by ``shift``, against pure ``epsilon``.

    For discrete Laplace noise P(z ≥ 0) = e^ε·P(z ≥ shift) exactly, and no event has a larger ratio. Audit
    at one cell: over R rows the losses concentrate near ε/√R, and no test sees ε. There are as many draws as
    catch a fifth less noise with a power of 0.995.

    Parameters
    ----------
    draw : callable
        The noise of one cell.
    epsilon : float
        What it is claimed to keep when the cell moves by ``shift``.
    what : str
        What the report calls it.

    Raises
    ------
    UsageError
        if ε is not above 0, or too large (about 15) for its rare events to be sampled.
    """
    claimed = float(epsilon)
    if not claimed > 0 or shift < 1:
        raise UsageError(
            "epsilon",
            "must be above 0 and shift at least 1",
            got=f"{claimed:g} and {shift}",
            remedy="give those claimed",
        )
    number = laplace_draws(claimed, shift=shift)
    directions = _counted(draw, number, 0, shift)
    lowest = max(-math.log(binomial_bounds(far, near, _LAPLACE_TAIL)[1]) for near, far in directions)
    power = laplace_power(claimed, number, shift=shift)
    return AuditRow(what, Half.NOISE, "epsilon", claimed, lowest, power, number)


def laplace_draws(epsilon: float, *, shift: int = 1) -> int:
    """Draws that give the required power against a fifth less noise.

    >>> laplace_draws(1.0) < 10_000
    True
    """
    return draws_for(partial(laplace_power, epsilon, shift=shift), "epsilon", epsilon)


def laplace_power(epsilon: float, number: int, *, shift: int = 1) -> float:
    """The probability that one direction breaks the claim when the scale is a fifth too small."""
    actual = epsilon / LESS_NOISE
    near = 1.0 / (1.0 + math.exp(-actual / shift))
    return one_direction_power(
        number,
        near,
        math.exp(-actual),
        lambda y: np.full(y.shape, math.exp(-epsilon)),
        near_tail=0.0,
        far_tail=_LAPLACE_TAIL,
    )


@dataclass(frozen=True, slots=True)
class GaussianPair:
    """The worst pair of a table with discrete Gaussian noise: ``cells`` cells and, if it is noisy, the count
    move by ``shift`` each.

    The statistic is ``T = a·Σ cells + b·count`` with the integers next to the ratio of the inverse
    variances, on which the likelihood ratio depends. μ² = shift²·(cells/variance + 1/count_variance).
    """

    variance: float
    cells: int = 1
    shift: int = 1
    count_variance: float | None = None

    @property
    def mu(self) -> float:
        """How many deviations apart the two datasets are."""
        count = 0.0 if self.count_variance is None else 1.0 / self.count_variance
        return self.shift * math.sqrt(self.cells / self.variance + count)

    @property
    def weights(self) -> tuple[int, int]:
        """(a, b); b is 0 without a noisy count."""
        if self.count_variance is None:
            return 1, 0
        ratio = self.variance / self.count_variance
        return (1, max(1, round(ratio))) if ratio >= 1 else (max(1, round(1 / ratio)), 1)

    @property
    def move(self) -> int:
        """How far the statistic moves."""
        a, b = self.weights
        return self.shift * (a * self.cells + b)

    def distribution(self, less: float = 1.0) -> LatticeDistribution:
        """The distribution of the statistic when every deviation is ``less`` times what it should be."""
        a, b = self.weights
        terms = [Term(self.cells, self.variance * less**2, a)]
        if self.count_variance is not None:
            terms.append(Term(1, self.count_variance * less**2, b))
        return distribution_of(*terms)

    def least_ratio(self, power: Floats) -> Floats:
        """g(y)/y of the exact trade-off curve: its corners are the thresholds, and lines join them.

        Thresholds are the most powerful tests because the distribution is log-concave (Neyman and Pearson).
        """
        distribution, move = self.distribution(), self.move
        if distribution.survival is None:
            from scipy.special import ndtr, ndtri

            return np.asarray(ndtr(ndtri(power) - move / distribution.deviation) / power)
        reach = len(distribution.survival) // 2
        far = np.arange(reach + move, -reach - 1, -1)
        alarms, powers = distribution.reaches(far), distribution.reaches(far - move)
        return np.asarray(np.interp(power, powers, alarms) / power)


def audit_gaussian(
    draw: Draw,
    variance: float | Fraction,
    *,
    cells: int = 1,
    shift: int = 1,
    count: tuple[Draw, float | Fraction] | None = None,
    what: str = "discrete gaussian",
) -> AuditRow:
    """Audit cells, and a count, that neighbours move by ``shift`` each, against the trade-off curve.

    The claim is the exact curve of the stated noise, lattice and all: at a variance of 1 a discrete Gaussian
    is 5 % easier to distinguish than the Gaussian curve of its μ allows (Dong, Roth and Su 2022), and a test
    against that curve would accuse it. The bound is given as a μ, scaled so that the stated noise has
    exactly its own. Events of probability δ are not counted: no affordable number of draws sees them. The
    pair is simulated as often as a power of 0.995 needs against deviations of a fifth less than stated.

    Parameters
    ----------
    draw : callable
        The noise of one cell.
    variance : float
        The stated parameter σ².
    count : (draw, variance), optional
        The noise of the separate count.
    what : str
        What the report calls it.
    """
    pair = GaussianPair(float(variance), cells, shift, None if count is None else float(count[1]))
    number, power, near = _design(pair)
    a, b = pair.weights

    def statistic(size: int) -> Integers:
        total: Integers = a * draw(size * cells).reshape(size, cells).sum(axis=1)
        return total if count is None else total + b * count[0](size)

    directions = _counted(statistic, number, near, near + pair.move, cells)
    lowest = max(_mu_bound(pair, number, *hits) for hits in directions)
    return AuditRow(what, Half.NOISE, "mu", pair.mu, lowest, power, number)


def gaussian_draws(pair: GaussianPair) -> int:
    """How often a pair must be simulated for the required power.

    >>> gaussian_draws(GaussianPair(variance=16.0, cells=16)) < 10_000
    True
    """
    return _design(pair)[0]


def _mu_bound(pair: GaussianPair, number: int, near: int, far: int) -> float:
    from scipy.special import ndtri

    likely = binomial_bounds(near, number, _GAUSSIAN_TAIL)[0]
    if likely == 0.0:
        return 0.0
    unlikely = binomial_bounds(far, near, _GAUSSIAN_TAIL)[1] * likely
    claimed = float(pair.least_ratio(np.array([likely]))[0]) * likely
    # The claim is broken exactly when unlikely < claimed; on the scale of normal quantiles that reads as a μ.
    return pair.mu * float((ndtri(likely) - ndtri(unlikely)) / (ndtri(likely) - ndtri(claimed)))


@lru_cache(maxsize=256)
def _design(pair: GaussianPair) -> tuple[int, float, int]:
    """The fewest draws, their power, and the threshold for which so few suffice."""
    if not (pair.variance > 0 and pair.cells >= 1 and pair.shift >= 1):
        raise UsageError(
            "variance",
            ("must be above 0, ", Parameter("cells"), " and ", Parameter("shift"), " at least 1"),
            remedy="give the stated ones",
        )
    from scipy.special import ndtri

    stated, weaker, move = pair.distribution(), pair.distribution(LESS_NOISE), pair.move
    nears = {round(-float(ndtri(level)) * stated.deviation) for level in _NEAR_LEVELS} | {0, 1, -(move // 2)}
    designs = []
    for near in sorted(nears):
        likely, unlikely = (float(weaker.reaches(at)) for at in (near, near + move))
        power = partial(
            one_direction_power,
            near=likely,
            far_given_near=unlikely / likely,
            least_ratio=pair.least_ratio,
            near_tail=_GAUSSIAN_TAIL,
            far_tail=_GAUSSIAN_TAIL,
        )
        with suppress(UsageError):
            number = draws_for(power, "mu", pair.mu)
            designs.append((number, power(number), near))
    if not designs:
        raise _too_strong("mu", pair.mu)
    return min(designs, key=lambda design: (design[0], -design[1]))


def _counted(draw: Draw, number: int, near: int, far: int, cells: int = 1) -> list[list[int]]:
    """The near and far draws of ``number``, upwards and downwards, a bounded piece of memory at a time.

    Upwards a draw is near from ``near`` on, and far from ``far`` on; downwards the same is mirrored.
    """
    step = max(1, _AT_A_TIME // cells)
    found = np.zeros((2, 2), np.int64)
    for start in range(0, number, step):
        drawn = draw(min(step, number - start))
        found += [[np.count_nonzero(side >= at) for at in (near, far)] for side in (drawn, -drawn)]
    return found.tolist()


# Gives as many independent outcomes, numbered from 0, as requested.
Choose = Callable[[int], Integers]

# The probabilities of all outcomes under the two neighbours when the mechanism is run at the given ε.
Distributions = Callable[[float], tuple[Sequence[float], Sequence[float]]]


def audit_choice(
    left: Choose,
    right: Choose,
    epsilon: float,
    distributions: Distributions,
    *,
    what: str,
    draws: int | None = None,
    seed: int | None = None,
) -> AuditRow:
    """Audit a choice among finitely many outcomes on a pair of neighbours, against the loss of that pair.

    The claim tested is the largest log-ratio that ``distributions(epsilon)`` has on this pair, at most ε: a
    pair of the exponential mechanism falls short of ε by what its normaliser takes, and a bound that lies
    between would let a fifth less noise pass.

    Parameters
    ----------
    left, right : callable
        The mechanism on each of the two neighbours.
    epsilon : float
        What it is claimed to keep.
    distributions : callable
        ``distributions(ε)`` gives the two lists of probabilities; also used, at ε/0.8, for the power.
    what : str
        Its name in the report.
    draws : int, optional
        Mean number of draws on each side; default: for a power of 0.995.
    seed : int, optional
        Of the Poisson numbers; they give no protection.

    Raises
    ------
    UsageError
        if the two lists do not have the same outcomes, none of probability 0, or an outcome is out of range.
    """
    first, second = _checked(distributions(epsilon))
    claimed = float(np.max(np.abs(np.log(first / second))))
    power = _power_against(claimed, *_checked(distributions(epsilon / LESS_NOISE)))
    number = draws_for(power, "epsilon", claimed) if draws is None else draws
    sizes = np.random.default_rng(seed).poisson(number, 2).tolist()
    counts = [_outcomes(choose(size), len(first)) for choose, size in zip((left, right), sizes, strict=True)]
    return AuditRow(what, Half.NOISE, "epsilon", claimed, _bound(*counts), power(number), sum(sizes))


def _bound(left: list[int], right: list[int]) -> float:
    """The largest of the lower bounds on all log-ratios, at least 0."""
    tail = FALSE_ALARM / (2 * len(left))
    best = 0.0
    for one, other in zip(left, right, strict=True):
        for hits in (one, other):
            share = binomial_bounds(hits, one + other, tail)[0] if one + other else 0.0
            if 0.0 < share < 1.0:
                best = max(best, math.log(share / (1.0 - share)))
    return best


def _power_against(claimed: float, left: Floats, right: Floats) -> Callable[[int], float]:
    """The probability that the single most telling outcome breaks the claim; all together do at least as
    well.
    """
    from scipy.special import ndtri

    tail = FALSE_ALARM / (2 * len(left))
    least = 1.0 / (1.0 + math.exp(claimed))

    def one(number: int, likely: float, unlikely: float) -> float:
        mean = number * (likely + unlikely)
        sums = np.maximum(np.rint(mean + ndtri(LEVELS) * math.sqrt(mean)), 0.0)
        critical = most_hits_below(sums, np.full(sums.shape, least), tail)
        return float(at_most(critical, sums, unlikely / (likely + unlikely)).mean())

    def power(number: int) -> float:
        pairs = [*zip(left.tolist(), right.tolist(), strict=True)]
        return max(one(number, max(pair), min(pair)) for pair in pairs)

    return power


def _outcomes(drawn: Integers, number: int) -> list[int]:
    if drawn.size and not (drawn.min() >= 0 and drawn.max() < number):
        raise UsageError(
            f"outcomes must be numbered from 0 to {number - 1}", got="another", remedy="number them so"
        )
    counts: list[int] = np.bincount(drawn, minlength=number).tolist()
    return counts


def _checked(distributions: tuple[Sequence[float], Sequence[float]]) -> tuple[Floats, Floats]:
    left, right = (np.asarray(each, dtype=np.float64) for each in distributions)
    if left.shape != right.shape or left.ndim != 1 or min(left.min(), right.min()) <= 0:
        raise UsageError(
            "distributions",
            "must give two lists of positive probabilities of the same outcomes",
            remedy="an outcome that only one neighbour can have gives it away",
        )
    return left, right


THOROUGH_RELEASES = 2000
# The fault that the stated power is for. At `THOROUGH_RELEASES` noise less by √2 is caught too.
HALF_NOISE = 0.5

# The part of the claim that the lower bound on a sound mechanism exceeds with the required power.
INFORMATIVE = 0.3


# ``chances(less)``: the probabilities that a release of the second and of the first neighbour lies beyond the
# middle, along the first direction, when all noise is ``less`` times what it should be.
Chances = Callable[[float], tuple[float, float]]


def normal_chances(distance: float) -> Chances:
    """The chances for two normal distributions whose means are ``distance`` standard deviations apart.

    >>> [round(chance, 2) for chance in normal_chances(2.0)(1.0)]
    [0.84, 0.16]
    """
    from scipy.special import ndtr

    def chances(less: float) -> tuple[float, float]:
        half = distance / less / 2.0
        return float(ndtr(half)), float(ndtr(-half))

    return chances


def lattice_chances(variance: float, *, cells: int, move: int) -> Chances:
    """The chances for the sum of ``cells`` discrete Gaussians, moved by ``move`` steps of their lattice.

    Where the standard deviation is not far above one step this is not the normal distribution: at half a step
    and a move of one step, the neighbours are 1.26 times as far apart as two normal distributions would be.

    >>> [round(chance, 2) for chance in lattice_chances(0.25, cells=1, move=1)(1.0)]
    [0.89, 0.11]
    """

    def chances(less: float) -> tuple[float, float]:
        noise = distribution_of(Term(cells, variance * less**2))
        beyond = move // 2 + 1
        return float(noise.reaches(beyond - move)), float(noise.reaches(beyond))

    return chances


@dataclass(frozen=True, slots=True, eq=False)
class Separated:
    """Two made-up neighbours and a mechanism.

    Attributes
    ----------
    exact : two arrays of shape (n,)
        What would be released of either without noise.
    release : callable
        ``release(side, seed)``: what is released of one, shape (n,); with None the noise is fresh.
    directions : array of shape (k, n)
        Along which to look. The first shows the whole distance.
    mu : float
        How far apart the claim allows the two distributions to be.
    chances : callable
        The distribution of the test along the first direction: what the stated power is computed from.
    quantity : str
        What is bounded: μ, or the ε of the claim, which is in the place of ``mu`` then.
    threshold : float
        Where a test decides for the second neighbour, as a fraction of the way to it.
    fault : float
        The part of the noise of the mechanism that the stated power is for.
    """

    exact: tuple[Floats, Floats]
    release: Callable[[int, int | None], Floats]
    directions: Floats
    mu: float
    chances: Chances
    quantity: str = "mu"
    threshold: float = 0.5
    fault: float = HALF_NOISE

    @property
    def tail(self) -> float:
        """The false-alarm rate of one bound: all directions and both sides share it."""
        return FALSE_ALARM / (2 * len(self.directions))

    def power(self, releases: int) -> float:
        """The probability that so much less noise is caught along the first direction."""
        chances = self.chances(self.fault)
        return separation_power(self.mu, chances, releases, self.tail, quantity=self.quantity)

    def informs(self, releases: int) -> float:
        """The probability that the bound on a sound mechanism exceeds `INFORMATIVE` of the claim."""
        return separation_power(INFORMATIVE * self.mu, self.chances(1.0), releases, self.tail)

    def releases(self) -> int:
        """How many of each neighbour give both of these the required power."""
        return draws_for(lambda number: min(self.power(number), self.informs(number)), "mu", self.mu)

    def hits(self, side: int, releases: int, seed: int | None) -> list[int]:
        """How often a release of one side lies beyond the threshold, along each direction."""
        moved = self.exact[1] - self.exact[0]
        place, towards = self.exact[0] + self.threshold * moved, np.sign(self.directions @ moved)
        found = np.zeros(len(self.directions), np.int64)
        for i in range(releases):
            own = None if seed is None else (2 * seed + side) * releases + i
            found += towards * (self.directions @ (self.release(side, own) - place)) > 0.0
        return found.tolist()


def allowed_distance(promise: Promise) -> float:
    """μ of a Gaussian release that spends all of (ε, δ), or ρ.

    >>> round(allowed_distance(Promise.of(epsilon=8.0, delta=1e-6)), 2)
    1.53
    """
    if promise.rho is not None:
        return math.sqrt(2.0 * float(promise.rho))
    assert promise.epsilon is not None
    return 1.0 / analytic_gaussian_sigma(promise.epsilon, promise.delta, 1.0)


def audit_separation(
    what: str, pair: Separated, *, releases: int | None = None, seed: int | None = None
) -> AuditRow:
    """Release both neighbours and bound how far apart their distributions are.

    A mechanism that keeps its claim is accused with probability 1e-8 at most. By default there are as many
    releases as the pair needs.
    """
    number = pair.releases() if releases is None else releases
    without, with_unit = (pair.hits(side, number, seed) for side in (0, 1))
    hits = zip(with_unit, without, strict=True)
    lowest = max(_shown(*each, number, pair.tail, pair.quantity) for each in hits)
    return AuditRow(what, Half.SMOKE, pair.quantity, pair.mu, lowest, pair.power(number), 2 * number)


def separation_power(
    allowed: float, chances: tuple[float, float], releases: int, tail: float, *, quantity: str = "mu"
) -> float:
    """The probability of the bound exceeding ``allowed``, for the probabilities of a hit on either side.

    Exact but for averaging over quantiles of the hits on the second side.
    """
    from scipy.special import ndtr, ndtri

    likely, unlikely = chances
    powers = lower_bounds(likely_hits(releases, likely), releases, tail)
    # The least false alarms that a claim of this size demands of an attacker of such a power.
    alarms = powers * math.exp(-allowed) if quantity == "epsilon" else ndtr(ndtri(powers) - allowed)
    numbers = np.full(powers.shape, float(releases))
    return float(at_most(most_hits_below(numbers, alarms, tail), numbers, unlikely).mean())


def _shown(with_unit: int, without: int, releases: int, tail: float, quantity: str = "mu") -> float:
    """A lower bound on the quantity from the hits of one event on both sides."""
    from scipy.special import ndtri

    low = binomial_bounds(with_unit, releases, tail)[0]
    high = binomial_bounds(without, releases, tail)[1]
    if low == 0.0 or high == 1.0:
        return 0.0
    return max(0.0, math.log(low / high) if quantity == "epsilon" else float(ndtri(low) - ndtri(high)))


RELEASES = 1000


@dataclass(frozen=True, slots=True)
class SmokeCase:
    """The parameters of the releases: pure ε, or ρ; and how many records a person may have."""

    epsilon: float | None = None
    rho: float | None = None
    persons: int | None = None

    def __str__(self) -> str:
        unit = "a record" if self.persons is None else f"a person with {self.persons} records"
        return f"releases with and without {unit}"

    @property
    def quantity(self) -> str:
        """The name of the bounded quantity."""
        return "mu" if self.epsilon is None else "epsilon"

    def chances(self, less: float) -> tuple[float, float]:
        """P(cell ≥ the unit's records) with the unit and without, when all noise is ``less`` times it."""
        number = self.persons or 1
        share = 1.0 - float(COUNT_SHARE)
        if self.epsilon is not None:
            loss = self.epsilon * share / less
            likely = 1.0 / (1.0 + math.exp(-loss / number))
            return likely, likely * math.exp(-loss)
        assert self.rho is not None
        noise = distribution_of(Term(1, number**2 / (2.0 * self.rho * share) * less**2))
        return float(noise.reaches(0)), float(noise.reaches(number))

    def set_up(self) -> Separated:
        """Made-up tallies without records and with those of a unit, whose state may be looked at.

        Two events are looked at: that the unit's cell reaches the unit's records, and that the count does.
        The cell alone shows noise divided by four with the stated power.
        """
        rows, number = (
            HashRows(EuclideanKernel(dim=1, bandwidth=1.0), rows=1, width=4, seed=1),
            self.persons or 1,
        )
        empty, full = (Tally(rows, max_per_unit=self.persons) for _ in range(2))
        full.add([[0.0]] * number, units=None if self.persons is None else ["one"] * number, threads=1)
        cell = int(np.argmax(full._table[0]))

        def release(side: int, seed: int | None) -> Floats:
            released = (empty, full)[side].release(
                epsilon=self.epsilon, rho=self.rho, rows=1, threads=1, insecure_noise_seed=seed
            )
            assert isinstance(released, TableFunction)
            return np.array([released.table[0, cell], released.noisy_count], np.float64)

        allowed = self.epsilon or allowed_distance(Promise.of(rho=self.rho))
        return Separated(
            (np.zeros(2), np.full(2, float(number))),
            release,
            np.eye(2),
            allowed,
            self.chances,
            self.quantity,
            # A sum of integers reaches the unit's records where it is above the last integer before them.
            threshold=1.0 - 0.5 / number,
            fault=0.25,
        )


CASES = (
    SmokeCase(epsilon=1.0),
    SmokeCase(epsilon=1.0, persons=4),
    SmokeCase(rho=0.05),
    SmokeCase(rho=0.05, persons=4),
)


def audit_smoke(case: SmokeCase, *, seed: int | None = None, releases: int = RELEASES) -> AuditRow:
    """Release both neighbours ``releases`` times and bound what that reveals.

    Pure ε is bounded by the log-ratio of probabilities, ρ by the μ = √(2ρ) of the Gaussian curve; at this
    noise the lattice exceeds that curve by less than half a per cent, far within the slack of the bounds.
    """
    return audit_separation(str(case), case.set_up(), releases=releases, seed=seed)


# The power that a test of noise must have before it reports anything.
STATED_POWER = 0.99


class Half(StrEnum):
    """Which question a row answers.

    *Sensitivity*: does any neighbour move the exact sums further than declared? *Noise*: does the sampler
    hide what it is claimed to hide? *Calibration*: do the stated parameters suffice for the claim? *Smoke*:
    do whole releases of two neighbours show a gross fault? Only that.
    """

    SENSITIVITY = "sensitivity"
    NOISE = "noise"
    CALIBRATION = "calibration"
    SMOKE = "smoke"


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One claim that was put to the test.

    ``claim`` is the largest value of ``quantity`` that is allowed and ``lower_bound`` what was shown to be
    reached at least (for sensitivities the largest move found, for a calibration what the stated noise
    spends). ``power`` is the probability that the fault looked for, a fifth less noise or sensitivity unless
    the half states otherwise, would have been caught. ``draws`` counts simulated pairs.
    """

    what: str
    half: Half
    quantity: str
    claim: float
    lower_bound: float
    power: float
    draws: int

    @property
    def verdict(self) -> str:
        """``"holds"``; ``"BROKEN"``; or ``"untested"``, where draws could not have shown a fault.

        A declared sensitivity is a bound, and one that no pair reaches is safe: it holds whatever the power.
        """
        if self.lower_bound > self.claim:
            return "BROKEN"
        weak = self.half is Half.NOISE and self.power < STATED_POWER
        return "untested" if weak else "holds"

    @property
    def holds(self) -> bool:
        """Whether the claim was tested and survived."""
        return self.verdict == "holds"


@dataclass(frozen=True, slots=True)
class AuditReport:
    """All rows of an audit. Printing it gives a table.

    An audit can prove that a claim is broken, never that it is kept: it states which faults it would have
    found.

    >>> row = AuditRow("discrete laplace", Half.NOISE, "epsilon", 1.0, 0.9, 0.996, 3000)
    >>> print(AuditReport((row,)))
    what              half   claim        lower bound  power  draws  verdict
    discrete laplace  noise  epsilon = 1  0.9          0.996  3000   holds
    """

    rows: tuple[AuditRow, ...]

    @property
    def holds(self) -> bool:
        """Whether every claim was tested and survived."""
        return all(row.holds for row in self.rows)

    @property
    def broken(self) -> tuple[AuditRow, ...]:
        """The rows whose claim was broken."""
        return tuple(row for row in self.rows if row.verdict == "BROKEN")

    @property
    def weakest_power(self) -> float:
        """The smallest power of any row; 1 for an empty report."""
        return min((row.power for row in self.rows), default=1.0)

    def as_dicts(self) -> list[dict[str, Any]]:
        """The rows for a data frame or JSON; infinity becomes None."""
        return [
            {
                **asdict(row),
                "half": str(row.half),
                "lower_bound": row.lower_bound if math.isfinite(row.lower_bound) else None,
                "verdict": row.verdict,
            }
            for row in self.rows
        ]

    def sentence(self) -> str:
        """The result in one sentence."""
        number = len(self.rows)
        if self.broken:
            first = self.broken[0]
            more = "" if len(self.broken) == 1 else f" ({len(self.broken)} of {number} claims are broken)"
            return (
                f"{first.what} claims {first.quantity} = {short(first.claim)}, "
                f"but has at least {short(first.lower_bound)}{more}"
            )
        if not self.holds:
            first = next(row for row in self.rows if not row.holds)
            return f"no claim is broken, but {first.what} has too little noise to be tested by draws"
        return f"all {number} claims hold; the weakest test had a power of {short(self.weakest_power)}"

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Head and rows as text."""
        head = ["what", "half", "claim", "lower bound", "power", "draws", "verdict"]
        rows = [
            [
                row.what,
                str(row.half),
                f"{row.quantity} = {short(row.claim)}",
                short(row.lower_bound),
                short(row.power),
                str(row.draws),
                row.verdict,
            ]
            for row in self.rows
        ]
        return head, rows

    def __repr__(self) -> str:
        return f"AuditReport({len(self.rows)} rows: {self.sentence()})"

    def _repr_html_(self) -> str:
        """The result in a sentence and the rows as a table, for notebooks."""
        return _html.block("Audit", _html.paragraph(self.sentence()), _html.table(*self.table()))

    def __str__(self) -> str:
        head, rows = self.table()
        widths = [max(len(line[i]) for line in (head, *rows)) for i in range(len(head))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in (head, *rows)
        )


def report_of(rows: Iterable[AuditRow]) -> AuditReport:
    """A report of at least one row; nothing audited must not look like everything in order."""
    collected = tuple(rows)
    if not collected:
        raise UsageError(
            "target",
            "must have an audit",
            got="nothing to audit",
            remedy="give a basis, a kernel or a released function",
        )
    return AuditReport(collected)


def short(value: float) -> str:
    """Four digits."""
    return f"{value:.4g}"
