"""What a stream will cost and how large its noise will be, before anything is spent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hushsum._types import Floats
from hushsum.bases.base import Basis
from hushsum.privacy.calibration import calibrate
from hushsum.privacy.claim import Claim
from hushsum.privacy.over_time.stream_noise import StreamNoise


@dataclass(frozen=True, slots=True, eq=False)
class StreamPlan:
    """The noise of every step of a stream; public, and known before the claim is paid.

    Attributes
    ----------
    claim : Claim
        What all steps together will promise.
    deviations : array of shape (steps,)
        The standard deviation of the noise of a cell in what each step shows.
    count_deviations : array of shape (steps,)
        The same of the number of records.
    one_release : float
        The standard deviation of a cell in one release of everything, under the same claim.
    state_bytes : int
        The size of the secret state, without counters of persons; it does not grow with the steps.
    """

    claim: Claim
    deviations: Floats
    count_deviations: Floats
    one_release: float
    state_bytes: int

    @property
    def steps(self) -> int:
        """The horizon."""
        return len(self.deviations)

    @property
    def predicted_error(self) -> float:
        """The largest standard deviation of a cell over all steps."""
        return float(self.deviations.max())

    @property
    def ratio(self) -> float:
        """The same in units of one release of everything; ``steps`` fresh releases would have its root."""
        return self.predicted_error / self.one_release

    def __repr__(self) -> str:
        return (
            f"StreamPlan(steps={self.steps}, predicted_error={self.predicted_error:.4g}, "
            f"ratio={self.ratio:.3g}, state_bytes={self.state_bytes})"
        )


def plan_of(claim: Claim, basis: Basis, noise: StreamNoise, count_share: Fraction) -> StreamPlan:
    """The plan of a stream whose noise is known."""
    gains = np.sqrt(noise.gains)
    rows, width = basis.shape
    tables = 2 + noise.strategy.secret_tables + noise.strategy.public_tables + noise.view.kept(noise.steps)
    return StreamPlan(
        claim=claim,
        deviations=math.sqrt(noise.table.variance) * gains,
        count_deviations=math.sqrt(noise.count.variance) * gains,
        one_release=_one_release(claim, basis, count_share),
        state_bytes=8 * tables * (rows * width + 1),
    )


def _one_release(claim: Claim, basis: Basis, count_share: Fraction) -> float:
    change = basis.unit_change(claim.unit, claim.records_per_unit, claim.relation)
    noise = calibrate(claim.promise, change, cells=math.prod(basis.shape), count_share=count_share).table
    return math.sqrt(noise.variance)
