"""The rollback guard of a store of answers: how many were given, recorded outside of the store."""

from __future__ import annotations

from typing import Protocol


class RollbackGuard(Protocol):
    """A number that only grows, kept where the store is not.

    An older copy of a store looks like a store in good order. Continued, it would answer points a second
    time, by another path; anyone who sees both learns the difference. The guard detects that answers are
    missing.
    """

    def known(self) -> int:
        """How many answers were given at least.

        Raises
        ------
        LedgerUnavailable
            while that cannot be known.
        """

    def note(self, number: int) -> None:
        """Record durably that so many are about to be given; a smaller number changes nothing."""
