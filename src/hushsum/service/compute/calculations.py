"""Calculations of requests that run in processes of their own: claims, plans, checks, and queries.

A calculation takes plain data and bytes, and returns the same. It opens no database and writes no file, so
its process can be killed at any time. What it reads from the disk are released functions, which are public,
and uploads that their owner declares public.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from hushsum.kernels import bandwidth_warnings
from hushsum.operations import RecordFiles, read_public, requested_release
from hushsum.planning import DeclaredRecords, MethodSpec
from hushsum.planning import PlanRequest as DeclaredPlan
from hushsum.privacy import ReleaseRequest
from hushsum.records import Bounds, CellFormat
from hushsum.service.jobs.requests import choice_of, collect_parameter_warnings, public_rows
from hushsum.service.queries import answer, answer_once, dense_points, read_points, released_function
from hushsum.service.schemas import (
    UPLOAD_NAME,
    ModelClaimRequest,
    PlanRequest,
    PredictedErrorResponse,
    QueryParameters,
    ReleaseClaimRequest,
    StreamClaimRequest,
    TallyRequest,
)
from hushsum.tables import reading_from_json
from hushsum.tally import Tally

if TYPE_CHECKING:
    from hushsum.operations.models import ModelChoice

# Functions that a process keeps in memory.
_KEPT_FUNCTIONS: Final = 4

_loaded = lru_cache(_KEPT_FUNCTIONS)(released_function)

Result = tuple[dict[str, Any], bytes]


def plan(about: dict[str, Any], body: bytes) -> Result:
    """The predicted error of each release option."""
    request = PlanRequest.model_validate(about["request"])
    tally, public, planned = about["tally"], about["public"], request.states(DeclaredPlan)
    if tally is not None:
        reading = reading_from_json(tally["definition"])
        planned = replace(planned, reading=reading, max_per_unit=tally["max_per_unit"])
    if public is not None:
        planned = replace(planned, public=read_public(public_rows(public, request)))
    return planned.plan().as_json(), b""


def release_claim(about: dict[str, Any], body: bytes) -> Result:
    """The claim of a release, from what is declared or from the tally's public definition: no record and no
    count is read.
    """
    request = ReleaseClaimRequest.model_validate(about["request"])
    tally = about["tally"]
    if tally is None:
        return _claim_of_records(request, about["public"]), b""
    empty = Tally(
        reading_from_json(tally["definition"]).basis,
        max_per_unit=tally["max_per_unit"],
        edge_lists=tally.get("edge_lists", 1),
    )
    if tally["add_remove_only"]:
        empty.restrict_to_add_remove()
    prepared = empty.prepare(request.states(ReleaseRequest), assumptions=tuple(about["assumptions"]))
    return {"claim": prepared.claim.as_json()}, b""


def _claim_of_records(request: ReleaseClaimRequest, public: str | None) -> dict[str, Any]:
    notes: list[str] = []
    with collect_parameter_warnings(notes):
        planned = requested_release(
            replace(request.states(RecordFiles), paths=(UPLOAD_NAME,), name=UPLOAD_NAME),
            request.states(ReleaseRequest),
            kernel=request.kernel_spec(),
            method=request.states(MethodSpec),
            public=None if public is None else public_rows(public, request),
        ).prepare(DeclaredRecords(request.columns))
    return {
        "claim": planned.prepared.claim.as_json(),
        "option": planned.option.as_json(),
        "cells": math.prod(planned.shape or (1,)),
        "advice": notes,
    }


def model_claim(about: dict[str, Any], body: bytes) -> Result:
    """The claim of a model and, if the request is for them too, its predicted error and the advice."""
    from hushsum.operations import models  # imports scikit-learn

    request = ModelClaimRequest.model_validate(about["request"])
    public = about["public"] and public_rows(about["public"], request)
    choice = choice_of(request, about["most_numbers"], public)
    declared = request.declared()
    exact = request.mode == "exact"
    # What a model would warn of in its parameters is in the advice.
    with collect_parameter_warnings([]):
        if exact:
            claim = models.exact_claim(choice, declared, most_questions=request.most_questions)
        else:
            claim = models.claim_beforehand(choice, declared)
    # Records with missing values cannot be left out under replace, where their number is public.
    request.states(CellFormat).check_relation(str(claim.relation))
    result: dict[str, Any] = {"claim": claim.as_json()}
    if about["with_error"]:
        result["predicted"] = None
        if request.records is not None:
            error = models.predicted_error(choice, declared, number=request.records, exact=exact)
            result["predicted"] = error and PredictedErrorResponse.model_validate(error).model_dump()
        result["advice"] = _advice(choice, request)
    return result, b""


def _advice(choice: ModelChoice, request: ModelClaimRequest) -> list[str]:
    """Sentences to consider before spending, from declared quantities alone."""

    model = choice.build()
    if request.classes is not None:
        model.set_params(classes=list(request.classes))
    if request.mode != "file":
        return []
    columns = len(request.columns)
    box = Bounds.of(model.column_bounds(columns), columns)
    kernels = model.compared_by(columns)
    return [*model.advice(columns), *(each for kernel in kernels for each in bandwidth_warnings(kernel, box))]


def stream_claim(about: dict[str, Any], body: bytes) -> Result:
    """The claim of a stream, and the size of its table and of its state."""
    prepared = StreamClaimRequest.model_validate(about["request"]).prepare()
    found = {
        "claim": prepared.claim.as_json(),
        "cells": prepared.cells,
        "ratio": prepared.plan.ratio,
        "state_bytes": prepared.plan.state_bytes,
    }
    return found, b""


def check_tally(about: dict[str, Any], body: bytes) -> Result:
    """Refuse a kernel of a tally that is wrong whatever the records are."""
    request = TallyRequest.model_validate(about["request"])
    choice = request.kernel_spec()
    if request.public is not None and choice.bandwidth is None and not choice.takes_sets:
        choice = replace(choice, bandwidth=1.0)
    if request.columns:
        choice.build(len(request.columns), request.columns, request.declared_bounds())
    else:
        # A placeholder for the unknown number of columns: only the other parameters are checked.
        box = request.declared_bounds()
        listed = len(box) if box is not None and isinstance(box[0], tuple) else 1
        choice.example(None if choice.takes_sets else listed, box)
    return {}, b""


def list_models(about: dict[str, Any], body: bytes) -> Result:
    """The models that can be fitted, and the settings of each."""
    from hushsum.operations import models  # imports scikit-learn

    found = [
        {**asdict(each), "settings": [models.setting_as_json(setting) for setting in each.settings]}
        for each in models.model_kinds()
    ]
    return {"models": found}, b""


def weigh(about: dict[str, Any], body: bytes) -> Result:
    """How many numbers a point of a function has, and the processor time that it takes to load the function,
    with its first answer, and to answer one more point; None if that is refused.
    """
    # Anew, also if this process has it already.
    _loaded.cache_clear()
    start = time.process_time()
    function = _loaded(about["path"])
    answered = answer_once(function)
    loaded = time.process_time()
    answer_once(function)
    answer_seconds = time.process_time() - loaded if answered else None
    return {"dim": function.dim, "load_seconds": loaded - start, "answer_seconds": answer_seconds}, b""


def query(about: dict[str, Any], body: bytes) -> Result:
    """The encoded answers of a query, and the number of its points."""
    function = _loaded(about["path"])
    points = read_points(body, dim=function.dim, **about["points"])
    asked = QueryParameters(**about["asked"])
    return {"points": len(points)}, answer(function, points, asked, about["response_type"])


def parse(about: dict[str, Any], body: bytes) -> Result:
    """The points of a query in JSON, as the bytes of an array."""
    return {}, dense_points(body, **about).tobytes()


_ALL: Final = (plan, release_claim, model_claim, stream_claim, check_tally, list_models, weigh, query, parse)
CALCULATIONS: Final[dict[str, Callable[[dict[str, Any], bytes], Result]]] = {
    each.__name__: each for each in _ALL
}
