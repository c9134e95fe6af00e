"""Jobs that spend: queued only if the owner has confirmed the claim."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from hushsum.privacy.claim import Claim
from hushsum.service.http.context import Context
from hushsum.service.http.problem_responses import Refusal
from hushsum.service.schemas import (
    ConfirmedModelRequest,
    ConfirmedReleaseRequest,
    JobResponse,
    RequestBody,
)
from hushsum.service.schemas.releases import confirmation
from hushsum.service.store import Actor, Dataset


def submit_confirmed(
    context: Context,
    kind: Literal["release", "model"],
    dataset: Dataset,
    key: str,
    body: ConfirmedReleaseRequest | ConfirmedModelRequest,
    actor: Actor,
    claim: Claim,
    *,
    of: type[RequestBody],
    check: Callable[[], None] = lambda: None,
) -> JobResponse:
    """Queue the job that spends a claim, or find the one of this idempotency key.

    ``of`` is the request of the claim, as for `confirmation`; ``check`` is called for a new job.

    Raises
    ------
    Refusal
        409 unless the body confirms this claim; 503 if the ledger accepts no debits.
    """
    if body.confirm != confirmation(dataset.id, body, claim, of=of):
        raise Refusal(
            409,
            "not-confirmed",
            "confirm must be that of the claim for these parameters; request the claim first",
        )
    context.check_booking()
    if context.jobs.of_key(dataset.id, kind, key) is None:
        check()
        # An early check only: the debit decides. It avoids a job that is bound to fail.
        context.price(dataset, claim)
    return JobResponse.model_validate(context.submit(kind, dataset, key, body, actor))
