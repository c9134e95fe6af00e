"""Ledgers: the budget of each dataset, and the durable record of what was released from it.

``Ledger(place).dataset(name)`` is a :class:`hushsum.privacy.budget.Budget`, on SQLite (one file) or
PostgreSQL (a URL).
"""

from hushsum.ledger.account import Account
from hushsum.ledger.dataset_budget import DatasetBudget
from hushsum.ledger.dataset_terms import Accounting, Charge, DatasetTerms
from hushsum.ledger.events import Entry, Receipt
from hushsum.ledger.ledger import Ledger
from hushsum.ledger.verify import Verification

__all__ = [
    "Account",
    "Accounting",
    "Charge",
    "DatasetBudget",
    "DatasetTerms",
    "Entry",
    "Ledger",
    "Receipt",
    "Verification",
]
