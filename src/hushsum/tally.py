"""Tallies: secret, exact integer sums over records, which are merged, saved and released.

A release adds noise to the exact sums, and its result is a public function. Outside of memory tallies are
marked CONFIDENTIAL, and optionally encrypted: ``.tally`` files, checkpoints of counts that are not finished,
and messages of workers.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, NoReturn, Unpack

import numpy as np

from hushsum import errors, files, privacy, releases, tables
from hushsum._native import CounterTable
from hushsum._types import Integers, PathOrFile
from hushsum.declaration import shows_keywords
from hushsum.files import Buffer, FileKind, Header, SecretFile, Section
from hushsum.kernels import (
    Batch,
    CategoricalKernel,
    ColumnKernel,
    Kernel,
    counts_records,
    kernel_as_json,
    kernel_from_json,
    positive_integer,
    records_in_words,
    thread_count,
)
from hushsum.privacy import (
    Calibration,
    Claim,
    IntegerNoise,
    Mechanism,
    Relation,
    ReleaseKeywords,
    ReleaseRequest,
    UnitChange,
)
from hushsum.privacy.noise import NoiseSource
from hushsum.records import ParameterCheck, UnitCap, clipping_allowed, in_memory
from hushsum.releases import NoisyTable, Prepared, PublicFacts, ReleasedFunction
from hushsum.tables import Basis, Cells, LinearReading, Reading, RowReading, Table
from hushsum.version import PRODUCER

__all__ = [
    "DEFAULT_SECONDS", "Checkpoint", "TableRelease", "Tally", "TallyPattern", "add_removals", "build",
    "claimed_unit", "described", "differing_parameters", "exact_cells", "has_removals", "is_empty",
    "is_graph", "leave_room", "load_tally", "payload_size", "public_header", "rounding_step", "row_blocks",
    "save_tally", "stored_job", "sums_with_share", "take_increment", "tally_as_message", "tally_from_bytes",
    "with_cells",
]  # fmt: skip


Counters = Integers | CounterTable
"""A table of exact counts: an array, or counters that start at one byte."""

CELLS_AT_A_TIME = 1 << 22


def row_blocks(
    table: Counters, rows: int, *, threads: int = 1, cells: int = CELLS_AT_A_TIME
) -> Iterator[tuple[int, Integers]]:
    """The first rows, at most ``cells`` at a time, each time with the number of the first one; not to be
    written to.
    """
    for at in tables.slices(rows, cells // table.shape[1]):
        if isinstance(table, np.ndarray):
            yield at.start, table[at.start : min(at.stop, rows)]
            continue
        values = np.empty((min(at.stop, rows) - at.start, table.shape[1]), np.int64)
        table.read_rows(at.start, values, threads)
        yield at.start, values


def value_range(table: Counters) -> tuple[int, int]:
    """The smallest and the largest count."""
    ends = [(int(values.min()), int(values.max())) for _, values in row_blocks(table, table.shape[0])]
    return min(0, *(low for low, _ in ends)), max(0, *(high for _, high in ends))


_DRAWN_AT_A_TIME = 1 << 20


def claimed_unit(tally: Tally, requested: str | None, relation: str | Relation) -> tuple[str, int]:
    """The unit of a claim, and how many records, or lists of edges, it may be in.

    Raises
    ------
    ClaimError
        for a unit that the tally does not have, or a relation that it is not counted for.
    """
    if tally.add_remove_only and Relation.of(relation) is Relation.REPLACE:
        raise errors.ClaimError(
            "relation",
            "must be 'add/remove' for a tally from which records with missing values were left out: "
            "their number is not public",
            got="'replace'",
            remedy="release under 'add/remove', or count a file without those records",
        )
    cap = tally.max_per_unit
    offered = tuple(each for each in tally.basis.units if (each == privacy.PERSON) is (cap is not None))
    unit = privacy.checked_unit(tally.unit if requested is None else requested, offered)
    if cap is not None:
        return unit, cap
    return unit, 1 if unit == tally.basis.units[0] else tally.edge_lists


@dataclass(frozen=True, slots=True)
class TableRelease:
    """How the noisy table of a release is drawn: checked and calibrated from public parameters alone, before
    the budget is debited.

    ``rows`` is None where the noisy count decides how many are published; ``calibration`` is that of the
    largest table that may follow. The mechanism of the claim is the one with the least noise for that table,
    unless one was requested; if it needs no δ, the claim is pure.
    """

    basis: Basis
    claim: Claim
    rows: int | None
    count_share: Fraction
    rounded: bool
    threads: int
    insecure_noise_seed: int | None
    calibration: Calibration

    @classmethod
    def of(
        cls,
        request: ReleaseRequest,
        basis: Basis,
        unit: str,
        per_unit: int,
        threads: int = 1,
        assumptions: Sequence[str] = (),
    ) -> TableRelease:
        """Check a request for the table of a basis; raises UsageError or ClaimError for what cannot be
        released, noise that the samplers would refuse among it.
        """
        promise, relation = request.promise, Relation.of(request.relation)
        rows = None if request.rows == privacy.AUTO else request.rows
        if isinstance(rows, str):
            raise errors.UsageError("rows", f"must be a number or {privacy.AUTO!r}", got=errors.shown(rows))
        if rows is not None:
            rows, capacity = positive_integer("rows", rows, at_most=privacy.MOST_ROWS), basis.shape[0]
            if rows > capacity:
                remedy = "make a tally with more rows"
                raise errors.UsageError(
                    "rows", f"must be at most the tally's {capacity}", got=rows, remedy=remedy
                )
        largest = basis.prefix(rows or basis.shape[0])
        calibration = privacy.calibrate(
            promise,
            largest.unit_change(unit, per_unit, relation),
            cells=math.prod(largest.shape),
            count_share=request.share_of_count,
            mechanism=request.checked_mechanism,
        )
        calibration.check()
        of_unit = tuple(text for name, text in basis.assumptions.items() if name == unit)
        claim = Claim(
            promise=calibration.keeps(promise),
            unit=unit,
            records_per_unit=per_unit,
            relation=relation,
            mechanism=Mechanism.of(calibration.table.mechanism),
            arithmetic=privacy.EXACT_INTEGERS,
            secure=request.insecure_noise_seed is None,
            assumptions=(*of_unit, *assumptions),
        )
        share, seed = request.share_of_count, request.insecure_noise_seed
        return cls(basis, claim, rows, share, bool(request.rounded), threads, seed, calibration)

    @property
    def change(self) -> UnitChange:
        """How far one unit moves the whole table and the number of records."""
        return self.basis.unit_change(self.claim.unit, self.claim.records_per_unit, self.claim.relation)

    def draw(self, kernel: Kernel | None, table: Counters, count: int) -> NoisyTable:
        """Add noise to the first rows of a table, and to the count, and wrap them with their claim.

        Privacy
        -------
        The count is drawn first; the number of rows may depend on the noisy count, never on the exact one.
        Sequential composition: ε of the count and ε of the table add to the promise; Gaussian noise is
        composed in calibration.
        """
        count_noise = self.calibration.count
        with NoiseSource.for_release(self.insecure_noise_seed) as source:
            noisy_count = count + int(count_noise.draw(1, source)[0])
            published = self.basis.prefix(self.rows or self._rows_for(noisy_count))
            noise = self._noise_of(published)
            reading = published.reading(kernel)
            step = rounding_step(published, noise, rounded=self.rounded)
            parts = noisy_rows(table, published.shape[0], noise, source, self.threads)
            packed = isinstance(reading, RowReading) and math.prod(published.shape) >= tables.LARGE_TABLE
            cells: Cells
            if packed:
                cells = _packed(parts, published.shape, step, self.threads)
            else:
                cells = _array(parts, published)
        function = releases.function_type(reading)(
            reading=reading,
            cells=cells,
            facts=PublicFacts(self.claim),
            noise=noise,
            noisy_count=noisy_count,
            count_noise=count_noise,
            step=step if packed else 1,
        )
        return function if packed else function.rounded_at_release(step)

    def _noise_of(self, published: Basis) -> IntegerNoise:
        """The noise of the rows that are published: of the distribution that the claim names."""
        claim = self.claim
        return privacy.calibrate(
            claim.promise,
            published.unit_change(claim.unit, claim.records_per_unit, claim.relation),
            cells=math.prod(published.shape),
            count_share=self.count_share,
            mechanism=self.calibration.table.mechanism,
        ).table

    def _rows_for(self, noisy_count: int) -> int:
        """The rows that suit a noisy count: under pure ε each row adds noise to all others."""
        promise, change, table = self.claim.promise, self.change, self.calibration.table
        if not promise.pure:
            return self.basis.shape[0]
        assert promise.epsilon is not None
        epsilon = promise.epsilon * (1 - self.count_share if change.count else 1)
        worth = float(epsilon)
        if table.mechanism == privacy.GAMMA:
            # With less variance than Laplace's as many rows suit as Laplace noise takes at a larger ε.
            laplace = privacy.laplace_noise(change.table.l1, epsilon)
            # An ε at which nothing is left of Laplace noise takes all rows anyway.
            worth *= max(1.0, math.sqrt(laplace.variance / table.variance))
        return self.basis.rows_for(noisy_count, worth, change.records)

    def noise_in_words(self, kernel: Kernel | None) -> str | None:
        """The noise of an answer in the middle of the bounds, for people; None where a query has no place, as
        for sets and categories.

        It follows from public parameters alone, before anything is drawn. Under pure ε fewer rows may be
        published, with less noise.
        """
        if kernel is None or kernel.dim is None or isinstance(kernel, CategoricalKernel):
            return None
        if any(each.dim is None for each in kernel.parts()):
            return None
        bounds, published = self.basis.bounds, self.basis.prefix(self.rows or self.basis.shape[0])
        middle = np.ones(kernel.dim) if bounds is None else bounds.centre
        reading, query = published.reading(kernel), published.prepare_queries(middle[np.newaxis])
        # The covariances of a linear reading may have to be probed cell by cell, which a release has no time
        # for.
        if isinstance(reading, LinearReading):
            gain = reading.noise_gain(query)[0]
        else:
            gain = reading.noise_covariance(query)[0, 0]
        error = math.sqrt(float(gain) * self.calibration.table.variance)
        if not counts_records(kernel):
            return f"noise of at most ± {error:.2g} of a sum of similarities, in the middle of the bounds"
        return f"noise of at most {records_in_words(error)} near a point, in the middle of the bounds"


def rounding_step(published: Basis, noise: IntegerNoise, *, rounded: bool) -> int:
    """What cells are rounded to multiples of."""
    if rounded:
        return releases.largest_step(noise.variance)
    return releases.largest_step(noise.variance, releases.UNSEEN_SHARE) if published.fractional else 1


def noisy_rows(
    table: Counters, rows: int, noise: IntegerNoise, source: NoiseSource, threads: int
) -> Iterator[Integers]:
    """The first rows plus noise, some at a time, so that little is held twice; noise of the Gamma-radius
    distribution, which is one vector, all at once.
    """
    cells = rows * table.shape[1] if noise.mechanism == privacy.GAMMA else _DRAWN_AT_A_TIME
    for _, exact in row_blocks(table, rows, threads=threads, cells=cells):
        noisy = noise.draw(exact.size, source, threads=threads).reshape(exact.shape)
        noisy += exact
        yield noisy


def _array(parts: Iterator[Integers], published: Basis) -> Table:
    """Noisy counts that fit 32 bits are kept in them, which halves the memory and reads faster."""
    noisy: Table = np.empty(published.shape, np.int32)
    smallest, largest, start = -(2**31), 2**31 - 1, 0
    for part in parts:
        if noisy.dtype == np.int32 and (part.min() < smallest or part.max() > largest):
            noisy = noisy.astype(np.int64)
        noisy[start : start + len(part)] = part
        start += len(part)
    return noisy


def _packed(parts: Iterator[Integers], shape: tuple[int, int], step: int, threads: int) -> Cells:
    """Large tables take the form that they have in files, without ever being in another one."""
    from hushsum.files import TablePacker

    packer = TablePacker(shape, unit=step, threads=threads)
    for part in parts:
        packer.add(part.reshape(-1) if step == 1 else releases.round_cells(part, step).reshape(-1))
    return packer.finish()


def check_mergeable(one: Tally, other: Tally) -> None:
    """Refuse two tallies whose sum is not the tally of all their records."""
    if not isinstance(other, Tally):
        raise errors.UsageError("other", "must be a tally", got=type(other).__name__)
    if other is one:
        rule = "must be another tally: merging a tally with itself counts its records twice"
        raise errors.UsageError("other", rule)
    if other.fingerprint != one.fingerprint:
        raise errors.IncompatibleTallies(
            "tallies must have one fingerprint to merge",
            got=f"some that differ in {differing_parameters(one.basis, other.basis)}",
            remedy="make both with the same",
        )
    if (one._cap is None) != (other._cap is None):
        raise errors.IncompatibleTallies(
            "one tally counts persons, the other records",
            remedy=("make both with ", errors.Parameter("max_per_unit"), ", or neither"),
        )
    if one._origins & other._origins:
        raise errors.IncompatibleTallies(
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
    return privacy.ADJACENCY_ROW in basis.units


def refuse_single_rows() -> NoReturn:
    """Refuse records for a graph: which rows an edge changes is known for a whole list of edges alone."""
    raise errors.UsageError(
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
        "_basis", "_broken", "_cap", "_check", "_count", "_kernel", "_lists", "_lock", "_moves", "_origins",
        "_restricted", "_room", "_table",
    )  # fmt: skip

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
            if privacy.PERSON not in basis.units:
                rule = "must be left out: the records are nodes of a graph, one row for each"
                raise errors.UsageError("max_per_unit", rule)
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
        unit = self.unit if self._cap is None else privacy.unit_in_words(privacy.PERSON, self._cap.limit)
        return f"<Tally CONFIDENTIAL {self._kernel!r} rows={rows} width={width} unit={unit!r}>"

    @property
    def unit(self) -> str:
        """Whom a release protects unless another unit is requested; public."""
        return privacy.PERSON if self._cap is not None else self._basis.units[0]

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise errors.SecretRefused(
            "a tally must not be pickled or copied, because pickles travel",
            remedy=("save it with .save(path, ", errors.Argument("encryption_key"), "), or release it"),
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
                rule = ("must be left out, or the tally made with ", errors.Parameter("max_per_unit"))
                raise errors.UsageError("units", rule)
            return batch, None
        if units is None:
            raise errors.UsageError("units", "must be given, one id per record: it counts persons")
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
            raise errors.UsageError(
                ("remove needs a tally without ", errors.Parameter("max_per_unit")),
                remedy="count anew: the cap may have left the record out",
            )
        if is_graph(self._basis):
            refuse_single_rows()
        batch = self._basis.prepare(X)
        if len(batch) > self._count:
            raise errors.DataRefused("X", "must contain only records that were added", got="more records")
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
            raise errors.UsageError("another thread is using this tally", remedy=remedy)
        try:
            if self._broken:
                rule = "this tally was interrupted while counting and may hold a part of a batch"
                raise errors.UsageError(rule, remedy="start again from the last saved one")
            yield
        finally:
            self._lock.release()

    def _check_room(self, moves: int) -> None:
        if self._moves + moves > self._room:
            raise errors.CounterOverflow("a counter could leave its 64 bits", remedy="release this tally")

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
        raise errors.UsageError(rule, remedy="release all its marginals")
    with tally._held():
        return tally._table


def with_cells(tally: Tally, basis: Basis, kernel: Kernel, cells: Integers) -> Tally:
    """A tally of the same records under a basis whose vector is these cells of the old one; secret."""
    with tally._held():
        names = ("count", "moves", "cap", "origins", "restricted")
        kept = {name: getattr(tally, f"_{name}") for name in names}
        return Tally._restore(basis, kernel, table=tally._table[:, cells], **kept)


def take_increment(tally: Tally) -> tuple[Integers, int]:
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
) -> Integers:
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


WARNING = "CONFIDENTIAL: exact sums of private records. Not for release; see hushsum release."
_DIGEST_BYTES = 16
_LARGEST_CAP = 2**53
_MOST_LISTS = 2**20


def save_tally(tally: Tally, path: PathOrFile, *, encryption_key: bytes | None = None) -> None:
    """Write a tally, readable by its owner only. Counts stand in the payload, so encryption hides them all.

    The header is public even then: kernel, rows, width, seed, bounds, and how many persons' counters the
    file holds are not encrypted. (That number is padded to a power of two.)
    """
    header, sections = described(tally, encrypted=encryption_key is not None)
    TALLY_FILE.write(path, header, sections, encryption_key=encryption_key)


def described(tally: Tally, *, encrypted: bool) -> tuple[Header, list[Buffer | Section]]:
    """The public header and the secret sections of a tally, for this file and for checkpoints."""
    cap, table = tally._cap, tally._table
    numbers = np.array([tally._count, tally._moves], np.int64)
    type_name = "int64" if encrypted else _narrowest(table)
    sections: list[Buffer | Section] = [
        files.encode_array(numbers, "int64"),
        _table_section(table, type_name),
    ]
    persons = 0
    if cap is not None:
        digests, counts = cap.state()
        persons = len(counts)
        capacity = _padded(persons)
        padded_digests = np.zeros((capacity, _DIGEST_BYTES), np.uint8)
        padded_digests[:persons] = digests
        padded_counts = np.zeros(capacity, np.int64)
        padded_counts[:persons] = counts
        sections += [padded_digests.tobytes(), files.encode_array(padded_counts, "int64")]
    sections.append(b"".join(sorted(tally._origins)))
    counted = tally.basis.counted_kernel() is not None
    header: Header = {
        "warning": WARNING,
        "basis": tables.basis_as_json(tally.basis),
        # The kernel to read with; none where the basis is counted for one, or none was chosen.
        "kernel": None if counted or tally.kernel is None else kernel_as_json(tally.kernel),
        "producer": PRODUCER,
        "table": {"type": type_name},
        "origins": len(tally._origins),
        "units": None if cap is None else {"limit": cap.limit, "slots": _padded(persons)},
    }
    if tally.edge_lists > 1:
        header["edge_lists"] = tally.edge_lists
    if tally.add_remove_only:
        header["add_remove_only"] = True
    return header, sections


def load_tally(path: PathOrFile, *, encryption_key: bytes | None = None) -> Tally:
    """Read a ``.tally`` file.

    Raises
    ------
    FileRefused
        if the file is damaged, of another kind, or the key does not open it.
    UsageError
        if it is encrypted and no key was given.
    """
    return TALLY_FILE.read(path, encryption_key=encryption_key)


def public_header(path: str | os.PathLike[str]) -> Header:
    """What a ``.tally`` file says to anybody, encrypted or not: its warning, basis and cap; no counts.

    Raises
    ------
    FileRefused
        if the file is damaged or of another kind.
    """
    return TALLY_FILE.public_header(path)


def build(header: Header, payload: memoryview) -> Tally:
    """The tally that `described` described."""
    basis = tables.basis_from_json(header["basis"])
    kernel = None if header["kernel"] is None else kernel_from_json(header["kernel"])
    type_name = header["table"]["type"]
    numbers = files.decode_array(payload[:16], (2,), "int64")
    end = 16 + files.encoded_size(basis.shape, type_name)
    table = _table(basis, payload[16:end], type_name)
    cap = None
    if header["units"] is not None:
        slots = header["units"]["slots"]
        if not 1 <= header["units"]["limit"] <= _LARGEST_CAP:
            raise ValueError("limit")
        middle = end + _DIGEST_BYTES * slots
        digests = np.frombuffer(payload[end:middle], np.uint8).reshape(slots, _DIGEST_BYTES)
        end = middle + files.encoded_size((slots,), "int64")
        counts = files.decode_array(payload[middle:end], (slots,), "int64")
        used = counts > 0
        cap = UnitCap.from_state(header["units"]["limit"], digests[used], counts[used])
    if numbers.min() < 0:
        raise ValueError("counts")
    tail = bytes(payload[end:])
    origins = frozenset(tail[i : i + ORIGIN_BYTES] for i in range(0, len(tail), ORIGIN_BYTES))
    edge_lists, restricted = header.get("edge_lists", 1), header.get("add_remove_only", False)
    if cap is not None and privacy.PERSON not in basis.units:
        raise ValueError("persons")
    if releases.stored_integer(edge_lists, 1, _MOST_LISTS) > 1 and privacy.ADJACENCY_ROW not in basis.units:
        raise ValueError("edge lists")
    if type(restricted) is not bool:
        raise ValueError("add_remove_only")
    return Tally._restore(
        basis,
        kernel,
        table=table,
        count=int(numbers[0]),
        moves=int(numbers[1]),
        cap=cap,
        origins=origins,
        lists=edge_lists,
        restricted=restricted,
    )


def _narrowest(table: Counters) -> str:
    if isinstance(table, np.ndarray):
        return files.narrowest_type(table)
    return files.narrowest_type(np.array(value_range(table)))


def _table_section(table: Counters, type_name: str) -> Buffer | Section:
    """The table's bytes; of a large one a few rows at a time."""
    if isinstance(table, np.ndarray):
        return files.encode_array(table, type_name)
    rows = table.shape[0]
    return Section(
        files.encoded_size(table.shape, type_name),
        lambda: (files.encode_array(values, type_name) for _, values in row_blocks(table, rows)),
    )


def _table(basis: Basis, payload: memoryview, type_name: str) -> Counters:
    table: Counters = basis.new_table()
    values = files.decode_array(payload, basis.shape, type_name)
    if isinstance(table, np.ndarray):
        return values.astype(np.int64)
    step = max(1, CELLS_AT_A_TIME // basis.shape[1])
    for start in range(0, basis.shape[0], step):
        table.add_rows(start, values[start : start + step].astype(np.int64), 1)
    return table


def payload_size(header: Header) -> int:
    """The bytes of the sections that `described` returns with a header."""
    size = 16 + files.encoded_size(tables.basis_from_json(header["basis"]).shape, header["table"]["type"])
    if header["units"] is not None:
        size += files.encoded_size((header["units"]["slots"], 3), "int64")
    return size + ORIGIN_BYTES * files.encoded_size((header["origins"],), "int8")


def _padded(persons: int) -> int:
    return 0 if persons == 0 else 1 << (persons - 1).bit_length()


TALLY_FILE = SecretFile(FileKind.TALLY, "this tally", payload_size, build)


_CHECKPOINT_WARNING: Final = (
    "CONFIDENTIAL: a count that is not finished. Not for release; run the same count again."
)
DEFAULT_SECONDS: Final = 60.0


class Checkpoint:
    """A file that a long count continues from after it was interrupted or killed.

    It holds the tally of what has been counted and a journal of what that was, written together and
    atomically. So a count that continues from it counts no record twice and leaves none out. It is as
    secret as the tally, encrypted with the same key, and cannot be released or merged.

    Parameters
    ----------
    path : path-like
        Where it is; it need not exist yet.
    job : mapping
        Everything that must agree for the count to continue: files, columns, kernel, order of the work.
    seconds : float
        How long to count before it is written again; 0 writes it at every opportunity.
    encryption_key : bytes, optional
        Encrypts it.
    """

    __slots__ = ("_job", "_key", "_seconds", "_written", "path")

    def __init__(
        self,
        path: str | os.PathLike[str],
        job: Mapping[str, Any],
        *,
        seconds: float = DEFAULT_SECONDS,
        encryption_key: bytes | None = None,
    ) -> None:
        if not seconds >= 0:
            raise errors.UsageError("checkpoint_every", "must be at least 0 seconds", got=seconds)
        self.path = Path(path)
        self._job = json.loads(json.dumps(job))
        self._seconds = seconds
        self._key = encryption_key
        self._written = time.monotonic()

    def load(self, **fields: type) -> tuple[Tally, dict[str, Any]] | None:
        """The tally and what is counted in it, with fields of these types; None if there is no such file.

        Raises
        ------
        FileRefused
            if it is damaged, of another kind, or the key does not open it.
        UsageError
            if it belongs to another job, or is encrypted and no key was given.
        """
        found = _read(self.path, self._key)
        if found is None:
            return None
        tally, journal = found
        if journal["job"] != self._job:
            raise errors.UsageError(
                "checkpoint",
                "must belong to this count: the same parameters, and the same files, unchanged",
                got="the checkpoint of another count",
                remedy=("repeat the command that wrote it, or give another ", errors.Parameter("checkpoint")),
            )
        done = journal["done"]
        if {name: type(value) for name, value in done.items()} != fields:
            raise errors.FileRefused((errors.FilePath(self.path), " does not state what is counted in it"))
        return tally, done

    def save(self, tally: Tally, done: Mapping[str, Any]) -> None:
        """Replace the file by this state."""
        journal = files.padded_json({"job": self._job, "done": done})
        with tally._held():
            header, sections = described(tally, encrypted=self._key is not None)
            _CHECKPOINT_FILE.write(
                self.path,
                {**header, "warning": _CHECKPOINT_WARNING, "journal": len(journal)},
                [journal, *sections],
                encryption_key=self._key,
            )
        self._written = time.monotonic()

    def save_if_due(self, tally: Tally, done: Mapping[str, Any]) -> None:
        """Replace the file if it is older than it should be."""
        if time.monotonic() - self._written >= self._seconds:
            self.save(tally, done)

    def remove(self) -> None:
        """Delete the file: the count is finished and its tally saved."""
        self.path.unlink(missing_ok=True)


def stored_job(path: str | os.PathLike[str], encryption_key: bytes | None) -> dict[str, Any] | None:
    """What must agree for a count to continue from a file, as it was when the file was written; None if there
    is no such file.

    Raises
    ------
    FileRefused, UsageError
        as `Checkpoint.load`.
    """
    found = _read(Path(path), encryption_key)
    return None if found is None else dict(found[1]["job"])


def _read(path: Path, encryption_key: bytes | None) -> tuple[Tally, dict[str, Any]] | None:
    if not path.exists():
        return None
    return _CHECKPOINT_FILE.read(path, encryption_key=encryption_key)


def _checkpoint_size(header: Header) -> int:
    return files.padded_size(header["journal"]) + payload_size(header)


def _checkpoint(header: Header, payload: memoryview) -> tuple[Tally, dict[str, Any]]:
    size = header["journal"]
    journal = json.loads(bytes(payload[:size]))
    parts = journal.values() if isinstance(journal, dict) and set(journal) == {"job", "done"} else [None]
    if not all(isinstance(each, dict) for each in parts):
        raise ValueError("journal")
    return build(header, payload[size:]), journal


_CHECKPOINT_FILE = SecretFile(FileKind.CHECKPOINT, "this checkpoint", _checkpoint_size, _checkpoint)


@dataclass(frozen=True, slots=True)
class TallyPattern:
    """Everything public of a tally, as JSON: what a worker needs to fill one like it.

    A basis or a kernel of one's own must be registered, that is imported, in the worker too.

    >>> import hushsum as hs
    >>> pattern = TallyPattern.of(hs.race(hs.EuclideanKernel(2, 1.0), rows=4, width=10))
    >>> pattern.empty().basis.shape
    (4, 10)
    """

    public: str

    @classmethod
    def of(cls, tally: object) -> TallyPattern:
        """The pattern of an empty tally.

        Raises
        ------
        UsageError
            if it is not a tally, or something was counted in it.
        """
        if not isinstance(tally, Tally):
            raise errors.UsageError("tally", "must be an empty tally", got=type(tally).__name__)
        if not is_empty(tally):
            remedy = "count into an empty one, and merge them"
            raise errors.UsageError("tally", "must be empty", got="one with records", remedy=remedy)
        public = {
            "basis": tables.basis_as_json(tally.basis),
            "kernel": None if tally.kernel is None else kernel_as_json(tally.kernel),
            "max_per_unit": tally.max_per_unit,
            "add_remove_only": tally.add_remove_only,
        }
        return cls(files.canonical_json(public).decode())

    def empty(self) -> Tally:
        """An empty tally of this pattern."""
        found = json.loads(self.public)
        kernel = None if found["kernel"] is None else kernel_from_json(found["kernel"])
        tally = Tally(tables.basis_from_json(found["basis"]), kernel, max_per_unit=found["max_per_unit"])
        return tally.restrict_to_add_remove() if found["add_remove_only"] else tally


def is_empty(tally: Tally) -> bool:
    """Whether nothing was ever counted in a tally."""
    return not tally._moves


def tally_as_message(tally: Tally) -> Section:
    """A tally as the bytes of a plain ``.tally`` file, for encryption by the caller: their number does not
    depend on its counts.

    They refer to the tally, which must not change until they have been encrypted.
    """
    with tally._held():
        header, sections = described(tally, encrypted=True)
    return TALLY_FILE.plain(header, sections)


def tally_from_bytes(data: memoryview) -> Tally:
    """The tally of a message that has been decrypted.

    Raises
    ------
    FileRefused
        if nothing that `tally_as_message` returns has these bytes.
    """
    return TALLY_FILE.read(data, encryption_key=None)
