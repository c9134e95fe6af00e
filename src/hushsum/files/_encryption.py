"""The one encryption, and files of secrets: readable by their owner only, and encrypted where a key is given.

AES-256-GCM in chunks, so that payloads beyond one message's limit can be encrypted.

Every file has its own key, derived from the owner's by HKDF-SHA256 with 16 random bytes, so one owner's key
may write any number of files. A chunk's nonce is its number and a bit that marks the last chunk: chunks
cannot be swapped, dropped or cut off (the STREAM construction of Hoang, Reyhanitabar, Rogaway and Vizár,
2015). The file's kind and header are authenticated with every chunk.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Generic, TypeVar

from hushsum._types import PathOrFile
from hushsum.errors import FileRefused, UsageError

from ._container import (
    Buffer,
    FileKind,
    Header,
    Section,
    Source,
    build_from,
    container,
    read_container,
    write_container,
)
from ._encoding import canonical_json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

__all__ = ["CHUNK", "KEY_BYTES", "SecretFile", "decrypt", "encrypt", "encrypted_size", "seal", "unseal"]

T = TypeVar("T")

CHUNK = 1 << 24
KEY_BYTES = 32
SALT_BYTES = 16
_TAG = 16


@dataclass(frozen=True, slots=True)
class SecretFile(Generic[T]):
    """One kind of secret file.

    ``payload_size`` computes the length of the plain payload from the header, and ``build`` makes what the
    file holds of both. ``what`` names the contents in errors.
    """

    kind: FileKind
    what: str
    payload_size: Callable[[Header], int]
    build: Callable[[Header, memoryview], T]

    def write(
        self,
        path: PathOrFile,
        header: Mapping[str, object],
        sections: Iterable[Buffer | Section],
        *,
        encryption_key: bytes | None,
    ) -> None:
        """Write a file with mode 0600. Its header, which is never encrypted, says whether the payload is."""
        encryption: Header | None = None
        if encryption_key is not None:
            salt = os.urandom(SALT_BYTES)
            encryption = {"cipher": "HKDF-SHA256, AES-256-GCM", "chunk": CHUNK, "salt": salt.hex()}
        written = {**header, "encryption": encryption}
        if encryption_key is not None:
            plain = [Section.of(section) for section in sections]
            size = encrypted_size(sum(section.size for section in plain), CHUNK)
            pieces = encrypt(plain, encryption_key, salt, self._bound(written))
            sections = [Section(size, lambda: pieces)]
        write_container(path, self.kind, written, sections, mode=0o600)

    def plain(self, header: Mapping[str, object], sections: Iterable[Buffer | Section]) -> Section:
        """The bytes of a file that is not encrypted."""
        return container(self.kind, {**header, "encryption": None}, sections)

    def read(self, path: Source, *, encryption_key: bytes | None) -> T:
        """The contents of a file, decrypted if need be.

        Raises
        ------
        FileRefused
            if the file is damaged, of another kind, or the key does not open it.
        UsageError
            if it is encrypted and no key was given.
        """
        header, payload = read_container(path, self.kind, self._stored_size)
        encryption = header["encryption"]
        if encryption is not None:
            if encryption_key is None:
                raise UsageError("encryption_key", f"must be given: {self.what} is encrypted")
            salt = bytes.fromhex(encryption["salt"])
            payload = decrypt(payload, encryption_key, salt, self._bound(header), encryption["chunk"])
        return build_from(header, payload, self.build)

    def public_header(self, path: PathOrFile) -> Header:
        """The header of a file, which anybody can read, encrypted or not.

        Raises
        ------
        FileRefused
            if the file is damaged or of another kind.
        """
        return read_container(path, self.kind, self._stored_size)[0]

    def _bound(self, header: Header) -> bytes:
        return bytes(self.kind.value) + canonical_json(header)

    def _stored_size(self, header: Header) -> int:
        plain, encryption = self.payload_size(header), header["encryption"]
        if encryption is None:
            return plain
        if len(bytes.fromhex(encryption["salt"])) != SALT_BYTES:
            raise ValueError("salt")
        return encrypted_size(plain, encryption["chunk"])


def seal(key: bytes, pieces: Iterable[Buffer | Section], bound: bytes) -> bytes:
    """Encrypt something that is not a file of its own, such as a message; ``bound`` is authenticated with it.

    >>> key = os.urandom(32)
    >>> bytes(unseal(key, seal(key, [b"secret"], b"a name"), b"a name"))
    b'secret'
    """
    salt = os.urandom(SALT_BYTES)
    return b"".join([salt, *encrypt(pieces, key, salt, bound)])


def unseal(key: bytes, sealed: Buffer, bound: bytes) -> memoryview:
    """The contents that `seal` encrypted with the same key and for the same ``bound``.

    Raises
    ------
    FileRefused
        if it was changed, or sealed with another key or for something else.
    """
    view = memoryview(sealed)
    return decrypt(view[SALT_BYTES:], key, bytes(view[:SALT_BYTES]), bound, CHUNK)


def encrypt(sections: Iterable[Buffer | Section], key: bytes, salt: bytes, bound: bytes) -> Iterator[Buffer]:
    """The sections as one encrypted payload, a chunk at a time."""
    cipher = _cipher(key, salt)
    parts = [Section.of(section) for section in sections]
    size = sum(part.size for part in parts)
    last = max(1, -(-size // CHUNK)) - 1

    def pieces() -> Iterator[Buffer]:
        number, waiting, held = 0, list[memoryview](), 0
        for piece in chain.from_iterable(part.pieces() for part in parts):
            rest = memoryview(piece).cast("B")
            while number < last and held + len(rest) >= CHUNK:
                waiting.append(rest[: CHUNK - held])
                yield cipher.encrypt(_nonce(number, False), _joined(waiting), bound)
                rest, waiting, held = rest[CHUNK - held :], [], 0
                number += 1
            waiting.append(rest)
            held += len(rest)
        yield cipher.encrypt(_nonce(last, True), _joined(waiting), bound)

    return pieces()


def decrypt(payload: memoryview, key: bytes, salt: bytes, bound: bytes, chunk: int) -> memoryview:
    """The payload back; refused unless the key is right and nothing was changed."""
    from cryptography.exceptions import InvalidTag

    cipher = _cipher(key, salt)
    starts = range(0, max(len(payload), 1), chunk + _TAG)
    plain: list[bytes] = []
    try:
        for i, start in enumerate(starts):
            piece = payload[start : start + chunk + _TAG]
            plain.append(cipher.decrypt(_nonce(i, i == len(starts) - 1), piece, bound))
    except InvalidTag:
        raise FileRefused(
            "the key does not open this file", remedy="give the key it was written with"
        ) from None
    return memoryview(_joined(plain))


def encrypted_size(size: int, chunk: int) -> int:
    """The length of an encrypted payload of ``size`` bytes."""
    if not isinstance(chunk, int) or chunk < 1:
        raise ValueError("chunk")
    return size + _TAG * max(1, -(-size // chunk))


def _joined(pieces: Sequence[Buffer]) -> Buffer:
    """One buffer; a single piece is not copied."""
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _nonce(number: int, last: bool) -> bytes:
    return ((number << 1) | last).to_bytes(12, "big")


def _cipher(key: bytes, salt: bytes) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        raise UsageError(
            "encryption_key", f"must be {KEY_BYTES} bytes", remedy=f"make one with os.urandom({KEY_BYTES})"
        )
    return AESGCM(HKDF(SHA256(), KEY_BYTES, salt, b"hushsum 1").derive(key))
