"""What every method that releases in one call does: check the promise, debit it, make the function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypedDict, TypeVar, Unpack

import numpy as np

from hushsum._types import Floats, Rows
from hushsum.errors import ClaimError
from hushsum.kernels.base import ColumnKernel, Kernel
from hushsum.methods.registry import Method
from hushsum.privacy.budget import Budget
from hushsum.privacy.calibration import COUNT_SHARE
from hushsum.privacy.claim import Claim, Promise, Relation
from hushsum.privacy.mechanism import Mechanism
from hushsum.privacy.release_noise import ReleaseNoise
from hushsum.privacy.release_request import check_declared_delta
from hushsum.privacy.spending import Booking
from hushsum.records.bounds import Bounds, declared_bounds
from hushsum.records.columns_by_name import columns_of
from hushsum.records.data_derived_parameters import ParameterCheck
from hushsum.records.private_rows_as_public import refuse_copied_rows, refuse_private_rows
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.point_errors import FeatureErrors
from hushsum.releases.prepared_release import spend_function
from hushsum.releases.real_function import check_kernel
from hushsum.releases.weighted_points import PointsFunction
from hushsum.version import PRODUCER

F = TypeVar("F", bound=ReleasedFunction)


class ReleaseKeywords(TypedDict, total=False):
    """The keyword arguments that every one-call release passes on.

    ``budget``, ``idempotency_key`` and ``insecure_noise_seed`` as for ``Tally.release``;
    ``allow_large_delta`` claims a delta above 1e-5 all the same.
    """

    budget: Budget | None
    idempotency_key: str | None
    insecure_noise_seed: int | None
    allow_large_delta: bool


@dataclass(frozen=True, slots=True)
class OneCallRelease:
    """The claim of a method's release, known before anything is drawn, and where it is debited."""

    method: str
    claim: Claim
    booking: Booking | None
    insecure_noise_seed: int | None

    @classmethod
    def of(
        cls,
        method: Method,
        *,
        epsilon: float,
        delta: float | None,
        relation: str | Relation,
        mechanism: Mechanism | None = None,
        arithmetic: str | None = None,
        assumptions: Sequence[str] = (),
        **keywords: Unpack[ReleaseKeywords],
    ) -> OneCallRelease:
        """Check that the method can promise this.

        Raises
        ------
        ClaimError
            if it takes no delta, or needs one, or does not protect such neighbours.
        """
        promise = Promise.of(epsilon=epsilon, delta=delta)
        if not (method.pure if promise.pure else method.approximate):
            rule, got = ("a delta above 0", "none") if promise.pure else ("no delta", "one")
            remedy = "try delta=1e-6" if promise.pure else "leave it out"
            raise ClaimError(rule=f"{method.name} takes {rule}", got=got, remedy=f"{remedy}")
        check_declared_delta(promise, None, allow_large_delta=keywords.get("allow_large_delta", False))
        neighbours = Relation.of(relation)
        if neighbours not in method.relations:
            raise ClaimError(
                rule=(
                    f"{method.name} divides by the number of records, which is public under "
                    f"{method.relations[0]} alone"
                ),
                got=neighbours,
                remedy="use another method",
            )
        seed = keywords.get("insecure_noise_seed")
        claim = Claim(
            promise=promise,
            unit="record",
            records_per_unit=1,
            relation=neighbours,
            mechanism=method.mechanism if mechanism is None else mechanism,
            arithmetic=method.arithmetic if arithmetic is None else arithmetic,
            secure=seed is None,
            assumptions=tuple(assumptions),
        )
        booking = Booking.of(keywords.get("budget"), keywords.get("idempotency_key"))
        return cls(method.name, claim, booking, seed)

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

    def count(
        self, noise: ReleaseNoise, records: int, part: Fraction = COUNT_SHARE
    ) -> tuple[float, float, Fraction]:
        """The number of records as the release may know it, its variance, and the ε that is left.

        Under replace it is public. Under add/remove a ``part`` of ε pays for a noisy one.
        """
        if not self.private_count:
            return float(max(records, 1)), 0.0, self.epsilon
        share = self.epsilon * part
        noisy, drawn = noise.laplace(np.array([records], np.int64), 1, share)
        return float(max(int(noisy[0]), 1)), drawn.variance, self.epsilon - share

    def points_function(
        self,
        box: DeclaredBox,
        *,
        points: Floats,
        weights: Floats,
        count: float,
        count_variance: float = 0.0,
        feature_errors: FeatureErrors | None = None,
    ) -> PointsFunction:
        """Weighted points whose noise is not independent, as the function that this release makes public."""
        return PointsFunction(
            points=points,
            weights=weights,
            kernel=box.kernel,
            bounds=box.bounds,
            count=count,
            count_variance=count_variance,
            weight_variance=None,
            feature_errors=feature_errors,
            claim=self.claim,
            method=self.method,
            producer=PRODUCER,
            columns=box.columns,
        )

    def released(self, make: Callable[[], F], **subject: object) -> F:
        """Make the function, debited first where there is a budget; a retry returns the staged one."""
        return spend_function(self.booking, self.claim, {"method": self.method, **subject}, make)


PUBLIC_POINTS: Final = "the points that were given are public"
"""What is assumed where points that are published, or that decide what is, were given."""


@dataclass(frozen=True, slots=True)
class DeclaredBox:
    """The box that a one-call method works in, and the names of its columns."""

    kernel: Kernel
    bounds: Bounds
    columns: tuple[str, ...] | None

    @classmethod
    def of(cls, kernel: Kernel, bounds: object, columns: Sequence[str] | None) -> DeclaredBox:
        """The bounds for a kernel of columns; refuses other kernels."""
        check_kernel(kernel, kernel.dim or 1)
        box, names = declared_bounds(bounds, dim=kernel.dim or 1, columns=columns)
        if box is None:
            raise ClaimError(
                parameter="bounds",
                rule="must be declared",
                got="none",
                remedy="give (low, high) for every column",
            )
        return cls(kernel, box, names)

    def refuse_private(self, public: object, X: object, parameter: str) -> None:
        """Refuse the private records in place of public points, before anything is spent.

        Raises
        ------
        UsageError
            for the records themselves, or copies of them.
        """
        refuse_private_rows(public, X, parameter=parameter)
        refuse_copied_rows(public, X, self.kernel.dim, self.columns, parameter=parameter)

    def records(self, X: object) -> Rows:
        """The records, checked, clipped to the box and centred on it; secret.

        Raises
        ------
        DataRefused
            also where most of them lie outside of the box, unless that is allowed.
        """
        rows: Rows = self.kernel.prepare(X, self.bounds, columns=self.columns).arrays[0]
        check = ParameterCheck(self.bounds, bandwidths=_widths(self.kernel), columns=self.columns)
        check.warn(lambda: columns_of(X, self.bounds.dim, self.columns), rows=rows)
        return rows


def _widths(kernel: Kernel) -> list[float]:
    return [kernel.bandwidth] if isinstance(kernel, ColumnKernel) else []
