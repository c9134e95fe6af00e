"""Requests of releases: uploads that they declare public, what they assume, the digest that confirms a claim,
and the request that ``hushsum.operations`` takes.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hushsum import operations
from hushsum.errors import SuspiciousParameter, UsageError
from hushsum.files import canonical_json
from hushsum.kernels import bandwidth_warnings
from hushsum.operations import PublicFile
from hushsum.privacy import Claim
from hushsum.records import Bounds, CellFormat
from hushsum.releases import PUBLIC_SAMPLE
from hushsum.service.schemas import (
    UPLOAD_NAME,
    ConfirmedReleaseRequest,
    ModelClaimRequest,
    ReleaseClaimRequest,
    RequestBody,
    bounds_of,
)
from hushsum.service.settings import Settings
from hushsum.service.store import Datasets, StoredTally
from hushsum.service.store.datasets import WAITING

if TYPE_CHECKING:
    from hushsum.models import PredictedError
    from hushsum.operations import ModelChoice, TrainingFiles

PUBLIC_NAME: Final = "the public upload"
"""What error messages call such a file."""
DERIVED: Final = "public_sample"
"""Set in the description of a tally whose parameters were derived from public rows."""


def public_file(
    datasets: Datasets,
    settings: Settings,
    dataset: str,
    upload: str | None,
    *,
    cells: CellFormat,
    columns: Sequence[str] | None = None,
    private: str | None = None,
) -> PublicFile | None:
    """The file of an upload that a request declares public; None for none.

    It is stored as every upload is, and is not deleted when it was used: one sample may serve several
    releases. Its ``cells`` are read as declared. ``private`` is the upload of the records.

    Raises
    ------
    UsageError
        unless it is an upload of records of this dataset that waits, and another one than the records.
    """
    if upload is None:
        return None
    found = datasets.upload(upload, dataset=dataset)
    if found is None or found.state != WAITING or found.format == "tally":
        raise UsageError(
            "public",
            "must be an upload of records that is still stored",
            remedy="upload the public rows to this dataset",
        )
    if upload == private:
        raise UsageError(
            "public",
            "must be an upload of public rows",
            got="that of the private records",
            remedy="upload rows that anybody may see, or leave it out",
        )
    path = settings.path("uploads", f"{found.id}.{found.format}")
    return public_rows(str(path), cells, columns, beside_private=private is not None)


def public_rows(
    path: str, cells: CellFormat, columns: Sequence[str] | None = None, *, beside_private: bool
) -> PublicFile:
    """A file of public rows; ``beside_private`` if the request has a file of private records too."""
    chosen = None if columns is None else tuple(columns)
    # A sheet is of the private file, where there is one.
    read = replace(cells, sheet=None) if beside_private else cells
    return PublicFile(path, chosen, name=PUBLIC_NAME, cells=read)


def release_assumptions(request: ReleaseClaimRequest, tally: StoredTally) -> tuple[str, ...]:
    """What a release assumes of public rows: those of the request, and those that the tally was made with."""
    return (PUBLIC_SAMPLE,) if request.public is not None or tally.facts.get(DERIVED) else ()


def check_confirmed(dataset: str, request: ConfirmedReleaseRequest, claim: Claim) -> None:
    """Refuse a claim that is not the one which the owner has confirmed."""
    if confirmation(dataset, request, claim, of=ReleaseClaimRequest) != request.confirm:
        raise UsageError("the claim is not the one that was confirmed", remedy="request the claim again")


def confirmation(dataset: str, request: RequestBody, claim: Claim, *, of: type[RequestBody]) -> str:
    """The digest of a claim, its dataset and its request.

    Parameters
    ----------
    of : type
        The request of the claim. A confirmed request has the same fields and ``confirm``, which is left out.
    """
    parameters = request.model_dump(mode="json", include=set(of.model_fields), exclude_defaults=True)
    text = canonical_json([dataset, of.__name__, parameters, claim.as_json()])
    return hashlib.sha256(text).hexdigest()


def choice_of(request: ModelClaimRequest, most: int, public: PublicFile | None = None) -> ModelChoice:
    """The model with its parameters, and the public rows that decide some of them.

    Its tables may have ``most`` cells; see `Settings.most_model_numbers`.

    Raises
    ------
    UsageError
        if there is no such model or setting, or its tables would be too large.
    """
    chosen = operations.model_kind(request.model).checked(request.settings)
    tables = len(request.classes or ()) or 1
    cells = [
        _size(chosen.get("rows")) * _size(chosen.get("width")) * tables,
        4 * _size(chosen.get("features")) ** 2,
    ]
    if max(cells) > most:
        raise UsageError(
            f"the tables of a model must have at most {most} cells in total", remedy="choose smaller ones"
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
            "bounds",
            "must be declared",
            got="none",
            remedy="give [low, high], one pair for each column, or public rows",
        )
    if public is None:
        return operations.ModelChoice(request.model, given)
    return operations.ModelChoice(
        request.model, given, public=operations.public_features(public, request.target)
    )


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
            return operations.exact_claim(
                choice,
                columns=request.columns,
                target=request.target,
                classes=request.classes,
                most_questions=request.most_questions,
            )
        return operations.claim_beforehand(
            choice, columns=request.columns, target=request.target, classes=request.classes
        )


def error_for(choice: ModelChoice, request: ModelClaimRequest) -> PredictedError | None:
    """The predicted error of the model; None without a declared number of records."""
    if request.records is None:
        return None
    return operations.predicted_error(
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
    return operations.TrainingFiles(
        (path,), columns, request.target, classes, name=UPLOAD_NAME, cells=request.cells(), public=public
    )


def _size(value: object) -> int:
    """The size of one axis of a table; 1000, like the defaults, where it is not given."""
    return value if isinstance(value, int) else 1000


@contextmanager
def collect_parameter_warnings(notes: list[str]) -> Iterator[None]:
    """Collect warnings about suspicious parameters, once each. They depend on the records, so they go into
    the result of the owner's job, which nobody else can see.
    """
    with warnings.catch_warnings(record=True) as caught:
        # Warnings of other libraries are for developers, and nobody would read them here.
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("always", SuspiciousParameter)
        yield
    notes += sorted({str(each.message) for each in caught if each.category is SuspiciousParameter})
