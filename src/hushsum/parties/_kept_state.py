"""What must outlive a crash: named bytes in a folder of one process, written durably before they are used."""

from __future__ import annotations

import fcntl
import os
import re
from pathlib import Path
from typing import Final, NoReturn, Protocol

from hushsum.errors import FileRefused, Parameter, SecretRefused, UsageError
from hushsum.files import atomic_file, seal, unseal

from ._tls import Identity

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.-]{0,120}")
_NOTICE: Final = "CONFIDENTIAL"
_WARNING: Final = (
    b"CONFIDENTIAL. The state of a run under way: private records, sums without noise, or secret keys.\n"
    b"Keep it until the run has ended; give it to nobody.\n"
)


class StateFolder:
    """A folder of mode 0700 with files of mode 0600, locked for one process at a time.

    A file appears whole or not at all, and `put` returns only when it is on the disk.

    Raises
    ------
    UsageError
        if another process works in the folder, or it holds other things.
    """

    __slots__ = ("_folder", "_lock")

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise UsageError("state", "must be a folder", got="a file") from None
        # A crash may have left an unfinished file, whose name begins with a dot.
        fresh = all(each.name[0] == "." for each in self._folder.iterdir())
        if not fresh and not (self._folder / _NOTICE).is_file():
            raise UsageError(f"the folder {str(folder)!r} holds other things than a run's state")
        os.chmod(self._folder, 0o700)
        self._lock = os.open(self._folder, os.O_RDONLY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise UsageError(
                f"another process works in {str(folder)!r}",
                remedy=("wait for its end, or give another ", Parameter("state")),
            ) from None
        if fresh:
            self._write(_NOTICE, _WARNING)

    def put(self, name: str, data: bytes) -> None:
        """Keep bytes under a name, durably, in place of what it held."""
        if not _NAME.fullmatch(name):
            raise ValueError(f"no name of a file: {name!r}")
        self._write(name, data)

    def get(self, name: str) -> bytes | None:
        """What is kept under a name."""
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None

    def keep(self, name: str, data: bytes) -> bytes:
        """The bytes under a name; these, if there are none yet. What was stored first stays."""
        kept = self.get(name)
        if kept is not None:
            return kept
        self.put(name, data)
        return data

    def names(self, prefix: str = "") -> list[str]:
        """The sorted names that begin with ``prefix``, without unfinished files."""
        return sorted(
            each.name
            for each in self._folder.iterdir()
            if _NAME.fullmatch(each.name) and each.name.startswith(prefix)
        )

    def close(self) -> None:
        """Let another process work in the folder."""
        os.close(self._lock)

    def __enter__(self) -> StateFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, name: str, data: bytes) -> None:
        with atomic_file(self._folder / name, mode=0o600) as stream:
            stream.write(data)


class EncryptedState:
    """Named bytes in a `StateFolder`, each file encrypted and bound to its name.

    A copy of the folder without the key file tells nothing but sizes.
    """

    __slots__ = ("_folder", "_key")

    def __init__(self, folder: StateFolder, identity: Identity) -> None:
        self._folder = folder
        self._key = identity.derived_key(b"state of an aggregation")

    def __repr__(self) -> str:
        return "<EncryptedState>"

    def __reduce__(self) -> NoReturn:
        raise SecretRefused("the state of a run holds a key and cannot be pickled")

    def get(self, name: str) -> bytes | None:
        """What is kept under a name.

        Raises
        ------
        FileRefused
            if it was changed, or encrypted under another key file.
        """
        kept = self._folder.get(name)
        if kept is None:
            return None
        try:
            return bytes(unseal(self._key, kept, name.encode("ascii")))
        except FileRefused:
            raise FileRefused("the state of this run was changed, or belongs to another key file") from None

    def put(self, name: str, data: bytes) -> None:
        """Keep bytes, durably, before this returns."""
        self._folder.put(name, seal(self._key, [data], name.encode("ascii")))


class SecretStore(Protocol):
    """Durable bytes by name, which nobody else can read."""

    def get(self, name: str) -> bytes | None:
        """What is kept under a name."""

    def put(self, name: str, data: bytes) -> None:
        """Keep bytes, durably, before this returns."""
