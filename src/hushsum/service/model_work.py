"""Fitting a model of an upload: counted, confirmed, debited, published; and the upload deleted."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from hushsum.errors import UsageError
from hushsum.jobs.describe_model import describe_model
from hushsum.jobs.fit_model import count_model, release_model
from hushsum.jobs.ledger_release import Booking
from hushsum.jobs.progress import Progress
from hushsum.privacy.claim import Claim
from hushsum.service.model_terms import choice_of, confirmation, files_of
from hushsum.service.settings import Settings
from hushsum.service.shapes import NewModel
from hushsum.service.store import Actor, Datasets, Functions, Job
from hushsum.service.store.datasets import USED
from hushsum.service.suspicions import suspicions_noted


class ModelWork:
    """The models of one service. Every step may be repeated: the ledger decides what that does."""

    def __init__(self, settings: Settings, datasets: Datasets, functions: Functions) -> None:
        self._settings = settings
        self._datasets = datasets
        self._functions = functions

    def fit(self, job: Job, booking: Booking, tell: Progress) -> dict[str, Any]:
        """Do the job; what it made.

        Raises
        ------
        HushsumError
            for records, settings or a budget that do not suffice; the upload stays then, to be tried again.
        """
        asked = NewModel.model_validate(job.request)
        id = "fn_" + job.id.removeprefix("job_")
        upload = self._datasets.upload(asked.upload, dataset=job.dataset)
        assert upload is not None
        source = self._settings.path("uploads", f"{upload.id}.{upload.format}")
        actor = Actor(job.account)
        notes: list[str] = []
        if not self._functions.known(id):
            output = self._settings.path("functions", f"{id}.hush")
            facts = self._release(job, asked, source, output, booking, notes, tell)
            digest = hashlib.sha256(output.read_bytes()).hexdigest()
            self._functions.add(id, job.dataset, asked.name, sha256=digest, facts=facts, actor=actor)
        self._datasets.end_upload(upload.id, USED, actor)
        source.unlink(missing_ok=True)
        return {"function": id, "warnings": notes}

    def _release(
        self,
        job: Job,
        asked: NewModel,
        source: Path,
        output: Path,
        booking: Booking,
        notes: list[str],
        tell: Progress,
    ) -> dict[str, Any]:
        choice = choice_of(asked, self._settings)
        with suspicions_noted(notes):
            records = files_of(asked, str(source))
            counted = count_model(choice, records, str(output), booking=booking, progress=tell)

        def agreed(claim: Claim, _: object) -> bool:
            return confirmation(job.dataset, asked, claim) == asked.confirm

        released = release_model(counted, approve=agreed)
        if released is None:
            raise UsageError("the claim of this model is not the one that was confirmed; ask for the claim")
        return describe_model(released.bundle, target=asked.target, size=released.size)
