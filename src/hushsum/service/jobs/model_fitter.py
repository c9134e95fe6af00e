"""Fits a model on an upload: count, confirm, debit, publish, then delete the upload."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushsum import operations
from hushsum.errors import HushsumError, UsageError
from hushsum.operations import LedgerOptions, PublicFile, describe_exact, describe_model
from hushsum.privacy import Claim
from hushsum.records import clipping_allowed
from hushsum.service.jobs.job_runner import LeaseLost, RunningJob, delete_exact_model_files
from hushsum.service.jobs.requests import (
    choice_of,
    collect_parameter_warnings,
    confirmation,
    files_of,
    public_file,
)
from hushsum.service.schemas import ConfirmedModelRequest, ModelClaimRequest
from hushsum.service.settings import Settings
from hushsum.service.store import Actor, Datasets, Functions
from hushsum.service.store.datasets import USED


@dataclass(frozen=True, slots=True)
class _Fit:
    """One job: its request, upload, function id and budget; warnings are appended to ``notes``."""

    running: RunningJob
    request: ConfirmedModelRequest
    source: Path
    id: str
    ledger: LedgerOptions
    notes: list[str]

    def is_confirmed(self, claim: Claim) -> bool:
        """Whether the owner has confirmed this claim."""
        dataset = self.running.job.dataset
        return confirmation(dataset, self.request, claim, of=ModelClaimRequest) == self.request.confirm


class ModelFitter:
    """Fits the models of one service. Every step may be repeated: the ledger never debits twice."""

    def __init__(self, settings: Settings, datasets: Datasets, functions: Functions) -> None:
        self._settings = settings
        self._datasets = datasets
        self._functions = functions

    def fit(self, running: RunningJob, ledger: LedgerOptions) -> dict[str, Any]:
        """Run the job; returns its result.

        Raises
        ------
        HushsumError
            if the records, settings or budget do not suffice; the upload is kept for another attempt.
        """
        job = running.job
        request = ConfirmedModelRequest.model_validate(job.request)
        id = "fn_" + job.id.removeprefix("job_")
        upload = self._datasets.upload(request.upload, dataset=job.dataset)
        assert upload is not None
        source = self._settings.path("uploads", f"{upload.id}.{upload.format}")
        actor = Actor(job.account)
        notes: list[str] = []
        if not self._functions.known(id):
            make = self._open if request.mode == "exact" else self._release
            sha256, facts = make(_Fit(running, request, source, id, ledger, notes))
            self._functions.add(id, job.dataset, request.name, sha256=sha256, facts=facts, actor=actor)
        self._datasets.end_upload(upload.id, USED, actor)
        source.unlink(missing_ok=True)
        return {"function": id, "warnings": notes}

    def _release(self, fit: _Fit) -> tuple[str, dict[str, Any]]:
        """Release a model as a public file; returns its digest and its public description."""
        output = self._settings.path("functions", f"{fit.id}.hush")
        with collect_parameter_warnings(fit.notes), clipping_allowed(fit.request.allow_clipping):
            public = self._public(fit)
            counted = operations.count_model(
                choice_of(fit.request, self._settings.most_model_numbers, public),
                files_of(fit.request, str(fit.source), public),
                str(output),
                ledger=fit.ledger,
                progress=fit.running.report_progress,
                most_numbers=self._settings.most_model_numbers,
            )

        def agreed(claim: Claim, _: object) -> bool:
            if not fit.is_confirmed(claim):
                return False
            return fit.running.pay()

        released = operations.release_model(counted, approve=agreed)
        if released is None:
            raise _not_confirmed()
        facts = describe_model(released.bundle, target=fit.request.target, size=released.size)
        return hashlib.sha256(output.read_bytes()).hexdigest(), facts

    def _public(self, fit: _Fit) -> PublicFile | None:
        """The upload that the request declares public, if there is one."""
        return public_file(
            self._datasets,
            self._settings,
            fit.running.job.dataset,
            fit.request.public,
            cells=fit.request.cells(),
            columns=fit.request.columns,
            private=fit.request.upload,
        )

    def _open(self, fit: _Fit) -> tuple[str, dict[str, Any]]:
        """Open a model in exact mode, which has no public file and no digest."""
        try:
            return self._opened(fit)
        except LeaseLost:
            raise
        except Exception:
            # Another worker may be using the same files.
            fit.running.check_lease()
            with suppress(HushsumError):
                self._forget_unpaid(fit.id, fit.ledger)
            raise

    def _opened(self, fit: _Fit) -> tuple[str, dict[str, Any]]:
        place, key = self._settings.path("served", fit.id), self._settings.tally_key()
        if place.with_suffix(".secret").exists():
            # From an earlier attempt. A new fit might differ in a last bit, and its store would refuse it.
            kept = operations.SecretModel.load(place, encryption_key=key)
        else:
            with collect_parameter_warnings(fit.notes), clipping_allowed(fit.request.allow_clipping):
                kept = operations.secret_model(
                    choice_of(fit.request, self._settings.most_model_numbers, self._public(fit)),
                    files_of(fit.request, str(fit.source)),
                    most_questions=fit.request.most_questions,
                    progress=fit.running.report_progress,
                )
            if not fit.is_confirmed(kept.claim):
                raise _not_confirmed()
            kept.save(place, encryption_key=key)
        fit.running.pay()
        kept.open(place, fit.ledger)
        return "", describe_exact(kept)

    def _forget_unpaid(self, id: str, ledger: LedgerOptions) -> None:
        """Delete the files of a model whose debit does not exist."""
        assert ledger.idempotency_key is not None
        if ledger.budget().find(ledger.idempotency_key) is None:
            delete_exact_model_files(self._settings, id)


def _not_confirmed() -> UsageError:
    return UsageError(
        "the claim of this model is not the one that was confirmed", remedy="request the claim again"
    )
