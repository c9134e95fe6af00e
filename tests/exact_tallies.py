"""The exact, secret contents of a tally, which the library shows to nobody."""

from __future__ import annotations

from typing import Any

from hushsum import Tally


def exact_state(tally: Tally) -> dict[str, Any]:
    """Table, count, number of changes, cap and origins."""
    names = ("table", "count", "moves", "cap", "origins")
    return {name: getattr(tally, f"_{name}") for name in names}


def exact_table(tally: Tally) -> Any:
    """The counters before any noise: an array, or a ``CounterTable`` of a large tally."""
    return tally._table


def exact_count(tally: Tally) -> int:
    """The number of records counted."""
    return tally._count
