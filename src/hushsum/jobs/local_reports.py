"""The local model from files: publish terms, make one person's report, and release what was collected."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushsum.errors import FilePath, UsageError
from hushsum.federated.local_reports import ReportTerms, collect_reports, make_report
from hushsum.files.durable_files import atomic_file
from hushsum.jobs.kernel_and_method import KernelChoice
from hushsum.jobs.output_files import STANDARD, check_function_output, check_output
from hushsum.privacy.claim import Claim
from hushsum.records.bounds import DeclaredBounds

_BLOCK = 1 << 24
_MOST_LINE = 1 << 10
_EXACT = 1 << 53


@dataclass(frozen=True, slots=True)
class ReportsReleased:
    """What was written from reports: all of it is public."""

    output: str
    claim: Claim
    reports: int
    local_epsilon: float

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "output": self.output,
            "claim": self.claim.in_numbers(),
            "reports": self.reports,
            "local_epsilon": self.local_epsilon,
        }


def publish_terms(
    output: str,
    kernel: KernelChoice,
    *,
    epsilon: float,
    columns: Sequence[str] | None,
    dim: int | None,
    bounds: DeclaredBounds | None,
    rows: int,
    width: int,
    seed: int,
) -> ReportTerms:
    """Write the terms that every person reports under."""
    path = check_output(output)
    number = len(columns) if columns is not None else dim
    terms = ReportTerms.of(
        kernel.build(None if kernel.takes_sets else number, columns),
        epsilon=epsilon,
        rows=rows,
        width=width,
        seed=seed,
        bounds=bounds,
        columns=columns,
    )
    with atomic_file(path) as file:
        file.write(terms.to_bytes())
    return terms


def read_terms(path: str) -> ReportTerms:
    """The terms in a file."""
    if not Path(path).is_file():
        raise _missing(path)
    return ReportTerms.from_bytes(Path(path).read_bytes())


def _missing(path: str) -> UsageError:
    return UsageError(rule=("there is no file ", FilePath(path, quoted=True)), remedy="check the path")


def report_of(terms: str, record: Sequence[float], *, insecure_noise_seed: int | None = None) -> bytes:
    """The report of one person's record, or of one set.

    Raises
    ------
    UsageError
        if a member of a set is not a whole number that a double holds exactly.
    """
    read = read_terms(terms)
    value: object = [list(record)]
    if read.basis.kernel.dim is None:
        if not all(each.is_integer() and abs(each) < _EXACT for each in record):
            raise UsageError(
                parameter="at",
                rule="must be whole numbers below 2**53, the members of a set",
                got="something else",
                remedy="such as 3,17,20",
            )
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
