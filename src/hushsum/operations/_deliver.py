"""Release files of records, or a tally, to a file, through a ledger if one is named.

The sequence is that of `hushsum.planning`; the idempotency key of a command, the debit and the output are
added here.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Generic, TypeVar

import numpy as np

from hushsum._types import Floats
from hushsum.declaration import BOUNDS_TYPE, setting
from hushsum.declaration import request as declared_request
from hushsum.errors import AlreadyPublished, DataRefused, FilePath, LedgerUnavailable, UsageError
from hushsum.errors import Parameter as NameOf
from hushsum.files import SharedText, atomic_file, canonical_json, declared_fields, state_folder
from hushsum.kernels import Kernel, check_cap, kernel_as_json, kernel_in_words, warn_of_bandwidth
from hushsum.methods import DeclaredBox, Option, choose_kernel, private_bounds
from hushsum.planning import (
    UNDECLARED,
    EmptyTally,
    KernelSpec,
    MethodSpec,
    ReleaseRecords,
    bounds_of_sample,
    kernel_of_sample,
    takes_sets,
)
from hushsum.privacy import (
    PERMUTE_AND_FLIP,
    PERSON,
    RECORD,
    Booking,
    Claim,
    ReleaseRequest,
    checked_unit,
    choice_claim,
    exact,
)
from hushsum.records import (
    Bounds,
    DeclaredBounds,
    bounds_in_words,
    names_in_words,
    numbers_of,
    open_batches,
    pyarrow,
    refuse_copied_rows,
    refuse_repeated,
)
from hushsum.releases import (
    MOST_POINTS,
    PUBLIC_SAMPLE,
    NoisyTable,
    Prepared,
    Released,
    ReleasedFunction,
    combine,
    load_released,
    released_table,
    sample_points,
)
from hushsum.tally import Tally, load_tally, public_header

from ._files import (
    STANDARD,
    Counting,
    Progress,
    PublicFile,
    RecordFiles,
    all_paths,
    check_columns,
    check_function_output,
    dimension,
    first_batch,
    open_file,
    read_public,
    refuse_private_file,
)

if TYPE_CHECKING:
    from hushsum.ledger import Account, Charge, DatasetBudget, Fence, Ledger

__all__ = [
    "ChoiceTerms", "DatasetStatus", "Delivered", "Destination", "FunctionReleased", "LedgerOptions", "amount",
    "choose", "declared_or_public", "release_key", "release_records", "release_tally", "requested_release",
    "status_of",
]  # fmt: skip

# The version of the settings in a key; it changes where the meaning of a setting, or its default, does.
_FORM = 1


def release_key(sources: str | Sequence[str], *public: object) -> str:
    """A key made of the bytes of a tally, or of files of records, and of everything public that names the
    release: values of JSON and dataclasses of settings (`declared_fields`).

    Repeating a command after a crash gives the same key, so it resumes instead of spending again.

    Privacy
    -------
    A plain digest of secret files would let whoever reads the ledger test guesses about its records. So the
    digest is keyed with 32 random bytes that stay in the user's state folder.
    """
    digest = hmac.new(_secret(), digestmod=hashlib.sha256)
    digest.update(canonical_json([_FORM, declared_fields(public)]))
    for each in [sources] if isinstance(sources, str) else sources:
        with open(each, "rb") as stream:
            hashlib.file_digest(stream, lambda: digest)
    return f"auto-{digest.hexdigest()[:40]}"


def _secret() -> bytes:
    path = state_folder() / "release.key"

    def unusable() -> LedgerUnavailable:
        rule = ("the folder ", FilePath(path.parent, service="of the state"), " cannot be written")
        remedy = ("make it writable, name another in HUSHSUM_STATE, or give ", NameOf("idempotency_key"))
        return LedgerUnavailable(rule, remedy=remedy)

    kept = SharedText(path, unusable)
    text = kept.read()
    if text is None:
        kept.prepare()
        # If two processes make one at once, the first one's stays.
        with kept.locked():
            text = kept.read() or secrets.token_hex(32)
            kept.write(text)
    if not re.fullmatch("[0-9a-f]{64}", text):
        remedy = ("remove it, or give ", NameOf("idempotency_key"))
        raise LedgerUnavailable(("the file ", FilePath(path), " is damaged"), remedy=remedy)
    return bytes.fromhex(text)


R = TypeVar("R", bound=Released)

of_ledger = partial(setting, group="Ledger")


@dataclass(frozen=True, slots=True)
class LedgerOptions:
    """Where a command records its release: a ledger's path or URL, a dataset in it, and details of the entry.

    ``idempotency_key`` is None for one that follows from the command: the bytes of the tally, the claim, the
    options and the place of the output. ``who`` is None for the user of the process. ``guard`` is where
    the rollback guard is, and ``fence`` may refuse the debit; see ``Ledger``.
    """

    ledger: str | None = setting(None, "Ledger: a file, or a PostgreSQL URL.", metavar="PATH|URL")
    dataset: str | None = setting(None, "Name of the dataset in the ledger.")
    idempotency_key: str | None = of_ledger(
        None, "Name of this release in the ledger, so that a retry does not spend again."
    )
    to: str | None = of_ledger(None, "Recipient, recorded in the ledger.")
    part: str | None = of_ledger(
        None, "Declared part of the dataset to which the records belong, for the ledger."
    )
    who: str | None = None
    guard: str | None = None
    fence: Fence | None = None

    def given(self) -> LedgerOptions | None:
        """These options, or None where no ledger is named.

        Raises
        ------
        UsageError
            if only some of them are given.
        """
        if (self.ledger is None) != (self.dataset is None):
            raise UsageError("ledger", ("and ", NameOf("dataset"), " go together"), got="one of them")
        if self.ledger is None and any(
            each is not None for each in (self.idempotency_key, self.to, self.part)
        ):
            names = (NameOf("idempotency_key"), ", ", NameOf("to"), " and ", NameOf("part"))
            remedy = ("give ", NameOf("ledger"), " and ", NameOf("dataset"))
            raise UsageError((*names, " are for a ledger"), got="none", remedy=remedy)
        return None if self.ledger is None else self

    def budget(self) -> DatasetBudget:
        """The budget of the dataset.

        Raises
        ------
        UsageError
            if there is no such ledger, dataset or part.
        """
        from hushsum.ledger import Ledger

        assert self.ledger is not None
        assert self.dataset is not None
        ledger = Ledger(self.ledger, guard=self.guard)
        return ledger.dataset(self.dataset, part=self.part, to=self.to, who=self.who, fence=self.fence)

    def key(self, sources: Sequence[str], budget: DatasetBudget, claim: Claim, *public: object) -> str:
        """The idempotency key, by default one that follows from the command: see `release_key`."""
        named = (budget.ledger_id, self.dataset, self.part, claim.as_json())
        return self.idempotency_key or release_key(sources, *named, *public)


@dataclass(frozen=True, slots=True)
class LedgerRecord:
    """A release as the ledger has it. ``again`` if it had been published before and was only found."""

    ledger: str
    dataset: str
    idempotency_key: str
    account: Account
    again: bool

    def as_json(self) -> dict[str, Any]:
        """The record as JSON."""
        return {
            "ledger": self.ledger,
            "dataset": self.dataset,
            "idempotency_key": self.idempotency_key,
            "spent": self.account.spent.as_json(),
            "remaining": self.account.remaining.as_json(),
            "again": self.again,
        }


Approve = Callable[[Claim, "Account | None"], None]


@dataclass(frozen=True, slots=True)
class Delivered(Generic[R]):
    """A release whose bytes have reached their reader, and its record in the ledger. All of it is public."""

    output: str
    function: R
    size: int
    record: LedgerRecord | None

    @property
    def claim(self) -> Claim:
        """What was promised."""
        return self.function.claim

    def as_json(self) -> dict[str, Any]:
        """The release for a machine."""
        record = None if self.record is None else self.record.as_json()
        return {"output": self.output, **self._described(), "size": self.size, "ledger_record": record}

    def _described(self) -> dict[str, Any]:
        """What was released, as JSON."""
        return {"claim": self.claim.in_numbers()}


D = TypeVar("D")


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a release goes.

    Parameters
    ----------
    output : str or binary stream
        Its ``.hush`` file.
    ledger : LedgerOptions, optional
        Where it is debited first.
    approve : callable, optional
        Called with the claim, and the dataset's account after it if there is a ledger, before anything is
        debited or drawn; if it raises, nothing is released and nothing is spent.
    interactive : bool
        Whether a person approves, so that the file may replace one that is no released function.
    """

    output: str | IO[bytes]
    ledger: LedgerOptions | None = None
    approve: Approve = lambda claim, account: None
    interactive: bool = False

    @property
    def name(self) -> str:
        """What a ledger and its disclosure report call the output."""
        return Path(self.output).name if isinstance(self.output, str) else "standard output"

    def check(self, inputs: Sequence[str]) -> None:
        """Refuse an output that cannot be written or is not replaced, so that no work is lost."""
        if isinstance(self.output, str):
            check_function_output(self.output, inputs=inputs, interactive=self.interactive)

    def check_named(self, paths: Sequence[str]) -> None:
        """Refuse a release of records from standard input that nothing names in the ledger."""
        if self.ledger is not None and self.ledger.idempotency_key is None and STANDARD in paths:
            rule = "must be given where records come from standard input"
            raise UsageError("idempotency_key", rule, got="none", remedy="name this release")


def deliver(
    prepared: Prepared[R],
    to: Destination,
    result: Callable[[str, R, int, LedgerRecord | None], D],
    *,
    sources: Sequence[str],
    settings: Sequence[object],
) -> D:
    """Request approval, debit, draw and write the file.

    ``result`` makes the result of what a `Delivered` has. ``sources`` are the files it is made of: the bytes
    of those that can be read again, and ``settings``, enter the idempotency key where none is given. Killed
    anywhere, it resumes when it is called again with the same arguments: a debit is found again, staged bytes
    are delivered again, and a file that was published and is still there is left alone.

    Raises
    ------
    BudgetExhausted
        if the remaining budget is too small; no file is written.
    AlreadyPublished
        if the release was published, and its file is gone or was changed.
    """
    claim, subject = prepared.claim, dict(prepared.subject)
    output, ledger, approve = to.output, to.ledger, to.approve
    name = output if isinstance(output, str) else STANDARD
    written = 0

    def write(payload: bytes) -> None:
        nonlocal written
        if isinstance(output, str):
            with atomic_file(Path(output)) as stream:
                stream.write(payload)
        else:
            output.write(payload)
            output.flush()
        written = len(payload)

    if ledger is None:
        approve(claim, None)
        return result(name, prepared.spend(sink=write), written, None)
    budget = ledger.budget()
    assert ledger.dataset is not None
    place = str(Path(output).absolute()) if isinstance(output, str) else None
    files = [each for each in sources if each != STANDARD]
    key = ledger.key(files, budget, claim, subject, list(settings), place)

    def record(*, again: bool) -> LedgerRecord:
        assert ledger.dataset is not None
        return LedgerRecord(budget.ledger_id, ledger.dataset, key, budget.account, again)

    try:
        # The account after this release, which may be debited already.
        entry = budget.find(key)
        if entry is not None:
            entry.refuse_again()
        approve(claim, budget.price(claim)[1] if entry is None else budget.account)
        released = prepared.spend(Booking(budget, key), write)
    except AlreadyPublished as published:
        here = Path(place).read_bytes() if place is not None and Path(place).is_file() else b""
        if place is None or hashlib.sha256(here).hexdigest() != published.sha256:
            raise
        found: Any = load_released(place)
        return result(name, found, len(here), record(again=True))
    return result(name, released, written, record(again=False))


# The fewest rows of a useful release: with fewer, the spread of the hashes alone is as large as most answers.
FEW_ROWS: Final = 10


@dataclass(frozen=True, slots=True)
class FunctionReleased(Delivered[ReleasedFunction]):
    """A public function and where it was written."""

    capacity: int | None
    option: Option | None = None

    @property
    def table(self) -> tuple[int, int] | None:
        """Rows and width of the released table; None if the function is not a noisy table."""
        table = released_table(self.function)
        return table.basis.shape if isinstance(table, NoisyTable) else None

    @property
    def starved(self) -> bool:
        """Whether the budget gave so few rows that answers are poor. It follows from the noisy count, which
        is public.
        """
        if self.table is None or self.capacity is None:
            return False
        return self.table[0] < min(FEW_ROWS, self.capacity)

    def _described(self) -> dict[str, Any]:
        rows, width = self.table or (None, None)
        method, error = (None, None) if self.option is None else (self.option.method, self.option.error)
        released = {"claim": self.claim.in_numbers(), "kernel": kernel_as_json(self.function.kernel)}
        return {**released, "rows": rows, "width": width, "method": method, "predicted_error": error}


@dataclass(frozen=True, slots=True)
class _Files:
    """Files of records as a source of the pipeline. Standard input has no known columns before it is read."""

    records: RecordFiles
    threads: int | None
    progress: Progress | None

    def shape(
        self, kernel: KernelSpec | Kernel, bounds: DeclaredBounds | None
    ) -> tuple[int | None, Sequence[str] | None] | None:
        if STANDARD in self.records.paths:
            return None
        batch, names = first_batch(self.records)
        return None if takes_sets(kernel) else dimension(batch), names

    def refuse_copies(self, public: Any, dim: int | None, columns: Sequence[str] | None) -> None:
        if dim is not None:
            refuse_copied_rows(public, first_batch(self.records)[0], dim, columns)

    def count(self, kernel: KernelSpec | Kernel, empty: EmptyTally) -> Tally:
        return Counting(self.records, kernel, empty, self.threads, self.progress).here()

    def in_memory(self, columns: Sequence[str] | None, box: DeclaredBox) -> Any:
        tables: list[Any] = []
        for path in self.records.paths:
            with open_batches(
                path, columns=columns, name=self.records.name, cells=self.records.cells
            ) as stream:
                for batch, _ in stream:
                    box.records(batch)
                    tables.append(pyarrow().Table.from_batches([batch]))
        try:
            # One file may have integers where another has real numbers.
            return pyarrow().concat_tables(tables, promote_options="permissive")
        except pyarrow().ArrowException:
            pass
        # Raised outside the handler: messages of Arrow may quote values.
        rule = "the columns of all files must have the same types"
        raise DataRefused(rule, got="others", remedy="convert them")


def release_records(
    records: RecordFiles,
    to: Destination,
    request: ReleaseRequest,
    *,
    kernel: KernelSpec,
    method: MethodSpec,
    public: PublicFile | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> FunctionReleased:
    """Release files of records by the method with the smallest predicted error, as :func:`hushsum.release`.

    The plan is made from what is declared, and the files are counted in one pass and bounded memory. A method
    without a tally reads them into memory. Nothing is debited before everything was counted.

    Raises
    ------
    UsageError
        wrong parameters, a file or column that is not there, or an output that cannot be written.
    DataRefused
        records that break a rule; nothing is released and nothing is spent.
    ClaimError, BudgetExhausted
        as `release_tally`.
    """
    records = replace(records, paths=all_paths(records.paths))
    to.check(records.paths)
    requested = requested_release(
        records, request, kernel=kernel, method=method, public=public, threads=threads
    )
    to.check_named(records.paths)
    planned = requested.prepare(_Files(records, threads, progress))
    found = planned.bounds
    if not isinstance(found, Bounds | None):
        found = Bounds.of(found, planned.kernel.dim or 1, planned.columns)
    subject = {
        **planned.prepared.subject,
        **_described(planned.kernel, to, columns=planned.columns, bounds=found),
        "error": planned.predicted_error,
    }
    columns = (records.columns, records.unit_column, records.set_column)
    return deliver(
        replace(planned.prepared, subject=subject),
        to,
        partial(
            FunctionReleased,
            capacity=None if planned.shape is None else planned.shape[0],
            option=planned.option,
        ),
        sources=[*records.paths, *([] if public is None else [public.path])],
        settings=[requested.kernel, method, *columns, records.cells],
    )


def requested_release(
    records: RecordFiles,
    request: ReleaseRequest,
    *,
    kernel: KernelSpec,
    method: MethodSpec,
    public: PublicFile | None = None,
    threads: int | None = None,
) -> ReleaseRecords:
    """The release of files of records, checked as far as it can be before any private record is read."""
    _ = request.promise
    if request.unit is not None:
        checked_unit(request.unit, (RECORD if records.max_per_unit is None else PERSON,))
    sizes = {"rows": request.rows if isinstance(request.rows, int) else None, "width": method.width}
    kernel = kernel.for_records(method=method.method, sets=records.set_column is not None, **sizes)
    check_columns(records, kernel)
    records.cells.check_relation(str(request.relation))
    sample = None
    if public is not None:
        refuse_private_file(public, records.paths)
        sample = read_public(public).slice(0, MOST_POINTS)
    return ReleaseRecords(
        request=request,
        kernel=kernel,
        method=method,
        bounds=records.bounds,
        max_per_unit=records.max_per_unit,
        public=sample,
        threads=threads,
    )


def release_tally(
    tally: str,
    to: Destination,
    request: ReleaseRequest,
    *,
    encryption_key: bytes | None = None,
    threads: int | None = None,
    public: PublicFile | None = None,
    assumptions: Sequence[str] = (),
) -> FunctionReleased:
    """Release a tally's function.

    Parameters
    ----------
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
    to.check([tally])
    if encryption_key is not None and public_header(tally)["encryption"] is None:
        rule = (FilePath(tally), " is not encrypted")
        raise UsageError(rule, got="a key for it", remedy="leave the key out")
    secret = load_tally(tally, encryption_key=encryption_key)
    assumed = assumptions or (() if public is None else (PUBLIC_SAMPLE,))
    prepared = secret.prepare(request, threads=threads, assumptions=assumed)
    basis, kernel = secret.basis, secret.reading.kernel
    warn_of_bandwidth(kernel, basis.bounds)
    # Read here: what cannot be combined is refused before anything is debited.
    sample = None if public is None else _sample(public, secret)
    described = _described(kernel, to, columns=basis.columns, bounds=basis.bounds)
    made = replace(
        prepared,
        subject={**prepared.subject, **described},
        make=prepared.make if sample is None else lambda: combine(prepared.make(), sample),
    )
    return deliver(
        made,
        to,
        partial(FunctionReleased, capacity=basis.shape[0]),
        sources=[tally, *([] if public is None else [public.path])],
        settings=[],
    )


def _sample(public: PublicFile, tally: Tally) -> Floats:
    """The first rows of a public file as points that the tally's function is combined with."""
    columns = tally.basis.columns
    table = read_public(replace(public, columns=columns)).slice(0, MOST_POINTS)
    return sample_points(table, tally.reading.kernel.dim, columns)


def _described(
    kernel: Kernel, to: Destination, *, columns: Sequence[str] | None, bounds: Bounds | None
) -> dict[str, object]:
    """The public entries of a release in the ledger and its disclosure report, beside those of its request;
    known before anything is drawn.
    """
    found: dict[str, object] = {"kernel": kernel_in_words(kernel), "output": to.name}
    if columns is not None:
        found["columns"] = names_in_words(columns)
    if kernel.dim is not None:
        found["bounds"] = bounds_in_words(bounds)
    return found


def declared_or_public(
    kernel: KernelSpec, bounds: DeclaredBounds | None, public: PublicFile
) -> tuple[Kernel, DeclaredBounds | None]:
    """A kernel with the bandwidth, and the bounds, of a public file where they are not declared."""
    if kernel.takes_sets:
        raise UsageError("public", "must be left out for sets", got="a kernel of sets")
    sample = read_public(public).slice(0, MOST_POINTS)
    found = kernel_of_sample(
        kernel, dim=int(sample.num_columns), public=sample, records=UNDECLARED, bounds=bounds
    )
    return found, bounds_of_sample(found, bounds, sample)


@dataclass(frozen=True, slots=True)
class DatasetStatus:
    """One dataset's account, how many releases stopped on their way, and what the next one may spend."""

    ledger: str
    dataset: str
    account: Account
    releases: int
    unfinished: int
    warning: str | None

    @property
    def share(self) -> float:
        """The part of the budget that is spent, of the scarcest of its numbers."""
        spent, budget = self.account.spent, self.account.terms.budget
        pairs = [(getattr(spent, each), getattr(budget, each)) for each in ("epsilon", "delta", "rho")]
        return float(max((one / total for one, total in pairs if total), default=0))

    def as_json(self) -> dict[str, Any]:
        """The status for a machine."""
        account = self.account
        return {
            "ledger": self.ledger,
            "dataset": self.dataset,
            "state": account.state,
            "terms": account.terms.as_json(),
            "spent": account.spent.as_json(),
            "spent_epsilon": account.epsilon_at(account.spent),
            "remaining": account.remaining.as_json(),
            "parts": {
                name: {"spent": spent.as_json(), "remaining": account.remaining_in(name).as_json()}
                for name, spent in zip(account.terms.partition, account.parts, strict=True)
            },
            "largest_pure_epsilon": account.largest_pure_epsilon,
            "releases": self.releases,
            "unfinished": self.unfinished,
            "warning": self.warning,
        }


def status_of(ledger: Ledger, dataset: str | Sequence[str] | None) -> list[DatasetStatus]:
    """How one dataset stands, or several, or all."""
    from hushsum.ledger import Kind

    warning = ledger.rollback_problem()
    names = ledger.datasets() if dataset is None else [dataset] if isinstance(dataset, str) else dataset
    found = []
    for name, (account, history) in zip(names, ledger.standing(names), strict=True):
        entries = [each for each in history if each.step is not Kind.VOIDED]
        unfinished = sum(each.step is not Kind.PUBLISHED for each in entries)
        found.append(DatasetStatus(ledger.id, name, account, len(entries), unfinished, warning))
    return found


def amount(*, epsilon: float | None, delta: float | None, rho: float | None) -> Charge:
    """A charge from a command's options; at least one must be given, and zero is a statement too."""
    from fractions import Fraction

    from hushsum.ledger import Charge

    if epsilon is None and delta is None and rho is None:
        rule = (NameOf("epsilon"), ", ", NameOf("delta"), " or ", NameOf("rho"), " must be given")
        raise UsageError(rule, got="none", remedy="0 is allowed")
    named = (("epsilon", epsilon), ("delta", delta), ("rho", rho))
    return Charge(*(Fraction(0) if value is None else exact(name, value) for name, value in named))


@declared_request
class ChoiceTerms:
    """What is chosen from, and how."""

    within: DeclaredBounds | None = setting(
        None,
        "For bounds: the widest possible range, of all columns or of each; declared.",
        type=BOUNDS_TYPE,
        metavar="LOW:HIGH[,...]",
    )
    tail: float = setting(0.01, "For bounds: the fraction of the records outside on either side.")
    grid: int = setting(1000, "For bounds: number of equal steps of the range.")
    candidates: tuple[float, ...] | None = setting(
        None, "For a bandwidth: declared candidates.", metavar="NUMBERS"
    )
    density: float = setting(0.05, "For a bandwidth: the mean kernel value of two records.")


@dataclass(frozen=True, slots=True)
class Chosen:
    """What was chosen, in words and as JSON, and the claim of the choice. All of it is public."""

    facts: list[tuple[str, str]]
    chosen: dict[str, Any]
    claim: Claim

    def as_json(self) -> dict[str, Any]:
        """The choice for a machine."""
        return {**self.chosen, "claim": self.claim.in_numbers()}


def choose(
    what: str,
    records: RecordFiles,
    request: ReleaseRequest,
    terms: ChoiceTerms,
    *,
    kernel: KernelSpec,
    approve: Callable[[Claim], None],
) -> Chosen:
    """Choose bounds of every column, or one of several bandwidths, from the records of files, which must fit
    into memory; ``what`` is ``"bounds"`` or ``"bandwidth"``. Nothing is spent if ``approve`` raises.

    Raises
    ------
    UsageError
        wrong parameters, a file or column that is not there.
    DataRefused
        records that break a rule; nothing is spent.
    """
    of_bounds = what == "bounds"
    if of_bounds and terms.within is None:
        rule = "are chosen within a declared range"
        raise UsageError("bounds", rule, got="none", remedy="give --within such as 0:255")
    if not of_bounds and terms.candidates is None:
        rule = "must be declared to choose a bandwidth from"
        raise UsageError("candidates", rule, got="none", remedy="such as 1,5,25")
    if not of_bounds and kernel.takes_sets:
        rule = "must have a bandwidth to choose"
        raise UsageError("kernel", rule, got=repr(kernel.name), remedy="use euclidean or manhattan")
    # Checked before a large file is read.
    check_cap(records.unit_column, records.max_per_unit, parameter="unit_column")
    records.cells.check_relation(str(request.relation))
    claim = choice_claim(
        request.promise,
        PERMUTE_AND_FLIP,
        relation=request.relation,
        max_per_unit=records.max_per_unit,
        insecure_noise_seed=request.insecure_noise_seed,
    )
    values, names, units = _read(records)
    kernels = [replace(kernel, bandwidth=each).build(len(names)) for each in terms.candidates or ()]
    approve(claim)
    shared: dict[str, Any] = {"max_per_unit": records.max_per_unit, "units": units}
    for name in ("epsilon", "relation", "budget", "idempotency_key", "insecure_noise_seed"):
        shared[name] = getattr(request, name)
    if not of_bounds:
        found = choose_kernel(values, kernels, density=terms.density, **shared)
        chosen = {"kernel": kernel_as_json(found.candidate)}
        return Chosen([("kernel", kernel_in_words(found.candidate))], chosen, found.claim)
    assert terms.within is not None
    box = private_bounds(values, within=terms.within, tail=terms.tail, grid=terms.grid, **shared)
    facts = [(name, f"{low:g} to {high:g}") for name, (low, high) in zip(names, box, strict=True)]
    option = ",".join(f"{low:g}:{high:g}" for low, high in box)
    listed = [
        {"column": name, "low": low, "high": high} for name, (low, high) in zip(names, box, strict=True)
    ]
    return Chosen([*facts, ("option", f"--bounds {option}")], {"bounds": listed}, box.claim)


def _read(records: RecordFiles) -> tuple[Floats, tuple[str, ...], list[Any] | None]:
    """All records of the files, the names of their columns, and the persons whose records they are."""
    refuse_repeated(records.paths)
    columns: Sequence[str] | None = records.columns
    values: list[Floats] = []
    units: list[Any] = []
    for path in records.paths:
        with open_file(records, path, columns) as stream:
            columns = stream.column_names
            for batch, persons in stream:
                parts = numbers_of(batch, dim=len(columns))
                values.append(np.concatenate([part.values.astype(np.float64) for part in parts], axis=1))
                units.extend([] if persons is None else persons.to_pylist())
    if columns is None:
        raise UsageError("files", "must be at least one file of records", got="none")
    return np.concatenate(values), tuple(columns), None if records.unit_column is None else units
