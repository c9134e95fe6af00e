"""Fits a model on an upload: count, confirm, debit, publish, then delete the upload. Every step may be
repeated: the ledger never debits twice.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from hushsum.errors import HushsumError
from hushsum.operations import Destination, PublicFile, TrainingFiles, describe_exact, describe_model
from hushsum.records import CellFormat, clipping_allowed
from hushsum.service.schemas import UPLOAD_NAME, ConfirmedModelRequest
from hushsum.service.store import StoredFunction, now

from .job_runner import LeaseLost, RunningJob, delete_exact_model_files
from .requests import choice_of, collect_parameter_warnings


def fit(running: RunningJob) -> dict[str, object]:
    """Run the job; returns its result.

    Raises
    ------
    HushsumError
        if the records, settings or budget do not suffice; the upload is kept for another attempt.
    """
    job = running.job
    request = ConfirmedModelRequest.model_validate(job.request)
    if not running.store.functions.known(job.function):
        (_open if request.mode == "exact" else _release)(running, request)
    running.use_up(request.upload)
    return {"function": job.function, "warnings": running.notes}


def _release(running: RunningJob, request: ConfirmedModelRequest) -> None:
    """Release a model as a public file."""
    from hushsum.operations import models  # imports scikit-learn

    job, most = running.job, running.settings.most_model_numbers
    output = running.settings.path("functions", f"{job.function}.hush")
    with collect_parameter_warnings(running.notes), clipping_allowed(request.allow_clipping):
        public = running.public(request)
        counted = models.count_model(
            choice_of(request, most, public),
            _files(running, request, public),
            Destination(str(output), running.ledger, lambda claim, _: running.pay_confirmed(request, claim)),
            progress=running.report_progress,
            most_numbers=most,
        )
    released = models.release_model(counted)
    assert released is not None
    facts = describe_model(released.function, target=request.target, size=released.size)
    running.publish(job.function, request.name, output, facts)


def _open(running: RunningJob, request: ConfirmedModelRequest) -> None:
    """Open a model in exact mode, which has no public file and no digest."""
    from hushsum.operations import models  # imports scikit-learn

    job, ledger = running.job, running.ledger
    place, key = running.settings.path("served", job.function), running.settings.tally_key()
    try:
        if place.with_suffix(".secret").exists():
            # From an earlier attempt. A new fit might differ in a last bit, and its store would refuse it.
            kept = models.SecretModel.load(place, encryption_key=key)
        else:
            with collect_parameter_warnings(running.notes), clipping_allowed(request.allow_clipping):
                kept = models.secret_model(
                    choice_of(request, running.settings.most_model_numbers, running.public(request)),
                    _files(running, request),
                    most_questions=request.most_questions,
                    progress=running.report_progress,
                )
            kept.save(place, encryption_key=key)
        running.pay_confirmed(request, kept.claim)
        kept.open(place, ledger)
        facts = describe_exact(kept)
    except LeaseLost:
        raise
    except Exception:
        # Another worker may be using the same files.
        running.check_lease()
        with suppress(HushsumError):
            # The files of a model whose debit does not exist.
            if ledger.budget().find(job.ledger_key) is None:
                delete_exact_model_files(running.settings, job.function)
        raise
    made = StoredFunction(job.function, job.dataset, request.name, "", facts, now())
    running.store.functions.add(made, running.actor)


def _files(
    running: RunningJob, request: ConfirmedModelRequest, public: PublicFile | None = None
) -> TrainingFiles:
    """The columns of the upload that the model is fitted on."""
    return replace(
        request.declared(),
        paths=(str(running.source(request.upload)),),
        name=UPLOAD_NAME,
        cells=request.states(CellFormat),
        public=public,
    )
