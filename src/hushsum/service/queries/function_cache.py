"""Released functions and models in memory, loaded from the service's folder at their first query."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hushsum.errors import FileRefused, HushsumError, UsageError
from hushsum.operations import AnsweringModel, ExactModel
from hushsum.releases import Bundle, ReleasedFunction, load_released
from hushsum.service.settings import Settings
from hushsum.service.store import AnswerGuard

Queryable = ReleasedFunction | AnsweringModel | ExactModel
"""Whatever the service answers queries of."""


@dataclass(frozen=True, slots=True)
class HeavyFunction:
    """A released function that takes long to load: it is answered in compute processes only.

    ``dim`` is the number of numbers of a point; None for sets.
    """

    dim: int | None


class FunctionCache:
    """Released functions and models by id. They are immutable, so an entry never becomes stale."""

    def __init__(self, guard: Callable[[str, int], AnswerGuard], size: int = 32) -> None:
        self._guard = guard
        self._size = size
        self._lock = threading.Lock()
        self._functions: OrderedDict[str, Queryable | HeavyFunction] = OrderedDict()
        self._loading: dict[str, threading.Lock] = {}

    def get(self, id: str) -> Queryable | HeavyFunction | None:
        """A function that is in the cache, or None."""
        with self._lock:
            found = self._functions.get(id)
            if found is not None:
                self._functions.move_to_end(id)
            return found

    def newest(self) -> ReleasedFunction | None:
        """The function that was queried last, if it is in memory and not a model."""
        with self._lock:
            found = next(reversed(self._functions.values()), None)
        return found if isinstance(found, ReleasedFunction) else None

    def put(self, id: str, function: HeavyFunction) -> HeavyFunction:
        """Store that a function is not loaded here."""
        self._store(id, function)
        return function

    def load(self, id: str, settings: Settings) -> Queryable | HeavyFunction:
        """A function, loaded from its files if it is not in the cache; each at most once at a time, since
        two that have the same model in exact mode open would wait for each other.

        Raises
        ------
        FileRefused
            if its files are missing or were replaced by older copies.
        """
        with self._lock:
            loading = self._loading.setdefault(id, threading.Lock())
        with loading:
            found = self.get(id)
            if found is None:
                found = self._opened(id, settings)
                self._store(id, found)
        with self._lock:
            self._loading.pop(id, None)
        return found

    def _opened(self, id: str, settings: Settings) -> Queryable:
        if is_exact(id, settings):
            place, key = settings.path("served", id), settings.tally_key()
            return ExactModel.reopened(place, encryption_key=key, rollback_guard=partial(self._guard, id))
        function = released_function(function_path(id, settings))
        answer_once(function)
        return function

    def _store(self, id: str, function: Queryable | HeavyFunction) -> None:
        with self._lock:
            self._functions[id] = function
            while len(self._functions) > self._size:
                self._functions.popitem(last=False)

    def remove(self, id: str) -> None:
        """Remove a function from the cache."""
        with self._lock:
            self._functions.pop(id, None)


def is_exact(id: str, settings: Settings) -> bool:
    """Whether it is a model in exact mode, whose records the service keeps."""
    return settings.path("served", id).with_suffix(".secret").exists()


def function_path(id: str, settings: Settings) -> str:
    """The file of a released function or model."""
    return str(settings.path("functions", f"{id}.hush"))


def released_function(path: str) -> ReleasedFunction | AnsweringModel:
    """A released function or model.

    Raises
    ------
    FileRefused
        if its file is missing or damaged.
    """
    try:
        found = load_released(path)
    except UsageError:
        raise FileRefused("the function's file is missing from the service", remedy="restore it") from None
    if isinstance(found, Bundle):
        return AnsweringModel.of(found)
    assert isinstance(found, ReleasedFunction)
    return found


def answer_once(function: ReleasedFunction | AnsweringModel) -> bool:
    """Answer one point, since some functions prepare tables at their first query; False if it is refused."""
    points: Any = np.zeros((1, function.dim)) if function.dim is not None else [[]]
    try:
        if isinstance(function, AnsweringModel):
            function.answers(points)
        else:
            function.query(points)
    except HushsumError:
        return False
    return True
