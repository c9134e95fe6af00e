"""The exact, secret contents of a tally, which the library shows to nobody."""

from __future__ import annotations

from typing import Any

from hushsum import Tally


def exact_state(tally: Tally) -> dict[str, Any]:
    """Table, count, number of changes, cap and origins."""
    return tally._state()


def exact_table(tally: Tally) -> Any:
    """The counters before any noise: an array, or a ``CounterTable`` of a large tally."""
    return tally._state()["table"]


def exact_count(tally: Tally) -> int:
    """The number of records counted."""
    count: int = tally._state()["count"]
    return count
