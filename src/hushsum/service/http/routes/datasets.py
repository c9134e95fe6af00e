"""Datasets: budget, uploads, tallies and plans. Only the owner has access."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Annotated, Any, Final, Literal

import numpy as np
from fastapi import APIRouter, Query, Request, Response

from hushsum.ledger import DatasetTerms
from hushsum.operations import amount, status_of
from hushsum.service.http.authentication import Caller, nothing_here
from hushsum.service.http.context import (
    ActorDependency,
    Context,
    ContextDependency,
    IdempotencyKey,
    Releaser,
    ThreadedRoute,
    Uploader,
)
from hushsum.service.http.problem_responses import Refusal
from hushsum.service.http.uploads import FORMATS, receive_upload, store_upload
from hushsum.service.jobs.job_runner import delete_exact_model_files
from hushsum.service.jobs.requests import public_file
from hushsum.service.schemas import (
    DatasetRequest,
    DatasetResponse,
    JobResponse,
    LedgerResponse,
    PlanRequest,
    PlanResponse,
    SampleResponse,
    TallyRequest,
    TallyResponse,
    UploadResponse,
    WriteOffRequest,
)
from hushsum.service.store import Dataset, Quota, Upload
from hushsum.service.store.database import new_id
from hushsum.service.store.datasets import DELETED, WAITING, check_quota

router = APIRouter(prefix="/datasets", tags=["datasets"], route_class=ThreadedRoute)


@router.get("")
def list_datasets(caller: Uploader, context: ContextDependency) -> list[DatasetResponse]:
    """The caller's own datasets."""
    found = context.datasets.of(caller.account)
    budgets = status_of(context.ledger, [each.id for each in found])
    return [
        DatasetResponse(id=each.id, name=each.name, created=each.created, budget=budget.as_json())
        for each, budget in zip(found, budgets, strict=True)
    ]


@router.post("", status_code=201)
def create_dataset(
    body: DatasetRequest, caller: Releaser, context: ContextDependency, actor: ActorDependency
) -> DatasetResponse:
    """Create a dataset with its total budget. Its other terms never change."""
    terms = DatasetTerms.of(
        epsilon=body.epsilon,
        delta=body.delta,
        rho=body.rho,
        accounting=body.accounting,
        unit=body.unit,
        max_per_unit=body.max_per_unit,
        relation=body.relation,
        population=body.population,
        allow_large_delta=body.allow_large_delta,
    )
    context.check_booking()
    context.datasets.check_free(caller.account, body.name)
    id = new_id("ds")
    # A crash between the two leaves a ledger account that nothing can debit.
    context.ledger.create_dataset(id, terms, who=caller.name)
    return dataset_response(context, context.datasets.create(id, caller.account, body.name, actor))


@router.get("/{dataset}")
def show_dataset(dataset: str, caller: Uploader, context: ContextDependency) -> DatasetResponse:
    """One dataset, and the state of its budget."""
    return dataset_response(context, context.dataset(dataset, caller))


@router.delete("/{dataset}", status_code=204, response_class=Response)
def delete_dataset(
    dataset: str, caller: Releaser, context: ContextDependency, actor: ActorDependency
) -> Response:
    """Delete a dataset with its uploads, tallies and models in exact mode, and retire its budget.

    The ledger keeps its history, and functions that were released stay public. Its jobs are cancelled; while
    one is paid for or still running, the dataset is not deleted: repeat the request when it has finished.
    """
    found = context.dataset(dataset, caller)
    context.check_booking()
    if not context.jobs.cancel_all(found.id, actor):
        raise Refusal(
            409, "jobs-running", "a job of this dataset is running or paid for; wait until it has finished"
        )
    context.ledger.retire(found.id, reason="deleted by its owner", who=caller.name)
    uploads, tallies = context.datasets.delete(found.id, actor)
    # The files last: if this process dies here, the cleanup deletes files without a row.
    for upload in uploads:
        context.settings.path("uploads", f"{upload.id}.{upload.format}").unlink(missing_ok=True)
    for tally in tallies:
        context.settings.path("tallies", f"{tally}.tally").unlink(missing_ok=True)
    for function in context.functions.served_of(found.id):
        context.functions.end(function, actor)
        context.function_cache.remove(function)
        delete_exact_model_files(context.settings, function)
    for job in context.jobs.of(found.id):
        if job.kind == "stream":
            name = "st_" + job.id.removeprefix("job_")
            for path in context.settings.path("streams").glob(f"{name}.*"):
                path.unlink(missing_ok=True)
    context.visible.clear()
    return Response(status_code=204)


@router.post("/{dataset}/write-offs", status_code=201)
def write_off(
    dataset: str, body: WriteOffRequest, caller: Releaser, context: ContextDependency
) -> DatasetResponse:
    """Charge what was spent outside the ledger, or in events that a restore has lost, and reopen a frozen
    dataset.
    """
    found = context.dataset(dataset, caller)
    context.check_booking()
    charge = amount(epsilon=body.epsilon, delta=body.delta, rho=body.rho)
    context.ledger.write_off(found.id, charge, reason=body.reason, who=caller.name)
    return dataset_response(context, found)


@router.get("/{dataset}/ledger")
def show_ledger(dataset: str, caller: Releaser, context: ContextDependency) -> LedgerResponse:
    """The debits of each release, and a receipt to keep elsewhere."""
    found = context.dataset(dataset, caller)
    return LedgerResponse(
        status=_status(context, found.id),
        history=[each.as_json() for each in context.ledger.history(found.id)],
        receipt=context.ledger.receipt().as_json(),
    )


@router.get("/{dataset}/uploads")
def list_uploads(dataset: str, caller: Uploader, context: ContextDependency) -> list[UploadResponse]:
    """The uploads, and whether each is still stored."""
    found = context.dataset(dataset, caller)
    return [upload_response(context, each) for each in context.datasets.uploads_of(found.id)]


@router.post(
    "/{dataset}/uploads",
    status_code=201,
    openapi_extra={"requestBody": {"content": {"application/octet-stream": {}}, "required": True}},
)
async def upload(
    dataset: str,
    request: Request,
    caller: Uploader,
    context: ContextDependency,
    actor: ActorDependency,
    format: Annotated[Literal["csv", "csv.gz", "parquet", "arrow", "xlsx", "tally"], Query()],
    name: Annotated[str | None, Query(max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$")] = None,
) -> UploadResponse:
    """The bytes of a file of records, or of a .tally file; streamed to the disk, and not downloadable.

    ``name`` is what the owner calls the file.
    """
    assert format in FORMATS
    made = await receive_upload(request, context, dataset, caller, format, actor, name)
    return upload_response(context, made)


@router.delete("/{dataset}/uploads/{upload}", status_code=204, response_class=Response)
def delete_upload(
    dataset: str, upload: str, caller: Uploader, context: ContextDependency, actor: ActorDependency
) -> Response:
    """Delete an upload that was not counted."""
    found = context.datasets.upload(upload, dataset=context.dataset(dataset, caller).id)
    if found is None or found.state != WAITING:
        raise nothing_here()
    if context.jobs.needs_upload(found.dataset, found.id):
        raise Refusal(409, "in-use", "a job needs this upload; cancel the job first, or wait for it")
    context.datasets.end_upload(found.id, DELETED, actor)
    context.settings.path("uploads", f"{found.id}.{found.format}").unlink(missing_ok=True)
    return Response(status_code=204)


@router.get("/{dataset}/tallies")
def list_tallies(dataset: str, caller: Uploader, context: ContextDependency) -> list[TallyResponse]:
    """The public descriptions of the confidential tallies, without their counts."""
    found = context.datasets.tallies_of(context.dataset(dataset, caller).id)
    return [
        TallyResponse(
            id=each.id,
            created=each.created,
            cells=each.cells,
            size=each.size,
            facts={name: value for name, value in each.facts.items() if name != "definition"},
        )
        for each in found
    ]


@router.delete("/{dataset}/tallies/{tally}", status_code=204, response_class=Response)
def delete_tally(
    dataset: str, tally: str, caller: Uploader, context: ContextDependency, actor: ActorDependency
) -> Response:
    """Delete a tally; what was released from it stays public, and what it cost stays spent."""
    found = context.datasets.tally(tally, dataset=context.dataset(dataset, caller).id)
    if found is None:
        raise nothing_here()
    if context.jobs.using(found.dataset, "tally", found.id):
        raise Refusal(409, "in-use", "a job needs this tally; cancel the job first, or wait for it")
    context.datasets.delete_tally(found.id, actor)
    context.settings.path("tallies", f"{found.id}.tally").unlink(missing_ok=True)
    return Response(status_code=204)


@router.post("/{dataset}/tallies", status_code=202)
async def make_tally(
    dataset: str,
    body: TallyRequest,
    request: Request,
    caller: Uploader,
    context: ContextDependency,
    actor: ActorDependency,
    key: IdempotencyKey,
) -> JobResponse:
    """Count an upload into a tally; the upload is deleted as soon as that is done."""
    found = await context.in_thread(caller, context.dataset, dataset, caller)
    table = body.table()
    cells = (table.rows or 1) * (table.width or 1)
    context.check_cells(cells)
    known = await context.in_thread(caller, context.jobs.of_key, found.id, "tally", key)
    if known is None:
        upload = await context.in_thread(caller, _checked_upload, context, found.id, body)
        # Errors that do not depend on the records are reported at once.
        if upload.format != "tally":
            size = len(body.columns or ())
            described = body.model_dump(mode="json")
            await context.calculate(request, caller, "check_tally", size=size, request=described)
        kept = await context.in_thread(caller, context.datasets.kept_by, caller.account)
        check_quota(context.settings.quota, Quota(0, kept.cells + cells))
    job = await context.in_thread(caller, context.submit, "tally", found, key, body, actor)
    return JobResponse.model_validate(job)


@router.post("/{dataset}/plans")
async def make_plan(
    dataset: str, body: PlanRequest, request: Request, caller: Releaser, context: ContextDependency
) -> PlanResponse:
    """The predicted error of each release option, from declared quantities; no record is read."""
    tally, public = await context.in_thread(caller, _planned_from, context, dataset, body, caller)
    asked = body.plan_request()
    compared = [each if isinstance(each, tuple) else (1,) for each in (asked.epsilon, asked.rows)]
    planned = await context.calculate(
        request,
        caller,
        "plan",
        size=(asked.dim or 1) * math.prod(map(len, compared)),
        request=body.model_dump(mode="json"),
        tally=tally,
        public=public,
    )
    return PlanResponse(**planned)


def _planned_from(
    context: Context, dataset: str, body: PlanRequest, caller: Caller
) -> tuple[dict[str, Any] | None, str | None]:
    """The public description of the tally that a plan is for, and the path of its public rows."""
    found = context.dataset(dataset, caller)
    tally = None if body.tally is None else context.tally(found.id, body.tally).facts
    public = public_file(context.datasets, context.settings, found.id, body.public, cells=body.cells())
    return tally, None if public is None else public.path


def _checked_upload(context: Context, dataset: str, body: TallyRequest) -> Upload:
    """The upload of a tally, and its public rows, if they can be counted."""
    upload = context.datasets.upload(body.upload, dataset=dataset)
    if upload is None or upload.state != WAITING:
        raise Refusal(
            422, "parameter-refused", "upload must be one that was not counted; upload the file again"
        )
    public_file(
        context.datasets, context.settings, dataset, body.public, cells=body.cells(), private=body.upload
    )
    return upload


def _status(context: Context, dataset: str) -> dict[str, Any]:
    return status_of(context.ledger, dataset)[0].as_json()


def upload_response(context: Context, upload: Upload) -> UploadResponse:
    """An upload, and when it is deleted if nothing counts it."""
    expires = datetime.fromisoformat(upload.created) + timedelta(hours=context.settings.upload_hours)
    waits = upload.state == WAITING
    return UploadResponse(**asdict(upload), expires=expires.isoformat() if waits else None)


def dataset_response(context: Context, dataset: Dataset) -> DatasetResponse:
    """A dataset, and the state of its budget."""
    return DatasetResponse(
        id=dataset.id, name=dataset.name, created=dataset.created, budget=_status(context, dataset.id)
    )


samples_router = APIRouter(prefix="/datasets/samples", tags=["datasets"], route_class=ThreadedRoute)


@samples_router.post("", status_code=201)
def create_sample(caller: Releaser, context: ContextDependency, actor: ActorDependency) -> SampleResponse:
    """A dataset of made-up records with a budget of ε = 1, to try a release with.

    The records come from a fixed seed and are nobody's. The caller's dataset of this kind is used again.
    """
    sample = sample_records()
    found = next((each for each in context.datasets.of(caller.account) if each.name == SAMPLE_NAME), None)
    if found is None:
        context.check_booking()
        id = new_id("ds")
        context.ledger.create_dataset(id, DatasetTerms.of(epsilon=1.0), who=caller.name)
        found = context.datasets.create(id, caller.account, SAMPLE_NAME, actor)
    waiting = [
        each
        for each in context.datasets.uploads_of(found.id)
        if (each.state, each.size) == (WAITING, len(sample.csv))
    ]
    return SampleResponse(
        dataset=dataset_response(context, found),
        upload=upload_response(
            context,
            waiting[0]
            if waiting
            else store_upload(context, found.id, sample.csv, "csv", actor, "sample records"),
        ),
        header=list(sample.header),
        columns=list(sample.columns),
        bounds=[list(pair) for pair in sample.bounds],
        bandwidth=sample.bandwidth,
        records=sample.records,
    )


SAMPLE_NAME: Final = "Sample commuters"
_RECORDS: Final = 20_000
_SEED: Final = 2026


@dataclass(frozen=True, slots=True)
class Sample:
    """A made-up table as CSV, and what its owner would declare of it."""

    csv: bytes
    header: tuple[str, ...]
    columns: tuple[str, ...]
    bounds: tuple[tuple[float, float], ...]
    bandwidth: float
    records: int


@cache
def sample_records() -> Sample:
    """Ages and journeys to work of people who do not exist: two towns, one with a railway.

    The same bytes at every call. No record is anybody's, so the sample may be shown, and a release of it
    protects nobody; the steps of a release are those of any other dataset.
    """
    random = np.random.default_rng(_SEED)
    near = random.random(_RECORDS) < 0.6
    age = np.where(near, random.normal(34, 9, _RECORDS), random.normal(48, 10, _RECORDS))
    minutes = np.where(near, random.gamma(6.0, 3.2, _RECORDS), random.normal(56, 11, _RECORDS))
    rows = np.column_stack([np.clip(age, 16, 75), np.clip(minutes, 1, 120)]).round(1)
    drives = np.where(random.random(_RECORDS) < np.where(near, 0.35, 0.7), "yes", "no")
    lines = [f"{a:.1f},{m:.1f},{d}" for (a, m), d in zip(rows, drives, strict=True)]
    header = ("age_years", "commute_min", "drives")
    return Sample(
        csv="\n".join([",".join(header), *lines, ""]).encode(),
        header=header,
        columns=("age_years", "commute_min"),
        bounds=((16.0, 75.0), (0.0, 120.0)),
        bandwidth=4.0,
        records=_RECORDS,
    )
