"""Make a tally public: the job that spends."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Final

from hushsum._types import Floats
from hushsum.errors import FilePath, UsageError
from hushsum.jobs.deliver_release import Approve, LedgerOptions, LedgerRecord, release_with_ledger
from hushsum.jobs.output_files import STANDARD, check_function_output
from hushsum.jobs.plan_release import PublicFile, read_public
from hushsum.kernels.bandwidth_scale import warn_of_bandwidth
from hushsum.kernels.base import Kernel
from hushsum.kernels.parameters import kernel_in_words
from hushsum.methods.prediction_request import Option
from hushsum.privacy.claim import Claim
from hushsum.privacy.release_request import ReleaseRequest
from hushsum.records.bounds import Bounds, bounds_in_words, names_in_words
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.forwarded_properties import PUBLIC_SAMPLE
from hushsum.releases.noisy_table import NoisyTable
from hushsum.releases.public_combination import MOST_POINTS, combine, sample_points
from hushsum.tally.file import load_tally, public_header
from hushsum.tally.tally import Tally

FEW_ROWS: Final = 10
"""Below so many rows the spread of the hashes alone is as large as most answers."""


@dataclass(frozen=True, slots=True)
class FunctionReleased:
    """A public function and where it was written. All of it is public."""

    output: str
    function: ReleasedFunction
    size: int
    capacity: int | None
    record: LedgerRecord | None = None
    option: Option | None = None

    @property
    def table(self) -> tuple[int, int] | None:
        """Rows and width of the table that was released, if it is one."""
        return self.function.basis.shape if isinstance(self.function, NoisyTable) else None

    @property
    def claim(self) -> Claim:
        """What was promised."""
        return self.function.claim

    @property
    def starved(self) -> bool:
        """Whether the budget gave so few rows that answers are poor. It follows from the noisy count, which
        is public.
        """
        if self.table is None or self.capacity is None:
            return False
        return self.table[0] < min(FEW_ROWS, self.capacity)

    def as_json(self) -> dict[str, Any]:
        """The release for a machine."""
        return {
            "output": self.output,
            "claim": self.claim.in_numbers(),
            "kernel": {"name": self.function.kernel.name, "parameters": self.function.kernel.parameters()},
            "rows": None if self.table is None else self.table[0],
            "width": None if self.table is None else self.table[1],
            "method": None if self.option is None else self.option.method,
            "predicted_error": None if self.option is None else self.option.error,
            "size": self.size,
            "ledger_record": None if self.record is None else self.record.as_json(),
        }


def release_tally(
    tally: str,
    output: str | IO[bytes],
    request: ReleaseRequest,
    *,
    encryption_key: bytes | None = None,
    threads: int | None = None,
    approve: Approve | None = None,
    ledger: LedgerOptions | None = None,
    public: PublicFile | None = None,
    assumptions: Sequence[str] = (),
) -> FunctionReleased | None:
    """Release a tally's function to a ``.hush`` file, or to a binary stream.

    Parameters
    ----------
    approve : callable, optional
        Shown the claim, and the dataset's account after it if there is a ledger, before any noise is
        drawn; if it says no, nothing is released and None is returned.
    ledger : LedgerOptions, optional
        Where the release is debited first.
    public : PublicFile, optional
        Public rows with the columns of the tally, which the function is combined with.
    assumptions : sequence of str
        What else the claim assumes, such as that rows which decided parameters of the tally are public.

    Raises
    ------
    ClaimError
        if the request cannot be claimed, or not in that ledger.
    UsageError
        if the output would replace a tally or, with nobody to ask, something else than a released function;
        and for a key to a tally that is not encrypted.
    BudgetExhausted
        if the remaining budget is too small; nothing is released.
    FileRefused
        if the tally is damaged.
    """
    # A wrong ε is refused before a large file is read.
    _ = request.promise
    if isinstance(output, str):
        check_function_output(output, inputs=[tally], interactive=approve is not None)
    if encryption_key is not None and public_header(tally)["encryption"] is None:
        raise UsageError(
            rule=(FilePath(tally), " is not encrypted"), got="a key for it", remedy="leave the key out"
        )
    secret = load_tally(tally, encryption_key=encryption_key)
    assumed = assumptions or (() if public is None else (PUBLIC_SAMPLE,))
    prepared = secret.prepare(request, threads=threads, assumptions=assumed)
    warn_of_bandwidth(secret.reading.kernel, secret.basis.bounds)
    # Read here: what cannot be combined is refused before anything is debited.
    sample = None if public is None else _sample(public, secret)

    def make() -> ReleasedFunction:
        return prepared.make() if sample is None else combine(prepared.make(), sample)

    return deliver_release(
        output,
        prepared.claim,
        make,
        sources=[tally, *([] if public is None else [public.path])],
        subject={**prepared.subject, **described_tally(secret, output)},
        settings=[],
        capacity=secret.basis.shape[0],
        approve=approve,
        ledger=ledger,
    )


def _sample(public: PublicFile, tally: Tally) -> Floats:
    """The first rows of a public file as points that the tally's function is combined with."""
    columns = tally.basis.columns
    table = read_public(replace(public, columns=columns)).slice(0, MOST_POINTS)
    return sample_points(table, tally.reading.kernel.dim, columns)


def deliver_release(
    output: str | IO[bytes],
    claim: Claim,
    make: Callable[[], ReleasedFunction],
    *,
    sources: Sequence[str],
    subject: dict[str, object],
    settings: list[object],
    capacity: int | None,
    option: Option | None = None,
    approve: Approve | None,
    ledger: LedgerOptions | None,
) -> FunctionReleased | None:
    """Request approval, debit, draw and write the file; None if ``approve`` says no.

    ``sources`` and ``settings`` enter the idempotency key of the ledger where none is given.
    """
    name = output if isinstance(output, str) else STANDARD
    if ledger is None:
        if approve is not None and not approve(claim, None):
            return None
        function = make()
        return FunctionReleased(name, function, _save(function, output), capacity, None, option)
    delivered = release_with_ledger(
        ledger,
        claim,
        sources=sources,
        output=output,
        subject=subject,
        settings=settings,
        make=make,
        approve=approve,
    )
    if delivered is None:
        return None
    return FunctionReleased(name, delivered.function, delivered.size, capacity, delivered.record, option)


def described(
    kernel: Kernel,
    output: str | IO[bytes],
    *,
    columns: Sequence[str] | None = None,
    bounds: Bounds | None = None,
) -> dict[str, object]:
    """What the ledger and its disclosure report say of a release beside its request: public, and known before
    anything is drawn.
    """
    found: dict[str, object] = {
        "kernel": kernel_in_words(kernel),
        "output": Path(output).name if isinstance(output, str) else "standard output",
    }
    if columns is not None:
        found["columns"] = names_in_words(columns)
    if kernel.dim is not None:
        found["bounds"] = bounds_in_words(bounds)
    return found


def described_tally(tally: Tally, output: str | IO[bytes]) -> dict[str, object]:
    """What the ledger says of the release of a tally."""
    basis = tally.basis
    return described(tally.reading.kernel, output, columns=basis.columns, bounds=basis.bounds)


def _save(function: ReleasedFunction, output: str | IO[bytes]) -> int:
    if isinstance(output, str):
        function.save(output)
        return Path(output).stat().st_size
    buffer = io.BytesIO()
    function.save(buffer)
    output.write(buffer.getbuffer())
    return buffer.tell()
