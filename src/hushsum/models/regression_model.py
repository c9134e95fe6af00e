"""The declared range of what a regression learns."""

from __future__ import annotations

from hushsum.errors import UsageError, shown
from hushsum.records.bounds import Bounds


def declared_target(value: object) -> Bounds:
    """Read a ``target_bounds=`` argument: one (low, high).

    Raises
    ------
    UsageError
        The value is no such pair.

    >>> declared_target((0, 5000)).high
    (5000.0,)
    """
    try:
        box = Bounds.of(value, 1)
    except UsageError:
        box = None
    if box is None:
        raise UsageError(
            f"target_bounds must be (low, high), finite and with low < high, got {shown(value)}; "
            "declare the range that a target may have"
        )
    return box
