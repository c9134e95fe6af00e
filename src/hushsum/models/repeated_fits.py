"""Repeated fits: the same ``fit`` again keeps its model, and a fit of a clone warns or is refused."""

from __future__ import annotations

import secrets
import warnings
import weakref
from collections.abc import Mapping
from hashlib import blake2b
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import RepeatedSpending, UsageError

_KEY = secrets.token_bytes(32)
_LOCK = Lock()
_SPENT: dict[str, set[str]] = {}
"""Of each lineage the keys of the releases that its members made in this process; nothing about records."""


class RefitGuard:
    """Which objects a model was fitted on, and with which parameters; it keeps neither alive.

    ``fit`` called again on the very same array objects with the very same parameters asks for the model that
    was paid for already, so it stays.

    Privacy
    -------
    What decides is which objects the program passes, never what is in them: a fit that stayed because two
    arrays had *equal contents* would tell everybody that they had, for instance that leaving out Alice
    changed nothing. Contents are compared only to tell the owner that an array was changed in place.
    """

    def __init__(self, given: tuple[object, object], owner: Mapping[str, object]) -> None:
        self._objects = tuple(_reference(each) for each in given)
        self._owner = dict(owner)
        self._digest = b""

    def remember(self, records: NDArray[Any], target: NDArray[Any] | None) -> None:
        """Keep a keyed digest of what was counted."""
        self._digest = _digest(records, target)

    def same_call(self, given: tuple[object, object], owner: Mapping[str, object]) -> bool:
        """Whether the same objects are passed again, with the same generator and the same budget."""
        return all(
            reference is not None and reference() is each
            for reference, each in zip(self._objects, given, strict=True)
        ) and all(_same(owner[name], value) for name, value in self._owner.items())

    def check_unchanged(self, records: NDArray[Any], target: NDArray[Any] | None) -> None:
        """Refuse an array that is the same object with other contents."""
        if _digest(records, target) != self._digest:
            raise UsageError(
                rule=(
                    "X or y was changed in place since this model was fitted on it and released, "
                    "so it is neither the same data nor visibly other data"
                ),
                remedy="pass a copy, which spends again",
            )


def _same(one: object, other: object) -> bool:
    return one is other or (isinstance(one, int | str) and one == other)


def _reference(thing: object) -> Any:
    """A call that gives the object as long as it lives; None for what cannot be watched, such as a list."""
    if thing is None:
        return lambda: None
    try:
        return weakref.ref(thing)
    except TypeError:
        return None


def _digest(records: NDArray[Any], target: NDArray[Any] | None) -> bytes:
    digest = blake2b(key=_KEY)
    for array in (records, target):
        if array is not None:
            digest.update(repr((array.shape, array.dtype.str)).encode())
            digest.update(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
    return digest.digest()


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
            parameter="idempotency_key",
            rule="names one release",
            got=("it for a second model of the same lineage, which would be given the first one's answers"),
            remedy="leave it out, or give each model its own",
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
