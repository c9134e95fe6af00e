"""h2 of the paper: a noisy sum from d marginal distributions, updated one coordinate at a time.

The vectors' coordinates are scaled to [−1, 1] and rounded to a grid of step η without bias. Every iteration
chooses a coordinate by its error and measures that one. The joint distribution over all grid points stays a
product (Lemma 1), so d marginals are kept and one is updated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hushsum._types import Floats, Integers
from hushsum.errors import ClaimError
from hushsum.privacy.release_noise import EXPONENTIAL, Question, ReleaseNoise, release_noise

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
            raise ClaimError(
                parameter="rho", rule="must be above 0", got=f"{float(rho):g}", remedy="give one such as 0.01"
            )
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
        result: Integers = rounded.astype(np.int64)
        return result

    def means(self) -> Floats:
        """The mean of each marginal, in [−1, 1]."""
        result: Floats = self._weights @ self.grid
        return result

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
            question = Question(errors.tolist(), Fraction(4), self.steps)
            chosen = noise.choice(question, mechanism=EXPONENTIAL)
            l1, epsilon = max(1, round(half)), spending.epsilon
        else:
            # One swap moves a coordinate by 2, which is all of the grid's steps.
            question = Question(errors.tolist(), spending.choice, self.steps)
            chosen = noise.choice(question, mechanism=EXPONENTIAL)
            l1, epsilon = self.steps, spending.measurement
        measured, _ = noise.laplace(places[chosen : chosen + 1], l1, epsilon)
        sum_measured = float(measured[0]) / half - count
        sum_guessed = float(self._weights[chosen] @ self.grid) * count
        exponent = self.grid * (sum_measured - sum_guessed) / (2.0 * count)
        weights = self._weights[chosen] * np.exp(exponent - exponent.max())
        self._weights[chosen] = weights / weights.sum()
