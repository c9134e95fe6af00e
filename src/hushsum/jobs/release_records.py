"""From files of records to a released function: plan, count and release, without a tally in a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any

from hushsum.errors import DataRefused, UsageError
from hushsum.jobs.deliver_release import Approve, LedgerOptions
from hushsum.jobs.kernel_and_method import KernelChoice, step_of_columns
from hushsum.jobs.output_files import STANDARD, check_function_output
from hushsum.jobs.plan_release import PublicFile, read_public, refuse_private_file
from hushsum.jobs.progress import Progress
from hushsum.jobs.record_files import RecordFiles, check_columns, dimension, first_batch, with_all_paths
from hushsum.jobs.release_tally import FunctionReleased, deliver_release, described, described_tally
from hushsum.jobs.tally_records import count_records
from hushsum.kernels.bandwidth_scale import warn_of_bandwidth
from hushsum.kernels.base import Kernel
from hushsum.kernels.parameters import error_in_words, one_of
from hushsum.kernels.registry import kernel_as_json
from hushsum.methods.one_call_methods import DeclaredBox, OneCallRelease
from hushsum.methods.prediction_request import Option
from hushsum.methods.registry import method_named, planned_methods
from hushsum.planning.automatic_method import (
    UNDECLARED,
    best_option,
    planned_options,
    planned_sizes,
    planned_tally,
)
from hushsum.planning.plan import AUTO
from hushsum.planning.public_sample import (
    bounds_of_sample,
    kernel_of_sample,
)
from hushsum.privacy.claim import PERSON, RECORD, checked_unit
from hushsum.privacy.release_request import ReleaseRequest
from hushsum.records.arrow import pyarrow
from hushsum.records.bounds import Bounds, DeclaredBounds
from hushsum.records.data_derived_parameters import clipping_allowed
from hushsum.records.private_rows_as_public import refuse_copied_rows
from hushsum.records.record_batches import open_batches
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.forwarded_properties import PUBLIC_SAMPLE
from hushsum.releases.public_combination import MOST_POINTS, combine
from hushsum.tally.tally import Tally


@dataclass(frozen=True, slots=True)
class PlanChoice:
    """What a person declares for the plan of a release; all of it is public.

    ``records`` is the declared number of records. ``count_share`` of None is what the plan finds best.
    ``public`` is a public sample: it decides what is not declared, and the release is combined with it.
    """

    method: str = AUTO
    records: int | None = None
    bounds: DeclaredBounds | None = None
    steps: tuple[float, ...] | None = None
    width: int | None = None
    seed: int = 0
    count_share: float | None = None
    public: PublicFile | None = None

    def __post_init__(self) -> None:
        one_of("method", self.method, [AUTO, *planned_methods()])


def release_records(
    records: RecordFiles,
    output: str | IO[bytes],
    request: ReleaseRequest,
    *,
    kernel: KernelChoice,
    choice: PlanChoice,
    max_per_unit: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    approve: Approve | None = None,
    ledger: LedgerOptions | None = None,
) -> FunctionReleased | None:
    """Release files of records by the method that is predicted to err least, as :func:`hushsum.release`.

    The plan is made from what is declared, and the files are counted in one pass and bounded memory. A method
    without a tally reads them into memory. Nothing is debited before everything was counted.

    Raises
    ------
    UsageError
        wrong parameters, a file or column that is not there, or an output that cannot be written.
    DataRefused
        records that break a rule; nothing is released and nothing is spent.
    ClaimError, BudgetExhausted
        as :func:`hushsum.jobs.release_tally.release_tally`.
    """
    _ = request.promise
    records = with_all_paths(records)
    if request.unit is not None:
        checked_unit(request.unit, (RECORD if max_per_unit is None else PERSON,))
    if isinstance(output, str):
        check_function_output(output, inputs=records.paths, interactive=approve is not None)
    check_columns(records, kernel, max_per_unit)
    records.cells.check_relation(str(request.relation))
    if ledger is not None and ledger.idempotency_key is None and STANDARD in records.paths:
        raise UsageError(
            parameter="idempotency_key",
            rule="must be given where records come from standard input",
            got="none",
            remedy="name this release",
        )
    sample = None
    if choice.public is not None:
        refuse_private_file(choice.public, records.paths)
        sample = read_public(choice.public).slice(0, MOST_POINTS)
        kernel, bounds = _of_sample(kernel, choice.bounds, sample, choice.records)
        choice = replace(choice, bounds=bounds)
    kernel = replace(kernel, bounds=choice.bounds)
    plan = _Plan(request, choice, max_per_unit, sample)
    if STANDARD not in records.paths:
        batch, names = first_batch(records)
        if sample is not None and not kernel.takes_sets:
            refuse_copied_rows(sample, batch, dimension(batch), names)
        chosen = kernel.build(None if kernel.takes_sets else dimension(batch), names)
        option = plan.best(chosen, names)
        if method_named(option.method).tally is None:
            warn_of_bandwidth(chosen, choice.bounds, names)
            return _in_one_call(
                records, output, request, option, chosen, names, choice, approve=approve, ledger=ledger
            )
    options: list[Option] = []

    def empty(built: Kernel, columns: Sequence[str] | None) -> Tally:
        options.append(plan.best(built, columns, tallies_only=True))
        return plan.empty_tally(options[0], built, columns)

    tally = count_records(records, kernel, empty, threads=threads, progress=progress)
    assumptions = () if sample is None else (PUBLIC_SAMPLE,)
    prepared = tally.prepare(plan.request_for(options[0]), threads=threads, assumptions=assumptions)

    def make() -> ReleasedFunction:
        return prepared.make() if sample is None else combine(prepared.make(), sample)

    warn_of_bandwidth(tally.reading.kernel, tally.basis.bounds)
    return deliver_release(
        output,
        prepared.claim,
        make,
        sources=[*(path for path in records.paths if path != STANDARD), *_paths(choice.public)],
        subject={
            **prepared.subject,
            **described_tally(tally, output),
            "error": _predicted(options[0], tally.reading.kernel, choice),
        },
        settings=[
            kernel,
            choice,
            records.columns,
            records.unit_column,
            records.set_column,
            records.cells,
        ],
        capacity=tally.basis.shape[0],
        option=options[0],
        approve=approve,
        ledger=ledger,
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    """The request of a person, and what the plan adds to it."""

    request: ReleaseRequest
    choice: PlanChoice
    max_per_unit: int | None
    sample: Any = None

    def best(self, kernel: Kernel, columns: Sequence[str] | None, *, tallies_only: bool = False) -> Option:
        """The option that is released."""
        request, choice = self.request, self.choice
        return best_option(
            kernel,
            epsilon=_number(request.epsilon),
            delta=_number(request.delta),
            rho=_number(request.rho),
            bounds=choice.bounds,
            method=choice.method,
            records=choice.records,
            relation=request.relation,
            mechanism=request.mechanism,
            rows=request.rows,
            count_share=choice.count_share,
            rounded=request.rounded,
            width=choice.width,
            columns=columns,
            steps=None if choice.steps is None else step_of_columns(choice.steps),
            max_per_unit=self.max_per_unit,
            tallies_only=tallies_only or self.sample is not None,
            public=self.sample,
        )

    def empty_tally(self, option: Option, kernel: Kernel, columns: Sequence[str] | None) -> Tally:
        """The tally of an option."""
        choice = self.choice
        sizes = planned_sizes(option, records=choice.records, rows=self.request.rows, width=choice.width)
        return planned_tally(
            option,
            kernel,
            bounds=choice.bounds,
            columns=columns,
            seed=choice.seed,
            max_per_unit=self.max_per_unit,
            **sizes,
        )

    def request_for(self, option: Option) -> ReleaseRequest:
        """The request with what the plan decides."""
        request = self.request
        return replace(
            request,
            **planned_options(
                option,
                records=self.choice.records,
                delta=_number(request.delta),
                rows=request.rows,
                count_share=self.choice.count_share,
                rounded=request.rounded,
            ),
        )


def declared_or_public(
    kernel: KernelChoice, bounds: DeclaredBounds | None, public: PublicFile
) -> tuple[KernelChoice, DeclaredBounds | None]:
    """What is declared, with the bandwidth and the bounds of a public file where these are not."""
    return _of_sample(kernel, bounds, read_public(public).slice(0, MOST_POINTS), None)


def _of_sample(
    kernel: KernelChoice, bounds: DeclaredBounds | None, sample: Any, records: int | None
) -> tuple[KernelChoice, DeclaredBounds | None]:
    if kernel.takes_sets:
        raise UsageError(
            parameter="public",
            rule="must be left out for sets",
            got="a kernel of sets",
            remedy="leave it out",
        )
    built = kernel_of_sample(
        kernel.name,
        dim=int(sample.num_columns),
        bandwidth=kernel.bandwidth,
        public=sample,
        records=UNDECLARED if records is None else records,
        bounds=bounds,
        scale=kernel.scale,
    )
    found = bounds_of_sample(built, bounds, sample)
    if kernel.bandwidth is None:
        kernel = kernel.like(built)
    return kernel, found


def _in_one_call(
    records: RecordFiles,
    output: str | IO[bytes],
    request: ReleaseRequest,
    option: Option,
    kernel: Kernel,
    columns: Sequence[str] | None,
    choice: PlanChoice,
    *,
    approve: Approve | None,
    ledger: LedgerOptions | None,
) -> FunctionReleased | None:
    method = method_named(option.method)
    assert request.epsilon is not None
    epsilon = float(request.epsilon)
    claim = OneCallRelease.of(
        method,
        epsilon=epsilon,
        delta=None,
        relation=request.relation,
        insecure_noise_seed=request.insecure_noise_seed,
    ).claim
    table = _read(records, columns, DeclaredBox.of(kernel, choice.bounds, columns))

    def make() -> ReleasedFunction:
        # The budget is debited: what could be refused of the records was refused when they were read.
        with clipping_allowed(quiet=True):
            function = method.release(
                table,
                kernel,
                bounds=choice.bounds,
                columns=columns,
                epsilon=epsilon,
                relation=request.relation,
                seed=choice.seed,
                insecure_noise_seed=request.insecure_noise_seed,
                **option.sizes,
            )
        assert function.claim == claim
        return function

    return deliver_release(
        output,
        claim,
        make,
        sources=records.paths,
        subject={
            "method": method.name,
            "error": _predicted(option, kernel, choice),
            **described(
                kernel, output, columns=columns, bounds=Bounds.of(choice.bounds, kernel.dim or 1, columns)
            ),
        },
        settings=[kernel_as_json(kernel), choice, records.columns, records.cells],
        capacity=None,
        option=option,
        approve=approve,
        ledger=ledger,
    )


def _predicted(option: Option, kernel: Kernel, choice: PlanChoice) -> str:
    """What the ledger says of the error: the one that was planned for, which no record decides."""
    number = choice.records or UNDECLARED
    source = "assumed" if choice.records is None else "declared"
    return f"{error_in_words(kernel, option.error, number)}; predicted for {number:,} records, as {source}"


def _read(records: RecordFiles, columns: Sequence[str] | None, box: DeclaredBox) -> Any:
    """All records in memory, checked, so that none is refused after the debit; secret."""
    tables: list[Any] = []
    for path in records.paths:
        with open_batches(path, columns=columns, name=records.name, cells=records.cells) as stream:
            for batch, _ in stream:
                box.records(batch)
                tables.append(pyarrow().Table.from_batches([batch]))
    try:
        # One file may have integers where another has real numbers.
        return pyarrow().concat_tables(tables, promote_options="permissive")
    except pyarrow().ArrowException:
        pass
    # Raised outside the handler: messages of Arrow may quote values.
    raise DataRefused(
        rule="the columns of all files must have the same types", got="others", remedy="convert them"
    )


def _paths(public: PublicFile | None) -> list[str]:
    """The public file, whose bytes enter the key of the release too."""
    return [] if public is None else [public.path]


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def refuse_record_options(given: Callable[[str], bool], names: Sequence[str]) -> None:
    """Refuse options that only a release of records has, where a tally is released.

    Raises
    ------
    UsageError
        naming the first that is given.
    """
    for name in names:
        if given(name):
            raise UsageError(
                parameter=name,
                rule="is for a release of files of records",
                got="it for a tally",
                remedy="leave it out: a tally has its kernel, columns and sizes",
            )
