"""The keystream is RFC 8439's, and no two streams of a source share a block."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from hushsum._native import NOISE_CHUNK, StreamKey, extension_nonce

RFC_KEY = bytes(range(32))


def test_block_of_rfc_8439_section_2_3_2() -> None:
    block = StreamKey(RFC_KEY).keystream(0x09000000, 0x4A000000, 0, counter=1, blocks=1)
    assert block.hex() == (
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    )


def test_zero_key_of_rfc_8439_appendix_a_1() -> None:
    block = StreamKey(bytes(32)).keystream(0, 0, 0, counter=0, blocks=1)
    assert block.hex().startswith("76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7")


@pytest.mark.parametrize("blocks", [1, 15, 16, 17, 50])
@pytest.mark.parametrize("counter", [0, 7, 2**31])
def test_keystream_is_that_of_another_implementation(blocks: int, counter: int) -> None:
    words = (0x01020304, 0xA0B0C0D0, 0xFFFFFFFF)
    ours = StreamKey(RFC_KEY).keystream(*words, counter=counter, blocks=blocks)
    initial = b"".join(word.to_bytes(4, "little") for word in (counter, *words))
    cipher = Cipher(ChaCha20(RFC_KEY, initial), mode=None)
    assert ours == cipher.encryptor().update(bytes(64 * blocks))


def test_streams_of_draws_purposes_and_indices_have_different_nonces() -> None:
    chunk_nonces = {(draw, chunk, 0) for draw in range(4) for chunk in range(64)}
    more = {
        extension_nonce(draw, acceptance, index)
        for draw in range(4)
        for acceptance in (False, True)
        for index in (0, 1, 2**32 - 1, 2**32, 2**40 + 1, 2**64 - 1)
    }
    assert len(more) == 4 * 2 * 6
    assert not chunk_nonces & more


def test_blocks_of_different_streams_differ() -> None:
    key = StreamKey(RFC_KEY)
    blocks = [
        key.keystream(*extension_nonce(d, a, i), 0, 1) for d in (0, 1) for a in (False, True) for i in (0, 1)
    ]
    blocks += [key.keystream(draw, chunk, 0, 0, 1) for draw in (0, 1) for chunk in (0, 1)]
    assert len(set(blocks)) == len(blocks)


def test_key_has_32_bytes() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        StreamKey(bytes(31))


def test_fresh_keys_differ() -> None:
    assert StreamKey().keystream(0, 0, 0, 0, 1) != StreamKey().keystream(0, 0, 0, 0, 1)


def test_wiped_key_is_refused() -> None:
    key = StreamKey(RFC_KEY)
    key.clear()
    assert not key.usable
    with pytest.raises(RuntimeError, match="wiped"):
        key.keystream(0, 0, 0, 0, 1)


def test_chunk_fits_its_positions() -> None:
    assert NOISE_CHUNK < 2**32
