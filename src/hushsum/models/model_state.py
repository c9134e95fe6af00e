"""What a fitted model holds, and how repeated spending is noticed: the same fit again, and fits of clones."""

from __future__ import annotations

import secrets
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from threading import Lock
from types import MethodType
from typing import Any, NoReturn, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import AlreadyReleased, RepeatedSpending, SecretRefused, UsageError
from hushsum.releases.bundle import Bundle

_KEY = secrets.token_bytes(32)
_LOCK = Lock()
_SPENT: dict[str, set[str]] = {}
"""Of each lineage the keys of the releases that its members made in this process; nothing about records."""

Method = TypeVar("Method", bound=Callable[..., Any])


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


class ModelState:
    """The one mutable thing of a model; its estimator's attributes do not change when it releases.

    Before the release ``secret`` holds whatever was counted; after it, that is dropped, and ``bundle`` and
    ``reading`` (what predictions are computed from) are public.

    Privacy
    -------
    An unreleased state is neither pickled nor copied: it holds private sums, and a copy could be released
    too.
    """

    def __init__(self, *, secret: object, facts: dict[str, Any], seed: int, key: str | None) -> None:
        self.secret: Any = secret
        self.facts = facts
        self.seed = seed
        self.key = secrets.token_hex(16) if key is None else key
        self.broken = False
        self.guard: RefitGuard | None = None
        self.bundle: Bundle | None = None
        self.reading: Any = None
        self.lock = Lock()

    @classmethod
    def opened(cls, bundle: Bundle, facts: dict[str, Any], seed: int) -> ModelState:
        """The state of a model that was released before, from its bundle."""
        state = cls(secret=None, facts=facts, seed=seed, key=None)
        state.bundle = bundle
        return state

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Count all of a batch, or leave a state that says that it cannot be trusted any more."""
        self.check_whole()
        self.broken = True
        yield
        self.broken = False

    def check_whole(self) -> None:
        """Refuse a state that was interrupted while counting."""
        if self.broken:
            raise UsageError(
                rule="this model was interrupted while counting and may hold a part of a batch",
                remedy="fit it anew",
            )

    def settle(self, bundle: Bundle, reading: object) -> None:
        """Keep what was released and forget the records."""
        self.bundle, self.reading, self.secret = bundle, reading, None

    def __repr__(self) -> str:
        return "<ModelState CONFIDENTIAL>" if self.bundle is None else "<ModelState released>"

    def refuse_to_leave(self) -> NoReturn:
        """Say why an unreleased model is not copied or pickled."""
        raise SecretRefused(
            rule=("a model that has not been released holds private sums and must not be pickled or copied"),
            remedy="call release() first, which spends its budget, and share that",
        )

    def __reduce_ex__(self, protocol: object) -> tuple[Callable[..., ModelState], tuple[Any, ...]]:
        if self.bundle is None:
            self.refuse_to_leave()
        return ModelState.opened, (self.bundle, self.facts, self.seed)


def until_released(method: Method) -> Method:
    """A method that is gone once the model is released: asking for it raises ``AlreadyReleased``.

    scikit-learn finds out with ``hasattr`` what an estimator can do, and would call what it finds.
    """
    return cast(Method, _UntilReleased(method))


class _UntilReleased:
    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    def __get__(self, model: Any, owner: type) -> Callable[..., Any]:
        if model is None:
            return self._method
        state = getattr(model, "_state", None)
        if state is not None and state.bundle is not None:
            raise AlreadyReleased(
                rule=("a released model takes no more records, because its budget was spent on those it had"),
                remedy="fit again, which spends again",
            )
        return MethodType(self._method, model)


class KeptRecords:
    """Features and targets, kept until the release because a method needs all at once; secret."""

    __slots__ = ("_features", "_target")

    def __init__(self) -> None:
        self._features: list[Floats] = []
        self._target: list[NDArray[Any]] = []

    def add(self, features: Floats, target: NDArray[Any]) -> None:
        """Keep a batch."""
        self._features.append(features)
        self._target.append(target)

    def all(self) -> tuple[Floats, NDArray[Any]]:
        """Everything, for the one fit."""
        return np.concatenate(self._features), np.concatenate(self._target)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} CONFIDENTIAL>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise SecretRefused(
            rule="kept records must not be pickled or copied", remedy="release the model and share that"
        )
