"""What the routes of one application share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastapi import Request

from hushsum.errors import BudgetExhausted
from hushsum.ledger import Account, Charge, Ledger
from hushsum.privacy.claim import Claim
from hushsum.service.access import Caller, Door, ShortMemory, nothing_here
from hushsum.service.answering import Shelf
from hushsum.service.metrics import Metrics
from hushsum.service.settings import Settings
from hushsum.service.store import Accounts, Dataset, Datasets, Functions, Identities, JobQueue, Store

if TYPE_CHECKING:
    from hushsum.service.oidc.sign_in import SignIn


@dataclass(frozen=True, slots=True)
class Context:
    """The parts of a running service."""

    settings: Settings
    store: Store
    accounts: Accounts
    identities: Identities
    datasets: Datasets
    functions: Functions
    jobs: JobQueue
    ledger: Ledger
    door: Door
    visible: ShortMemory[bool]
    shelf: Shelf
    metrics: Metrics
    wake: Callable[[], None]
    worker_trouble: Callable[[], str | None]
    sign_in: SignIn | None

    def dataset(self, id: str, caller: Caller) -> Dataset:
        """A dataset of the caller's; for anybody else there is nothing here."""
        found = self.datasets.find(id, owner=caller.account)
        if found is None:
            raise nothing_here()
        return found

    def price(self, dataset: Dataset, claim: Claim) -> tuple[Charge, Account]:
        """What a claim would cost, and the account after it; a refusal calls the dataset as its owner does.

        Raises
        ------
        BudgetExhausted, ClaimError
            as a debit would.
        """
        try:
            return self.ledger.dataset(dataset.id).price(claim)
        except BudgetExhausted as error:
            raise BudgetExhausted(str(error).replace(dataset.id, dataset.name)) from None


async def context_of(request: Request) -> Context:
    """The context of the application that serves a request."""
    context: Context = request.app.state.context
    return context
