"""The names of persons: what counts as the same person, and the digest that stands for one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import DataRefused
from hushsum.records import arrow

DIGEST_BYTES: Final = 16
_HASHER: Final = blake2b(digest_size=DIGEST_BYTES, person=b"hushsum-unit")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class UnitIds:
    """The persons of a batch: digests of the distinct ones, and each record's position among them."""

    digests: list[bytes]
    person: NDArray[np.intp]


def identify(units: object) -> UnitIds:
    """Read the ids of a batch, one per record.

    A person is the text of an id: an integer is the same person in every integer type, a string in every
    string type, categories included, and the integer 1 is the string "1". CSV files know only text, so one
    person counts once whichever kind of file a record comes from. The string "01" is another person.

    Parameters
    ----------
    units : array-like, series or Arrow column of int or str, shape (n,)

    Raises
    ------
    DataRefused
        An id is missing, or is neither an integer nor a string; the ids are not one-dimensional.
    """
    units = arrow.in_memory(units)
    if isinstance(units, np.ma.MaskedArray):
        if np.ma.is_masked(units):
            _refuse_missing()
        units = units.data
    if isinstance(units, np.ndarray):
        return _from_numpy(units)
    if arrow.from_package(units, "pandas"):
        return _from_pandas(units)
    if arrow.has_arrow_interface(units):
        _, columns = arrow.as_columns(units)
        if len(columns) != 1:
            raise DataRefused(
                rule="unit ids must be one column", got=len(columns), remedy="pass the column of ids alone"
            )
        return _from_arrow(columns[0])
    if isinstance(units, Sequence) and not isinstance(units, str | bytes):
        return _from_objects(units)
    if hasattr(units, "__array__"):
        return _from_numpy(np.asarray(units))
    _refuse_type(type(units).__name__)


def _from_numpy(units: NDArray[Any]) -> UnitIds:
    if units.ndim != 1:
        raise DataRefused(
            rule="unit ids must have one dimension", got=units.ndim, remedy="pass one id per record"
        )
    if units.dtype.kind in "iu":
        distinct, person = np.unique(units, return_inverse=True)
        return UnitIds(_digests(b"%d" % unit for unit in distinct.tolist()), person)
    if units.dtype.kind in "OUT":
        return _from_objects(units.tolist())
    _refuse_type(str(units.dtype))


def _from_pandas(units: Any) -> UnitIds:
    if units.ndim != 1:
        raise DataRefused(
            rule="unit ids must be one column", got="a frame", remedy="pass the column of ids alone"
        )
    if isinstance(units.dtype, np.dtype):
        return _from_numpy(units.to_numpy())
    try:
        column = arrow.pyarrow().array(units, from_pandas=True)
    except Exception:
        column = None
    # Refused out here: Arrow's own message, which shows a value, must not stand above ours.
    if column is None:
        _refuse_type("objects")
    return _from_arrow(arrow.as_chunks(column))


def _from_arrow(chunks: Any) -> UnitIds:
    pa, types = arrow.pyarrow(), arrow.pyarrow().types
    if chunks.null_count:
        _refuse_missing()
    if types.is_dictionary(chunks.type):
        kind = chunks.type.value_type
        # Arrow cannot yet pick strings out of a view, which is what Polars' categories are.
        kind = pa.large_string() if types.is_string_view(kind) else kind
        chunks = pa.chunked_array(
            [chunk.dictionary.cast(kind).take(chunk.indices) for chunk in chunks.chunks], type=kind
        )
        if chunks.null_count:
            _refuse_missing()
    if types.is_integer(chunks.type):
        return _from_numpy(chunks.to_numpy())
    if types.is_string_view(chunks.type):
        chunks = chunks.cast(pa.large_string())
    if not (types.is_string(chunks.type) or types.is_large_string(chunks.type)):
        _refuse_type(str(chunks.type))
    encoded = chunks.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    person = encoded.indices.to_numpy(zero_copy_only=False).astype(np.intp)
    return UnitIds(_digests(unit.encode() for unit in encoded.dictionary.to_pylist()), person)


def _from_objects(units: Sequence[Any]) -> UnitIds:
    kinds = set(map(type, units))
    if kinds == {int}:
        try:
            return _from_numpy(np.array(units, dtype=np.int64))
        except OverflowError:
            pass  # Python's integers have no largest one.
    for kind in kinds:
        if kind is type(None) or kind.__name__ in ("NAType", "NaTType"):
            _refuse_missing()
        if issubclass(kind, bool) or not issubclass(kind, int | str | np.integer):
            _refuse_type(kind.__name__)
    canonical = (
        unit.encode("utf-8", "surrogatepass") if isinstance(unit, str) else b"%d" % int(unit)
        for unit in units
    )
    position: dict[bytes, int] = {}
    person = np.fromiter(
        (position.setdefault(name, len(position)) for name in canonical), np.intp, len(units)
    )
    return UnitIds(_digests(position), person)


def _digests(canonical: Iterable[bytes]) -> list[bytes]:
    digests = []
    for name in canonical:
        hasher = _HASHER.copy()
        hasher.update(name)
        digests.append(hasher.digest())
    return digests


def _refuse_missing() -> NoReturn:
    raise DataRefused(
        rule="unit ids must not be missing",
        got="a null",
        remedy="drop those records, or give each a person of its own",
    )


def _refuse_type(got: str) -> NoReturn:
    raise DataRefused(
        rule="unit ids must be integers or strings", got=got, remedy="convert the column to one of them"
    )
