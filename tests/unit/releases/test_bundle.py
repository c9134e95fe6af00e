"""Bundles: one claim and one file for several parts, and files that make no sense are refused."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import FileRefused
from hushsum.files import FileKind, write_container
from hushsum.releases import Bundle, PublicFacts, load_function, load_released


@pytest.fixture(scope="module")
def part() -> hs.ReleasedFunction:
    tally = hs.race(hs.EuclideanKernel(dim=2, bandwidth=1.0), rows=10, width=20, seed=3)
    return tally.add([[0.0, 0.5]] * 40).release(epsilon=1.0)


@pytest.fixture
def bundle(part: hs.ReleasedFunction) -> Bundle:
    arrays = {"weights": np.array([[0.5, -1.25]]), "counts": np.array([3, -200])}
    return Bundle(
        PublicFacts(part.claim), {"model": "Test", "columns": ["a", "é"]}, {"one": part, "two": part}, arrays
    )


def file_bytes(bundle: Any) -> bytes:
    stream = io.BytesIO()
    bundle.save(stream)
    return stream.getvalue()


def hostile(bundle: Bundle, **changes: object) -> bytes:
    """The bundle's file with another header, and a checksum that holds."""
    parts = [file_bytes(each) for each in bundle.parts.values()]
    header = {
        "type": "bundle",
        "claim": bundle.claim.as_json(),
        "about": dict(bundle.about),
        "producer": "test",
        "parts": [{"name": n, "size": len(b)} for n, b in zip(bundle.parts, parts, strict=True)],
        "arrays": [],
    }
    payload = changes.pop("payload", parts)
    stream = io.BytesIO()
    assert isinstance(payload, list)
    write_container(stream, FileKind.RELEASED, {**header, **changes}, payload)
    return stream.getvalue()


def read(payload: bytes) -> Any:
    return load_released(io.BytesIO(payload))


def test_a_bundle_comes_back_as_it_was(bundle: Bundle) -> None:
    again = read(file_bytes(bundle))
    assert isinstance(again, Bundle)
    assert again.claim == bundle.claim
    assert dict(again.about) == dict(bundle.about)
    queries = np.array([[0.0, 0.0], [1.0, 1.0]])
    for name, function in bundle.parts.items():
        assert np.array_equal(again.parts[name](queries), function(queries))
    for name, values in bundle.arrays.items():
        assert again.arrays[name].dtype == values.dtype
        assert np.array_equal(again.arrays[name], values)
    assert file_bytes(again) == file_bytes(bundle)


def test_a_bundle_is_pickled_as_its_file(bundle: Bundle) -> None:
    assert file_bytes(pickle.loads(pickle.dumps(bundle))) == file_bytes(bundle)


def test_a_bundle_is_frozen(bundle: Bundle) -> None:
    with pytest.raises(ValueError, match="read-only"):
        bundle.arrays["weights"][0, 0] = 1.0
    with pytest.raises(TypeError):
        bundle.about["model"] = "Other"  # type: ignore[index]


def test_a_bundle_takes_arrays_of_numbers_alone(part: hs.ReleasedFunction) -> None:
    with pytest.raises(TypeError, match="numbers"):
        Bundle(PublicFacts(part.claim), {}, arrays={"names": np.array(["x"])})


def test_any_flipped_byte_is_refused(part: hs.ReleasedFunction) -> None:
    payload = file_bytes(Bundle(PublicFacts(part.claim), {}, arrays={"a": np.arange(3.0)}))
    for place in range(len(payload)):
        changed = bytearray(payload)
        changed[place] ^= 0x10
        with pytest.raises(FileRefused):
            read(bytes(changed))


@pytest.mark.parametrize(
    "changes",
    [
        {"about": []},
        {"about": None},
        {"producer": 7},
        {"claim": {}},
        {"parts": {}},
        {"parts": [{"name": "one", "size": 2**62}]},
        {"parts": [{"name": "one", "size": -1}]},
        {"parts": [{"name": "one", "size": True}]},
        {"parts": [{"name": "", "size": 0}]},
        {"parts": [{"name": 5, "size": 0}]},
        {"parts": [{"size": 0}]},
        {"arrays": [{"name": "a", "type": "float64", "shape": [2**40]}]},
        {"arrays": [{"name": "a", "type": "float64", "shape": [-1]}]},
        {"arrays": [{"name": "a", "type": "object", "shape": [0]}]},
        {"arrays": [{"name": "a", "type": "int8", "shape": [0] * 9}]},
        {"arrays": [{"name": "a", "type": "int8", "shape": 0}]},
    ],
    ids=str,
)
def test_headers_that_make_no_sense_are_refused(bundle: Bundle, changes: dict[str, object]) -> None:
    with pytest.raises(FileRefused):
        read(hostile(bundle, **changes))


def test_the_header_may_not_give_one_name_twice(bundle: Bundle) -> None:
    one = file_bytes(bundle.parts["one"])
    entries = [{"name": "one", "size": len(one)}] * 2
    with pytest.raises(FileRefused):
        read(hostile(bundle, parts=entries, payload=[one, one]))


def test_arrays_that_are_not_finite_are_refused(bundle: Bundle) -> None:
    entries = [{"name": "a", "type": "float64", "shape": [1]}]
    for number in (np.nan, np.inf):
        with pytest.raises(FileRefused):
            read(hostile(bundle, parts=[], arrays=entries, payload=[np.array([number]).tobytes()]))


def test_a_bundle_in_a_bundle_is_refused(bundle: Bundle) -> None:
    inner = file_bytes(bundle)
    nested: Any = read(hostile(bundle, parts=[{"name": "one", "size": len(inner)}], payload=[inner]))
    with pytest.raises(FileRefused, match="model"):
        nested.parts["one"]


def test_where_one_function_is_wanted_a_bundle_is_refused(bundle: Bundle, part: hs.ReleasedFunction) -> None:
    with pytest.raises(FileRefused, match="holds a model"):
        load_function(io.BytesIO(file_bytes(bundle)))
    assert load_function(io.BytesIO(file_bytes(part))).claim == part.claim
