"""Release a function through a budget, as the bytes of its file."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from hushsum.privacy.claim import Claim
from hushsum.privacy.spending import Booking, another_release, spend
from hushsum.releases.base import Released
from hushsum.releases.load import load_released

R = TypeVar("R", bound=Released)


@dataclass(frozen=True, slots=True)
class Delivery(Generic[R]):
    """A released function, and the bytes of its file."""

    function: R
    payload: bytes


@dataclass(frozen=True, slots=True)
class PreparedRelease(Generic[R]):
    """A release that has been checked and not drawn. ``claim`` is what it will promise.

    Attributes
    ----------
    claim : Claim
        Known before anything is drawn.
    subject : mapping
        The description in the ledger: public.
    booking : Booking or None
        Where it is debited.
    make : callable
        Draws the noise, without spending: `draw` is what to call.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.privacy.release_request import ReleaseRequest
    >>> tally = hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=10).add([[1.0]] * 100)
    >>> prepared = tally.prepare(ReleaseRequest(epsilon=1.0))
    >>> prepared.claim.mechanism
    'discrete laplace'
    >>> f = prepared.draw()
    """

    claim: Claim
    subject: Mapping[str, object]
    booking: Booking | None
    make: Callable[[], R]

    def draw(self) -> R:
        """Debit, draw and return the released function. Spends the claim."""
        return spend_function(self.booking, self.claim, self.subject, self.make)


def spend_function(
    booking: Booking | None,
    claim: Claim,
    subject: Mapping[str, object],
    make: Callable[[], R],
) -> R:
    """`hushsum.privacy.spending.spend` for what ``make`` draws; a retry returns the staged function."""
    if booking is None:
        return make()
    return deliver_function(booking, claim, subject, make, deliver=lambda payload: None).function


def deliver_function(
    booking: Booking | None,
    claim: Claim,
    subject: Mapping[str, object],
    make: Callable[[], R],
    *,
    deliver: Callable[[bytes], object],
) -> Delivery[R]:
    """The same, with the bytes of the file delivered before they count as published.

    Raises
    ------
    UsageError
        if the staged bytes claim something else: they were staged for another release.
    """
    functions: list[Any] = []
    drawn = b""

    def file() -> bytes:
        nonlocal drawn
        functions.append(make())
        buffer = io.BytesIO()
        functions[0].save(buffer)
        drawn = buffer.getvalue()
        return drawn

    def check_and_deliver(payload: bytes) -> None:
        if not functions or payload != drawn:
            functions[:] = [load_released(io.BytesIO(payload))]
            if functions[0].claim != claim:
                raise another_release()
        deliver(payload)

    payload = spend(booking, claim, subject, file, deliver=check_and_deliver)
    return Delivery(functions[0], payload)
