"""Datasets: a budget, uploads, tallies and plans. All of it is the owner's alone."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Query, Request, Response

from hushsum.bases.base import Basis, basis_from_json
from hushsum.jobs.kernel_choice import KernelChoice
from hushsum.jobs.ledger_commands import status_of
from hushsum.jobs.plan_release import plan_release
from hushsum.ledger import DatasetTerms
from hushsum.service.access import Caller, actor_of, needs, nothing_here
from hushsum.service.context import Context, context_of
from hushsum.service.problems import Refusal
from hushsum.service.receiving import FORMATS, receive_upload
from hushsum.service.shapes import (
    Bounds,
    DatasetTold,
    JobTold,
    KernelAsked,
    LedgerTold,
    NewDataset,
    NewTally,
    PlanAsked,
    PlanTold,
    TallyTold,
    UploadTold,
)
from hushsum.service.store import Actor, Dataset
from hushsum.service.store.datasets import DELETED, WAITING
from hushsum.service.store.store import new_id

router = APIRouter(prefix="/datasets", tags=["datasets"])
Uploader = Annotated[Caller, Depends(needs("upload"))]
Releaser = Annotated[Caller, Depends(needs("release"))]
Here = Annotated[Context, Depends(context_of)]
Doer = Annotated[Actor, Depends(actor_of)]
Key = Annotated[str, Header(alias="Idempotency-Key", pattern=r"^[A-Za-z0-9_.-]{1,64}$")]


@router.get("")
def list_datasets(caller: Uploader, context: Here) -> list[DatasetTold]:
    """The caller's own datasets."""
    return [_told(context, each) for each in context.datasets.of(caller.account)]


@router.post("", status_code=201)
def create_dataset(asked: NewDataset, caller: Releaser, context: Here, actor: Doer) -> DatasetTold:
    """Set the total budget of a dataset. Its terms, but for the budget, never change."""
    terms = DatasetTerms.of(
        epsilon=asked.epsilon,
        delta=asked.delta,
        rho=asked.rho,
        accounting=asked.accounting,
        unit=asked.unit,
        max_per_unit=asked.max_per_unit,
        relation=asked.relation,
        population=asked.population,
        allow_large_delta=asked.allow_large_delta,
    )
    context.datasets.check_free(caller.account, asked.name)
    id = new_id("ds")
    # A crash between the two leaves an account in the ledger that nothing can spend.
    context.ledger.create_dataset(id, terms, who=caller.name)
    return _told(context, context.datasets.create(id, caller.account, asked.name, actor))


@router.get("/{dataset}")
def show_dataset(dataset: str, caller: Uploader, context: Here) -> DatasetTold:
    """One dataset, and how its budget stands."""
    return _told(context, context.dataset(dataset, caller))


@router.get("/{dataset}/ledger")
def show_ledger(dataset: str, caller: Releaser, context: Here) -> LedgerTold:
    """What was spent, on which releases; and a receipt to keep elsewhere."""
    found = context.dataset(dataset, caller)
    return LedgerTold(
        status=_status(context, found.id),
        history=[each.as_json() for each in context.ledger.history(found.id)],
        receipt=context.ledger.receipt().as_json(),
    )


@router.get("/{dataset}/uploads")
def list_uploads(dataset: str, caller: Uploader, context: Here) -> list[UploadTold]:
    """What was uploaded, and whether it is still there."""
    found = context.dataset(dataset, caller)
    return [UploadTold.model_validate(each) for each in context.datasets.uploads_of(found.id)]


@router.post(
    "/{dataset}/uploads",
    status_code=201,
    openapi_extra={"requestBody": {"content": {"application/octet-stream": {}}, "required": True}},
)
async def upload(
    dataset: str,
    request: Request,
    caller: Uploader,
    context: Here,
    actor: Doer,
    format: Annotated[Literal["csv", "csv.gz", "parquet", "arrow", "tally"], Query()],
) -> UploadTold:
    """The bytes of a file of records, or of a .tally file; streamed to the disk, and never given back."""
    assert format in FORMATS
    return UploadTold.model_validate(await receive_upload(request, context, dataset, caller, format, actor))


@router.delete("/{dataset}/uploads/{upload}", status_code=204, response_class=Response)
def delete_upload(dataset: str, upload: str, caller: Uploader, context: Here, actor: Doer) -> Response:
    """Delete an upload before it was counted."""
    found = context.datasets.upload(upload, dataset=context.dataset(dataset, caller).id)
    if found is None or found.state != WAITING:
        raise nothing_here()
    context.datasets.end_upload(found.id, DELETED, actor)
    context.settings.path("uploads", f"{found.id}.{found.format}").unlink(missing_ok=True)
    return Response(status_code=204)


@router.get("/{dataset}/tallies")
def list_tallies(dataset: str, caller: Uploader, context: Here) -> list[TallyTold]:
    """The confidential tallies: what they are, and nothing that was counted."""
    found = context.datasets.tallies_of(context.dataset(dataset, caller).id)
    return [
        TallyTold(
            id=each.id,
            created=each.created,
            facts={name: value for name, value in each.facts.items() if name != "definition"},
        )
        for each in found
    ]


@router.post("/{dataset}/tallies", status_code=202)
def make_tally(
    dataset: str, asked: NewTally, caller: Uploader, context: Here, actor: Doer, key: Key
) -> JobTold:
    """Count an upload into a tally; the upload is deleted as soon as that is done."""
    found = context.dataset(dataset, caller)
    if (asked.rows or 1) * (asked.width or 1) > context.settings.max_cells:
        raise Refusal(
            422, "parameter-refused", f"rows × width must be at most {context.settings.max_cells}; take fewer"
        )
    request = asked.model_dump(mode="json")
    known = context.jobs.of_key(found.id, "tally", key)
    if known is None:
        upload = context.datasets.upload(asked.upload, dataset=found.id)
        if upload is None or upload.state != WAITING:
            raise Refusal(422, "parameter-refused", "upload must be one that was not counted; upload it anew")
        # What can be told without the records is told at once.
        if upload.format != "tally":
            kernel_of(asked).build(len(asked.columns) if asked.columns else _some_columns(asked))
    job, _ = context.jobs.submit("tally", dataset=found.id, key=key, request=request, actor=actor)
    context.wake()
    return JobTold.model_validate(job)


@router.post("/{dataset}/plans")
def make_plan(dataset: str, asked: PlanAsked, caller: Releaser, context: Here) -> PlanTold:
    """The predicted error of each way to release, from declared quantities; no record is read."""
    context.dataset(dataset, caller)
    basis, per_unit = _basis_of(context, dataset, asked.tally)
    planned = plan_release(
        records=asked.records,
        kernel=kernel_of(asked),
        dim=asked.dim,
        epsilon=asked.epsilon,
        delta=asked.delta,
        rho=asked.rho,
        rows=asked.rows,
        width=asked.width,
        method=asked.method,
        bounds=bounds_of(asked.bounds),
        density=asked.density,
        relation=asked.relation,
        max_per_unit=asked.max_per_unit if basis is None else per_unit,
        basis=basis,
    )
    return PlanTold(**planned.as_json())


def _basis_of(context: Context, dataset: str, tally: str | None) -> tuple[Basis | None, int | None]:
    """A tally's public definition, and how many records a person adds to it; its counts are not read."""
    if tally is None:
        return None, None
    stored = context.datasets.tally(tally, dataset=dataset)
    if stored is None:
        raise Refusal(422, "parameter-refused", "tally must be one of this dataset; make it first")
    return basis_from_json(stored.facts["definition"]), stored.facts["max_per_unit"]


def kernel_of(asked: KernelAsked) -> KernelChoice:
    """The kernel of a request."""
    return KernelChoice(asked.kernel, asked.bandwidth, asked.power, asked.bits, asked.projection)


def bounds_of(bounds: Bounds | None) -> tuple[tuple[float, float], ...] | tuple[float, float] | None:
    """Bounds as methods take them: one pair for all columns, or one for each."""
    if not bounds:
        return None
    pairs = tuple((low, high) for low, high in bounds)
    return pairs[0] if len(pairs) == 1 else pairs


def _some_columns(asked: NewTally) -> int | None:
    """A number of columns that stands for the unknown one, where only the other parameters are checked."""
    return None if kernel_of(asked).takes_sets else max(1, len(asked.bounds or ()))


def _status(context: Context, dataset: str) -> dict[str, Any]:
    return status_of(context.ledger, dataset)[0].as_json()


def _told(context: Context, dataset: Dataset) -> DatasetTold:
    return DatasetTold(
        id=dataset.id, name=dataset.name, created=dataset.created, budget=_status(context, dataset.id)
    )
