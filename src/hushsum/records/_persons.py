"""Caps on the records of a person: what counts as the same person, and how many are counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Secret
from hushsum.errors import DataRefused, FileRefused, UsageError, shown

from ._arrow import decoded, is_text, one_column, pyarrow

__all__ = ["UnitCap", "identify"]

DIGEST_BYTES: Final = 16
_HASHER: Final = blake2b(digest_size=DIGEST_BYTES, person=b"hushsum-unit")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class UnitIds:
    """The persons of a batch: digests of the distinct ones, and each record's position among them."""

    digests: list[bytes]
    person: NDArray[np.intp]


def identify(units: object, records: int | None = None) -> UnitIds:
    """Read the ids of a batch, one per record.

    A person is the text of an id: an integer is the same person in every integer type, a string in every
    string type, categories included, and the integer 1 is the string "1". CSV files know only text, so one
    person counts once whichever kind of file a record comes from. The string "01" is another person.

    Parameters
    ----------
    units : array-like, series or Arrow column of int or str, shape (n,)
    records : int, optional
        How many there must be.

    Raises
    ------
    DataRefused
        An id is missing, or is neither an integer nor a string; the ids are not one-dimensional, or not as
        many as records.
    """
    found = _identified(units)
    if records is not None and len(found.person) != records:
        raise DataRefused("units", "must have one id for each record", got="another number")
    return found


def _identified(units: object) -> UnitIds:
    units = one_column(units, "unit ids must be one column of integers or strings")
    if isinstance(units, np.ma.MaskedArray):
        if np.ma.is_masked(units):
            _refuse_missing()
        units = units.data
    if isinstance(units, np.ndarray):
        return _from_numpy(units)
    if isinstance(units, list | tuple):
        return _from_objects(units)
    if units is None:
        _refuse_type("objects")
    return _from_arrow(units)


def _from_numpy(units: NDArray[Any]) -> UnitIds:
    if units.ndim != 1:
        raise DataRefused("unit ids must have one dimension", got=units.ndim, remedy="pass one id per record")
    if units.dtype.kind in "iu":
        distinct, person = np.unique(units, return_inverse=True)
        return UnitIds(_digests(b"%d" % unit for unit in distinct.tolist()), person)
    if units.dtype.kind in "OUT":
        return _from_objects(units.tolist())
    _refuse_type(str(units.dtype))


def _from_arrow(chunks: Any) -> UnitIds:
    pa, types = pyarrow(), pyarrow().types
    if types.is_dictionary(chunks.type) and not chunks.null_count:
        chunks = decoded(chunks)
    if chunks.null_count:
        _refuse_missing()
    if types.is_integer(chunks.type):
        return _from_numpy(chunks.to_numpy())
    if not is_text(chunks.type):
        _refuse_type(str(chunks.type))
    if types.is_string_view(chunks.type):
        chunks = chunks.cast(pa.large_string())
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
        "unit ids must not be missing",
        got="a null",
        remedy="drop those records, or give each a person of its own",
    )


def _refuse_type(got: str) -> NoReturn:
    raise DataRefused(
        "unit ids must be integers or strings", got=got, remedy="convert the column to one of them"
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PendingUnits:
    """What `UnitCap.commit` will write: the persons of one batch and their new counts; secret."""

    digests: list[bytes]
    counts: NDArray[np.int64]
    version: int


class UnitCap(Secret):
    """Keeps the first ``limit`` records of each person, over all batches.

    Two steps, so that a batch refused for another reason changes nothing: `plan` decides which records are
    kept, `commit` remembers them. Memory is 100 to 150 bytes per person.

    Parameters
    ----------
    limit : int
        At least 1.

    Privacy
    -------
    The unit becomes the person, with ``limit`` times the sensitivity of a record: which records of a person
    are kept depends on the order of that person's own records only, so one person more or less changes
    nothing else. Two persons share a counter only if their 128-bit BLAKE2b digests collide. The digests keep
    ids out of files but do not hide persons, since ids can be guessed: the state is as secret as the data,
    and so is the number of persons.

    Raises
    ------
    UsageError
        The limit is not a positive integer.

    >>> cap = UnitCap(limit=2)
    >>> mask, pending = cap.plan(["ann", "bob", "ann", "ann"])
    >>> mask
    array([ True,  True,  True, False])
    >>> cap.commit(pending)
    >>> cap.plan(["ann", "bob"])[0]
    array([False,  True])
    """

    REFUSAL = "a cap's counters are secret and cannot be pickled", "save the tally instead"
    __slots__ = ("_counts", "_limit", "_version")

    def __init__(self, limit: int) -> None:
        if isinstance(limit, bool) or not isinstance(limit, int | np.integer) or limit < 1:
            raise UsageError("max_per_unit", "must be an integer of at least 1", got=shown(limit))
        self._limit = int(limit)
        self._counts: dict[bytes, int] = {}
        self._version = 0

    @property
    def limit(self) -> int:
        """How many records of one person are kept at most."""
        return self._limit

    def __repr__(self) -> str:
        return f"UnitCap(limit={self._limit})"

    def plan(self, units: object, records: int | None = None) -> tuple[NDArray[np.bool_], PendingUnits]:
        """Say which records of a batch are kept, changing nothing.

        Parameters
        ----------
        units : array-like, series or Arrow column of int or str, shape (n,)
            The person of each record.
        records : int, optional
            How many records there are.

        Returns
        -------
        mask : bool array of shape (n,)
        pending : PendingUnits
            For `commit`, before anything else is planned with it.

        Raises
        ------
        DataRefused
            An id is missing, or is neither an integer nor a string; or there are not as many as records.
        """
        ids = identify(units, records)
        get = self._counts.get
        before = np.fromiter((get(digest, 0) for digest in ids.digests), np.int64, len(ids.digests))
        here = np.bincount(ids.person, minlength=len(before)).astype(np.int64)
        # A stable sort puts each person's records together in their order; rank counts within the person.
        order = np.argsort(ids.person, kind="stable")
        first = np.cumsum(here) - here
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order)) - np.repeat(first, here)
        mask = before[ids.person] + rank < self._limit
        return mask, PendingUnits(ids.digests, np.minimum(before + here, self._limit), self._version)

    def commit(self, pending: PendingUnits) -> None:
        """Remember the records that a plan kept; raises UsageError if the cap has changed since the plan."""
        if pending.version != self._version:
            raise UsageError(
                "a plan of capped records must be committed before the next change", remedy="plan again"
            )
        self._counts.update(zip(pending.digests, pending.counts.tolist(), strict=True))
        self._version += 1

    def merge(self, other: UnitCap, *, disjoint: bool = False) -> None:
        """Add the counters of another cap.

        A person may be in both, with ``limit`` records in each, so the limits add. With ``disjoint=True`` the
        persons are declared to be different ones, and the larger limit holds.

        Raises
        ------
        DataRefused
            The persons are declared disjoint and are not; nothing has changed.
        """
        if disjoint:
            if not self._counts.keys().isdisjoint(other._counts.keys()):
                raise DataRefused(
                    "persons declared disjoint must be in one of the two tallies only",
                    got="some in both",
                    remedy="merge without declaring them disjoint",
                )
            self._counts = self._counts | other._counts
            self._limit = max(self._limit, other._limit)
        else:
            merged = dict(self._counts)
            for digest, count in other._counts.items():
                merged[digest] = merged.get(digest, 0) + count
            self._counts = merged
            self._limit += other._limit
        self._version += 1

    def state(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The digests, shape (persons, 16), ascending, and the count of each, whatever the history."""
        digests = np.frombuffer(b"".join(self._counts), dtype=np.uint8).reshape(-1, DIGEST_BYTES)
        counts = np.fromiter(self._counts.values(), np.int64, len(self._counts))
        order = _ascending(digests)
        return digests[order], counts[order]

    @classmethod
    def from_state(cls, limit: int, digests: NDArray[np.uint8], counts: NDArray[np.int64]) -> UnitCap:
        """Rebuild a cap from `state`.

        Raises
        ------
        FileRefused
            The arrays are not what `state` gives for this limit.
        """
        cap = cls(limit)
        fits = (
            digests.dtype == np.uint8
            and digests.ndim == 2
            and digests.shape[1] == DIGEST_BYTES
            and counts.shape == digests.shape[:1]
            and counts.dtype == np.int64
        )
        if not fits or np.any(counts < 1) or np.any(counts > cap.limit):
            raise FileRefused(
                "the counters of persons must lie between 1 and the cap", remedy="the file is damaged"
            )
        data = np.ascontiguousarray(digests).tobytes()
        keys = [data[i : i + DIGEST_BYTES] for i in range(0, len(data), DIGEST_BYTES)]
        cap._counts = dict(zip(keys, counts.tolist(), strict=True))
        if len(cap._counts) != len(keys) or np.any(np.diff(_ascending(digests)) != 1):
            raise FileRefused(
                "the persons of a cap must be distinct and in ascending order", remedy="the file is damaged"
            )
        return cap


def _ascending(digests: NDArray[np.uint8]) -> NDArray[np.intp]:
    words = np.ascontiguousarray(digests).view(">u8").reshape(-1, DIGEST_BYTES // 8)
    return np.lexsort((words[:, 1], words[:, 0]))
