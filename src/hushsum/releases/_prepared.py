"""A release between its check and its publication."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from hushsum.privacy import Booking, Budget, Claim, ReleaseRequest, Statement, another_release, spend

from ._base import Released, StoredRelease, file_bytes, load_released

R = TypeVar("R", bound=Released)


@dataclass(frozen=True, slots=True)
class Prepared(Generic[R]):
    """A release that has been checked and not drawn: everything that can be refused was refused before.

    Attributes
    ----------
    claim : Claim
        What it will promise; known before anything is drawn.
    subject : mapping
        The description in the ledger: public. What the request states is added to it.
    make : callable
        Draws the noise, without spending: `spend` is what to call.
    request : ReleaseRequest
        Where it is debited, if `spend` is given no other place, and what is stated with it.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.privacy import ReleaseRequest
    >>> tally = hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=10).add([[1.0]] * 100)
    >>> prepared = tally.prepare(ReleaseRequest(epsilon=1.0))
    >>> prepared.claim.mechanism
    'discrete laplace'
    >>> f = prepared.spend()
    """

    claim: Claim
    subject: Mapping[str, object]
    make: Callable[[], R]
    request: ReleaseRequest = field(default_factory=ReleaseRequest)

    def __post_init__(self) -> None:
        object.__setattr__(self, "subject", {**self.subject, **self.request.statement.as_json()})

    def price(self, budget: Budget) -> object:
        """What the release costs in a budget, whether or not as much is left."""
        return budget.cost(self.claim)

    def _drawn(self) -> R:
        """What was made, with what the request states."""
        made = self.make()
        if self.request.statement == Statement():
            return made
        assert isinstance(made, StoredRelease)
        return made.stating(self.request.statement)

    def spend(self, booking: Booking | None = None, sink: Callable[[bytes], object] | None = None) -> R:
        """Debit the claim, draw, stage and publish: what was released. A retry returns the staged bytes.

        Parameters
        ----------
        booking : Booking, optional
            Where it is debited. Without one, and without that of the request, nothing is recorded.
        sink : callable, optional
            Brings the bytes of the file to their reader, before they count as published.

        Raises
        ------
        UsageError
            if the staged bytes claim something else: they were staged for another release.
        BudgetExhausted, ClaimError, AlreadyPublished
            as `hushsum.privacy.stage` does.
        """
        booking = self.request.booking if booking is None else booking
        if booking is None and sink is None:
            return self._drawn()
        released: list[Any] = []
        drawn = b""

        def file() -> bytes:
            nonlocal drawn
            released.append(self._drawn())
            drawn = file_bytes(released[0])
            return drawn

        def deliver(payload: bytes) -> None:
            if not released or payload != drawn:
                released[:] = [load_released(io.BytesIO(payload))]
                if released[0].claim != self.claim:
                    raise another_release()
            if sink is not None:
                sink(payload)

        spend(booking, self.claim, self.subject, file, deliver=deliver)
        function: R = released[0]
        return function
