"""What the consumer publishes about its validation set, once: a noisy sum of features and a noisy count."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from hushsum._types import Floats, Integers
from hushsum.errors import ClaimError, FileRefused
from hushsum.files.encoding import stored_rational
from hushsum.privacy.release_noise import release_noise
from hushsum.summarize.calibration import count_step, target_variance
from hushsum.summarize.features import SummaryFeatures
from hushsum.transport.serialization import check_spelling, pack, unpack

_LARGEST_STEP = 1 << 53


@dataclass(frozen=True, slots=True, eq=False)
class NoisyTarget:
    """The validation set as every owner may see it; public.

    ``cells`` holds the noisy feature sums and, last, the noisy count times its weight.

    Privacy
    -------
    ``rho``-zCDP for one record of the validation set present or absent: it adds a vector of length at most
    √(m·1024² + step²), and the noise is discrete Gaussian of that length squared over 2ρ.
    """

    cells: Integers
    step: int
    variance: Fraction
    rho: Fraction
    secure: bool = True

    @property
    def count(self) -> float:
        """The noisy number of records, at least 1."""
        return max(float(self.cells[-1]) / self.step, 1.0)

    def mean(self) -> Floats:
        """The noisy mean of the integer features."""
        result: Floats = self.cells[:-1].astype(np.float64) / self.count
        return result

    @property
    def mean_variance(self) -> float:
        """The variance of the noise in one coordinate of the mean."""
        return float(self.variance) / self.count**2

    def _check(self) -> None:
        """ValueError unless a mean can be computed from it."""
        if self.cells.ndim != 1 or self.cells.size < 2 or self.cells.dtype != np.int64:
            raise ValueError("cells")
        if not 1 <= self.step <= _LARGEST_STEP or self.rho <= 0 or not 0 < float(self.variance) < 1e100:
            raise ValueError("numbers")

    def to_bytes(self) -> bytes:
        """The one spelling."""
        values = {
            "step": self.step,
            "variance": str(self.variance),
            "rho": str(self.rho),
            "secure": self.secure,
        }
        return pack("target", values, {"cells": self.cells})

    @classmethod
    def from_bytes(cls, data: bytes) -> NoisyTarget:
        """Read it back; FileRefused if it is damaged."""
        _, values, arrays = unpack(data, "target")
        try:
            variance, rho = stored_rational(values["variance"]), stored_rational(values["rho"])
            target = cls(arrays["cells"], int(values["step"]), variance, rho, bool(values["secure"]))
            check_spelling(target, data)
            target._check()
            return target
        except (KeyError, TypeError, ValueError, ArithmeticError):
            raise FileRefused(rule="this validation release is damaged", remedy="get a fresh copy") from None


def release_target(
    features: SummaryFeatures,
    validation: ArrayLike,
    rho: float | Fraction,
    *,
    insecure_noise_seed: int | None = None,
) -> NoisyTarget:
    """Release a validation set; the consumer does this once and hands the result to the curator.

    Raises
    ------
    ClaimError
        rho is not above 0.
    """
    spent = Fraction(rho)
    if spent <= 0:
        raise ClaimError(
            parameter="rho", rule="must be above 0", got=f"{float(spent):g}", remedy="0.02 is a common choice"
        )
    hashes = features.hashes(validation)
    step = count_step(features)
    cells = np.append(hashes.sum(axis=0, dtype=np.int64), len(hashes) * step)
    variance = target_variance(features, spent)
    with release_noise(insecure_noise_seed) as noise:
        noisy = noise.integer_gaussian(cells, variance)
    return NoisyTarget(noisy, step, variance, spent, secure=insecure_noise_seed is None)
