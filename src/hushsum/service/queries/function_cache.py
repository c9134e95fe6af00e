"""Released functions and models in memory, loaded from the service's folder at their first query."""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import partial

from hushsum.errors import FileRefused, UsageError
from hushsum.jobs.exact_mode_predictions import ExactModel
from hushsum.jobs.model_answers import AnsweringModel
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.bundle import Bundle
from hushsum.releases.load import load_released
from hushsum.service.queries.answer_rollback_guard import RollbackGuards
from hushsum.service.settings import Settings

Queryable = ReleasedFunction | AnsweringModel | ExactModel
"""Whatever the service answers queries of."""


class FunctionCache:
    """Released functions and models by id. They are immutable, so an entry never becomes stale."""

    def __init__(self, guards: RollbackGuards, size: int = 32) -> None:
        self._guards = guards
        self._size = size
        self._lock = threading.Lock()
        self._functions: OrderedDict[str, Queryable] = OrderedDict()

    def get(self, id: str) -> Queryable | None:
        """A function that is in the cache, or None."""
        return self._functions.get(id)

    def load(self, id: str, settings: Settings) -> Queryable:
        """A function, loaded from its files if it is not in the cache."""
        with self._lock:
            found = self._functions.get(id)
            if found is None:
                found = self._functions[id] = _load(id, settings, self._guards)
                while len(self._functions) > self._size:
                    self._functions.popitem(last=False)
            self._functions.move_to_end(id)
            return found

    def remove(self, id: str) -> None:
        """Remove a function from the cache."""
        with self._lock:
            self._functions.pop(id, None)


def _load(id: str, settings: Settings, guards: RollbackGuards) -> Queryable:
    """A released function, a released model, or a model in exact mode, whose records the service keeps.

    Raises
    ------
    FileRefused
        if its files are missing or were replaced by older copies.
    """
    place = settings.path("served", id)
    try:
        if place.with_suffix(".secret").exists():
            return ExactModel.reopened(
                place, encryption_key=settings.tally_key(), rollback_guard=partial(guards.of, id)
            )
        found = load_released(settings.path("functions", f"{id}.hush"))
    except UsageError:
        raise FileRefused(
            rule="the function's file is missing from the service", remedy="restore it"
        ) from None
    if isinstance(found, Bundle):
        return AnsweringModel.of(found)
    assert isinstance(found, ReleasedFunction)
    return found
