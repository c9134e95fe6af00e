"""Encrypted payloads: chunks cannot be read without the key, changed, swapped, dropped or cut off."""

from __future__ import annotations

import hmac

import pytest

from hushsum.errors import FileRefused, UsageError
from hushsum.files import Buffer, decrypt, encrypt, encrypted_size
from hushsum.files import _encryption as encryption

KEY = bytes(range(32))
SALT = bytes(16)
HEADER = b'{"a":1}'
CHUNK = 10
SEALED = CHUNK + 16


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encryption, "CHUNK", CHUNK)


def sealed(sections: list[Buffer], header: bytes = HEADER, salt: bytes = SALT) -> bytes:
    return b"".join(bytes(piece) for piece in encrypt(sections, KEY, salt, header))


def opened(payload: bytes, key: bytes = KEY, salt: bytes = SALT, header: bytes = HEADER) -> bytes:
    return bytes(decrypt(memoryview(payload), key, salt, header, CHUNK))


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 20, 29, 30, 31])
def test_round_trip_at_every_chunk_boundary(size: int) -> None:
    plain = bytes(range(size))
    payload = sealed([plain[:3], memoryview(plain)[3:]])
    assert len(payload) == encrypted_size(size, CHUNK)
    assert opened(payload) == plain
    assert size < 4 or plain not in payload


def test_the_law_is_aes_gcm_with_the_documented_nonces() -> None:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    # HKDF of RFC 5869, for one block: extract, then expand.
    extracted = hmac.digest(SALT, KEY, "sha256")
    cipher = AESGCM(hmac.digest(extracted, b"hushsum 1" + bytes([1]), "sha256"))
    first = cipher.encrypt(bytes(11) + bytes([0]), b"0123456789", HEADER)
    last = cipher.encrypt(bytes(11) + bytes([3]), b"ab", HEADER)
    assert sealed([b"0123456789ab"]) == first + last


def test_a_wrong_key_is_refused() -> None:
    with pytest.raises(FileRefused, match="key does not open"):
        opened(sealed([b"secret"]), key=bytes(32))


@pytest.mark.parametrize("key", [b"", bytes(16), bytes(31), bytes(33), "x" * 32, None])
def test_a_key_of_another_size_is_a_usage_error(key: bytes) -> None:
    with pytest.raises(UsageError, match="key must be 32 bytes"):
        encrypt([b"x"], key, SALT, HEADER)


def test_every_changed_bit_is_refused() -> None:
    payload = sealed([bytes(25)])
    for position in range(len(payload)):
        for bit in range(8):
            changed = bytearray(payload)
            changed[position] ^= 1 << bit
            with pytest.raises(FileRefused, match="key does not open"):
                opened(bytes(changed))


def test_swapped_chunks_are_refused() -> None:
    payload = sealed([bytes(30)])
    swapped = payload[SEALED : 2 * SEALED] + payload[:SEALED] + payload[2 * SEALED :]
    assert swapped != payload
    with pytest.raises(FileRefused):
        opened(swapped)


@pytest.mark.parametrize("dropped", [0, 1, 2])
def test_a_dropped_chunk_is_refused(dropped: int) -> None:
    payload = sealed([bytes(30)])
    with pytest.raises(FileRefused):
        opened(payload[: dropped * SEALED] + payload[(dropped + 1) * SEALED :])


def test_every_truncation_is_refused() -> None:
    payload = sealed([bytes(25)])
    for length in range(len(payload)):
        with pytest.raises(FileRefused):
            opened(payload[:length])


def test_an_appended_chunk_of_another_file_is_refused() -> None:
    other = sealed([bytes(10)], salt=b"another sixteen.")
    with pytest.raises(FileRefused):
        opened(sealed([bytes(10)]) + other)


def test_a_tampered_header_or_salt_is_refused() -> None:
    payload = sealed([b"secret"])
    with pytest.raises(FileRefused):
        opened(payload, header=b'{"a":2}')
    with pytest.raises(FileRefused):
        opened(payload, salt=b"\1" + bytes(15))


@pytest.mark.parametrize("chunk", [0, -1, 2.5, None])
def test_sizes_of_senseless_chunks_are_refused(chunk: int) -> None:
    with pytest.raises(ValueError, match="chunk"):
        encrypted_size(100, chunk)
