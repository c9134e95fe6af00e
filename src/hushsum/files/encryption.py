"""AES-256-GCM in chunks, so that payloads beyond one message's limit can be encrypted.

Every file has its own key, derived from the owner's by HKDF-SHA256 with 16 random bytes, so one owner's key
may write any number of files. A chunk's nonce is its number and a bit that marks the last chunk: chunks
cannot be swapped, dropped or cut off (the STREAM construction of Hoang, Reyhanitabar, Rogaway and Vizár,
2015). The file's header is authenticated with every chunk.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hushsum.errors import FileRefused, UsageError
from hushsum.files.container import Buffer

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

CHUNK = 1 << 24
KEY_BYTES = 32
SALT_BYTES = 16
_TAG = 16


def encrypt(sections: Iterable[Buffer], key: bytes, salt: bytes, header: bytes) -> list[Buffer]:
    """The sections as one encrypted payload, a piece a chunk."""
    cipher = _cipher(key, salt)
    payload = b"".join(bytes(section) for section in sections)
    starts = range(0, max(len(payload), 1), CHUNK)
    return [
        cipher.encrypt(_nonce(i, i == len(starts) - 1), payload[start : start + CHUNK], header)
        for i, start in enumerate(starts)
    ]


def decrypt(payload: memoryview, key: bytes, salt: bytes, header: bytes, chunk: int) -> memoryview:
    """The payload back; refused unless the key is right and nothing was changed."""
    from cryptography.exceptions import InvalidTag

    cipher = _cipher(key, salt)
    starts = range(0, max(len(payload), 1), chunk + _TAG)
    plain = bytearray()
    try:
        for i, start in enumerate(starts):
            piece = bytes(payload[start : start + chunk + _TAG])
            plain += cipher.decrypt(_nonce(i, i == len(starts) - 1), piece, header)
    except InvalidTag:
        raise FileRefused(
            rule="the key does not open this file", remedy="give the key it was written with"
        ) from None
    return memoryview(plain)


def encrypted_size(size: int, chunk: int) -> int:
    """The length of an encrypted payload of ``size`` bytes."""
    if not isinstance(chunk, int) or chunk < 1:
        raise ValueError("chunk")
    return size + _TAG * max(1, -(-size // chunk))


def _nonce(number: int, last: bool) -> bytes:
    return ((number << 1) | last).to_bytes(12, "big")


def _cipher(key: bytes, salt: bytes) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        raise UsageError(
            parameter="encryption_key",
            rule=f"must be {KEY_BYTES} bytes",
            remedy=f"make one with os.urandom({KEY_BYTES})",
        )
    return AESGCM(HKDF(SHA256(), KEY_BYTES, salt, b"hushsum tally 1").derive(key))
