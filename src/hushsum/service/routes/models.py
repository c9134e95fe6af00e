"""From an upload to a public model: the kinds there are, the claim, then the fit."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Depends

from hushsum.jobs.model_catalogue import model_kinds, setting_as_json
from hushsum.service.access import Caller, actor_of, needs
from hushsum.service.context import Context, context_of
from hushsum.service.model_terms import choice_of, claim_for, confirmation, error_for
from hushsum.service.problems import Refusal
from hushsum.service.routes.datasets import Key
from hushsum.service.shapes import (
    ErrorPredicted,
    JobTold,
    ModelAsked,
    ModelClaimTold,
    ModelKindTold,
    NewModel,
)
from hushsum.service.store import Actor
from hushsum.service.store.datasets import WAITING

router = APIRouter(tags=["models"])
Releaser = Annotated[Caller, Depends(needs("release"))]
Here = Annotated[Context, Depends(context_of)]


@router.get("/models")
def list_models(caller: Releaser) -> list[ModelKindTold]:
    """The models that can be fitted, and the settings of each."""
    return [
        ModelKindTold.model_validate(
            {**asdict(each), "settings": [setting_as_json(setting) for setting in each.settings]}
        )
        for each in model_kinds()
    ]


@router.post("/datasets/{dataset}/models/claims")
def show_model_claim(dataset: str, asked: ModelAsked, caller: Releaser, context: Here) -> ModelClaimTold:
    """What a model on these terms would claim and cost, and its predicted error. Nothing is read or spent."""
    found = context.dataset(dataset, caller)
    _check_upload(context, found.id, asked)
    choice = choice_of(asked, context.settings)
    claim = claim_for(choice, asked)
    error = error_for(choice, asked)
    charge, after = context.price(found, claim)
    return ModelClaimTold(
        claim=claim.in_numbers(),
        cost=charge.as_json(),
        remaining=after.remaining.as_json(),
        confirm=confirmation(found.id, asked, claim),
        predicted=None if error is None else ErrorPredicted.model_validate(error),
    )


@router.post("/datasets/{dataset}/models", status_code=202)
def fit_model(
    dataset: str,
    asked: NewModel,
    caller: Releaser,
    context: Here,
    actor: Annotated[Actor, Depends(actor_of)],
    key: Key,
) -> JobTold:
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
    return JobTold.model_validate(job)


def _check_upload(context: Context, dataset: str, asked: ModelAsked, *, waiting: bool = False) -> None:
    """A claim may be shown again after its upload was used: whoever repeats a request asks for it first."""
    upload = context.datasets.upload(asked.upload, dataset=dataset)
    if upload is None or upload.format == "tally" or (waiting and upload.state != WAITING):
        raise Refusal(
            422, "parameter-refused", "upload must be one of records that was not used; upload it anew"
        )
