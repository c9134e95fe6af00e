"""Models: the available kinds and kernels, the claim, then the fit."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter

from hushsum.jobs.plan_release import PublicFile
from hushsum.kernels import kernel_names, parameter_names
from hushsum.kernels.registry import is_signed
from hushsum.service.http.context import Context
from hushsum.service.http.dependencies import (
    ActorDependency,
    ContextDependency,
    IdempotencyKey,
    Releaser,
    RepeatedKey,
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
    PredictedErrorResponse,
)
from hushsum.service.store.datasets import WAITING
from hushsum.service.work.release_requests import confirmation, public_file

router = APIRouter(tags=["models"])


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
def list_models(caller: Releaser) -> list[ModelKindResponse]:
    """The models that can be fitted, and the settings of each."""
    from hushsum.jobs.model_catalogue import model_kinds, setting_as_json  # imports scikit-learn

    return [
        ModelKindResponse.model_validate(
            {**asdict(each), "settings": [setting_as_json(setting) for setting in each.settings]}
        )
        for each in model_kinds()
    ]


@router.post("/datasets/{dataset}/models/claims")
def show_model_claim(
    dataset: str,
    body: ModelClaimRequest,
    caller: Releaser,
    context: ContextDependency,
    key: RepeatedKey = None,
) -> ModelClaimResponse:
    """What a model would claim and cost, and its predicted error. Nothing is read or spent."""
    from hushsum.service.work.model_requests import (  # imports scikit-learn
        advice_for,
        choice_of,
        claim_for,
        error_for,
    )

    found = context.dataset(dataset, caller)
    _check_upload(context, found.id, body)
    choice = choice_of(body, context.settings, _public(context, found.id, body))
    claim = claim_for(choice, body)
    error = error_for(choice, body)
    charge, after = context.price("model", found, claim, key)
    return ModelClaimResponse(
        claim=claim.in_numbers(),
        cost=charge.as_json(),
        remaining=after.remaining.as_json(),
        confirm=confirmation(found.id, body, claim, of=ModelClaimRequest),
        predicted=None if error is None else PredictedErrorResponse.model_validate(error),
        advice=advice_for(choice, body),
    )


@router.post("/datasets/{dataset}/models", status_code=202)
def fit_model(
    dataset: str,
    body: ConfirmedModelRequest,
    caller: Releaser,
    context: ContextDependency,
    actor: ActorDependency,
    key: IdempotencyKey,
) -> JobResponse:
    """Fit a model on an upload, debit the ledger, and publish it; the upload is deleted then."""
    from hushsum.service.work.model_requests import choice_of, claim_for  # imports scikit-learn

    found = context.dataset(dataset, caller)
    choice = choice_of(body, context.settings, _public(context, found.id, body))
    claim = claim_for(choice, body)
    return context.submit_confirmed(
        "model",
        found,
        key,
        body,
        actor,
        claim,
        of=ModelClaimRequest,
        check=lambda: _check_upload(context, found.id, body, waiting=True),
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
