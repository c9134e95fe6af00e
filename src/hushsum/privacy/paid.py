"""A small public result, paid for in a budget book and never drawn twice under one key."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hushsum.errors import UsageError
from hushsum.files.container import canonical_json
from hushsum.privacy.budget import Budget
from hushsum.privacy.claim import Claim


@dataclass(frozen=True, slots=True)
class Payment:
    """Where a choice is booked: a book, the data's name in it, and a key that names the attempt."""

    ledger: Budget
    dataset: str
    key: str

    @classmethod
    def of(cls, ledger: Budget | None, dataset: str | None, key: str | None) -> Payment | None:
        """Read the three arguments of a paid call; None where nothing is booked.

        Raises
        ------
        UsageError
            a dataset or a key without a ledger, or a ledger without a dataset.
        """
        if ledger is None:
            if dataset is not None or key is not None:
                raise UsageError("dataset and key name an entry of a ledger, got no ledger; give ledger=...")
            return None
        if dataset is None:
            raise UsageError("dataset must name the data in the ledger, got none; give dataset=...")
        return cls(ledger, dataset, secrets.token_hex(16) if key is None else key)


def pay_for(
    payment: Payment | None,
    claim: Claim,
    *,
    subject: Mapping[str, object],
    make: Callable[[], dict[str, Any]],
) -> dict[str, Any]:
    """Debit the claim, make the result unless this key has one already, stage it as canonical JSON, publish.

    The staged bytes say what was chosen from what under which claim, so that they explain themselves to
    whoever reads the book. The result always passes through them: a retry returns what the first call would
    have.

    Raises
    ------
    UsageError
        if the key has a result already, of another choice.
    """
    asked: dict[str, Any] = json.loads(canonical_json({"claim": claim.as_json(), "subject": dict(subject)}))
    if payment is None:
        return _through_json(make())
    debit = payment.ledger.debit(payment.dataset, claim, subject=subject, key=payment.key)
    payload = debit.staged
    if payload is None:
        debit.draw()
        # Another process may have staged first under this key; only what the book kept may be told.
        payload = debit.stage(canonical_json({**asked, "result": make()}))
    staged = json.loads(payload)
    if {name: staged.get(name) for name in asked} != asked or "result" not in staged:
        raise UsageError("key names another choice in the ledger; leave it out, or give a new one")
    debit.publish()
    result: dict[str, Any] = staged["result"]
    return result


def _through_json(value: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(canonical_json(value))
    return result
