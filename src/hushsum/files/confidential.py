"""Files of secrets: readable by their owner only, and encrypted where a key is given."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from hushsum.errors import UsageError
from hushsum.files.container import (
    Buffer,
    FileKind,
    Header,
    build_from,
    canonical_json,
    read_container,
    write_container,
)
from hushsum.files.encryption import CHUNK, SALT_BYTES, decrypt, encrypt, encrypted_size

T = TypeVar("T")


def write_confidential(
    path: str | os.PathLike[str],
    kind: FileKind,
    header: Mapping[str, object],
    sections: Iterable[Buffer],
    *,
    encryption_key: bytes | None,
) -> None:
    """Write a container with mode 0600. The header, which is never encrypted, says whether the payload is."""
    encryption: Header | None = None
    if encryption_key is not None:
        salt = os.urandom(SALT_BYTES)
        encryption = {"cipher": "HKDF-SHA256, AES-256-GCM", "chunk": CHUNK, "salt": salt.hex()}
    written = {**header, "encryption": encryption}
    if encryption_key is not None:
        sections = encrypt(sections, encryption_key, salt, canonical_json(written))
    write_container(path, kind, written, sections, mode=0o600)


def read_confidential(
    path: str | os.PathLike[str],
    kind: FileKind,
    payload_size: Callable[[Header], int],
    build: Callable[[Header, memoryview], T],
    *,
    what: str,
    encryption_key: bytes | None,
) -> T:
    """What ``build`` makes of a container's header and payload, decrypted if need be.

    ``payload_size`` is that of the plain payload; ``what`` names the contents in errors.

    Raises
    ------
    FileRefused
        if the file is damaged, of another kind, or the key does not open it.
    UsageError
        if it is encrypted and no key was given.
    """
    header, payload = read_container(path, kind, stored_size(payload_size))
    encryption = header["encryption"]
    if encryption is not None:
        if encryption_key is None:
            raise UsageError(parameter="encryption_key", rule=f"must be given: {what} is encrypted")
        salt = bytes.fromhex(encryption["salt"])
        payload = decrypt(payload, encryption_key, salt, canonical_json(header), encryption["chunk"])
    return build_from(header, payload, build)


def stored_size(payload_size: Callable[[Header], int]) -> Callable[[Header], int]:
    """The size of the payload as it is stored, from the function for the plain one."""

    def size(header: Header) -> int:
        plain, encryption = payload_size(header), header["encryption"]
        if encryption is None:
            return plain
        if len(bytes.fromhex(encryption["salt"])) != SALT_BYTES:
            raise ValueError("salt")
        return encrypted_size(plain, encryption["chunk"])

    return size
