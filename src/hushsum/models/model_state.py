"""What a fitted model holds: private sums until it is released, and after that public values alone."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from types import MethodType
from typing import Any, NoReturn, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import AlreadyReleased, SecretRefused, UsageError
from hushsum.models.repeated_fits import RefitGuard
from hushsum.records.data_derived_parameters import ParameterCheck
from hushsum.releases.bundle import Bundle

Method = TypeVar("Method", bound=Callable[..., Any])


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
        self.checks: list[ParameterCheck] = []
        self.bundle: Bundle | None = None
        self.reading: Any = None
        self.from_file = False
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
        self.bundle, self.reading, self.secret, self.checks = bundle, reading, None, []

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
