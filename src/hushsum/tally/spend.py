"""A release through a budget book: debited, drawn, staged; then published by whoever delivers the bytes."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from hushsum.errors import UsageError
from hushsum.privacy.budget import Budget, Debit
from hushsum.privacy.claim import Claim
from hushsum.releases.base import Released
from hushsum.releases.load import load

R = TypeVar("R", bound=Released)


@dataclass(frozen=True, slots=True)
class StagedRelease(Generic[R]):
    """A release whose bytes the book keeps. Deliver ``payload``, then call ``debit.publish()``."""

    function: R
    payload: bytes
    debit: Debit


def stage_release(
    budget: Budget,
    dataset: str,
    claim: Claim,
    *,
    subject: Mapping[str, object],
    key: str,
    make: Callable[[], R],
) -> StagedRelease[R]:
    """Debit the claim, draw with ``make`` unless an earlier attempt with this key was staged, and stage the
    bytes.

    A crash before *staged* leaves no byte outside this process, so a retry may draw again under the same
    debit. After it, the retry gets the staged bytes back.
    """
    debit = budget.debit(dataset, claim, subject=subject, key=key)
    earlier = debit.staged
    if earlier is not None:
        return StagedRelease(_of_this_release(earlier, claim), earlier, debit)
    debit.draw()
    function = make()
    buffer = io.BytesIO()
    function.save(buffer)
    drawn = buffer.getvalue()
    payload = debit.stage(drawn)
    if payload != drawn:
        function = _of_this_release(payload, claim)
    return StagedRelease(function, payload, debit)


def _of_this_release(payload: bytes, claim: Claim) -> Any:
    """Staged bytes that claim something else were staged for another release: the book mixed up its keys."""
    function = load(io.BytesIO(payload))
    if function.claim != claim:
        raise UsageError("the key belongs to a release with another claim; release with another key")
    return function
