"""Make a tally public: the job that spends."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from hushsum.errors import UsageError
from hushsum.jobs.file_places import STANDARD, check_function_output
from hushsum.jobs.ledger_release import Approve, Booked, Booking, release_booked
from hushsum.jobs.open_function import as_table
from hushsum.privacy.claim import Claim, Promise
from hushsum.releases.base import ReleasedFunction
from hushsum.tally.file import load_tally, public_header
from hushsum.tally.release import ReleaseOptions, check_declared_delta, check_release
from hushsum.tally.tally import Tally

FEW_ROWS: Final = 10
"""Below so many rows the spread of the hashes alone is as large as most answers."""


@dataclass(frozen=True, slots=True)
class ReleaseTerms:
    """What is asked of a release; see ``Tally.release`` for each."""

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    relation: str = "add/remove"
    rows: int | str = "auto"
    count_share: float = 0.02
    population: int | None = None
    allow_large_delta: bool = False
    insecure_noise_seed: int | None = None
    rounded: bool = False

    def claim_for(self, tally: Tally) -> Claim:
        """What a release on these terms will claim, told before anything is drawn.

        Raises
        ------
        UsageError
            if the terms cannot be claimed or do not fit the tally.
        """
        promise = Promise.of(epsilon=self.epsilon, delta=self.delta, rho=self.rho)
        options = ReleaseOptions.of(
            relation=self.relation,
            rows=self.rows,
            count_share=self.count_share,
            per_unit=tally.max_per_unit,
            threads=1,
            insecure_noise_seed=self.insecure_noise_seed,
            rounded=self.rounded,
        )
        # A book is debited before the tally itself would refuse these.
        check_declared_delta(promise, self.population, allow_large=self.allow_large_delta)
        check_release(tally.basis, promise, options)
        return options.claim(promise)


@dataclass(frozen=True, slots=True)
class FunctionReleased:
    """A public function and where it was written. Everything about it may be told."""

    output: str
    function: ReleasedFunction
    rows: int
    width: int
    size: int
    capacity: int
    booked: Booked | None = None

    @property
    def claim(self) -> Claim:
        """What was promised."""
        return self.function.claim

    @property
    def starved(self) -> bool:
        """Whether the budget gave so few rows that answers are poor. It follows from the noisy count, which
        is public.
        """
        return self.rows < min(FEW_ROWS, self.capacity)

    def as_json(self) -> dict[str, Any]:
        """The release for a machine."""
        return {
            "output": self.output,
            "claim": self.claim.in_numbers(),
            "kernel": {"name": self.function.kernel.name, "parameters": self.function.kernel.parameters()},
            "rows": self.rows,
            "width": self.width,
            "size": self.size,
            "booked": None if self.booked is None else self.booked.as_json(),
        }


def release_tally(
    tally: str,
    output: str | IO[bytes],
    terms: ReleaseTerms,
    *,
    key: bytes | None = None,
    threads: int | None = None,
    approve: Approve | None = None,
    booking: Booking | None = None,
) -> FunctionReleased | None:
    """Release a tally's function to a ``.hush`` file, or to a binary stream.

    Parameters
    ----------
    approve : callable, optional
        Shown the claim, and the dataset's account after it if there is a booking, before any noise is
        drawn; if it says no, nothing is released and None is returned.
    booking : Booking, optional
        The ledger that is debited first.

    Raises
    ------
    ClaimError
        if the terms cannot be claimed, or not in that ledger.
    UsageError
        if the output would replace a tally or, with nobody to ask, something else than a released function;
        and for a key to a tally that is not encrypted.
    BudgetExhausted
        if the ledger has not enough left; nothing is released.
    FileRefused
        if the tally is damaged.
    """
    # Terms first: a wrong ε is told before a large file is read.
    Promise.of(epsilon=terms.epsilon, delta=terms.delta, rho=terms.rho)
    if isinstance(output, str):
        check_function_output(output, inputs=[tally], asked=approve is not None)
    if key is not None and public_header(tally)["encryption"] is None:
        raise UsageError(f"{tally} is not encrypted, got a key for it; leave the key out")
    secret = load_tally(tally, key=key)
    claim = terms.claim_for(secret)

    def make() -> ReleasedFunction:
        return secret.release(
            epsilon=terms.epsilon,
            delta=terms.delta,
            rho=terms.rho,
            relation=terms.relation,
            rows=terms.rows,
            count_share=terms.count_share,
            threads=threads,
            population=terms.population,
            allow_large_delta=terms.allow_large_delta,
            insecure_noise_seed=terms.insecure_noise_seed,
            rounded=terms.rounded,
        )

    if booking is None:
        if approve is not None and not approve(claim, None):
            return None
        function = make()
        return _released(output, secret, function, _save(function, output), None)
    delivered = release_booked(
        booking,
        claim,
        sources=[tally],
        output=output,
        subject=_subject(secret, terms, output),
        options=[str(terms.count_share), *(["rounded"] if terms.rounded else [])],
        make=make,
        approve=approve,
    )
    if delivered is None:
        return None
    return _released(output, secret, delivered.function, delivered.size, delivered.booked)


def _subject(tally: Tally, terms: ReleaseTerms, output: str | IO[bytes]) -> dict[str, object]:
    """What the book says of a release: public, and known before anything is drawn."""
    return {
        "fingerprint": tally.fingerprint,
        "kernel": tally.reading.kernel.name,
        "rows": terms.rows,
        "output": Path(output).name if isinstance(output, str) else "standard output",
    }


def _released(
    output: str | IO[bytes], tally: Tally, function: ReleasedFunction, size: int, booked: Booked | None
) -> FunctionReleased:
    rows, width = as_table(function).basis.shape
    name = output if isinstance(output, str) else STANDARD
    return FunctionReleased(name, function, rows, width, size, tally.basis.shape[0], booked)


def _save(function: ReleasedFunction, output: str | IO[bytes]) -> int:
    if isinstance(output, str):
        function.save(output)
        return Path(output).stat().st_size
    buffer = io.BytesIO()
    function.save(buffer)
    output.write(buffer.getbuffer())
    return buffer.tell()
