"""What the routes of one application share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastapi import Request

from hushsum.errors import BudgetExhausted
from hushsum.ledger import Account, Charge, Ledger
from hushsum.privacy.claim import Claim
from hushsum.service.http.access import nothing_here
from hushsum.service.http.authentication import Caller, TokenAuthenticator
from hushsum.service.http.metrics import Metrics
from hushsum.service.http.problem_responses import Refusal
from hushsum.service.http.request_limits import AtOnce, Turns
from hushsum.service.http.ttl_cache import TtlCache
from hushsum.service.queries.function_cache import FunctionCache
from hushsum.service.settings import Settings
from hushsum.service.store import Accounts, Dataset, Datasets, Functions, Identities, JobQueue, Store

if TYPE_CHECKING:
    from hushsum.service.http.oidc.sign_in import SignIn


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
    authenticator: TokenAuthenticator
    visible: TtlCache[bool]
    function_cache: FunctionCache
    metrics: Metrics
    streams: AtOnce
    large_queries: Turns
    wake: Callable[[], None]
    workers_alive: Callable[[], int]
    worker_trouble: Callable[[], str | None]
    sign_in: SignIn | None

    def dataset(self, id: str, caller: Caller) -> Dataset:
        """A dataset of the caller's; for anybody else there is nothing here."""
        found = self.datasets.find(id, owner=caller.account)
        if found is None:
            raise nothing_here()
        return found

    def check_booking(self) -> None:
        """Raise if the ledger books nothing, because it may be a restored backup."""
        if self.ledger.rollback_problem() is not None:
            raise Refusal(
                503,
                "restore-not-accepted",
                "the ledger may be a restored backup, so nothing is booked until an administrator accepts "
                "it; released functions answer as before",
            )

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
