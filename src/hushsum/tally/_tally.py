"""The tally: exact sums of private records, which can be merged, stored and released with noise."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, Unpack

import numpy as np
from numpy.typing import NDArray

from hushsum.declaration import shows_keywords
from hushsum.errors import (
    Argument,
    CounterOverflow,
    DataRefused,
    IncompatibleTallies,
    Parameter,
    SecretRefused,
    UsageError,
)
from hushsum.kernels import Batch, ColumnKernel, Kernel, positive_integer, thread_count
from hushsum.privacy import (
    ADJACENCY_ROW,
    PERSON,
    IntegerNoise,
    Relation,
    ReleaseKeywords,
    ReleaseRequest,
    unit_in_words,
)
from hushsum.privacy.noise import NoiseSource
from hushsum.records import ParameterCheck, UnitCap, clipping_allowed, in_memory
from hushsum.releases import Prepared, ReleasedFunction
from hushsum.tables import Basis, Reading

from ._release import TableRelease, claimed_unit, noisy_rows, row_blocks


def check_mergeable(one: Tally, other: Tally) -> None:
    """Refuse two tallies whose sum is not the tally of all their records."""
    if not isinstance(other, Tally):
        raise UsageError("other", "must be a tally", got=type(other).__name__)
    if other is one:
        rule = "must be another tally: merging a tally with itself counts its records twice"
        raise UsageError("other", rule)
    if other.fingerprint != one.fingerprint:
        raise IncompatibleTallies(
            "tallies must have one fingerprint to merge",
            got=f"some that differ in {differing_parameters(one.basis, other.basis)}",
            remedy="make both with the same",
        )
    if (one._cap is None) != (other._cap is None):
        raise IncompatibleTallies(
            "one tally counts persons, the other records",
            remedy=("make both with ", Parameter("max_per_unit"), ", or neither"),
        )
    if one._origins & other._origins:
        raise IncompatibleTallies(
            "the two tallies hold the same records, one being a copy or a continuation of the other",
            remedy="merge each tally once, or they count twice",
        )


def differing_parameters(one: Basis, other: Basis) -> str:
    """The names of the parameters in which two bases differ, for a refusal to merge their tallies; public.

    >>> from hushsum.methods import race
    >>> from hushsum.kernels import EuclideanKernel
    >>> bases = [race(EuclideanKernel(1, bandwidth=h), rows=9, seed=int(h)).basis for h in (1.0, 2.0)]
    >>> differing_parameters(*bases)
    'kernel bandwidth, seed'
    """
    return ", ".join(_differences(one.description(), other.description(), "method"))


def _differences(one: Mapping[str, Any], other: Mapping[str, Any], label: str) -> list[str]:
    if one["name"] != other["name"]:
        return [label]
    found: list[str] = []
    for key, value in one["parameters"].items():
        another = other["parameters"].get(key)
        if value == another:
            continue
        kernels = [each for each in (value, another) if isinstance(each, dict) and "parameters" in each]
        if len(kernels) == 2 and value["name"] == another["name"]:
            found += [f"{key} {each}" for each in _differences(value, another, key)]
        else:
            found.append(key)
    return found


def is_graph(basis: Basis) -> bool:
    """Whether records are the rows of a graph."""
    return ADJACENCY_ROW in basis.units


def refuse_single_rows() -> NoReturn:
    """Refuse records for a graph: which rows an edge changes is known for a whole list of edges alone."""
    raise UsageError(
        "the tally of a graph holds one list of edges, and takes no further records",
        remedy="read all files by one hs.records.read_edges, and count it with hs.methods.count_graph",
    )


_LARGEST = int(np.iinfo(np.int64).max)
MAX_PER_UNIT = 1 << 20
ORIGIN_BYTES = 16


class Tally:
    """Exact sums of a basis over private records, in one pass. Secret: add, remove, merge and release,
    nothing else.

    Made by :func:`hushsum.race`. It shows no value, refuses pickle, and its file says that it is
    confidential. Two tallies with one fingerprint merge bit for bit to the tally of all their records, in
    any order.

    Parameters
    ----------
    basis : Basis
        What one record adds.
    kernel : Kernel, optional
        What the released table is read with, where the basis is not counted for one kernel.
    max_per_unit : int, optional
        Makes the person the unit of privacy: at most this many records of a person are counted, the first
        ones. Every ``add`` then needs ``units``.
    edge_lists : int
        Of a graph: in how many of the merged lists of edges one edge may be.

    Notes
    -----
    Two threads that change one tally at once are refused; let each fill its own, and merge. A tally that was
    interrupted while counting (Ctrl-C) may hold a part of the batch, or all of it: it refuses everything from
    then on, because counting the batch again would count records twice.
    """

    __slots__ = (
        "_basis",
        "_broken",
        "_cap",
        "_check",
        "_count",
        "_kernel",
        "_lists",
        "_lock",
        "_moves",
        "_origins",
        "_restricted",
        "_room",
        "_table",
    )

    def __init__(
        self,
        basis: Basis,
        kernel: Kernel | None = None,
        *,
        max_per_unit: int | None = None,
        edge_lists: int = 1,
    ) -> None:
        self._basis = basis
        self._kernel = basis.counted_kernel() if kernel is None else basis.reading(kernel).kernel
        self._table: Any = basis.new_table()
        self._count, self._moves, self._room = 0, 0, _LARGEST  # Records; a bound on counters, and its limit.
        self._origins: frozenset[bytes] = frozenset()
        self._broken, self._lock, self._lists = False, threading.Lock(), edge_lists
        self._restricted = False
        self._cap: UnitCap | None = None
        self._check: ParameterCheck | None = None
        if max_per_unit is not None:
            if PERSON not in basis.units:
                rule = "must be left out: the records are nodes of a graph, one row for each"
                raise UsageError("max_per_unit", rule)
            self._cap = UnitCap(positive_integer("max_per_unit", max_per_unit, at_most=MAX_PER_UNIT))

    @property
    def basis(self) -> Basis:
        """What one record adds; public."""
        return self._basis

    @property
    def kernel(self) -> Kernel | None:
        """What the released table is read with; public. None where none of several was chosen."""
        return self._kernel

    @property
    def reading(self) -> Reading:
        """How the released table is read; public."""
        return self._basis.reading(self._kernel)

    @property
    def fingerprint(self) -> str:
        """A public digest of everything that must agree for two tallies to merge."""
        return self._basis.fingerprint

    @property
    def edge_lists(self) -> int:
        """For a graph, the number of merged lists of edges in which one edge may be; public."""
        return self._lists

    @property
    def max_per_unit(self) -> int | None:
        """How many records of one person are counted, if persons are the unit."""
        return None if self._cap is None else self._cap.limit

    @property
    def add_remove_only(self) -> bool:
        """Whether a release may claim add/remove alone; public. See :meth:`restrict_to_add_remove`."""
        return self._restricted

    def restrict_to_add_remove(self) -> Tally:
        """Refuse releases under replace, because some of the records that are given are left out.

        Privacy
        -------
        Under replace the number of records is public and exact, since a replaced record changes no number.
        Where records are left out for what is in them, such as a missing cell, a record that is replaced may
        come, go, or stay: the number of counted records changes by one. Under add/remove one record more or
        less adds or removes one vector, or none, so every sensitivity holds.
        """
        self._restricted = True
        return self

    def __repr__(self) -> str:
        rows, width = self._basis.shape
        unit = self.unit if self._cap is None else unit_in_words(PERSON, self._cap.limit)
        return f"<Tally CONFIDENTIAL {self._kernel!r} rows={rows} width={width} unit={unit!r}>"

    @property
    def unit(self) -> str:
        """Whom a release protects unless another unit is requested; public."""
        return PERSON if self._cap is not None else self._basis.units[0]

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise SecretRefused(
            "a tally must not be pickled or copied, because pickles travel",
            remedy=("save it with .save(path, ", Argument("encryption_key"), "), or release it"),
        )

    def __getstate__(self) -> NoReturn:
        self.__reduce_ex__(2)

    def add(
        self, X: object, *, units: object = None, threads: int | None = None, allow_clipping: bool = False
    ) -> Tally:
        """Count records; any number of times, in one pass.

        Parameters
        ----------
        X : arrays, frames, Arrow tables, or lists of sets, as the kernel takes them
            Checked as a whole first: if anything is refused, nothing is counted. Mend the batch and add it
            again; leaving it out because of one record would let that record move all the others.
        units : one id per record
            Whose record it is; needed if, and only if, the tally was made with ``max_per_unit``.
        threads : int, optional
            Default: all cores this process may use. The result does not depend on it.
        allow_clipping : bool
            Count a batch that mostly lies outside the declared bounds, with a warning.

        Raises
        ------
        DataRefused
            NaN, infinity, wrong width, empty batch, non-numeric columns; and a batch that mostly lies outside
            the declared bounds, unless that is allowed. The tally is unchanged.

        Warns
        -----
        SuspiciousParameter
            if bounds or bandwidth look as if read off this batch, or do not fit it. For the owner's eyes.
        """
        if is_graph(self._basis):
            refuse_single_rows()
        X = in_memory(X)
        batch = self._basis.prepare(X)
        with clipping_allowed(allow_clipping):
            self._compare_parameters(X, batch)
        batch, first = self._counted(batch, units)
        self._accumulate(batch, 1, threads, first=first)
        return self

    def _counted(self, batch: Batch, units: object) -> tuple[Batch, Callable[[], None] | None]:
        """The records that the cap lets in, and what takes their places; without a cap all."""
        cap = self._cap
        if cap is None:
            if units is not None:
                rule = ("must be left out, or the tally made with ", Parameter("max_per_unit"))
                raise UsageError("units", rule)
            return batch, None
        if units is None:
            raise UsageError("units", "must be given, one id per record: it counts persons")
        keep, pending = cap.plan(units, len(batch))
        return batch.select(keep), lambda: cap.commit(pending)

    def _compare_parameters(self, X: object, batch: Batch) -> None:
        """Warn whoever called `add` of parameters that these records give away or do not fit."""
        if isinstance(X, Batch):
            return
        by_columns = isinstance(self._kernel, ColumnKernel)
        if self._check is None:
            box, columns = self._basis.declared_ranges()
            widths = [self._kernel.bandwidth] if isinstance(self._kernel, ColumnKernel) else []
            self._check = ParameterCheck(box, bandwidths=widths, columns=columns)
        rows = batch.arrays[0] if by_columns else None
        self._check.warn(lambda: self._basis.declared_numbers(X), rows=rows)

    def remove(self, X: object, *, threads: int | None = None) -> Tally:
        """Take records out that were added before; they must be the same records.

        Refused under a cap: which of a person's records were counted is not remembered.
        """
        if self._cap is not None:
            raise UsageError(
                ("remove needs a tally without ", Parameter("max_per_unit")),
                remedy="count anew: the cap may have left the record out",
            )
        if is_graph(self._basis):
            refuse_single_rows()
        batch = self._basis.prepare(X)
        if len(batch) > self._count:
            raise DataRefused("X", "must contain only records that were added", got="more records")
        self._accumulate(batch, -1, threads)
        return self

    def merge(self, other: Tally, *, disjoint_units: bool = False) -> Tally:
        """Add another tally's sums to this one, exactly.

        Caps add up (a person may be in both), unless ``disjoint_units`` declares that no person is; of graphs
        the changes by one edge, unless no edge, or no node, is in both. A node that is in both has two rows.

        Raises
        ------
        IncompatibleTallies
            if the fingerprints differ, as those of different kinds of graphs do, one tally counts persons and
            the other records, or both hold the same records, one being a copy or a continuation of the other.
        """
        check_mergeable(self, other)
        self._check_room(other._moves)

        def merge_caps() -> None:
            if self._cap is not None and other._cap is not None:
                self._cap.merge(other._cap, disjoint=disjoint_units)

        def work() -> None:
            self._table += other._table
            self._count += other._count
            self._moves += other._moves
            self._origins |= other._origins
            self._restricted |= other._restricted
            # If no node is a record of both, the rows are those of one graph, and an edge changes as many as
            # in one. If no edge is in both lists, it changes the rows of one of them.
            lists = self._lists, other._lists
            self._lists = max(lists) if disjoint_units or not is_graph(self._basis) else sum(lists)

        with other._held():
            self._change(work, first=merge_caps)
        return self

    @shows_keywords(ReleaseKeywords, ReleaseRequest)
    def release(self, *, threads: int | None = None, **keywords: Unpack[ReleaseKeywords]) -> ReleasedFunction:
        """Draw noise once and make the public function. This spends the claim; a second release spends again.

        Parameters
        ----------
        epsilon, delta, rho : float
            Pure ``epsilon``; ``epsilon`` and ``delta``; or ``rho``.
        relation : {"add/remove", "replace"}
            Which datasets are neighbours. Under replace the number of records is public.
        unit : str, optional
            Whom the claim protects; of a graph also ``"edge"`` or ``"directed edge"``. Default: :attr:`unit`.
        budget : Budget, optional
            ``hs.Ledger("ledger.db").dataset("town")``, which is debited before any noise is drawn.
        mechanism, rows, count_share, rounded, population, allow_large_delta, idempotency_key, \
insecure_noise_seed
            See :class:`hushsum.privacy.ReleaseRequest`, which defines them for all surfaces.

        Raises
        ------
        ClaimError, BudgetExhausted
            if the numbers cannot be claimed, or the budget has too little left; nothing is released.

        Privacy
        -------
        Exactly the requested claim, for the unit of this tally, by integer noise from a fresh key.
        """
        return self.prepare(ReleaseRequest.of(**keywords), threads=threads).spend()

    def prepare(
        self, request: ReleaseRequest, *, threads: int | None = None, assumptions: Sequence[str] = ()
    ) -> Prepared[ReleasedFunction]:
        """Check all that can be refused; then the claim is known, with further ``assumptions``."""
        unit, per_unit = claimed_unit(self, request.unit, request.relation)
        request.check_delta()
        table = TableRelease.of(request, self._basis, unit, per_unit, thread_count(threads), assumptions)

        def make() -> ReleasedFunction:
            with self._held():
                return table.draw(self._kernel, self._table, self._count)

        subject = {
            "fingerprint": self.fingerprint,
            "error": table.noise_in_words(self._kernel),
            **request.public_options,
        }
        return Prepared(table.claim, subject, make, request)

    def save(self, path: str | os.PathLike[str], *, encryption_key: bytes | None = None) -> None:
        """Write a ``.tally`` file, marked CONFIDENTIAL, for its owner only; with a 32-byte key encrypted."""
        from ._file import save_tally

        with self._held():
            save_tally(self, path, encryption_key=encryption_key)

    def _accumulate(
        self, batch: Batch, step: int, threads: int | None, first: Callable[[], None] | None = None
    ) -> None:
        largest = self._basis.sensitivity(Relation.ADD_REMOVE).largest
        moves = len(batch) * largest
        many = thread_count(threads)
        self._check_room(moves)

        def work() -> None:
            self._count += step * len(batch)
            self._moves += moves
            # Copies of an empty tally may be filled apart; from the first record on a copy is the same data.
            if len(batch) and not self._origins:
                self._origins = frozenset({secrets.token_bytes(ORIGIN_BYTES)})
            if len(batch):
                self._basis.accumulate(self._table, batch, step=step, threads=many)

        self._change(work, first=first)

    def _change(self, work: Callable[[], None], *, first: Callable[[], None] | None = None) -> None:
        """Do all of ``work``. If it fails midway, the tally is marked as damaged and refuses further use.

        ``first`` may still refuse: it touches the cap alone, which then counts too many at worst.
        """
        with self._held():
            if first is not None:
                first()
            self._broken = True
            work()
            self._broken = False

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Nobody else changes the tally meanwhile, and nobody was interrupted while changing it before."""
        if not self._lock.acquire(blocking=False):
            remedy = "let each thread fill a tally of its own, and merge them"
            raise UsageError("another thread is using this tally", remedy=remedy)
        try:
            if self._broken:
                rule = "this tally was interrupted while counting and may hold a part of a batch"
                raise UsageError(rule, remedy="start again from the last saved one")
            yield
        finally:
            self._lock.release()

    def _check_room(self, moves: int) -> None:
        if self._moves + moves > self._room:
            raise CounterOverflow("a counter could leave its 64 bits", remedy="release this tally")

    @classmethod
    def _restore(cls, basis: Basis, kernel: Kernel | None, **state: Any) -> Tally:
        """A tally whose attributes have these values, for the file format in this package."""
        tally = cls(basis, kernel)
        for name, value in state.items():
            setattr(tally, f"_{name}", value)
        return tally


def exact_cells(tally: Tally) -> Any:
    """The exact sums of a tally that counts records, for a private choice; secret."""
    if tally.max_per_unit is not None:
        rule = "a private choice among marginals protects records, and this tally counts persons"
        raise UsageError(rule, remedy="release all its marginals")
    with tally._held():
        return tally._table


def with_cells(tally: Tally, basis: Basis, kernel: Kernel, cells: NDArray[np.int64]) -> Tally:
    """A tally of the same records under a basis whose vector is these cells of the old one; secret."""
    with tally._held():
        names = ("count", "moves", "cap", "origins", "restricted")
        kept = {name: getattr(tally, f"_{name}") for name in names}
        return Tally._restore(basis, kernel, table=tally._table[:, cells], **kept)


def take_increment(tally: Tally) -> tuple[NDArray[np.int64], int]:
    """The exact table, flat, and the number of records since the last call; both are 0 afterwards.

    The cap on the records of a person goes on over all calls.
    """
    rows, width = tally.basis.shape
    table = np.empty((rows, width), np.int64)
    with tally._held():
        for start, values in row_blocks(tally._table, rows):
            table[start : start + len(values)] = values
        count = tally._count
        tally._table, tally._count, tally._moves = tally.basis.new_table(), 0, 0
    return table.reshape(-1), count


def has_removals(tally: Tally) -> bool:
    """Whether records were removed: the bound on its counters grows then, and its number of records falls."""
    with tally._held():
        return tally._moves > tally._count * tally.basis.sensitivity(Relation.ADD_REMOVE).largest


def add_removals(tally: Tally, X: object, *, units: object = None, threads: int | None = None) -> int:
    """Count records with the opposite sign, and return how many; each takes a place under a person's cap.

    The number of records of the tally itself stays as it is, since it may not fall below 0.

    Privacy
    -------
    A removal is a record of the same person: which are counted depends on that person's records alone.
    """
    if is_graph(tally.basis):
        refuse_single_rows()
    batch, first = tally._counted(tally.basis.prepare(X), units)
    before = tally._count
    tally._accumulate(batch, -1, threads, first=first)
    tally._count = before
    return len(batch)


def leave_room(tally: Tally, room: int) -> None:
    """Refuse records from now on with which a counter could come to more than this."""
    tally._room = min(room, _LARGEST)


def sums_with_share(
    tally: Tally,
    rows: int,
    noise: IntegerNoise,
    count_noise: IntegerNoise,
    *,
    threads: int = 1,
    insecure_noise_seed: int | None = None,
) -> NDArray[np.int64]:
    """The first ``rows`` rows of a tally, cell after cell, and the number of records, each with noise.

    Privacy
    -------
    One share of noise is not enough for a claim: the vector must leave this process masked, as one of a
    sum that is opened only as a whole (`hushsum.parties.secure_aggregation`).
    """
    width = tally.basis.shape[1]
    vector = np.empty(rows * width + 1, np.int64)
    with NoiseSource.for_release(insecure_noise_seed) as source, tally._held():
        start = 0
        for part in noisy_rows(tally._table, rows, noise, source, threads):
            vector[start : start + part.size] = part.reshape(-1)
            start += part.size
        vector[-1] = tally._count + int(count_noise.draw(1, source)[0])
    return vector
