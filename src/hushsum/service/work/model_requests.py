"""The model of a request: as the jobs of ``hushsum fit`` take it, and within the limits of the service."""

from __future__ import annotations

import hashlib
import json
import threading

from hushsum.errors import UsageError
from hushsum.files.container import canonical_json
from hushsum.jobs.exact_model import exact_claim
from hushsum.jobs.fit_model import TrainingFiles
from hushsum.jobs.model_catalogue import ModelChoice, model_kind
from hushsum.jobs.model_claim import claim_beforehand, predicted_error
from hushsum.models.predicted_error import PredictedError
from hushsum.privacy.claim import Claim
from hushsum.service.schemas import ModelClaimRequest
from hushsum.service.settings import Settings

_ONE_AT_A_TIME = threading.Lock()


def choice_of(asked: ModelClaimRequest, settings: Settings) -> ModelChoice:
    """The model with its parameters.

    Raises
    ------
    UsageError
        if there is no such model or setting, or its tables would be too large.
    """
    chosen = model_kind(asked.model).checked(asked.settings)
    tables = len(asked.classes or ()) or 1
    cells = [
        _size(chosen.get("rows")) * _size(chosen.get("width")) * tables,
        4 * _size(chosen.get("features")) ** 2,
    ]
    most = most_numbers(settings)
    if max(cells) > most:
        raise UsageError(f"the tables of a model must have at most {most} cells in all; take smaller ones")
    pairs = [(low, high) for low, high in asked.bounds]
    given = {
        **chosen,
        "epsilon": asked.epsilon,
        "delta": asked.delta or None,
        "bounds": pairs[0] if len(pairs) == 1 else pairs,
        "random_state": asked.seed,
    }
    return ModelChoice(asked.model, given)


def most_numbers(settings: Settings) -> int:
    """How many numbers a model may hold: of tables, or of records that it keeps."""
    return settings.max_cells // 4


def claim_for(choice: ModelChoice, asked: ModelClaimRequest) -> Claim:
    """What the model will claim, before any record is read."""
    # It is tried out on made-up records, whose tables are as large as others'.
    with _ONE_AT_A_TIME:
        if asked.mode == "exact":
            return exact_claim(
                choice,
                columns=asked.columns,
                target=asked.target,
                classes=asked.classes,
                most_questions=asked.most_questions,
            )
        return claim_beforehand(choice, columns=asked.columns, target=asked.target, classes=asked.classes)


def error_for(choice: ModelChoice, asked: ModelClaimRequest) -> PredictedError | None:
    """The predicted error of the model; None without a declared number of records."""
    if asked.records is None:
        return None
    with _ONE_AT_A_TIME:
        return predicted_error(
            choice,
            records=asked.records,
            columns=asked.columns,
            target=asked.target,
            classes=asked.classes,
            exact=asked.mode == "exact",
        )


def files_of(asked: ModelClaimRequest, path: str) -> TrainingFiles:
    """What of an upload is learned."""
    classes = None if asked.classes is None else tuple(asked.classes)
    return TrainingFiles((path,), tuple(asked.columns), asked.target, classes)


def confirmation(dataset: str, asked: ModelClaimRequest, claim: Claim) -> str:
    """The digest by which the owner agrees to this claim for these terms, and to no other."""
    terms = {name: getattr(asked, name) for name in ModelClaimRequest.model_fields}
    text = canonical_json([dataset, "model", json.loads(json.dumps(terms)), claim.as_json()])
    return hashlib.sha256(text).hexdigest()


def _size(value: object) -> int:
    """How large a part of a table is; 1000, as the defaults are, where that is not said."""
    return value if isinstance(value, int) else 1000
