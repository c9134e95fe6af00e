"""The state of one process of a run, encrypted on disk under a key that only the party's key file gives."""

from __future__ import annotations

import os
from typing import NoReturn

from hushsum.errors import FileRefused, SecretRefused
from hushsum.transport.peer_identity import Identity
from hushsum.transport.state_folder import StateFolder

_NONCE = 12


class EncryptedState:
    """Named bytes in a `StateFolder`, each file sealed by ChaCha20-Poly1305 and bound to its name.

    A copy of the folder without the key file tells nothing but sizes. The nonces are random: a run writes a
    few dozen files.
    """

    __slots__ = ("_folder", "_key")

    def __init__(self, folder: StateFolder, identity: Identity) -> None:
        self._folder = folder
        self._key = identity.derived_key(b"state of an aggregation")

    def __repr__(self) -> str:
        return "<EncryptedState>"

    def __reduce__(self) -> NoReturn:
        raise SecretRefused(
            rule="the state of a run holds a key and cannot be pickled",
            remedy="open it again with the key file",
        )

    def get(self, name: str) -> bytes | None:
        """What is kept under a name.

        Raises
        ------
        FileRefused
            if it was changed, or encrypted under another key file.
        """
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

        kept = self._folder.get(name)
        if kept is None:
            return None
        try:
            return ChaCha20Poly1305(self._key).decrypt(kept[:_NONCE], kept[_NONCE:], name.encode("ascii"))
        except (InvalidTag, ValueError):
            raise FileRefused(
                rule="the state of this run was changed, or belongs to another key file",
                remedy="give the key file that the run began with",
            ) from None

    def put(self, name: str, data: bytes) -> None:
        """Keep bytes, durably, before this returns."""
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

        nonce = os.urandom(_NONCE)
        sealed = ChaCha20Poly1305(self._key).encrypt(nonce, data, name.encode("ascii"))
        self._folder.put(name, nonce + sealed)
