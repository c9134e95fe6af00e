"""A bounded cache whose entries expire."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Generic, TypeVar

V = TypeVar("V")


class TtlCache(Generic[V]):
    """Values that expire after ``seconds``; beyond ``size`` entries, the oldest is evicted."""

    def __init__(self, seconds: float, size: int = 4096) -> None:
        self._seconds = seconds
        self._size = size
        self._entries: OrderedDict[str, tuple[float, V]] = OrderedDict()

    def get(self, key: str) -> V | None:
        """The value, unless it has expired."""
        found = self._entries.get(key)
        if found is None or found[0] < time.monotonic():
            return None
        return found[1]

    def put(self, key: str, value: V) -> V:
        """Store a value, and return it."""
        self._entries[key] = (time.monotonic() + self._seconds, value)
        while len(self._entries) > self._size:
            self._entries.popitem(last=False)
        return value

    def clear(self) -> None:
        """Remove every entry."""
        self._entries.clear()
