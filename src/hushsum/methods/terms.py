"""The release parameters that all one-call methods share, checked before a record is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import ClaimError
from hushsum.kernels.base import Kernel
from hushsum.privacy.budget import Budget
from hushsum.privacy.calibration import COUNT_SHARE
from hushsum.privacy.claim import Claim, Promise
from hushsum.privacy.relation import Relation
from hushsum.privacy.release_noise import ReleaseNoise
from hushsum.privacy.request import check_declared_delta
from hushsum.privacy.spending import Booking
from hushsum.records.bounds import Bounds
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.points import check_kernel
from hushsum.releases.spending import spend_function

Pair = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Terms:
    """A claim that is known before anything is drawn, and where it is debited."""

    claim: Claim
    booking: Booking | None
    insecure_noise_seed: int | None

    @classmethod
    def of(
        cls,
        *,
        epsilon: float,
        delta: float | None,
        relation: str | Relation,
        mechanism: str,
        arithmetic: str,
        pure: bool,
        relations: tuple[Relation, ...] = tuple(Relation),
        allow_large_delta: bool = False,
        budget: Budget | None = None,
        idempotency_key: str | None = None,
        insecure_noise_seed: int | None = None,
    ) -> Terms:
        """Check the parameters; ``pure`` says whether the mechanism promises pure ε or (ε, δ)."""
        promise = Promise.of(epsilon=epsilon, delta=delta)
        if promise.pure is not pure:
            rule, got = ("no delta", "one") if pure else ("a delta above 0", "none")
            remedy = "leave it out" if pure else "try delta=1e-6"
            raise ClaimError(f"this method takes {rule}, got {got}; {remedy}")
        check_declared_delta(promise, None, allow_large=allow_large_delta)
        neighbours = Relation.of(relation)
        if neighbours not in relations:
            raise ClaimError(
                f"this method divides by the number of records, which is public under {relations[0]} alone, "
                f"got {neighbours}; use another method"
            )
        claim = Claim(
            promise=promise,
            unit="record",
            records_per_unit=1,
            relation=neighbours,
            mechanism=mechanism,
            arithmetic=arithmetic,
            secure=insecure_noise_seed is None,
        )
        return cls(claim, Booking.of(budget, idempotency_key), insecure_noise_seed)

    @property
    def epsilon(self) -> Fraction:
        """The ε of the whole release."""
        assert self.claim.promise.epsilon is not None
        return self.claim.promise.epsilon

    @property
    def delta(self) -> Fraction:
        """The δ of the whole release."""
        return self.claim.promise.delta

    @property
    def private_count(self) -> bool:
        """Whether the number of records is private, and must be paid for."""
        return self.claim.relation is Relation.ADD_REMOVE

    def count(self, noise: ReleaseNoise, records: int) -> tuple[float, float, Fraction]:
        """The number of records as the release may know it, its variance, and the ε that is left.

        Under replace it is public. Under add/remove a fiftieth of ε pays for a noisy one.
        """
        if not self.private_count:
            return float(max(records, 1)), 0.0, self.epsilon
        share = self.epsilon * COUNT_SHARE
        noisy, drawn = noise.laplace(np.array([records], np.int64), 1, share)
        return float(max(int(noisy[0]), 1)), drawn.variance, self.epsilon - share

    def released(
        self, method: str, make: Callable[[], ReleasedFunction], subject: dict[str, object]
    ) -> ReleasedFunction:
        """Make the function, debited first where there is a budget; a retry returns the staged one."""
        return spend_function(self.booking, self.claim, {"method": method, **subject}, make)


def declared_box(kernel: Kernel, bounds: object) -> Bounds:
    """The bounds for a kernel of columns; refuses other kernels."""
    dim = getattr(kernel, "dim", 1)
    check_kernel(kernel, dim)
    if bounds is None:
        raise ClaimError("bounds must be declared, got none; give (low, high) for every column")
    box = Bounds.of(bounds, dim)
    assert box is not None
    return box


def centred_rows(X: object, kernel: Kernel, box: Bounds) -> NDArray[np.float32]:
    """The records, checked, clipped to the box and centred on it; secret."""
    rows: NDArray[np.float32] = kernel.prepare(X, box).arrays[0]
    return rows
