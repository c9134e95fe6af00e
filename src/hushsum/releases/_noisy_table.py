"""Released tables: noisy integers, a noisy count, a claim, and how they are stored."""

from __future__ import annotations

import hashlib
import math
import re
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.files import (
    Buffer,
    Header,
    PackedTable,
    Section,
    TablePacker,
    encode_array,
    narrowest_type,
    pack_integers,
)
from hushsum.kernels import Batch
from hushsum.privacy import (
    LAST_STEP,
    PERSON,
    SITE_NOISE,
    Claim,
    IntegerNoise,
    Mechanism,
    Relation,
    StreamNoise,
    StreamUnit,
    spent_epsilon,
    spent_rho,
)
from hushsum.tables import Basis, Cells, Reading, Table, reading_as_json

from ._base import Detail, LocalTable, Payload, Points, PublicFacts, mixed_points, stored_integer

_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
# How far a stored variance may be from one that is computed again, on another machine perhaps.
_CLOSE = 1e-5


@dataclass(frozen=True, slots=True)
class StreamStep:
    """Which step of which stream a function shows; public.

    Attributes
    ----------
    stream : str
        The name of the stream, 32 hexadecimal digits: functions of one stream have it in common.
    step : int
        The number of the step, from 1.
    horizon : int or None
        How many steps there can be; None without a horizon.
    removals : bool
        Whether records may be removed again.
    noise : StreamNoise
        Strategy, view, and the noise of every output.
    """

    stream: str
    step: int
    removals: bool
    noise: StreamNoise

    @property
    def horizon(self) -> int | None:
        """How many steps the claim covers; None for all that there will ever be."""
        return self.noise.horizon

    def as_json(self) -> dict[str, Any]:
        """For a file's header."""
        return {
            "stream": self.stream,
            "step": self.step,
            "removals": self.removals,
            "noise": self.noise.as_json(),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> StreamStep:
        """The step of a file's header; ValueError if there is none like it."""
        if set(data) != {"stream", "step", "removals", "noise"}:
            raise ValueError("stream")
        found = cls(data["stream"], data["step"], data["removals"], StreamNoise.from_json(data["noise"]))
        if not isinstance(found.stream, str) or not _ID.fullmatch(found.stream):
            raise ValueError("stream")
        stored_integer(found.step, 1, found.horizon or LAST_STEP)
        if type(found.removals) is not bool:
            raise ValueError("removals")
        return found

    def detail(self) -> Detail:
        """For the description of a function."""
        shows = self.noise.view.in_words()
        about = {"stream": self.stream, "step": self.step, "horizon": self.horizon, "shows": shows}
        last = "" if self.horizon is None else f" of {self.horizon}"
        return Detail("stream", about, f"step {self.step}{last}: {shows}", label="stream")

    def keeps(self, claim: Claim, basis: Basis, table: IntegerNoise, count: IntegerNoise) -> bool:
        """Whether the noise of all steps keeps a claim, and the noise of this step is what the file states.

        Pure ε and ρ add up exactly; for ε and δ only the kind of noise is looked at here.
        """
        shown = self.noise.at(self.step)
        for stated, found in zip((table, count), shown, strict=True):
            if stated.mechanism != found.mechanism or Mechanism.of(stated.mechanism) != claim.mechanism:
                return False
            if abs(stated.variance - found.variance) > _CLOSE * found.variance:
                return False
        unit = stream_unit(basis, claim.unit, claim.records_per_unit, claim.relation, removals=self.removals)
        if claim.promise.pure:
            assert claim.promise.epsilon is not None
            return self.noise.intervals and spent_epsilon(self.noise, unit) <= claim.promise.epsilon
        if self.noise.intervals:
            return False
        return claim.promise.rho is None or spent_rho(self.noise, unit) <= claim.promise.rho


def stream_unit(basis: Basis, unit: str, per_unit: int, relation: Relation, *, removals: bool) -> StreamUnit:
    """What one unit can change in a stream of tables."""
    rows, width = basis.shape
    return StreamUnit(
        record={each: basis.sensitivity(each) for each in Relation},
        relation=relation,
        per_unit=per_unit if unit == PERSON else None,
        removals=removals,
        cells=rows * width,
    )


@dataclass(frozen=True, slots=True)
class StepCovariance:
    """How the noise of two functions of one stream goes together: in each cell, and in the numbers of
    records.
    """

    cell: float
    count: float


def step_covariance(first: NoisyTable, second: NoisyTable) -> StepCovariance:
    """The covariance of the noise that two steps of one stream have in the same cell; other cells are
    independent.

    Steps share the draws of all steps before, so a difference of two steps has less noise than two
    independent releases would: Var(f − g) = Var f + Var g − 2·Cov(f, g), cell by cell.

    Raises
    ------
    UsageError
        if they are not functions of one stream.

    Examples
    --------
    >>> import hushsum as hs
    >>> tally = hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=10)
    >>> stream = hs.stream(tally, horizon=12, rho=0.5)
    >>> first, second = stream.add([[0.5]]).step(), stream.step()
    >>> 0.4 < step_covariance(first, second).cell / first.noise.variance < 1.0
    True
    """
    one, other = first.stream_step, second.stream_step
    if one is None or other is None or one.stream != other.stream or one.noise != other.noise:
        raise UsageError("both functions must be steps of one stream", remedy="give two of its files")
    gain = float(one.noise.covariances([one.step, other.step])[0, 1])
    return StepCovariance(one.noise.table.variance * gain, one.noise.count_variance * gain)


ROUNDING_SHARE = 0.02
"""What rounding cells may add to their variance where it is requested."""

LARGEST_STEP = 2**31 - 1
"""The largest step of rounding that a file can state."""

DIGEST_LETTERS = 32
"""The length of a release's digest, which finds repetitions and does not prevent forgery."""

UNSEEN_SHARE = 0.001
"""What rounding adds to the variance of cells that are counted in small fractions of a record."""


@dataclass(frozen=True, eq=False)
class NoisyTable(LocalTable):
    """The noisy sum of a basis's vectors over records, and how it is read; public and frozen.

    Privacy
    -------
    Everything here is computed from noisy integers and public parameters, so using it spends nothing.
    """

    kind = "table"

    reading: Reading
    cells: Cells
    facts: PublicFacts
    noise: IntegerNoise
    noisy_count: int
    count_noise: IntegerNoise
    step: int = 1
    stream_step: StreamStep | None = None
    parts: tuple[str, ...] = ()
    unchecked: Callable[[NoisyTable], None] | None = None
    """A check that has not run yet: it compares the noise that a file states with its claim, and raises
    ``FileRefused``. It is put off where it would take longer than reading the file. None if it has run.
    """

    def __post_init__(self) -> None:
        if isinstance(self.cells, np.ndarray):
            self.cells.flags.writeable = False

    @property
    def table(self) -> Table:
        """The noisy cells as an array; unpacks all of them where they are packed.

        Raises
        ------
        FileRefused
            if they were read from a file whose noise does not keep its claim.
        """
        self.check_noise()
        return self._unpacked

    @property
    def _unpacked(self) -> Table:
        return self.cells if isinstance(self.cells, np.ndarray) else self.cells.unpacked()

    def check_noise(self) -> None:
        """Compare the noise of a file with its claim, unless that was done; queries and descriptions do.

        Raises
        ------
        FileRefused
            if the noise does not keep the claim.
        """
        if self.unchecked is not None:
            self.unchecked(self)
            object.__setattr__(self, "unchecked", None)

    @abstractmethod
    def _own_count(self) -> tuple[float, float] | None:
        """An estimate of the number of records from the table itself, and its variance; None if the table
        gives no estimate.
        """

    @property
    def cell_variance(self) -> float:
        """The variance of what a cell holds beside its exact sum: noise, and rounding where there was any.

        A distribution (discrete Gaussian, Laplace or Gamma radius) whose deviation is at least an odd step s
        leaves a remainder that is uniform, up to 1e-8 or a per cent of its variance, whose variance is (s² −
        1)/12. Functions of several sites were rounded before they were added.
        """
        trust = self.claim.trust
        rounded = trust.parties if trust is not None and trust.model == SITE_NOISE else 1
        return self.noise.variance + rounded * (self.step**2 - 1) / 12.0

    def rounded(self, step: int | None = None) -> Self:
        """The same release with cells rounded to multiples of ``step``, for a smaller file: nothing is spent.

        A cell then takes about log2(4.3·σ/step) bits of the file, σ the deviation of its noise. Error bars
        know of it.

        Parameters
        ----------
        step : int, optional
            Odd, so that rounding has no bias; at most the deviation of the noise, and a multiple of what
            cells are rounded to already. Default: the largest that adds at most 2 % to its variance, about
            half of the deviation; 4 bits per cell suffice then.

        Raises
        ------
        UsageError
            if the step is even, below 1 or beyond the noise, or no multiple of the present one.

        Examples
        --------
        >>> import hushsum as hs
        >>> tally = hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=400)
        >>> f = tally.add([[0.5]] * 1000).release(epsilon=1.0, delta=1e-6)
        >>> f.rounded().step, bool((f.rounded().table % f.rounded().step == 0).all())
        (41, True)
        """
        deviation = math.sqrt(self.noise.variance)
        if step is None:
            step = self.step * largest_step(self.noise.variance / self.step**2)
        if type(step) is not int or step < 1 or step % 2 == 0 or (step > 1 and step > deviation):
            raise UsageError(
                "step", f"must be odd and at most the deviation of the noise, {deviation:.3g}", got=f"{step}"
            )
        if step % self.step:
            rule = f"must be a multiple of {self.step}, to which the cells are rounded already"
            raise UsageError("step", rule, got=f"{step}")
        return self if step == self.step else replace(self._rounded(step), parts=self.releases)

    def rounded_at_release(self, step: int) -> Self:
        """The table with cells rounded at the release: the table before rounding is not released."""
        return self if step == self.step else self._rounded(step)

    def _rounded(self, step: int) -> Self:
        if not isinstance(self.cells, np.ndarray):
            packer = TablePacker(self.cells.shape, unit=step)
            for values in self.cells.blocks():
                packer.add(round_cells(values, step))
            return replace(self, cells=packer.finish(), step=step)
        table: NDArray[Any] = self.cells
        limits = np.iinfo(np.int32)
        # A cell at the end of 32 bits would leave them.
        if int(table.max()) > limits.max - step or int(table.min()) < limits.min + step:
            table = table.astype(np.int64)
        return replace(self, cells=round_cells(table, step), step=step)

    @property
    def releases(self) -> tuple[str, ...]:
        """Which releases are in this table: their digests, sorted.

        They are kept (``parts``) where the table does not tell them any more, that is after rounding and
        merging. Noise makes the digests of two releases differ.
        """
        return self.parts or (_release_digest(self.cells, self.noisy_count),)

    @property
    def rows(self) -> int:
        """How many rows were published."""
        return self.basis.shape[0]

    @cached_property
    def _counts(self) -> tuple[float, float]:
        """The number of records and the variance of that estimate: the noisy count and the table's own,
        combined.
        """
        if self.count_noise.variance == 0.0:
            return float(self.noisy_count), 0.0
        own = self._own_count()
        if own is None:
            return max(float(self.noisy_count), 1.0), self.count_noise.variance
        table, table_variance = own
        weight = table_variance / (table_variance + self.count_noise.variance)
        value = weight * self.noisy_count + (1.0 - weight) * table
        return max(value, 1.0), weight * self.count_noise.variance

    @property
    def count(self) -> float:
        """The estimated number of records; public and exact under the replace relation."""
        return self._counts[0]

    @property
    def count_stderr(self) -> float:
        """The standard error of :attr:`count`."""
        return math.sqrt(self._counts[1])

    def noise_covariance(self, Q: object, *, of: str = "mean", unit: Floats | None = None) -> Floats:
        """The covariances of the noise in the answers at queries, that of the number of records included, to
        the first order; shape (n_queries, n_queries).

        It contains neither the error of the method nor the sampling error of the records. ``unit`` is
        :meth:`unit_covariance` of these queries, for those who have it already.
        """
        batch = self.basis.prepare_queries(self._points(Q))
        number, variance = self._counts
        covariance = self.cell_variance * (self.unit_covariance(Q) if unit is None else unit)
        slope = np.full(len(batch), self.number_slope)
        if of == "mean":
            slope += self(Q)
        shared = np.outer(slope, np.broadcast_to(self._count_covariance(batch), (len(batch),)))
        covariance += variance * np.outer(slope, slope) - shared - shared.T
        return covariance / max(number, 1.0) ** 2 if of == "mean" else covariance

    def unit_covariance(self, Q: object) -> Floats:
        """The covariances of kernel sums at queries for noise of variance 1 in every cell: the same for all
        releases of one basis.
        """
        return self.reading.noise_covariance(self.basis.prepare_queries(self._points(Q)))

    def record_answers(self, X: object, Q: object) -> Floats:
        """What each record adds to the kernel sum at each query, for public or synthetic records; shape
        (n_records, n_queries). These are kernel values with the approximation error of this release's basis.
        """
        return self.reading.record_answers(self.basis.prepare(X), self.basis.prepare_queries(self._points(Q)))

    def first_rows(self, rows: int) -> Self:
        """The same release with its first rows alone: post-processing, nothing is spent.

        Raises
        ------
        UsageError
            where the table is released whole, or has fewer rows.
        """
        if rows == self.rows:
            return self
        reading = self.basis.prefix(rows).reading(self.kernel)
        return replace(self, reading=reading, cells=self.table[:rows].copy(), parts=self.releases)

    @property
    def number_slope(self) -> float:
        """How much one more in the number of records lowers a kernel sum, where cells stay the same."""
        return 0.0

    def _count_covariance(self, batch: Batch) -> Floats | float:
        """The covariance of the noise of the sums with the noise of the number of records."""
        return 0.0

    def details(self) -> tuple[Detail, ...]:
        """The table, its noise, and the fingerprint of what it counts."""
        self.check_noise()
        rows, width = self.basis.shape
        deviation = math.sqrt(self.noise.variance)
        noise = {**self.noise.as_json(), "standard_deviation": deviation}
        rounded = "" if self.step == 1 else f", cells rounded to multiples of {self.step}"
        return (
            Detail("basis", self.basis.name, f"{self.basis.name}, {rows} × {width}{rounded}", label="table"),
            Detail("rows", rows),
            Detail("width", width),
            Detail("noise", noise, f"{self.noise.in_words}, standard deviation {deviation:.5g} per cell"),
            Detail("step", self.step),
            Detail("fingerprint", self.basis.fingerprint, self.basis.fingerprint),
            *([] if self.stream_step is None else [self.stream_step.detail()]),
        )

    def _points(self, Q: object) -> Points:
        if self.dim is not None and any(each.dim is None for each in self.kernel.parts()):
            return mixed_points(Q, dim=self.dim, columns=self.columns)
        return super()._points(Q)

    def stated(self) -> Header:
        """The header of its file, without the layout of the cells."""
        constants, step = self.reading.constants_as_json(), self.stream_step
        return {
            **super().stated(),
            **reading_as_json(self.reading),
            **({} if constants is None else {"constants": constants}),
            **({} if step is None else {"stream": step.as_json()}),
            **({"parts": list(self.parts)} if self.parts else {}),
            "noise": self.noise.as_json(),
            "count": {"value": self.noisy_count, "noise": self.count_noise.as_json()},
        }

    def _payload(self) -> Payload:
        """Cells are packed where that is shorter. A table that is packed in memory keeps its fixed number of
        bits per cell, to be memory-mapped.
        """
        if not isinstance(self.cells, np.ndarray):
            return _packed_payload(self.cells, self.step)
        table, step = self.table, self.step
        type_name = narrowest_type(table)
        about: dict[str, Any] = {"type": type_name, "shape": list(self.basis.shape)}
        payload: Buffer = encode_array(table, type_name)
        if table.size >= _WORTH_PACKING or step != 1:
            # Cells are multiples of the step of their rounding, unless they were shifted since.
            unit = step if step == 1 or not (table % step).any() else 1
            packed, centre = pack_integers(table, unit)
            if len(packed) < len(payload):
                about["packed"] = {"centre": centre, "size": len(packed), "unit": unit}
                payload = packed
        if step != 1:
            about["step"] = step
        return {"table": about}, [payload], None


def largest_step(variance: float, share: float = ROUNDING_SHARE) -> int:
    """The largest odd step that adds at most this share to the variance of cells.

    >>> largest_step(10_000.0)
    49
    """
    most = min(int(math.sqrt(12.0 * share * variance + 1.0)), LARGEST_STEP)
    return max(1, most - (most + 1) % 2)


def round_cells(table: Any, step: int) -> Any:
    """Integers to the nearest multiples of an odd step.

    >>> round_cells(np.array([-4, 3, 5]), 3)
    array([-3,  3,  6])
    """
    return (table + step // 2) // step * step


def _release_digest(cells: Cells, noisy_count: int) -> str:
    """Names a release by its noisy numbers, in whatever form they are kept."""
    digest = hashlib.sha256(f"release {noisy_count} ".encode("ascii"))
    for values in [cells] if isinstance(cells, np.ndarray) else cells.blocks():
        digest.update(np.ascontiguousarray(values, dtype="<i8").data.cast("B"))
    return digest.hexdigest()[:DIGEST_LETTERS]


_WRITTEN = 1 << 24
# Cells. Smaller tables are stored as they are, unless their cells are rounded.
_WORTH_PACKING = 4096


def _packed_payload(cells: PackedTable, step: int) -> Payload:
    cells.verify()  # a damaged page must not get a new checksum
    about = {
        "shape": list(cells.shape),
        "step": step,
        "cells": {**cells.form._asdict(), "exceptions": len(cells.exception_cells), "total": cells.total},
    }
    sections = [encode_array(cells.exception_cells, "int64"), encode_array(cells.exception_values, "int64")]
    data = cells.data.data
    paged = Section(len(data), lambda: (data[i : i + _WRITTEN] for i in range(0, len(data), _WRITTEN)))
    return {"table": about}, sections, paged
