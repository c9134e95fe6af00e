"""A bundle: everything a model released, under one claim; in a file the parts' own files, then the arrays."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum.files import (
    REAL,
    Header,
    canonical_json,
    decode_array,
    encode_array,
    encoded_size,
    narrowest_type,
)

from ._base import (
    Payload,
    PublicFacts,
    ReleasedFunction,
    StoredRelease,
    check_names,
    file_bytes,
    load_function,
    register,
    stored_integer,
)

_MOST_ENTRIES = 4096
_LONGEST_NAME = 200
_MOST_AXES = 8
_LARGEST = 1 << 62


@dataclass(frozen=True, eq=False)
class Bundle(StoredRelease):
    """Named released functions and small public arrays that were paid for together; public, frozen.

    A model releases one, so that a budget is debited once for all of it. Made by the models of
    ``hushsum.models`` or by ``hushsum.load``; not by hand.

    Attributes
    ----------
    facts : PublicFacts
        The claim is what all parts together promise. The claims of the parts are those of their own noise:
        of parts that saw different records each may be the whole claim, otherwise they add up to it.
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

    kind = "bundle"

    facts: PublicFacts
    about: Mapping[str, Any]
    parts: Mapping[str, ReleasedFunction] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)

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

    def stated(self) -> Header:
        """The header of its file, without the layout of parts and arrays."""
        return {**super().stated(), "about": dict(self.about)}

    def _payload(self) -> Payload:
        parts = {name: file_bytes(part) for name, part in self.parts.items()}
        types = {name: _type_of(values) for name, values in self.arrays.items()}
        layout = {
            "parts": [{"name": name, "size": len(payload)} for name, payload in parts.items()],
            "arrays": [
                {"name": name, "type": types[name], "shape": list(values.shape)}
                for name, values in self.arrays.items()
            ],
        }
        arrays = [encode_array(values, types[name]) for name, values in self.arrays.items()]
        return layout, [*parts.values(), *arrays], None


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


def _type_of(values: NDArray[Any]) -> str:
    return REAL if values.dtype.kind == "f" else narrowest_type(values)


def _payload_size(header: Header) -> int:
    """The sum of what the header lists; arithmetic on Python's integers, so nothing overflows."""
    _check_entries(header["parts"], "name", "size")
    _check_entries(header["arrays"], "name", "type", "shape")
    return sum(_part_sizes(header)) + sum(_array_sizes(header))


def _part_sizes(header: Header) -> list[int]:
    return [stored_integer(entry["size"], 0, _LARGEST) for entry in header["parts"]]


def _array_sizes(header: Header) -> list[int]:
    return [encoded_size(_shape(entry), entry["type"], reals=True) for entry in header["arrays"]]


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


def _shape(entry: dict[str, Any]) -> tuple[int, ...]:
    shape = entry["shape"]
    if not isinstance(shape, list) or len(shape) > _MOST_AXES:
        raise ValueError("shape")
    return tuple(stored_integer(each, 0, _LARGEST) for each in shape)


def _build(header: Header, payload: memoryview) -> Bundle:
    if not isinstance(header["about"], dict):
        raise TypeError("about")
    sizes = [*_part_sizes(header), *_array_sizes(header)]
    pieces = (payload[end - size : end] for size, end in zip(sizes, accumulate(sizes), strict=True))
    parts = {entry["name"]: next(pieces) for entry in header["parts"]}
    arrays = {}
    for entry in header["arrays"]:
        values = decode_array(next(pieces), _shape(entry), entry["type"])
        if not np.isfinite(values).all():
            raise ValueError("not finite")
        arrays[entry["name"]] = values
    return Bundle(PublicFacts.from_json(header), header["about"], _StoredParts(parts), arrays)


register(Bundle.kind, _payload_size, _build, "parts", "arrays")
