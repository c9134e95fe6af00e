"""A store of a protocol's state that lasts as long as the test."""

from __future__ import annotations

from typing import NoReturn

from hushsum.errors import SecretRefused


class MemoryStore:
    """Named bytes in memory, in place of an encrypted folder."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def get(self, name: str) -> bytes | None:
        return self._kept.get(name)

    def put(self, name: str, data: bytes) -> None:
        self._kept[name] = data

    def __reduce__(self) -> NoReturn:
        raise SecretRefused("the state of a run is secret and cannot be pickled")

    def copy(self) -> MemoryStore:
        made = MemoryStore()
        made._kept.update(self._kept)
        return made
