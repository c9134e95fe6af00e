"""Ledgers: the budget of each dataset, and the durable record of what was released from it.

``Ledger(place).dataset(name)`` is a :class:`hushsum.privacy.Budget`, on SQLite (one file) or
PostgreSQL (a URL).
"""

from ._account import Account, Accounting, Charge, DatasetTerms, charge_for
from ._database import REVISION, VERSION_TABLE, WAIT_SECONDS, Database, connect, file_of, metadata
from ._ledger import (
    DatasetBudget,
    DisclosureReport,
    Entry,
    Fence,
    Kind,
    Ledger,
    LedgerDebit,
    LedgerGuard,
    Receipt,
    Verification,
    Watermark,
    WatermarkGuard,
)

__all__ = [
    "REVISION", "VERSION_TABLE", "WAIT_SECONDS", "Account", "Accounting", "Charge", "Database",
    "DatasetBudget", "DatasetTerms", "DisclosureReport", "Entry", "Fence", "Kind", "Ledger", "LedgerDebit",
    "LedgerGuard", "Receipt", "Verification", "Watermark", "WatermarkGuard", "charge_for", "connect",
    "file_of", "metadata",
]  # fmt: skip
