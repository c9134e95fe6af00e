"""Packed integers: what is packed comes back, takes few bits, and no other bytes are read."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from hushsum.files import pack_integers, unpack_integers

Integers = NDArray[np.int32] | NDArray[np.int64]


def bits(values: Integers) -> list[int]:
    """Bit by bit, as the comment above the native code says, for one block; k is tried out."""
    _, centre = pack_integers(values, 1)
    codes = []
    for k in range(63):
        code = [(k >> i) & 1 for i in range(8)]
        for value in values.tolist():
            distance = value - centre
            z = 2 * distance if distance >= 0 else -2 * distance - 1
            quotient = z >> k
            if quotient < 31:
                code += [0] * quotient + [1] + [(z >> i) & 1 for i in range(k)]
            else:
                code += [0] * 31 + [1] + [(z >> i) & 1 for i in range(64)]
        codes.append(code + [0] * (-len(code) % 8))
    return min(codes, key=len)


@given(arrays.arrays(np.int64, st.integers(0, 60), elements=st.integers(-(2**62), 2**62)))
def test_packed_integers_come_back(values: NDArray[np.int64]) -> None:
    packed, centre = pack_integers(values, 1)
    np.testing.assert_array_equal(
        unpack_integers(packed, values.shape, "int64", unit=1, centre=centre), values
    )


@pytest.mark.parametrize("scale", [0.0, 0.4, 3.0, 1e3, 1e8])
def test_a_block_is_written_as_documented(scale: float) -> None:
    values = np.rint(np.random.default_rng(1).standard_t(2, 300) * scale).astype(np.int32)
    packed, _ = pack_integers(values, 1)
    written = np.unpackbits(np.frombuffer(packed, np.uint8), bitorder="little")
    assert len(written) == len(bits(values))
    np.testing.assert_array_equal(written, bits(values))


@pytest.mark.parametrize("deviation", [2.0, 50.0, 1e4])
@pytest.mark.parametrize("size", [4095, 4096, 4097, 50_000])
def test_noise_takes_little_more_than_its_entropy(deviation: float, size: int) -> None:
    values = np.rint(np.random.default_rng(2).normal(7.0, deviation, size)).astype(np.int32)
    packed, centre = pack_integers(values, 1)
    np.testing.assert_array_equal(unpack_integers(packed, (size,), "int32", unit=1, centre=centre), values)
    entropy = np.log2(np.sqrt(2 * np.pi * np.e) * deviation)
    assert 8 * len(packed) / size < entropy + 0.35


def test_multiples_are_packed_as_such() -> None:
    values = 31 * np.random.default_rng(3).integers(-3, 4, (20, 300)).astype(np.int32)
    packed, centre = pack_integers(values, 31)
    assert len(packed) < 0.5 * values.size
    np.testing.assert_array_equal(unpack_integers(packed, (20, 300), "int32", unit=31, centre=centre), values)


def test_the_ends_of_64_bits_come_back() -> None:
    values = np.array([-(2**63), 2**63 - 1, 0, -1], np.int64)
    packed, centre = pack_integers(values, 1)
    np.testing.assert_array_equal(unpack_integers(packed, (4,), "int64", unit=1, centre=centre), values)


def test_other_bytes_are_refused() -> None:
    values = np.rint(np.random.default_rng(4).normal(0, 40, 5000)).astype(np.int32)
    packed, centre = pack_integers(values, 1)
    for other in (packed[:-1], packed + b"\0", b"", b"\xff" + packed[1:]):
        with pytest.raises(ValueError, match="packed table"):
            unpack_integers(other, (5000,), "int32", unit=1, centre=centre)
    with pytest.raises(ValueError, match="not a packed table"):
        unpack_integers(packed, (4999,), "int32", unit=1, centre=centre)


def test_a_short_file_allocates_no_large_table() -> None:
    with pytest.raises(ValueError, match="shorter than its shape"):
        unpack_integers(b"\0" * 1000, (1 << 20, 1 << 20), "int32", unit=1, centre=0)


@pytest.mark.parametrize("large", [2**31, -(2**31) - 1])
def test_values_beyond_the_type_are_refused(large: int) -> None:
    packed, centre = pack_integers(np.array([large], np.int64), 1)
    with pytest.raises(ValueError, match="not a packed table"):
        unpack_integers(packed, (1,), "int8", unit=1, centre=centre)
    packed, centre = pack_integers(np.array([2**20], np.int64), 1)
    with pytest.raises(ValueError, match="beyond their type"):
        unpack_integers(packed, (1,), "int32", unit=2**12, centre=centre)


@given(st.binary(min_size=1, max_size=60), st.integers(1, 100))
def test_any_bytes_are_read_or_refused(data: bytes, size: int) -> None:
    try:
        values = unpack_integers(data, (size,), "int64", unit=1, centre=0)
    except ValueError:
        return
    again, centre = pack_integers(values, 1)
    np.testing.assert_array_equal(unpack_integers(again, (size,), "int64", unit=1, centre=centre), values)
