"""Steps that the routes and the workers share for a request: finding the upload that it declares public, its
assumptions, the digest that confirms its claim, and the model that it describes.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hushsum.errors import SuspiciousParameter, UsageError
from hushsum.files import canonical_json
from hushsum.operations import PublicFile
from hushsum.privacy import Claim
from hushsum.records import CellFormat
from hushsum.releases import PUBLIC_SAMPLE

from ..schemas import ModelClaimRequest, PublicRequest, ReleaseClaimRequest, RequestBody, bounds_of
from ..settings import Settings
from ..store import Datasets, StoredTally
from ..store.datasets import WAITING

if TYPE_CHECKING:
    from hushsum.operations.models import ModelChoice

# The name of such a file in error messages.
PUBLIC_NAME: Final = "the public upload"
# Set in the description of a tally whose parameters were derived from public rows.
DERIVED: Final = "public_sample"


def public_file(
    datasets: Datasets, settings: Settings, dataset: str, request: PublicRequest
) -> PublicFile | None:
    """The file of the upload that a request declares public; None for none.

    It is stored as every upload is, and is not deleted when it was used: one sample may serve several
    releases.

    Raises
    ------
    UsageError
        unless it is an upload of records of this dataset that waits, and another one than the records.
    """
    # What is declared of cells is refused at once, also where all rows are private.
    request.states(CellFormat)
    if request.public is None:
        return None
    found = datasets.upload(request.public, dataset=dataset)
    if found is None or found.state != WAITING or found.format == "tally":
        rule = "must be an upload of records that is still stored"
        raise UsageError("public", rule, remedy="upload the public rows to this dataset")
    if request.public == getattr(request, "upload", None):
        rule, remedy = "must be an upload of public rows", "upload rows that anybody may see, or leave it out"
        raise UsageError("public", rule, got="that of the private records", remedy=remedy)
    return public_rows(str(settings.path("uploads", found.file)), request)


def public_rows(path: str, request: PublicRequest) -> PublicFile:
    """A file of public rows, whose cells are read as the request declares."""
    cells, columns = request.states(CellFormat), getattr(request, "columns", None)
    if getattr(request, "upload", None) is not None:
        # The sheet is that of the private file.
        cells = replace(cells, sheet=None)
    return PublicFile(path, None if columns is None else tuple(columns), name=PUBLIC_NAME, cells=cells)


def release_assumptions(request: ReleaseClaimRequest, tally: StoredTally) -> tuple[str, ...]:
    """The assumptions of a release about public rows: of its request, and of the request for its tally."""
    return (PUBLIC_SAMPLE,) if request.public is not None or tally.facts.get(DERIVED) else ()


def confirmation(kind: str, dataset: str, request: RequestBody, claim: Claim) -> str:
    """The digest of a claim, its dataset and its request, which is for a job of this kind.

    A request that confirms a claim has the same fields and ``confirm``, which is left out, as is what changes
    nothing of the release.
    """
    left_out = {"confirm", "stop_at_warnings"}
    parameters = request.model_dump(mode="json", exclude=left_out, exclude_defaults=True)
    return hashlib.sha256(canonical_json([dataset, kind, parameters, claim.as_json()])).hexdigest()


def choice_of(request: ModelClaimRequest, most: int, public: PublicFile | None = None) -> ModelChoice:
    """The model with its parameters, and the public rows that decide some of them.

    Its tables may have ``most`` cells; see `Settings.most_model_numbers`.

    Raises
    ------
    UsageError
        if there is no such model or setting, or its tables would be too large.
    """
    from hushsum.operations import models  # imports scikit-learn

    chosen = models.model_kind(request.model).checked(request.settings)
    tables = len(request.classes or ()) or 1
    # 1000, like the defaults, where a size is not given.
    rows, width, features = (
        size if isinstance(size := chosen.get(name), int) else 1000 for name in ("rows", "width", "features")
    )
    if max(rows * width * tables, 4 * features**2) > most:
        rule = f"the tables of a model must have at most {most} cells in total"
        raise UsageError(rule, remedy="choose smaller ones")
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
        remedy = "give [low, high], one pair for each column, or public rows"
        raise UsageError("bounds", "must be declared", got="none", remedy=remedy)
    rows_of_public = None if public is None else models.public_features(public, request.target)
    return models.ModelChoice(request.model, given, public=rows_of_public)


@contextmanager
def collect_parameter_warnings(notes: list[str]) -> Iterator[None]:
    """Add warnings about suspicious parameters to ``notes`` as they are given, once each. They depend on the
    records, so they go into the result of the owner's job, which nobody else can see.
    """

    def show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        if category is SuspiciousParameter and str(message) not in notes:
            notes.append(str(message))

    with warnings.catch_warnings():
        # Warnings of other libraries are for developers, and nobody would read them here.
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("always", SuspiciousParameter)
        warnings.showwarning = show
        yield
