"""Fitting a model of an upload: counted, confirmed, debited, published; and the upload deleted."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushsum.errors import HushsumError, UsageError
from hushsum.jobs.describe_model import describe_model
from hushsum.jobs.exact_answers import describe_exact
from hushsum.jobs.exact_model import SecretModel, secret_model
from hushsum.jobs.fit_model import count_model, release_model
from hushsum.jobs.ledger_release import LedgerOptions
from hushsum.jobs.progress import Progress
from hushsum.privacy.claim import Claim
from hushsum.service.leftovers import delete_served
from hushsum.service.model_terms import choice_of, confirmation, files_of, most_numbers
from hushsum.service.settings import Settings
from hushsum.service.shapes import NewModel
from hushsum.service.store import Actor, Datasets, Functions, Job
from hushsum.service.store.datasets import USED
from hushsum.service.suspicions import suspicions_noted


@dataclass(frozen=True, slots=True)
class _Fit:
    """One job: what was asked for, of which upload, under which id, paid how; warnings go to ``notes``."""

    job: Job
    asked: NewModel
    source: Path
    id: str
    ledger: LedgerOptions
    notes: list[str]
    tell: Progress


class ModelWork:
    """The models of one service. Every step may be repeated: the ledger decides what that does."""

    def __init__(self, settings: Settings, datasets: Datasets, functions: Functions) -> None:
        self._settings = settings
        self._datasets = datasets
        self._functions = functions

    def fit(self, job: Job, ledger: LedgerOptions, tell: Progress) -> dict[str, Any]:
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
            make = self._open if asked.mode == "exact" else self._release
            sha256, facts = make(_Fit(job, asked, source, id, ledger, notes, tell))
            self._functions.add(id, job.dataset, asked.name, sha256=sha256, facts=facts, actor=actor)
        self._datasets.end_upload(upload.id, USED, actor)
        source.unlink(missing_ok=True)
        return {"function": id, "warnings": notes}

    def _release(self, fit: _Fit) -> tuple[str, dict[str, Any]]:
        """A model as a public file; its digest, and what may be told about it."""
        output = self._settings.path("functions", f"{fit.id}.hush")
        with suspicions_noted(fit.notes):
            counted = count_model(
                choice_of(fit.asked, self._settings),
                files_of(fit.asked, str(fit.source)),
                str(output),
                ledger=fit.ledger,
                progress=fit.tell,
                most_numbers=most_numbers(self._settings),
            )

        def agreed(claim: Claim, _: object) -> bool:
            return confirmation(fit.job.dataset, fit.asked, claim) == fit.asked.confirm

        released = release_model(counted, approve=agreed)
        if released is None:
            raise _not_confirmed()
        facts = describe_model(released.bundle, target=fit.asked.target, size=released.size)
        return hashlib.sha256(output.read_bytes()).hexdigest(), facts

    def _open(self, fit: _Fit) -> tuple[str, dict[str, Any]]:
        """A model in exact mode, which is no file and has no digest."""
        try:
            return self._opened(fit)
        except Exception:
            with suppress(HushsumError):
                self._forget_unpaid(fit.id, fit.ledger)
            raise

    def _opened(self, fit: _Fit) -> tuple[str, dict[str, Any]]:
        place, key = self._settings.path("served", fit.id), self._settings.tally_key()
        if place.with_suffix(".secret").exists():
            # Of an earlier attempt. Fitted anew it might differ in a last bit, and its store would refuse it.
            kept = SecretModel.load(place, encryption_key=key)
        else:
            with suspicions_noted(fit.notes):
                kept = secret_model(
                    choice_of(fit.asked, self._settings),
                    files_of(fit.asked, str(fit.source)),
                    most_questions=fit.asked.most_questions,
                    progress=fit.tell,
                )
            if confirmation(fit.job.dataset, fit.asked, kept.claim) != fit.asked.confirm:
                raise _not_confirmed()
            kept.save(place, encryption_key=key)
        kept.open(place, fit.ledger)
        return "", describe_exact(kept)

    def _forget_unpaid(self, id: str, ledger: LedgerOptions) -> None:
        """Delete what was kept for answers that nobody has paid for."""
        assert ledger.idempotency_key is not None
        if ledger.budget().find(ledger.idempotency_key) is None:
            delete_served(self._settings, id)


def _not_confirmed() -> UsageError:
    return UsageError("the claim of this model is not the one that was confirmed; ask for the claim")
