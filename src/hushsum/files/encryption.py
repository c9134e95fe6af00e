"""AES-256-GCM in chunks, so that payloads beyond one message's limit can be encrypted.

Each chunk's nonce is the file's 8 random bytes, a 31-bit chunk number and a bit that marks the last chunk:
chunks cannot be swapped, dropped or cut off (the STREAM construction of Hoang, Reyhanitabar, Rogaway and
Vizár, 2015). The file's header is authenticated with every chunk.
"""

from __future__ import annotations

from collections.abc import Iterable

from hushsum.errors import FileRefused, UsageError
from hushsum.files.container import Buffer

CHUNK = 1 << 24
KEY_BYTES = 32
NONCE_BYTES = 8
_TAG = 16


def encrypt(sections: Iterable[Buffer], key: bytes, nonce: bytes, header: bytes) -> list[Buffer]:
    """The sections as one encrypted payload, a piece a chunk."""
    cipher = _cipher(key)
    payload = b"".join(bytes(section) for section in sections)
    starts = range(0, max(len(payload), 1), CHUNK)
    return [
        cipher.encrypt(_nonce(nonce, i, i == len(starts) - 1), payload[start : start + CHUNK], header)
        for i, start in enumerate(starts)
    ]


def decrypt(payload: memoryview, key: bytes, nonce: bytes, header: bytes, chunk: int) -> memoryview:
    """The payload back; refused unless the key is right and nothing was changed."""
    from cryptography.exceptions import InvalidTag

    cipher = _cipher(key)
    starts = range(0, max(len(payload), 1), chunk + _TAG)
    plain = bytearray()
    try:
        for i, start in enumerate(starts):
            piece = bytes(payload[start : start + chunk + _TAG])
            plain += cipher.decrypt(_nonce(nonce, i, i == len(starts) - 1), piece, header)
    except InvalidTag:
        raise FileRefused("the key does not open this file; give the key it was written with") from None
    return memoryview(plain)


def encrypted_size(size: int, chunk: int) -> int:
    """The length of an encrypted payload of ``size`` bytes."""
    if not isinstance(chunk, int) or chunk < 1:
        raise ValueError("chunk")
    return size + _TAG * max(1, -(-size // chunk))


def _nonce(prefix: bytes, number: int, last: bool) -> bytes:
    return prefix + ((number << 1) | last).to_bytes(4, "big")


def _cipher(key: bytes):  # type: ignore[no-untyped-def]
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        raise UsageError(f"key must be {KEY_BYTES} bytes; make one with os.urandom({KEY_BYTES})")
    return AESGCM(key)
