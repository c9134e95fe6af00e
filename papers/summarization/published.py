"""The paper's protocol as published: h2 broadcasts and the rank auction. It is not private; for its figures.

The auction requests the point of rank i with probability ``e^{−ε(i−1)}``: an owner without a request learns
that it was not first, with a ratio that no ε bounds. And one record shifts every later round, which the
published proof does not count. So this is not a rule of `RunTerms`: it runs in one process, to reproduce the
figures, and warns.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushsum._types import Floats, Integers
from hushsum.errors import ClaimError, UsageError
from hushsum.privacy import EXPONENTIAL, Question, ReleaseNoise, release_noise


class UnsoundRule(UserWarning):
    """A rule runs as it was published although it does not keep its claim; for reproducing figures.

    Its results carry the published figure under that name and claim nothing themselves.
    """


class IntegerFeatures(Protocol):
    """What the published protocol needs of `hushsum.parties.summarization.SummaryFeatures`."""

    @property
    def width(self) -> int:
        """How many numbers a point has."""

    @property
    def features(self) -> int:
        """How many random features there are."""

    @property
    def unit(self) -> float:
        """The size of one step."""

    @property
    def paired(self) -> bool:
        """Whether features are pairs of a cosine and a sine."""

    def hashes(self, records: ArrayLike) -> NDArray[np.int16]:
        """The features of records, as integers."""


@dataclass(frozen=True, slots=True)
class PublishedParameters:
    """Table 1 of the paper: h2's iterations and ε of the first and of later rounds, and its grid."""

    first_iterations: int = 1656
    later_iterations: int = 5
    validation_epsilon: float = 0.01
    first_epsilon: float = 0.05
    later_epsilon: float = 0.01
    grid_steps: int = 64
    auction_epsilon: float = 1.0
    delta: float = 1e-4

    def composed(self, size: int) -> tuple[float, float]:
        """(summary ε, validation ε) by the theorem that the paper cites (Theorem 7), at δ and at 0.01.

        The paper prints 0.043 and 1.4; the latter is what the classical advanced composition gives.

        >>> [round(each, 3) for each in PublishedParameters().composed(2000)]
        [0.043, 1.318]
        """
        each = self.later_epsilon / math.sqrt(size * self.later_iterations)
        summary = _composed(each, size * self.later_iterations, self.delta)
        return summary, _composed(self.validation_epsilon, self.first_iterations, 0.01)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PublishedSummary:
    """The chosen points as (owner, place) pairs, how many the curator saw, and the paper's own figures."""

    owners: Integers
    places: Integers
    seen: int
    paper_epsilon: float
    paper_validation_epsilon: float


def published_auction(
    owners: Sequence[ArrayLike],
    validation: ArrayLike,
    features: IntegerFeatures,
    size: int,
    *,
    seed_points: ArrayLike,
    parameters: PublishedParameters | None = None,
    rounds_at_once: int = 1,
    seed: int = 0,
) -> PublishedSummary:
    """Run Algorithm 3 with its auction and its "chosen τ times" rule.

    ``rounds_at_once`` takes that many bids of each owner in a round, which the paper does not, to run sooner.
    ``seed_points`` are the paper's D_init, which it does not protect.

    Warns
    -----
    UnsoundRule
        always.
    """
    warnings.warn(
        "the published auction does not keep its claim; use it to reproduce figures only",
        UnsoundRule,
        stacklevel=2,
    )
    if features.paired:
        raise UsageError("features", "must be the published ones", got="pairs", remedy="give paired=False")
    table = parameters or PublishedParameters()
    rng = np.random.default_rng(seed)
    bounded = 1.0 / (features.unit * math.sqrt(features.features / 2.0))
    vectors = [features.hashes(each).astype(np.float64) / bounded for each in owners]
    start = features.hashes(seed_points).astype(np.float64) / bounded
    marginals, wanted = MarginalSums(features.width, table.grid_steps), features.hashes(validation) / bounded
    sums = marginals.round(wanted, rng).sum(axis=0)
    target = _improve(marginals, sums, len(wanted), table.first_iterations, table.validation_epsilon, rng)
    marginals = MarginalSums(features.width, table.grid_steps)
    places = marginals.round(start, rng).sum(axis=0)
    count = len(start)
    repeats = max(1, round(len(owners) ** (2.0 / 3.0)))
    tracker = _Auction(vectors, repeats, table.auction_epsilon, rng)
    chosen: list[tuple[int, int]] = []
    while len(chosen) < size:
        first = not chosen
        each = (
            table.first_epsilon if first else table.later_epsilon / math.sqrt(size * table.later_iterations)
        )
        iterations = table.first_iterations if first else table.later_iterations
        current = _improve(marginals, places, count, iterations, each, rng)
        winners = tracker.round(
            target - current * count / (count + 1.0), min(rounds_at_once, size - len(chosen))
        )
        if not winners:
            break
        for owner, place in winners:
            places = places + marginals.round(vectors[owner][place], rng)
        count += len(winners)
        chosen.extend(winners)
    summary_epsilon, validation_epsilon = table.composed(size)
    pairs = np.array(chosen, np.int64).reshape(-1, 2)
    return PublishedSummary(pairs[:, 0], pairs[:, 1], tracker.seen, summary_epsilon, validation_epsilon)


class _Auction:
    """Bids, questions, the pool, and how often a point stood without being requested."""

    def __init__(self, vectors: list[Floats], repeats: int, rate: float, rng: np.random.Generator) -> None:
        self._vectors, self._repeats, self._rate, self._rng = vectors, repeats, rate, rng
        self._sent = [np.zeros(len(each), np.bool_) for each in vectors]
        self._stood = [np.zeros(len(each), np.int64) for each in vectors]
        self._pool: list[tuple[int, int]] = []
        self.seen = 0

    def round(self, direction: Floats, winners: int) -> list[tuple[int, int]]:
        gains = [
            np.where(sent, -np.inf, v @ direction) for v, sent in zip(self._vectors, self._sent, strict=True)
        ]
        for turn in range(winners):
            bids = [(float(g.max()), k, int(g.argmax())) for k, g in enumerate(gains) if np.isfinite(g.max())]
            for rank, (_, owner, place) in enumerate(sorted(bids, reverse=True)):
                self._stood[owner][place] += 1
                requested = self._rng.random() < math.exp(-self._rate * rank)
                if requested or self._stood[owner][place] >= self._repeats:
                    self._pool.append((owner, place))
                    self._sent[owner][place] = True
                    gains[owner][place] = -np.inf
                    self.seen += 1
                elif turn + 1 < winners:
                    gains[owner][place] = -np.inf
        worth = [float(self._vectors[k][i] @ direction) for k, i in self._pool]
        best = [self._pool[i] for i in np.argsort(-np.array(worth), kind="stable")[:winners]]
        taken = set(best)
        self._pool = [each for each in self._pool if each not in taken]
        return best


def _improve(
    marginals: MarginalSums,
    places: Integers,
    count: int,
    iterations: int,
    epsilon: float,
    rng: np.random.Generator,
) -> Floats:
    spending = Iteration(Fraction(epsilon) / 2, Fraction(epsilon) / 2)
    # Nothing is claimed, so noise that can be drawn again does no harm.
    seed = int(rng.integers(1 << 40))
    return marginals.improve(
        places, count, iterations, spending, calibration=AS_PUBLISHED, insecure_noise_seed=seed
    )


def _composed(each: float, times: int, delta: float) -> float:
    """Theorem 7 (Kairouz et al.): kε tanh-term plus ε·√(2k·ln(1/δ))."""
    drift = times * each * math.expm1(each) / (math.exp(each) + 1.0)
    return min(times * each, drift + each * math.sqrt(2.0 * times * math.log(1.0 / delta)))


AS_PUBLISHED = "as-published"
CALIBRATED = "calibrated"


@dataclass(frozen=True, slots=True)
class Iteration:
    """What one iteration spends: ε₁ on the choice of a coordinate, ε₂ on its measurement.

    Privacy
    -------
    One vector in place of another moves every coordinate's sum by at most 2, which is Δ = 2/η grid steps:
    the exponential mechanism takes ``exp(ε₁·score/(2·Δ))``, the measurement discrete Laplace noise of scale
    Δ/ε₂. The two are ε₁²/8- and ε₂²/2-zCDP.
    """

    choice: Fraction
    measurement: Fraction

    @property
    def epsilon(self) -> Fraction:
        """Pure ε of one iteration."""
        return self.choice + self.measurement

    @property
    def rho(self) -> Fraction:
        """ρ of one iteration: a bounded-range choice, and a pure measurement."""
        return self.choice**2 / 8 + self.measurement**2 / 2

    @classmethod
    def for_rho(cls, rho: Fraction) -> Iteration:
        """Half of ρ on either, rounded down."""
        if rho <= 0:
            raise ClaimError("rho", "must be above 0", got=f"{float(rho):g}", remedy="give one such as 0.01")
        half = float(rho) / 2
        down = 1 - 2.0**-50
        return cls(Fraction(math.sqrt(8 * half) * down), Fraction(math.sqrt(2 * half) * down))


class MarginalSums:
    """d marginals on the grid, improved by iterations over a growing set of rounded vectors.

    Parameters
    ----------
    width : int
        d.
    steps : int
        Grid steps on [−1, 1]: 2/η.
    """

    def __init__(self, width: int, steps: int) -> None:
        self.width, self.steps = width, steps
        self.grid = np.linspace(-1.0, 1.0, steps + 1)
        self._weights: Floats = np.full((width, steps + 1), 1.0 / (steps + 1))

    def round(self, vectors: Floats, rng: np.random.Generator) -> Integers:
        """Coordinates in [−1, 1] to grid places from 0 to 2/η, without bias.

        The rounding is not protective noise: any generator will do.
        """
        places = (np.clip(vectors, -1.0, 1.0) + 1.0) * (self.steps / 2.0)
        low = np.floor(places)
        rounded = np.minimum(low + (rng.random(places.shape) < places - low), self.steps)
        return np.asarray(rounded, np.int64)

    def means(self) -> Floats:
        """The mean of each marginal, in [−1, 1]."""
        return self._weights @ self.grid

    def improve(
        self,
        places: Integers,
        count: int,
        iterations: int,
        spending: Iteration,
        *,
        calibration: str = CALIBRATED,
        insecure_noise_seed: int | None = None,
    ) -> Floats:
        """Run iterations on the coordinate sums of ``count`` rounded vectors; the averaged means.

        ``places`` are the sums of grid places, shape (width,). ``"as-published"`` chooses with
        ``exp(score)`` and adds Laplace noise of scale 1/ε₂ on sums that move by 2: its figure is not a claim.
        """
        total: Floats = np.zeros(self.width)
        with release_noise(insecure_noise_seed) as noise:
            for _ in range(iterations):
                self._one(noise, places, count, spending, calibration)
                total += self.means()
        return total / iterations

    def _one(
        self, noise: ReleaseNoise, places: Integers, count: int, spending: Iteration, calibration: str
    ) -> None:
        half = self.steps / 2.0
        guessed = np.rint((self.means() + 1.0) * half * count).astype(np.int64)
        errors = np.abs(guessed - places)
        if calibration == AS_PUBLISHED:
            # exp(score), score in units of 1: which moves by η a grid step; and noise of 1/ε.
            share, l1, epsilon = Fraction(4), max(1, round(half)), spending.epsilon
        else:
            # One swap moves a coordinate by 2, which is all of the grid's steps.
            share, l1, epsilon = spending.choice, self.steps, spending.measurement
        chosen = noise.choice(Question(errors.tolist(), share, self.steps), mechanism=EXPONENTIAL)
        measured, _ = noise.laplace(places[chosen : chosen + 1], l1, epsilon)
        sum_measured = float(measured[0]) / half - count
        sum_guessed = float(self._weights[chosen] @ self.grid) * count
        exponent = self.grid * (sum_measured - sum_guessed) / (2.0 * count)
        weights = self._weights[chosen] * np.exp(exponent - exponent.max())
        self._weights[chosen] = weights / weights.sum()
