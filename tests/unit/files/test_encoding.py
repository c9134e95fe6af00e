"""Integer tables as bytes."""

from __future__ import annotations

import numpy as np
import pytest

from hushsum.errors import FileRefused
from hushsum.files import decode_array, encode_array, encoded_size, narrowest_type


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], "int8"),
        ([127, -128], "int8"),
        ([128], "int16"),
        ([-129], "int16"),
        ([2**15 - 1, -(2**15)], "int16"),
        ([2**15], "int32"),
        ([-(2**31)], "int32"),
        ([2**31], "int64"),
        ([-(2**31) - 1], "int64"),
        ([2**63 - 1, -(2**63)], "int64"),
    ],
)
def test_the_narrowest_type_that_holds_all(values: list[int], expected: str) -> None:
    assert narrowest_type(np.array(values, np.int64)) == expected


def test_values_beyond_64_bits_are_refused() -> None:
    with pytest.raises(OverflowError):
        narrowest_type(np.array([2**63], np.uint64))


@pytest.mark.parametrize("type_name", ["int8", "int16", "int32", "int64"])
def test_round_trip_in_every_type(type_name: str) -> None:
    limits = np.iinfo(type_name)
    table = np.array([[limits.min, -1, 0], [1, 2, limits.max]], np.int64)
    data = encode_array(table, type_name)
    assert len(data) == encoded_size((2, 3), type_name) == 6 * np.dtype(type_name).itemsize
    back = decode_array(data, (2, 3), type_name)
    assert back.dtype == np.dtype(type_name)
    assert back.dtype.isnative
    np.testing.assert_array_equal(back, table)


def test_bytes_are_little_endian_on_every_machine() -> None:
    assert bytes(encode_array(np.array([1, -2], ">i8"), "int16")) == b"\x01\x00\xfe\xff"
    assert bytes(encode_array(np.array([[1, 2], [3, 4]], np.int8).T, "int8")) == b"\x01\x03\x02\x04"


@pytest.mark.parametrize(
    ("shape", "type_name"),
    [((2, 2), "float32"), ((2, 2), "uint8"), ((-1, 2), "int8"), ((2, -2), "int8"), ((-2, -2), "int8")],
)
def test_unknown_types_and_negative_shapes_are_refused(shape: tuple[int, int], type_name: str) -> None:
    with pytest.raises(FileRefused, match="unknown number type or a negative size"):
        encoded_size(shape, type_name)


def test_shapes_that_are_no_integers_are_refused() -> None:
    with pytest.raises(FileRefused):
        encoded_size((2.0, 2), "int8")  # type: ignore[arg-type]


def test_sizes_do_not_overflow() -> None:
    assert encoded_size((1 << 40, 1 << 40), "int64") == 1 << 83


def test_real_numbers_are_for_those_who_ask_for_them() -> None:
    with pytest.raises(FileRefused, match="number type"):
        encoded_size((2,), "float64")
    assert encoded_size((2, 3), "float64", reals=True) == 48
    values = np.array([0.1, -2.5e300])
    assert np.array_equal(decode_array(encode_array(values, "float64"), (2,), "float64"), values)
