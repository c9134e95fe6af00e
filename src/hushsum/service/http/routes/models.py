"""From an upload to a public model: the kinds there are, the claim, then the fit."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Depends

from hushsum.jobs.model_catalogue import model_kinds, setting_as_json
from hushsum.service.http.access import actor_of, needs
from hushsum.service.http.authentication import Caller
from hushsum.service.http.context import Context, context_of
from hushsum.service.http.problem_responses import Refusal
from hushsum.service.http.routes.datasets import Key
from hushsum.service.schemas import (
    ConfirmedModelRequest,
    JobResponse,
    ModelClaimRequest,
    ModelClaimResponse,
    ModelKindResponse,
    PredictedErrorResponse,
)
from hushsum.service.store import Actor
from hushsum.service.store.datasets import WAITING
from hushsum.service.work.model_requests import choice_of, claim_for, confirmation, error_for

router = APIRouter(tags=["models"])
Releaser = Annotated[Caller, Depends(needs("release"))]
Here = Annotated[Context, Depends(context_of)]


@router.get("/models")
def list_models(caller: Releaser) -> list[ModelKindResponse]:
    """The models that can be fitted, and the settings of each."""
    return [
        ModelKindResponse.model_validate(
            {**asdict(each), "settings": [setting_as_json(setting) for setting in each.settings]}
        )
        for each in model_kinds()
    ]


@router.post("/datasets/{dataset}/models/claims")
def show_model_claim(
    dataset: str, asked: ModelClaimRequest, caller: Releaser, context: Here
) -> ModelClaimResponse:
    """What a model on these terms would claim and cost, and its predicted error. Nothing is read or spent."""
    found = context.dataset(dataset, caller)
    _check_upload(context, found.id, asked)
    choice = choice_of(asked, context.settings)
    claim = claim_for(choice, asked)
    error = error_for(choice, asked)
    charge, after = context.price(found, claim)
    return ModelClaimResponse(
        claim=claim.in_numbers(),
        cost=charge.as_json(),
        remaining=after.remaining.as_json(),
        confirm=confirmation(found.id, asked, claim),
        predicted=None if error is None else PredictedErrorResponse.model_validate(error),
    )


@router.post("/datasets/{dataset}/models", status_code=202)
def fit_model(
    dataset: str,
    asked: ConfirmedModelRequest,
    caller: Releaser,
    context: Here,
    actor: Annotated[Actor, Depends(actor_of)],
    key: Key,
) -> JobResponse:
    """Fit a model on an upload, debit the ledger, and publish it; the upload is deleted then."""
    found = context.dataset(dataset, caller)
    choice = choice_of(asked, context.settings)
    claim = claim_for(choice, asked)
    if asked.confirm != confirmation(found.id, asked, claim):
        raise Refusal(
            409, "not-confirmed", "confirm must be that of the claim of these very terms; ask for the claim"
        )
    context.check_booking()
    if context.jobs.of_key(found.id, "model", key) is None:
        _check_upload(context, found.id, asked, waiting=True)
        # A hint only: what counts is the debit. It spares a job that is bound to fail.
        context.price(found, claim)
    job, _ = context.jobs.submit(
        "model",
        dataset=found.id,
        key=key,
        request=asked.model_dump(mode="json"),
        actor=actor,
        most=context.settings.owner_jobs,
    )
    context.wake()
    return JobResponse.model_validate(job)


def _check_upload(context: Context, dataset: str, asked: ModelClaimRequest, *, waiting: bool = False) -> None:
    """A claim may be shown again after its upload was used: whoever repeats a request asks for it first."""
    upload = context.datasets.upload(asked.upload, dataset=dataset)
    if upload is None or upload.format == "tally" or (waiting and upload.state != WAITING):
        raise Refusal(
            422, "parameter-refused", "upload must be one of records that was not used; upload it anew"
        )
