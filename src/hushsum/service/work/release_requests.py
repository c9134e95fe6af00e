"""Requests of releases: uploads that they declare public, what they assume, the digest that confirms a claim,
and the request that ``hushsum.jobs`` takes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from hushsum.errors import UsageError
from hushsum.files.container import canonical_json
from hushsum.jobs.plan_release import PublicFile
from hushsum.privacy.claim import Claim
from hushsum.privacy.release_request import ReleaseRequest
from hushsum.records.cell_format import CellFormat
from hushsum.releases.forwarded_properties import PUBLIC_SAMPLE
from hushsum.service.schemas import ReleaseClaimRequest, RequestBody
from hushsum.service.settings import Settings
from hushsum.service.store import Datasets, StoredTally
from hushsum.service.store.datasets import WAITING

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
            parameter="public",
            rule="must be an upload of records that is still stored",
            remedy="upload the public rows to this dataset",
        )
    if upload == private:
        raise UsageError(
            parameter="public",
            rule="must be an upload of public rows",
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


def release_request(body: ReleaseClaimRequest) -> ReleaseRequest:
    """The request that a tally takes. The service adds the budget and the idempotency key."""
    return ReleaseRequest(**{name: getattr(body, name) for name in ReleaseRequest().as_json()})


def confirmation(dataset: str, request: RequestBody, claim: Claim, *, of: type[RequestBody]) -> str:
    """The digest of a claim, its dataset and its request.

    Parameters
    ----------
    of : type
        The request of the claim. A confirmed request has the same fields and ``confirm``, which is left out.
    """
    parameters = {name: getattr(request, name) for name in of.model_fields}
    text = canonical_json([dataset, of.__name__, json.loads(json.dumps(parameters)), claim.as_json()])
    return hashlib.sha256(text).hexdigest()
