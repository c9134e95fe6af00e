"""The options that book a release, read together."""

from __future__ import annotations

from hushsum.errors import UsageError
from hushsum.jobs.ledger_release import Booking


def booking_of(
    ledger: str | None, dataset: str | None, key: str | None, to: str | None, part: str | None
) -> Booking | None:
    """Where the release is booked; None without a ledger.

    Raises
    ------
    UsageError
        if only a part of a booking is given.
    """
    if (ledger is None) != (dataset is None):
        raise UsageError("--ledger and --dataset go together, got one of them; give both")
    if ledger is None or dataset is None:
        if any(each is not None for each in (key, to, part)):
            raise UsageError("--key, --to and --part are for a ledger, got none; give --ledger and --dataset")
        return None
    return Booking(ledger, dataset, key, to, part)
