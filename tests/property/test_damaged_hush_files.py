"""``.hush`` files under attack: every change is refused with FileRefused, never with anything else."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hushsum as hs
from hushsum.errors import FileRefused
from hushsum.files import FileKind, read_container, write_container
from hushsum.releases import TableFunction, load_function
from tests.kernel_cases import CASES, Case


def small_file() -> bytes:
    tally = hs.race(hs.JaccardKernel(), rows=2, width=3).add([[1, 2], [3]])
    stream = io.BytesIO()
    tally.release(epsilon=1.0, rows=2, insecure_noise_seed=1).save(stream)
    return stream.getvalue()


SMALL = small_file()


def refused(data: bytes) -> None:
    with pytest.raises(FileRefused):
        hs.load(io.BytesIO(data))


def test_every_flipped_bit_and_byte_is_refused() -> None:
    """Exhaustive: every byte of the file, each of its bits, and all of them."""
    assert len(SMALL) < 1000
    for position in range(len(SMALL)):
        for mask in (1, 2, 4, 8, 16, 32, 64, 128, 255):
            changed = bytearray(SMALL)
            changed[position] ^= mask
            refused(bytes(changed))


def test_every_truncation_is_refused() -> None:
    for length in range(len(SMALL)):
        refused(SMALL[:length])


@given(position=st.integers(0, len(SMALL) - 1), piece=st.binary(min_size=1, max_size=20))
def test_inserted_bytes_are_refused(position: int, piece: bytes) -> None:
    changed = SMALL[:position] + piece + SMALL[position:]
    if changed[: len(SMALL)] != SMALL:
        refused(changed)


@given(position=st.integers(0, len(SMALL) - 1), piece=st.binary(min_size=1, max_size=40))
def test_overwritten_bytes_are_refused(position: int, piece: bytes) -> None:
    changed = SMALL[:position] + piece + SMALL[position + len(piece) :]
    if changed != SMALL:
        refused(changed)


@given(data=st.binary(max_size=200))
def test_noise_is_no_file(data: bytes) -> None:
    refused(data)
    refused(FileKind.RELEASED.value + data)
    refused(SMALL[:24] + data)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value in a header, inner ones too."""
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from leaves(inner, (*path, i))


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    if isinstance(value, dict):
        return {
            key: replaced(inner, path[1:], new) if key == path[0] else inner for key, inner in value.items()
        }
    return [replaced(inner, path[1:], new) if i == path[0] else inner for i, inner in enumerate(value)]


HEADER, PAYLOAD = read_container(io.BytesIO(SMALL), FileKind.RELEASED, lambda header: 6)
STRANGE: list[Any] = [
    *(None, True, False, -1, 0, 1, 2**70, 1.5, 1e308, [], [1], {}, {"name": "x"}),
    *("", "x", "1/0", "nan", "-1", "0", "1/3", "1e400", "1e-400"),
]


@pytest.mark.parametrize(
    "path", [path for path in leaves(HEADER) if path], ids=lambda path: "/".join(map(str, path))
)
def test_a_hostile_header_with_a_right_checksum_is_refused_or_read(path: tuple[Any, ...]) -> None:
    """Who can write a file can compute its checksum: nothing but FileRefused may come of it."""
    for new in STRANGE:
        stream = io.BytesIO()
        write_container(stream, FileKind.RELEASED, replaced(HEADER, path, new), [PAYLOAD])
        stream.seek(0)
        try:
            f = load_function(stream)
        except FileRefused:
            continue
        assert isinstance(f, TableFunction)
        assert f.table.shape == f.basis.shape
        assert f.claim.unit in ("record", "person")
        assert (f.claim.epsilon or f.claim.rho or 0.0) > 0
        assert repr(f.claim) in repr(f)
        assert f.claim.sentence()
        assert np.all(np.isfinite(f.query([[1, 2]]).bound))


@pytest.mark.parametrize("missing", sorted(HEADER))
def test_a_header_that_lacks_a_field_is_refused(missing: str) -> None:
    stream = io.BytesIO()
    header = {key: value for key, value in HEADER.items() if key != missing}
    write_container(stream, FileKind.RELEASED, header, [PAYLOAD])
    refused(stream.getvalue())


@settings(max_examples=60)
@given(
    case=st.sampled_from(CASES),
    rows=st.integers(1, 20),
    width=st.integers(2, 40),
    seed=st.integers(-(2**70), 2**70),
    promise=st.sampled_from([{"epsilon": 0.3}, {"rho": 0.01}, {"epsilon": 2.0, "relation": "replace"}]),
)
def test_a_file_answers_as_the_function_did(
    case: Case, rows: int, width: int, seed: int, promise: dict[str, Any]
) -> None:
    records = case.records(15)
    tally = hs.race(case.kernel, rows=rows, width=width, seed=seed).add(records, threads=1)
    f = tally.release(insecure_noise_seed=4, threads=1, **promise)
    first, second = io.BytesIO(), io.BytesIO()
    f.save(first)
    back = hs.load(io.BytesIO(first.getvalue()))
    back.save(second)
    assert first.getvalue() == second.getvalue()
    assert back.claim == f.claim
    assert back.kernel == f.kernel
    assert back.count == f.count
    np.testing.assert_array_equal(back(records), f(records))
    np.testing.assert_array_equal(back.query(records).stderr, f.query(records).stderr)
