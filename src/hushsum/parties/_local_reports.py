"""The local model: every person sends one report that is private by itself; nobody is trusted with records.

The collector publishes terms (`ReportTerms`: the rows of a sketch and ε). A person's program draws one row
and one column of a Hadamard matrix, hashes the person's record in that row, and sends the sign that it finds
there, exactly randomised (`make_report`). The collector adds signs and transforms them back
(`collect_reports`); the result is a released function like any other.
"""

from __future__ import annotations

import hashlib
import json
import sys
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from hushsum.declaration import request, required, setting
from hushsum.errors import FilePath, FileRefused, UsageError
from hushsum.files import atomic_file, canonical_json, stored_rational
from hushsum.kernels import HashableKernel, Kernel
from hushsum.operations import STANDARD, check_function_output, check_output
from hushsum.planning._plan import BOUNDS, SEED, KernelSpec, of_table
from hushsum.privacy import (
    HADAMARD,
    RECORD,
    SHUFFLED_HADAMARD,
    Claim,
    Promise,
    Relation,
    check_declared_delta,
    exact,
    hadamard_response,
    local_source,
)
from hushsum.privacy.accounting import shuffled_epsilon
from hushsum.records import DeclaredBounds, declared_bounds
from hushsum.releases import PublicFacts, ReportedFunction
from hushsum.tables import HashRows, RowReading, basis_as_json, basis_from_json

from ._runtime import Result

ONE_REPORT: Final = "every person sends one report, which is counted once: several reports of a person add up"
SHUFFLED: Final = (
    "everybody got the same terms, the reports were shuffled by somebody who does not pass on who sent "
    "which, and {honest:,} of them follow the protocol"
)
_FORMAT: Final = "hushsum report terms"
_VERSION: Final = 1
_MOST_BYTES: Final = 1 << 20
_MOST_CELLS: Final = 1 << 28
# Random numbers behind the hash functions, which every person's program makes.
_MOST_NUMBERS: Final = 1 << 24

_MOST_EPSILON: Final = 60
# A cell of the table counts at most all reports, and has 32 bits.
_MOST_REPORTS: Final = (1 << 31) - 1

# Beside the sign: the report was made with a seed, for tests.
_INSECURE: Final = 2

# Characters of a report as text, which has no padding.
_TEXT: Final = 24

_NO_KERNEL: Final = KernelSpec()
_BLOCK: Final = 1 << 24
_MOST_LINE: Final = 1 << 10
_EXACT: Final = 1 << 53
_RECORD = np.dtype([("terms", "S8"), ("row", "<u4"), ("column", "<u4"), ("sign", "u1"), ("version", "u1")])


@dataclass(frozen=True, slots=False)
class ReportTerms:
    """What a collector publishes before anybody reports: the rows of a sketch, and the ε of every report.

    Parameters
    ----------
    basis : HashRows
        The hash functions. Their seed is public.
    epsilon : Fraction
        What a person spends by sending one report.

    Examples
    --------
    >>> import hushsum as hs
    >>> terms = ReportTerms.of(hs.EuclideanKernel(dim=1, bandwidth=2.0), epsilon=1.0, rows=100)
    >>> ReportTerms.from_bytes(terms.to_bytes()) == terms
    True
    """

    basis: HashRows
    epsilon: Fraction

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        *,
        epsilon: float | Fraction,
        rows: int = 1000,
        width: int = 1000,
        seed: int = 0,
        bounds: DeclaredBounds | None = None,
        columns: Sequence[str] | None = None,
    ) -> Self:
        """Terms for a kernel that hashes; parameters as for :func:`hushsum.race`."""
        box, names = (None, None) if kernel.dim is None else declared_bounds(bounds, dim=kernel.dim)
        known = tuple(columns) if columns is not None else names
        promise = Promise.of(epsilon=exact("epsilon", epsilon))
        assert promise.epsilon is not None
        return cls(HashRows(kernel, rows, width, seed, box, known), promise.epsilon)

    def __post_init__(self) -> None:
        if self.epsilon > _MOST_EPSILON:
            rule = f"must be at most {_MOST_EPSILON}"
            raise UsageError("epsilon", rule, got=f"{float(self.epsilon):g}")
        kernel = self.basis.kernel
        assert isinstance(kernel, HashableKernel)
        for what, each, most in (
            ("columns × power", kernel.numbers_per_row(), _MOST_NUMBERS),
            ("cells of a row", self.order, _MOST_CELLS),
        ):
            if self.basis.rows * each > most:
                raise UsageError(
                    "rows",
                    f"× {what} must be at most {most}",
                    got=f"{self.basis.rows * each}",
                    remedy="use fewer rows: every person reports about one of them",
                )

    @property
    def order(self) -> int:
        """The order of the Hadamard matrix: the least power of two that has a row for every cell."""
        return 1 << (self.basis.width - 1).bit_length()

    @cached_property
    def digest(self) -> bytes:
        """Eight bytes that every report carries, so that reports under other terms are refused."""
        return hashlib.sha256(self.to_bytes()).digest()[:8]

    def to_bytes(self) -> bytes:
        """The terms as a JSON document, which has one spelling."""
        document = {
            "format": _FORMAT,
            "version": _VERSION,
            "basis": basis_as_json(self.basis),
            "epsilon": str(self.epsilon),
        }
        return canonical_json(document)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The terms of a document.

        Raises
        ------
        FileRefused
            if it is none that `to_bytes` writes.
        """
        try:
            if len(data) > _MOST_BYTES:
                raise ValueError("size")
            document: Any = json.loads(data.decode("utf-8"))
            if not isinstance(document, dict) or document.get("format") != _FORMAT:
                raise ValueError("format")
            basis = basis_from_json(document["basis"])
            if not isinstance(basis, HashRows):
                raise ValueError("basis")
            terms = cls(basis, stored_rational(document["epsilon"]))
            if terms.epsilon <= 0 or terms.to_bytes() != data:
                raise ValueError("terms have one spelling")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, UsageError) as error:
            raise FileRefused("the file holds no terms of reports, or damaged ones") from error
        return terms


def make_report(terms: ReportTerms, record: object, *, insecure_noise_seed: int | None = None) -> bytes:
    """The one report of a person: 24 characters, to be sent to the collector.

    Parameters
    ----------
    terms : ReportTerms
        As the collector published them. A person who does not like their ε sends nothing.
    record : one record as the kernel takes it
    insecure_noise_seed : int, optional
        For tests: a report that everybody who knows the seed can read gives no protection. It is marked, and
        so is the claim of what is collected with it.

    Privacy
    -------
    ε-differential privacy in the local model, for whatever the collector and everybody else do:
    `hushsum.privacy.hadamard_response`. Two reports of one person spend 2ε. Bytes that are
    sent again spend nothing more, but must not be counted again.
    """
    batch = terms.basis.prepare(record)
    if len(batch) != 1:
        raise UsageError("record", "must be one record", got="none or several")
    with local_source(insecure_noise_seed) as source:
        # All rows are hashed, so that the time does not depend on the row that is drawn.
        cells = terms.basis.cells(batch)[0]
        row, column, negative = hadamard_response(
            lambda at: int(cells[at]),
            rows=terms.basis.rows,
            order=terms.order,
            epsilon=terms.epsilon,
            source=source,
        )
    marks = negative | (_INSECURE if insecure_noise_seed is not None else 0)
    report = np.array((terms.digest, row, column, marks, _VERSION), _RECORD)
    return b64encode(report.tobytes())


def collect_reports(
    terms: ReportTerms,
    reports: bytes | Iterable[bytes],
    *,
    delta: float | None = None,
    honest: int | None = None,
) -> ReportedFunction:
    """The released function of all reports.

    Parameters
    ----------
    terms : ReportTerms
    reports : bytes, or several of them
        Lines of 24 characters, as `make_report` makes them.
    delta : float, optional
        The reports were shuffled: claim the smaller (ε, δ) that holds for whoever does not see who sent
        which report, by `hushsum.privacy.accounting`. Without it every report's own ε is claimed.
    honest : int, optional
        How many reports, at least, follow the protocol; only these hide a shuffled report. Default: all.

    Raises
    ------
    UsageError
        if there are no reports.
    FileRefused
        if a line is no report under these terms, or some reports were made with a seed and others were not.
        Nothing is collected then.
    """
    sums = np.zeros((terms.basis.rows, terms.order), np.int64)
    number, secure = 0, True
    for part in [reports] if isinstance(reports, bytes) else reports:
        rows, columns, signs, marked = _parsed(terms, part, number)
        np.add.at(sums.reshape(-1), rows * terms.order + columns, signs)
        if len(marked):
            secure = not marked[0] if number == 0 else secure
            other = np.flatnonzero(marked == secure)
            if len(other):
                # One person who sends a report for tests must not void the claim of all others.
                raise FileRefused(
                    "reports that were made with a seed, for tests, must not be among others",
                    got=f"report {number + int(other[0]) + 1} unlike the first",
                )
        number += len(signs)
    if number == 0:
        raise UsageError("reports", "must hold at least one report", remedy="collect some")
    if number > _MOST_REPORTS:
        raise UsageError("reports", f"must be at most {_MOST_REPORTS}", got="more")
    sure = number if honest is None else honest
    if not 1 <= sure <= number:
        raise UsageError("honest", "must be at least 1 and at most the number of reports", got=f"{sure}")
    table = _hadamard(sums)[:, : terms.basis.width].astype(np.int32)
    claim, reading = _claim(terms, sure, delta, secure=secure), RowReading(terms.basis, terms.basis.kernel)
    return ReportedFunction(reading, table, number, sure, terms.epsilon, PublicFacts(claim))


def _claim(terms: ReportTerms, honest: int, delta: float | None, *, secure: bool) -> Claim:
    promise, mechanism, assumed = Promise.of(epsilon=terms.epsilon), HADAMARD, [ONE_REPORT]
    if delta is not None:
        check_declared_delta(Promise.of(epsilon=terms.epsilon, delta=delta), honest)
        epsilon = shuffled_epsilon(float(terms.epsilon), honest, delta)
        promise = Promise.of(epsilon=min(Fraction(epsilon), terms.epsilon), delta=delta)
        mechanism = SHUFFLED_HADAMARD
        assumed.append(SHUFFLED.format(honest=honest))
    return Claim(promise, RECORD, 1, Relation.REPLACE, mechanism, "exact integers", secure, tuple(assumed))


def _parsed(
    terms: ReportTerms, text: bytes, before: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Rows, columns and signs of some lines, and which of them were made with a seed."""
    lines = text.split()
    for place, line in enumerate(lines):
        if len(line) != _TEXT:
            raise _refused(before + place)
    try:
        data = b64decode(b"".join(lines), validate=True)
    except ValueError:
        raise _refused(before + next(i for i, line in enumerate(lines) if not _readable(line))) from None
    found = np.frombuffer(data, _RECORD)
    rows, columns = found["row"].astype(np.int64), found["column"].astype(np.int64)
    # Compared as bytes: NumPy's strings end at the first zero.
    digests = np.frombuffer(data, np.uint8).reshape(-1, _RECORD.itemsize)[:, :8]
    good = (
        (digests == np.frombuffer(terms.digest, np.uint8)).all(axis=1)
        & (rows < terms.basis.rows)
        & (columns < terms.order)
        & (found["sign"] <= 1 + _INSECURE)
        & (found["version"] == _VERSION)
    )
    if not good.all():
        raise _refused(before + int(np.argmin(good)))
    marks = found["sign"].astype(np.int64)
    return rows, columns, 1 - 2 * (marks & 1), (marks & _INSECURE) != 0


def _readable(line: bytes) -> bool:
    try:
        return len(b64decode(line, validate=True)) == _RECORD.itemsize
    except ValueError:
        return False


def _refused(place: int) -> FileRefused:
    return FileRefused(
        "every line must be a report under these terms",
        got=f"something else in place of report {place + 1}",
        remedy="collect each set of terms by itself, and leave out lines that are damaged",
    )


def _hadamard(sums: NDArray[np.int64]) -> NDArray[np.int64]:
    """Every row times the Hadamard matrix, by the fast transform.

    >>> _hadamard(np.array([[1, 0, 0, 2]])).tolist()
    [[3, -1, -1, 3]]
    """
    rows, order = sums.shape
    values, half = sums.copy(), 1
    while half < order:
        pairs = values.reshape(rows, -1, 2, half)
        values = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2)
        values, half = values.reshape(rows, order), 2 * half
    return values


@dataclass(frozen=True, slots=True)
class ReportsReleased(Result):
    """What was written from reports: all of it is public."""

    output: str
    claim: Claim
    reports: int
    local_epsilon: float


@request
class CollectionRequest:
    """Terms of reports, before the number of columns is known."""

    epsilon: float = required("ε that each person spends by reporting.", above=0, at_most=_MOST_EPSILON)
    columns: tuple[str, ...] | None = setting(
        None, "Columns of a record, separated by commas.", metavar="NAMES"
    )
    dim: int | None = setting(None, "Number of columns, where they have no names.", at_least=1)
    kernel: KernelSpec = _NO_KERNEL
    bounds: DeclaredBounds | None = setting(None, BOUNDS)
    rows: int = of_table(1000, "Rows of the sketch.", at_least=1)
    width: int = of_table(1000, "Cells of a row.", at_least=2)
    seed: int = setting(0, SEED)

    def terms(self) -> ReportTerms:
        """The terms; UsageError for a kernel that has no hash functions."""
        kernel = self.kernel.for_records(method="race")
        dim = None if kernel.takes_sets else self.dim if self.columns is None else len(self.columns)
        return ReportTerms.of(
            kernel.build(dim, self.columns, self.bounds),
            epsilon=self.epsilon,
            rows=self.rows,
            width=self.width,
            seed=self.seed,
            bounds=self.bounds,
            columns=self.columns,
        )


def publish_terms(request: CollectionRequest, output: str) -> ReportTerms:
    """Write the terms that every person reports under."""
    path, terms = check_output(output), request.terms()
    with atomic_file(path) as file:
        file.write(terms.to_bytes())
    return terms


def read_terms(path: str) -> ReportTerms:
    """The terms in a file."""
    if not Path(path).is_file():
        raise _missing(path)
    return ReportTerms.from_bytes(Path(path).read_bytes())


def _missing(path: str) -> UsageError:
    return UsageError(("there is no file ", FilePath(path, quoted=True)), remedy="check the path")


def report_of(terms: str, record: Sequence[float], *, insecure_noise_seed: int | None = None) -> bytes:
    """The report of one person's record, or of one set.

    Raises
    ------
    UsageError
        if a member of a set is not an integer that a double holds exactly.
    """
    read = read_terms(terms)
    value: object = [list(record)]
    if read.basis.kernel.dim is None:
        if not all(each.is_integer() and abs(each) < _EXACT for each in record):
            raise UsageError("at", "must be integers below 2**53, the members of a set", got="something else")
        value = [[int(each) for each in record]]
    return make_report(read, value, insecure_noise_seed=insecure_noise_seed)


def release_reports(
    terms: str, reports: Sequence[str], output: str, *, delta: float | None, honest: int | None
) -> ReportsReleased:
    """Collect the reports in some files and write the released function."""
    path = check_function_output(output, inputs=[terms, *reports])
    function = collect_reports(read_terms(terms), _blocks(reports), delta=delta, honest=honest)
    function.save(path)
    return ReportsReleased(output, function.claim, function.reports, float(function.local_epsilon))


def _blocks(paths: Sequence[str]) -> Iterator[bytes]:
    """Whole lines of the files, some megabytes at a time; - is standard input."""
    for path in paths:
        if path != STANDARD and not Path(path).is_file():
            raise _missing(path)
        with nullcontext(sys.stdin.buffer) if path == STANDARD else Path(path).open("rb") as file:
            rest = b""
            while block := file.read(_BLOCK):
                lines, end, last = (rest + block).rpartition(b"\n")
                rest = last if len(last) < _MOST_LINE else b"\n"
                if len(last) >= _MOST_LINE:
                    yield last[:_MOST_LINE]
                yield lines + end
            yield rest
