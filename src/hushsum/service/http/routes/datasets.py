"""Datasets: their budget, ledger, write-offs, uploads, tallies and plans, and datasets of sample records.

Only the owner of a dataset has access.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import cache
from typing import Annotated, Final, Literal

import numpy as np
from fastapi import APIRouter, Query

from hushsum.ledger import DatasetTerms
from hushsum.operations import amount, status_of
from hushsum.planning import PlanRequest as DeclaredPlan
from hushsum.planning import TableSpec

from ...jobs.job_runner import delete_exact_model_files
from ...schemas import (
    SAMPLE_HEADER,
    SAMPLE_RECORDS,
    DatasetRequest,
    DatasetResponse,
    LedgerResponse,
    PlanRequest,
    PlanResponse,
    SampleResponse,
    TallyRequest,
    WriteOffRequest,
)
from ...store import Dataset, JobState, ListedUpload, StoredTally, Upload
from ...store.datasets import DELETED, WAITING
from ...store.rows import new_id
from ..authentication import existing
from ..context import Call, IdempotencyKey, Releaser, ThreadedRoute, Uploader
from ..problem_responses import Refusal
from ..uploads import receive_upload, store_upload

router = APIRouter(prefix="/datasets", tags=["datasets"], route_class=ThreadedRoute)


@router.get("")
def list_datasets(call: Uploader) -> list[DatasetResponse]:
    """The caller's own datasets."""
    return dataset_responses(call, call.store.datasets.of(call.account))


@router.post("", status_code=201)
def create_dataset(body: DatasetRequest, call: Releaser) -> DatasetResponse:
    """Create a dataset with its total budget. Its other terms never change."""
    made = _create(call, body.name, DatasetTerms.of(**body.model_dump(exclude={"name"})))
    return dataset_responses(call, [made])[0]


def _create(call: Call, name: str, terms: DatasetTerms) -> Dataset:
    call.check_booking()
    call.store.datasets.check_free(call.account, name)
    id = new_id("ds")
    # A crash between the two leaves a ledger account that nothing can debit.
    call.ledger.create_dataset(id, terms, who=call.caller.name)
    return call.store.datasets.create(id, call.account, name, call.actor)


@router.get("/{dataset}")
def show_dataset(dataset: str, call: Uploader) -> DatasetResponse:
    """One dataset, and the state of its budget."""
    return dataset_responses(call, [call.dataset(dataset)])[0]


@router.delete("/{dataset}", status_code=204)
def delete_dataset(dataset: str, call: Releaser) -> None:
    """Delete a dataset with its uploads, tallies and models in exact mode, and retire its budget.

    The ledger keeps its history, and functions that were released stay public. Its jobs are cancelled; while
    one is paid for or still running, the dataset is not deleted: repeat the request when it has finished.
    """
    found = call.dataset(dataset)
    call.check_booking()
    store, settings = call.store, call.settings
    if not store.jobs.cancel_all(found.id, call.actor):
        detail = "a job of this dataset is running or paid for; wait until it has finished"
        raise Refusal(409, "jobs-running", detail)
    call.ledger.retire(found.id, reason="deleted by its owner", who=call.caller.name)
    uploads, tallies = store.datasets.delete(found.id, call.actor)
    # The files last: if this process dies here, the cleanup deletes files without a row.
    files = [settings.path("uploads", upload.file) for upload in uploads]
    files += [settings.path("tallies", f"{tally}.tally") for tally in tallies]
    started = [job.stream for job in store.jobs.of(found.id) if job.kind == "stream"]
    files += [path for stream in started for path in settings.path("streams").glob(f"{stream}.*")]
    for path in files:
        path.unlink(missing_ok=True)
    for function in store.functions.served_of(found.id):
        end_exact_model(call, function)
    call.context.visible.clear()


def end_exact_model(call: Call, function: str) -> None:
    """Delete a model in exact mode with its records and answers."""
    # The files last: if this process dies here, the cleanup deletes files without a function.
    call.store.functions.end(function, call.actor)
    call.context.function_cache.remove(function)
    call.context.visible.clear()
    delete_exact_model_files(call.settings, function)


@router.post("/{dataset}/write-offs", status_code=201)
def write_off(dataset: str, body: WriteOffRequest, call: Releaser) -> DatasetResponse:
    """Charge what was spent outside the ledger, or in events that a restore has lost, and reopen a frozen
    dataset.
    """
    found = call.dataset(dataset)
    call.check_booking()
    charge = amount(epsilon=body.epsilon, delta=body.delta, rho=body.rho)
    call.ledger.write_off(found.id, charge, reason=body.reason, who=call.caller.name)
    return dataset_responses(call, [found])[0]


@router.get("/{dataset}/ledger")
def show_ledger(dataset: str, call: Releaser) -> LedgerResponse:
    """The debits of each release, and a receipt to keep elsewhere."""
    found = call.dataset(dataset)
    return LedgerResponse(
        status=status_of(call.ledger, found.id)[0].as_json(),
        history=[each.as_json() for each in call.ledger.history(found.id)],
        receipt=call.ledger.receipt().as_json(),
    )


@router.get("/{dataset}/uploads")
def list_uploads(dataset: str, call: Uploader) -> list[ListedUpload]:
    """The uploads, and whether each is still stored."""
    found = call.dataset(dataset)
    return [upload_response(call, each) for each in call.store.datasets.uploads_of(found.id)]


@router.post(
    "/{dataset}/uploads",
    status_code=201,
    openapi_extra={"requestBody": {"content": {"application/octet-stream": {}}, "required": True}},
)
async def upload(
    dataset: str,
    call: Uploader,
    format: Annotated[Literal["csv", "csv.gz", "parquet", "arrow", "xlsx", "tally"], Query()],
    name: Annotated[str | None, Query(max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$")] = None,
) -> ListedUpload:
    """The bytes of a file of records, or of a .tally file; streamed to the disk, and not downloadable.

    ``name`` is what the owner calls the file.
    """
    return upload_response(call, await receive_upload(call, dataset, format, name))


@router.delete("/{dataset}/uploads/{upload}", status_code=204)
def delete_upload(dataset: str, upload: str, call: Uploader) -> None:
    """Delete an upload that was not counted."""
    found = existing(call.store.datasets.upload(upload, dataset=call.dataset(dataset).id))
    existing(found.state == WAITING)
    if call.store.jobs.needs_upload(found.dataset, found.id):
        raise Refusal(409, "in-use", "a job needs this upload; cancel the job first, or wait for it")
    call.store.datasets.end_upload(found.id, DELETED, call.actor)
    call.settings.path("uploads", found.file).unlink(missing_ok=True)


@router.get("/{dataset}/tallies")
def list_tallies(dataset: str, call: Uploader) -> list[StoredTally]:
    """The public descriptions of the confidential tallies, without their counts."""
    found = call.store.datasets.tallies_of(call.dataset(dataset).id)
    for each in found:
        each.facts.pop("definition", None)
    return found


@router.delete("/{dataset}/tallies/{tally}", status_code=204)
def delete_tally(dataset: str, tally: str, call: Uploader) -> None:
    """Delete a tally; what was released from it stays public, and what it cost stays spent."""
    found = existing(call.store.datasets.tally(tally, dataset=call.dataset(dataset).id))
    if call.store.jobs.using(found.dataset, "tally", found.id):
        raise Refusal(409, "in-use", "a job needs this tally; cancel the job first, or wait for it")
    call.store.datasets.delete_tally(found.id, call.actor)
    call.settings.path("tallies", f"{found.id}.tally").unlink(missing_ok=True)


@router.post("/{dataset}/tallies", status_code=202)
async def make_tally(dataset: str, body: TallyRequest, call: Uploader, key: IdempotencyKey) -> JobState:
    """Count an upload into a tally; the upload is deleted as soon as that is done."""
    found = await call.in_thread(call.dataset, dataset)
    table = body.states(TableSpec)
    cells = (table.rows or 1) * (table.width or 1)
    call.settings.check_cells(cells)
    if await call.in_thread(call.store.jobs.of_key, found.id, "tally", key) is None:
        upload = await call.in_thread(call.upload, found.id, body.upload, tally=True)
        await call.in_thread(call.public_path, found.id, body)
        # Errors that do not depend on the records are reported at once.
        if upload.format != "tally":
            request = body.model_dump(mode="json")
            await call.calculate("check_tally", size=len(body.columns or ()), request=request)
        check_room = call.store.datasets.check_room
        await call.in_thread(check_room, call.account, call.settings.quota, cells=cells)
    return await call.in_thread(call.submit, "tally", found, key, body)


@router.post("/{dataset}/plans")
async def make_plan(dataset: str, body: PlanRequest, call: Releaser) -> PlanResponse:
    """The predicted error of each release option, from declared quantities; no record is read."""
    found = await call.in_thread(call.dataset, dataset)
    tally = None if body.tally is None else await call.in_thread(call.tally, found.id, body.tally)
    planned = body.states(DeclaredPlan)
    compared = [each if isinstance(each, tuple) else (1,) for each in (planned.epsilon, planned.rows)]
    made = await call.calculate(
        "plan",
        size=(planned.dim or 1) * math.prod(map(len, compared)),
        request=body.model_dump(mode="json"),
        tally=None if tally is None else tally.facts,
        public=await call.in_thread(call.public_path, found.id, body),
    )
    return PlanResponse(**made)


def upload_response(call: Call, upload: Upload) -> ListedUpload:
    """An upload, and when it is deleted if nothing counts it."""
    expires = datetime.fromisoformat(upload.created) + timedelta(hours=call.settings.upload_hours)
    waits = upload.state == WAITING
    return ListedUpload(**asdict(upload), expires=expires.isoformat() if waits else None)


def dataset_responses(call: Call, datasets: list[Dataset]) -> list[DatasetResponse]:
    """Datasets, and the state of the budget of each."""
    budgets = status_of(call.ledger, [each.id for each in datasets])
    return [
        DatasetResponse(id=each.id, name=each.name, created=each.created, budget=budget.as_json())
        for each, budget in zip(datasets, budgets, strict=True)
    ]


samples_router = APIRouter(prefix="/datasets/samples", tags=["datasets"], route_class=ThreadedRoute)


@samples_router.post("", status_code=201)
def create_sample(call: Releaser) -> SampleResponse:
    """A dataset of made-up records with a budget of ε = 1, to try a release with.

    The records come from a fixed seed and are nobody's. The caller's dataset of this kind is used again.
    """
    csv = sample_records()
    mine = (each for each in call.store.datasets.of(call.account) if each.name == SAMPLE_NAME)
    found = next(mine, None) or _create(call, SAMPLE_NAME, DatasetTerms.of(epsilon=1.0))
    waiting = (
        each
        for each in call.store.datasets.uploads_of(found.id)
        if (each.state, each.size) == (WAITING, len(csv))
    )
    upload = next(waiting, None) or store_upload(call, found.id, csv, "csv", "sample records")
    return SampleResponse(dataset=dataset_responses(call, [found])[0], upload=upload_response(call, upload))


SAMPLE_NAME: Final = "Sample commuters"
_SEED: Final = 2026


@cache
def sample_records() -> bytes:
    """A table as CSV: ages and journeys to work of people who do not exist: two towns, one with a railway.

    The same bytes at every call. No record is anybody's, so the sample may be shown, and a release of it
    protects nobody; the steps of a release are those of any other dataset.
    """
    random = np.random.default_rng(_SEED)
    near = random.random(SAMPLE_RECORDS) < 0.6
    age = np.where(near, random.normal(34, 9, SAMPLE_RECORDS), random.normal(48, 10, SAMPLE_RECORDS))
    minutes = np.where(near, random.gamma(6.0, 3.2, SAMPLE_RECORDS), random.normal(56, 11, SAMPLE_RECORDS))
    rows = np.column_stack([np.clip(age, 16, 75), np.clip(minutes, 1, 120)]).round(1)
    drives = np.where(random.random(SAMPLE_RECORDS) < np.where(near, 0.35, 0.7), "yes", "no")
    lines = [f"{a:.1f},{m:.1f},{d}" for (a, m), d in zip(rows, drives, strict=True)]
    return "\n".join([",".join(SAMPLE_HEADER), *lines, ""]).encode()
