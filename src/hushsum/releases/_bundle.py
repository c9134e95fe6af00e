"""A bundle: everything a model released, under one claim; in a file the parts' own files, then the arrays."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum._types import PathOrFile
from hushsum.files import (
    REAL,
    FileKind,
    Header,
    canonical_json,
    check_spelling,
    decode_array,
    encode_array,
    encoded_size,
    narrowest_type,
    write_container,
)
from hushsum.privacy import Claim
from hushsum.releases._base import Released, ReleasedFunction
from hushsum.releases._load import check_names, load_function, pickled, register
from hushsum.version import PRODUCER

_MOST_ENTRIES = 4096
_LONGEST_NAME = 200
_MOST_AXES = 8


@dataclass(frozen=True, eq=False)
class Bundle:
    """Named released functions and small public arrays that were paid for together; public, frozen.

    A model releases one, so that a budget is debited once for all of it. Made by the models of
    ``hushsum.models`` or by ``hushsum.load``; not by hand.

    Attributes
    ----------
    claim : Claim
        What all parts together promise. The claims of the parts are those of their own noise: of parts that
        saw different records each may be the whole claim, otherwise they add up to it.
    about : mapping
        Public facts as JSON values: which model, its parameters, the columns, and under which assumptions
        the claim holds.
    parts : mapping of str to ReleasedFunction
        Of a file, each is read when it is first used: who reads a model checks the names before.
    arrays : mapping of str to array
        Of ``float64`` or ``int64``, read-only.

    Privacy
    -------
    Everything here is public, so using it spends nothing.
    """

    claim: Claim
    about: Mapping[str, Any]
    parts: Mapping[str, ReleasedFunction] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    producer: str = PRODUCER

    def __post_init__(self) -> None:
        canonical_json(dict(self.about))
        arrays = {name: _frozen(values) for name, values in self.arrays.items()}
        parts = self.parts if isinstance(self.parts, _StoredParts) else MappingProxyType(dict(self.parts))
        object.__setattr__(self, "parts", parts)
        for name, value in (("about", dict(self.about)), ("arrays", arrays)):
            object.__setattr__(self, name, MappingProxyType(value))

    def __repr__(self) -> str:
        inside = ", ".join([*self.parts, *self.arrays])
        return f"Bundle({self.about.get('model', 'no model')!r}: {inside}; claim={self.claim!r})"

    def save(self, target: PathOrFile) -> None:
        """Write a ``.hush`` file; to a path atomically."""
        save_bundle(self, target)

    def __reduce__(self) -> tuple[Callable[[bytes], Released], tuple[bytes]]:
        return pickled(self)


class _StoredParts(Mapping[str, ReleasedFunction]):
    """The parts of a file by name, each read when it is first used."""

    def __init__(self, stored: dict[str, memoryview]) -> None:
        self._stored = stored
        self._read: dict[str, ReleasedFunction] = {}

    def __getitem__(self, name: str) -> ReleasedFunction:
        if name not in self._read:
            self._read[name] = load_function(io.BytesIO(self._stored[name]))
        return self._read[name]

    def __contains__(self, name: object) -> bool:
        return name in self._stored

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)


def _frozen(values: NDArray[Any]) -> NDArray[Any]:
    """A read-only copy, of integers or of reals."""
    kind = np.asarray(values).dtype.kind
    if kind not in "biuf":
        raise TypeError("a bundle holds arrays of numbers")
    array = np.array(values, dtype=np.float64 if kind == "f" else np.int64)
    array.flags.writeable = False
    return array


def save_bundle(bundle: Bundle, target: PathOrFile) -> None:
    """Write a bundle; to a path atomically."""
    parts = {name: _bytes_of(part) for name, part in bundle.parts.items()}
    types = {name: _type_of(values) for name, values in bundle.arrays.items()}
    header = {
        "type": "bundle",
        "claim": bundle.claim.as_json(),
        "about": dict(bundle.about),
        "producer": bundle.producer,
        "parts": [{"name": name, "size": len(payload)} for name, payload in parts.items()],
        "arrays": [
            {"name": name, "type": types[name], "shape": list(values.shape)}
            for name, values in bundle.arrays.items()
        ],
    }
    arrays = [encode_array(values, types[name]) for name, values in bundle.arrays.items()]
    write_container(target, FileKind.RELEASED, header, [*parts.values(), *arrays])


def _bytes_of(part: ReleasedFunction) -> bytes:
    buffer = io.BytesIO()
    part.save(buffer)
    return buffer.getvalue()


def _type_of(values: NDArray[Any]) -> str:
    return REAL if values.dtype.kind == "f" else narrowest_type(values)


def _payload_size(header: Header) -> int:
    """The sum of what the header lists; arithmetic on Python's integers, so nothing overflows."""
    _check_entries(header["parts"], "name", "size")
    _check_entries(header["arrays"], "name", "type", "shape")
    sizes = [_whole(entry["size"]) for entry in header["parts"]]
    return sum(sizes) + sum(
        encoded_size(_shape(entry), entry["type"], reals=True) for entry in header["arrays"]
    )


def _check_entries(entries: object, *fields: str) -> None:
    if not isinstance(entries, list) or len(entries) > _MOST_ENTRIES:
        raise ValueError("entries")
    for entry in entries:
        check_names(entry, *fields)
    names = [entry["name"] for entry in entries]
    if any(not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME for name in names):
        raise ValueError("name")
    if len(set(names)) != len(names):
        raise ValueError("one name twice")


def _whole(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("size")
    return value


def _shape(entry: dict[str, Any]) -> tuple[int, ...]:
    shape = entry["shape"]
    if not isinstance(shape, list) or len(shape) > _MOST_AXES:
        raise ValueError("shape")
    return tuple(_whole(each) for each in shape)


def _build(header: Header, payload: memoryview) -> Bundle:
    check_names(header, "type", "claim", "about", "producer", "parts", "arrays")
    if not isinstance(header["about"], dict) or not isinstance(header["producer"], str):
        raise TypeError("about")
    pieces = _cut(payload, [entry["size"] for entry in header["parts"]])
    parts = _StoredParts(dict(zip((entry["name"] for entry in header["parts"]), pieces, strict=True)))
    shapes = [_shape(entry) for entry in header["arrays"]]
    sizes = [
        encoded_size(shape, entry["type"], reals=True)
        for shape, entry in zip(shapes, header["arrays"], strict=True)
    ]
    rest = payload[len(payload) - sum(sizes) :]
    arrays = {
        entry["name"]: _finite(decode_array(piece, shape, entry["type"]))
        for entry, shape, piece in zip(header["arrays"], shapes, _cut(rest, sizes), strict=True)
    }
    claim = Claim.from_json(header["claim"])
    check_spelling(header["claim"], claim.as_json())
    return Bundle(claim, header["about"], parts, arrays, header["producer"])


def _cut(payload: memoryview, sizes: Iterable[int]) -> list[memoryview]:
    pieces, start = [], 0
    for size in sizes:
        pieces.append(payload[start : start + size])
        start += size
    return pieces


def _finite(values: NDArray[Any]) -> NDArray[Any]:
    if not np.isfinite(values).all():
        raise ValueError("not finite")
    return values


register("bundle", _payload_size, _build)
