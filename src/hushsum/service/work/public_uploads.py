"""Uploads that their owner declares public: checked, and read by jobs as files of public rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hushsum.errors import UsageError
from hushsum.jobs.plan_release import PublicFile
from hushsum.releases.forwarded_properties import PUBLIC_SAMPLE
from hushsum.service.schemas import ReleaseClaimRequest
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
    columns: Sequence[str] | None = None,
    private: str | None = None,
) -> PublicFile | None:
    """The file of an upload that a request declares public; None for none.

    It is stored as every upload is, and is not deleted when it was used: one sample may serve several
    releases. ``private`` is the upload of the records.

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
    return PublicFile(str(path), None if columns is None else tuple(columns), name=PUBLIC_NAME)


def release_assumptions(request: ReleaseClaimRequest, tally: StoredTally) -> tuple[str, ...]:
    """What a release assumes of public rows: those of the request, and those that the tally was made with."""
    return (PUBLIC_SAMPLE,) if request.public is not None or tally.facts.get(DERIVED) else ()
