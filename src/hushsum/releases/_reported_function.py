"""A function released from reports of the local model: a table of signed sums, one row per report."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.files import Header, decode_array, encode_array, encoded_size, narrowest_type, stored_rational
from hushsum.privacy import MECHANISM, SHUFFLED_MECHANISM, Claim, Relation, sign_gain
from hushsum.privacy.accounting import shuffled_delta
from hushsum.tables import RowReading, reading_as_json, reading_from_json

from ._base import (
    Answers,
    Detail,
    LocalTable,
    Payload,
    Points,
    PublicFacts,
    QueryOptions,
    check_names,
    normal_answers,
    register,
    stored_integer,
)

TYPE = "reports"
_MOST_REPORTS = 2**31 - 1
# Standard errors that an answer exceeds once in a thousand times.
_RARE = 3.3


@dataclass(frozen=True, eq=False)
class ReportedFunction(LocalTable):
    """Kernel sums of persons who each sent one noisy report; public, frozen, for any number of queries.

    Every person reported about one row of a sketch, so all rows together hold every person once: an answer
    is a sum over the rows, and its error falls as 1/√N, not as 1/N as with a trusted curator.

    Made by `hushsum.parties.collect_reports` or ``hushsum.load``; not by hand.

    Parameters
    ----------
    reading : RowReading
        How the cells of queries are found.
    table : array of int32 of shape (rows, width)
        Σ s·H[cell, column] over the reports of each row.
    reports : int
        How many reports there are; public.
    honest : int
        How many of them the claim of shuffled reports takes to follow the protocol.
    local_epsilon : Fraction
        What every report satisfies by itself.
    facts : PublicFacts

    Privacy
    -------
    Everything here is computed from reports that are private already, so using it spends nothing.
    """

    kind = TYPE

    reading: RowReading
    table: NDArray[np.int32]
    reports: int
    honest: int
    local_epsilon: Fraction
    facts: PublicFacts

    def __post_init__(self) -> None:
        self.table.flags.writeable = False

    def __repr__(self) -> str:
        rows, width = self.table.shape
        return (
            f"ReleasedFunction({self.kernel!r}, reports={self.reports}, rows={rows}, width={width}, "
            f"claim={self.claim!r})"
        )

    @property
    def count(self) -> float:
        """The number of reports, which is public."""
        return float(self.reports)

    @property
    def count_stderr(self) -> float:
        """0: the number of reports is public."""
        return 0.0

    def sum(self, Q: object) -> Floats:
        """Kernel sums f(q) = Σ k(x, q), shape (n_queries,)."""
        return self._sums(self._points(Q), 1)[0]

    def _answers(self, points: Points, options: QueryOptions) -> Answers:
        """From the spread over the rows. ``bound`` adds to the exact variance of the signs the largest one
        that hashing can have at the answer.
        """
        sums, variance = self._sums(points, options.threads)
        keep = 1.0 / (1.0 - self.reading.basis.fold_rate)
        # At most one ±1 per report, times the gain.
        signs = keep**2 * self.reports / sign_gain(self.local_epsilon) ** 2
        variance = np.maximum(variance, signs)
        most = np.clip(sums + _RARE * np.sqrt(variance), 0.0, self.reports)
        # Folding hash values adds a part of the other records to a query's cells.
        folded = (self.reports - most) * self.reading.basis.fold_rate
        largest = signs + keep**2 * self.reports * (most + folded) / self.table.shape[0]
        scale = 1.0 if options.of == "sum" else 1.0 / max(self.reports, 1)
        answers = normal_answers(
            scale * sums, scale * np.sqrt(variance), options.level, points, simultaneous=options.simultaneous
        )
        return replace(answers, bound=scale * np.sqrt(np.maximum(largest, variance)))

    def details(self) -> tuple[Detail, ...]:
        """The reports, their own privacy, and the table."""
        rows, width = self.table.shape
        local = f"{float(self.local_epsilon):g}"
        return (
            Detail("method", TYPE, "reports of the local model"),
            Detail("reports", self.reports, f"{self.reports:,}, each with ε = {local} by itself"),
            Detail("local_epsilon", str(self.local_epsilon)),
            Detail("honest", self.honest),
            Detail("rows", rows),
            Detail("width", width, f"{rows} × {width}", label="table"),
            Detail("fingerprint", self.reading.basis.fingerprint, self.reading.basis.fingerprint),
        )

    def stated(self) -> Header:
        """The header of its file, without the layout of the table."""
        return {
            **super().stated(),
            **reading_as_json(self.reading),
            "reports": self.reports,
            "honest": self.honest,
            "local_epsilon": str(self.local_epsilon),
        }

    def _payload(self) -> Payload:
        numbers = narrowest_type(self.table)
        about = {"type": numbers, "shape": list(self.table.shape)}
        return {"table": about}, [encode_array(self.table, numbers)], None

    def _sums(self, points: Points, threads: int) -> tuple[Floats, Floats]:
        """Kernel sums, and their variance from the spread over the rows.

        The mean over R rows, times R/tanh(ε/2), estimates the number of persons in the query's cells.
        """
        batch = self.reading.basis.prepare_queries(points)
        averages = self.reading.read(self.table, batch, threads=threads)
        scale = self.table.shape[0] / sign_gain(self.local_epsilon)
        keep = 1.0 / (1.0 - self.reading.basis.fold_rate)
        variance = np.nan_to_num((keep * scale) ** 2 * averages.variance, nan=0.0)
        return self.reading.unfold(scale * averages.mean, float(self.reports)), variance


def _shape(header: Header) -> tuple[int, int]:
    rows, width = header["table"]["shape"]
    if type(rows) is not int or type(width) is not int or rows < 1 or width < 1:
        raise ValueError("shape")
    return rows, width


def _size(header: Header) -> int:
    return encoded_size(_shape(header), header["table"]["type"])


def _build(header: Header, payload: memoryview) -> ReportedFunction:
    check_names(header["table"], "type", "shape")
    reading: Any = reading_from_json(header)
    shape = _shape(header)
    if not isinstance(reading, RowReading) or reading.basis.shape != shape:
        raise ValueError("basis")
    table = decode_array(payload, shape, header["table"]["type"]).astype(np.int64)
    reports, honest = (stored_integer(header[name], 1, _MOST_REPORTS) for name in ("reports", "honest"))
    if honest > reports or (np.abs(table) > reports).any():
        raise ValueError("more than the reports")
    local = stored_rational(header["local_epsilon"])
    facts = PublicFacts.from_json(header)
    _check_claim(facts.claim, local, honest)
    return ReportedFunction(reading, table.astype(np.int32), reports, honest, local, facts)


def _check_claim(claim: Claim, local: Fraction, honest: int) -> None:
    """Refuse a claim that reports of this ε do not keep; finds mistakes, not forgery."""
    epsilon = claim.promise.epsilon
    if epsilon is None or claim.relation is not Relation.REPLACE or not 0 < local <= 60:
        raise ValueError("claim")
    if claim.promise.pure:
        kept = claim.mechanism == MECHANISM and epsilon >= local
    else:
        spent = shuffled_delta(
            float(local), honest, math.nextafter(float(epsilon), math.inf), tail=1e-4 * claim.delta
        )
        kept = claim.mechanism == SHUFFLED_MECHANISM and spent <= claim.delta
    if not kept:
        raise ValueError("the reports do not keep the claim")


register(TYPE, _size, _build, "table")
