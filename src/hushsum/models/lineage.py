"""Which models descend from one another, so that a search which spends at every fit is noticed."""

from __future__ import annotations

import secrets
import warnings
from threading import Lock

from hushsum.errors import RepeatedSpending, UsageError

_LOCK = Lock()
_SPENT: dict[str, set[str]] = {}
"""Of each lineage the keys of the releases that its members made in this process; nothing about records."""


def new_lineage() -> str:
    """A name for a model and its clones. It travels with pickles, so that workers of a search know it too."""
    return secrets.token_hex(8)


def check_first(lineage: str, key: str) -> None:
    """Warn before a second member of a lineage releases; refuse if it would do so under the first one's key.

    Raises
    ------
    UsageError
        if the key has been used: a ledger would return the first model's answers for the second.
    """
    with _LOCK:
        earlier = frozenset(_SPENT.get(lineage, ()))
    if key in earlier:
        raise UsageError(
            "idempotency_key names one release, got it for a second model of the same lineage, which would "
            "be given the first one's answers; leave it out, or give each model its own"
        )
    if earlier:
        warnings.warn(
            "this model, or a clone of it, has released before: if they saw the same records, what each "
            "spent adds up. A search or a cross-validation spends at every fit; choose parameters on public "
            "data, or pay for the choice with hushsum.choose",
            RepeatedSpending,
            stacklevel=5,
        )


def note_release(lineage: str, key: str) -> None:
    """Write down that a member of the lineage has released."""
    with _LOCK:
        _SPENT.setdefault(lineage, set()).add(key)
