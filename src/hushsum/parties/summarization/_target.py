"""The consumer's noisy target, released from the validation set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike

from hushsum._types import Floats, Integers
from hushsum.errors import ClaimError, FileRefused
from hushsum.parties._messages import (
    COUNT,
    FLAG,
    RATIONAL,
    TEXT,
    TEXTS,
    VECTOR,
    Field,
    Message,
    message_field,
)
from hushsum.privacy import release_noise

from ._features import PUBLIC_SEED, SummaryFeatures
from ._messages import FEATURES
from ._noisy_sums import count_step, target_variance

_LARGEST_STEP = 1 << 53


@dataclass(frozen=True, slots=True, eq=False)
class NoisyTarget(Message):
    """The validation set as every owner may see it; public.

    ``cells`` holds the noisy feature sums and, last, the noisy count times its weight.

    Privacy
    -------
    ``rho``-zCDP for one record of the validation set present or absent: it adds a vector of length at most
    √(m·1024² + step²), and the noise is discrete Gaussian of that length squared over 2ρ.
    """

    kind: ClassVar[str] = "target"
    damaged: ClassVar[str] = "this validation release is damaged"

    cells: Annotated[Integers, VECTOR]
    step: Annotated[int, COUNT]
    variance: Annotated[Fraction, RATIONAL]
    rho: Annotated[Fraction, RATIONAL]
    secure: Annotated[bool, FLAG] = True

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

    def check(self) -> None:
        """ValueError unless a mean can be computed from it."""
        if self.cells.size < 2:
            raise ValueError("cells")
        if not 1 <= self.step <= _LARGEST_STEP or self.rho <= 0 or not 0 < float(self.variance) < 1e100:
            raise ValueError("numbers")


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
        raise ClaimError("rho", "must be above 0", got=f"{float(spent):g}")
    hashes = features.hashes(validation)
    step = count_step(features)
    cells = np.append(hashes.sum(axis=0, dtype=np.int64), len(hashes) * step)
    variance = target_variance(features, spent)
    with release_noise(insecure_noise_seed) as noise:
        noisy = noise.integer_gaussian(cells, variance)
    return NoisyTarget(noisy, step, variance, spent, secure=insecure_noise_seed is None)


_PUBLIC_FEATURES: Final = Field(FEATURES.read, lambda features: replace(features, seed=PUBLIC_SEED).as_json())


@dataclass(frozen=True, slots=True, eq=False)
class HashedTarget(Message):
    """A `NoisyTarget` under a secret seed, with what the curator needs to agree on terms.

    ``features`` have `PUBLIC_SEED`; ``columns`` are the names that were hashed, in order;
    ``secret_check`` is the secret's, by which owners see that they hold the same one.
    """

    kind: ClassVar[str] = "hashed validation release"
    damaged: ClassVar[str] = NoisyTarget.damaged

    features: Annotated[SummaryFeatures, _PUBLIC_FEATURES]
    columns: Annotated[tuple[str, ...], TEXTS]
    secret_check: Annotated[str, TEXT]
    target: Annotated[NoisyTarget, message_field(NoisyTarget)]

    def check(self) -> None:
        """FileRefused unless its noise is that of its promise."""
        if not self.columns:
            raise ValueError("names")
        features, target = self.features, self.target
        if (target.step, target.cells.size) != (count_step(features), features.width + 1):
            raise FileRefused("this validation release does not have the features that it states")
        if target.variance != target_variance(features, target.rho):
            raise FileRefused("this validation release has other noise than its promise needs")
