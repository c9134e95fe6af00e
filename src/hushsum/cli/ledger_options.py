"""The options that record a release in a ledger, read together."""

from __future__ import annotations

from hushsum.errors import Parameter, UsageError
from hushsum.jobs.ledger_release import LedgerOptions


def ledger_options(
    ledger: str | None,
    dataset: str | None,
    idempotency_key: str | None = None,
    to: str | None = None,
    part: str | None = None,
) -> LedgerOptions | None:
    """Where the release is recorded; None without a ledger.

    Raises
    ------
    UsageError
        if only some of the options are given.
    """
    if (ledger is None) != (dataset is None):
        raise UsageError(
            parameter="ledger",
            rule=("and ", Parameter("dataset"), " go together"),
            got="one of them",
            remedy="give both",
        )
    if ledger is None or dataset is None:
        if any(each is not None for each in (idempotency_key, to, part)):
            raise UsageError(
                rule=(
                    Parameter("idempotency_key"),
                    ", ",
                    Parameter("to"),
                    " and ",
                    Parameter("part"),
                    " are for a ledger",
                ),
                got="none",
                remedy=("give ", Parameter("ledger"), " and ", Parameter("dataset")),
            )
        return None
    return LedgerOptions(ledger, dataset, idempotency_key, to, part)
