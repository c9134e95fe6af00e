"""Models: the available kinds and kernels, the claim, then the fit."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from hushsum.jobs.plan_release import PublicFile
from hushsum.kernels import kernel_names, parameter_names
from hushsum.kernels.registry import is_signed
from hushsum.privacy.claim import Claim
from hushsum.service.http.authentication import Caller
from hushsum.service.http.context import Context
from hushsum.service.http.dependencies import (
    ActorDependency,
    ContextDependency,
    IdempotencyKey,
    Releaser,
    RepeatedKey,
    ThreadedRoute,
)
from hushsum.service.http.problem_responses import Refusal
from hushsum.service.schemas import (
    ConfirmedModelRequest,
    JobResponse,
    KernelResponse,
    ModelClaimRequest,
    ModelClaimResponse,
    ModelKindResponse,
    ModelSettingResponse,
)
from hushsum.service.store.datasets import WAITING
from hushsum.service.work.release_requests import confirmation, public_file

router = APIRouter(tags=["models"], route_class=ThreadedRoute)


@router.get("/kernels")
def list_kernels(caller: Releaser) -> list[KernelResponse]:
    """The kernels that compare columns, and the parameters of each."""
    from hushsum.jobs.model_catalogue import setting_as_json  # imports scikit-learn
    from hushsum.models.parameters import SCALE

    beside = [ModelSettingResponse.model_validate(setting_as_json(SCALE))]
    parameters = {name: list(parameter_names(name)) for name in kernel_names()}
    return [
        KernelResponse(
            name=name,
            parameters=names,
            signed=is_signed(name),
            settings=beside if "bandwidth" in names else [],
        )
        for name, names in parameters.items()
        if "dim" in names
    ]


@router.get("/models")
async def list_models(
    request: Request, caller: Releaser, context: ContextDependency
) -> list[ModelKindResponse]:
    """The models that can be fitted, and the settings of each."""
    # There, scikit-learn is imported already.
    found = await context.calculate(request, caller, "list_models")
    return [ModelKindResponse.model_validate(each) for each in found["models"]]


@router.post("/datasets/{dataset}/models/claims")
async def show_model_claim(
    dataset: str,
    body: ModelClaimRequest,
    request: Request,
    caller: Releaser,
    context: ContextDependency,
    key: RepeatedKey = None,
) -> ModelClaimResponse:
    """What a model would claim and cost, and its predicted error. Nothing is read or spent."""
    found = await context.in_thread(caller, context.dataset, dataset, caller)
    await context.in_thread(caller, _check_upload, context, found.id, body)
    calculated = await _calculated(context, request, caller, found.id, body, with_error=True)
    claim = Claim.from_json(calculated["claim"])
    charge, after = await context.in_thread(caller, context.price, "model", found, claim, key)
    return ModelClaimResponse(
        claim=claim.in_numbers(),
        cost=charge.as_json(),
        remaining=after.remaining.as_json(),
        confirm=confirmation(found.id, body, claim, of=ModelClaimRequest),
        predicted=calculated["predicted"],
        advice=calculated["advice"],
    )


@router.post("/datasets/{dataset}/models", status_code=202)
async def fit_model(
    dataset: str,
    body: ConfirmedModelRequest,
    request: Request,
    caller: Releaser,
    context: ContextDependency,
    actor: ActorDependency,
    key: IdempotencyKey,
) -> JobResponse:
    """Fit a model on an upload, debit the ledger, and publish it; the upload is deleted then."""
    found = await context.in_thread(caller, context.dataset, dataset, caller)
    calculated = await _calculated(context, request, caller, found.id, body, with_error=False)
    return await context.in_thread(
        caller,
        context.submit_confirmed,
        "model",
        found,
        key,
        body,
        actor,
        Claim.from_json(calculated["claim"]),
        of=ModelClaimRequest,
        check=lambda: _check_upload(context, found.id, body, waiting=True),
    )


async def _calculated(
    context: Context,
    request: Request,
    caller: Caller,
    dataset: str,
    body: ModelClaimRequest,
    *,
    with_error: bool,
) -> dict[str, Any]:
    """The claim of a model and, if requested, its predicted error and the advice."""
    public = await context.in_thread(caller, _public, context, dataset, body)
    return await context.calculate(
        request,
        caller,
        "model_claim",
        size=len(body.columns) ** 2 * len(body.classes or [""]),
        request=body.model_dump(mode="json", include=set(ModelClaimRequest.model_fields)),
        public=None if public is None else public.path,
        most_numbers=context.settings.most_model_numbers,
        with_error=with_error,
    )


def _public(context: Context, dataset: str, body: ModelClaimRequest) -> PublicFile | None:
    return public_file(
        context.datasets,
        context.settings,
        dataset,
        body.public,
        cells=body.cells(),
        columns=body.columns,
        private=body.upload,
    )


def _check_upload(context: Context, dataset: str, body: ModelClaimRequest, *, waiting: bool = False) -> None:
    """A claim may be shown again after its upload was used, since a client repeats both requests."""
    upload = context.datasets.upload(body.upload, dataset=dataset)
    if upload is None or upload.format == "tally" or (waiting and upload.state != WAITING):
        raise Refusal(
            422, "parameter-refused", "upload must be one of records that was not used; upload the file again"
        )
