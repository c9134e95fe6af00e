"""Requests to fit a model: checked against the service's limits, converted for ``hushsum.jobs``."""

from __future__ import annotations

from hushsum.errors import UsageError
from hushsum.jobs.exact_mode_fit import exact_claim
from hushsum.jobs.fit_model import TrainingFiles, public_features
from hushsum.jobs.model_catalogue import ModelChoice, model_kind
from hushsum.jobs.model_claim import claim_beforehand, predicted_error
from hushsum.jobs.plan_release import PublicFile
from hushsum.kernels.bandwidth_scale import bandwidth_warnings
from hushsum.models.predicted_error import PredictedError
from hushsum.privacy.claim import Claim
from hushsum.records.bounds import Bounds
from hushsum.service.schemas import ModelClaimRequest, bounds_of
from hushsum.service.work.running_job import UPLOAD_NAME, collect_parameter_warnings


def choice_of(request: ModelClaimRequest, most: int, public: PublicFile | None = None) -> ModelChoice:
    """The model with its parameters, and the public rows that decide some of them.

    Its tables may have ``most`` cells; see `Settings.most_model_numbers`.

    Raises
    ------
    UsageError
        if there is no such model or setting, or its tables would be too large.
    """
    chosen = model_kind(request.model).checked(request.settings)
    tables = len(request.classes or ()) or 1
    cells = [
        _size(chosen.get("rows")) * _size(chosen.get("width")) * tables,
        4 * _size(chosen.get("features")) ** 2,
    ]
    if max(cells) > most:
        raise UsageError(
            rule=f"the tables of a model must have at most {most} cells in total",
            remedy="choose smaller ones",
        )
    given = {
        **chosen,
        "epsilon": request.epsilon,
        "delta": request.delta or None,
        "random_state": request.seed,
    }
    bounds = bounds_of(request.bounds, request.columns)
    if bounds is not None:
        given["bounds"] = bounds
    elif public is None:
        raise UsageError(
            parameter="bounds",
            rule="must be declared",
            got="none",
            remedy="give [low, high], one pair for each column, or public rows",
        )
    if public is None:
        return ModelChoice(request.model, given)
    return ModelChoice(request.model, given, public=public_features(public, request.target))


def claim_for(choice: ModelChoice, request: ModelClaimRequest) -> Claim:
    """What the model will claim, before any record is read.

    Raises
    ------
    UsageError
        if records with missing values shall be left out under replace, where their number is public.
    """
    claim = _claim_for(choice, request)
    request.cells().check_relation(str(claim.relation))
    return claim


def _claim_for(choice: ModelChoice, request: ModelClaimRequest) -> Claim:
    # What a model would warn of in its parameters is in `advice_for`.
    with collect_parameter_warnings([]):
        if request.mode == "exact":
            return exact_claim(
                choice,
                columns=request.columns,
                target=request.target,
                classes=request.classes,
                most_questions=request.most_questions,
            )
        return claim_beforehand(
            choice, columns=request.columns, target=request.target, classes=request.classes
        )


def error_for(choice: ModelChoice, request: ModelClaimRequest) -> PredictedError | None:
    """The predicted error of the model; None without a declared number of records."""
    if request.records is None:
        return None
    return predicted_error(
        choice,
        records=request.records,
        columns=request.columns,
        target=request.target,
        classes=request.classes,
        exact=request.mode == "exact",
    )


def advice_for(choice: ModelChoice, request: ModelClaimRequest) -> list[str]:
    """What to consider before spending, from declared quantities alone."""
    model = choice.build()
    if request.classes is not None:
        model.set_params(classes=list(request.classes))
    if request.mode != "file":
        return []
    columns = len(request.columns)
    box = Bounds.of(model.column_bounds(columns), columns)
    kernels = model.compared_by(columns)
    return [*model.advice(columns), *(each for kernel in kernels for each in bandwidth_warnings(kernel, box))]


def files_of(request: ModelClaimRequest, path: str, public: PublicFile | None = None) -> TrainingFiles:
    """The columns of an upload that the model is fitted on."""
    classes = None if request.classes is None else tuple(request.classes)
    columns = tuple(request.columns)
    return TrainingFiles(
        (path,), columns, request.target, classes, name=UPLOAD_NAME, cells=request.cells(), public=public
    )


def _size(value: object) -> int:
    """The size of one axis of a table; 1000, like the defaults, where it is not given."""
    return value if isinstance(value, int) else 1000
