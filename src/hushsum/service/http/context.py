"""The parts of a running service that its routes share."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from fastapi import Depends, Header, Request, Response
from fastapi.routing import APIRoute

from hushsum.ledger import Account, Charge, Ledger
from hushsum.privacy import Claim
from hushsum.service.http.authentication import (
    Caller,
    TokenAuthenticator,
    TtlCache,
    actor_of,
    caller_of,
    needs,
    nothing_here,
)
from hushsum.service.http.compute_pool import ComputePool, unless_client_leaves
from hushsum.service.http.metrics import Metrics
from hushsum.service.http.problem_responses import Refusal
from hushsum.service.http.request_limits import ConcurrencyLimit, FairThreads, RateLimit, address_group
from hushsum.service.http.shared_link_lookup import SharedLinks
from hushsum.service.jobs.requests import confirmation
from hushsum.service.queries.function_cache import FunctionCache
from hushsum.service.schemas import (
    ConfirmedModelRequest,
    ConfirmedReleaseRequest,
    ConfirmedStreamRequest,
    JobResponse,
    RequestBody,
)
from hushsum.service.settings import Settings
from hushsum.service.store import (
    Accounts,
    Actor,
    Dataset,
    Datasets,
    Functions,
    Identities,
    Job,
    JobQueue,
    LogReader,
    Shares,
    Store,
    StoredTally,
    Upload,
)
from hushsum.service.store.datasets import WAITING

if TYPE_CHECKING:
    from hushsum.service.http.oidc._sign_in import SignIn


V = TypeVar("V")
JobKind = Literal["release", "model", "stream"]
"""Jobs that spend a claim."""


@dataclass(frozen=True, slots=True)
class Context:
    """The parts of a running service."""

    settings: Settings
    store: Store
    accounts: Accounts
    identities: Identities
    datasets: Datasets
    functions: Functions
    shares: Shares
    log: LogReader
    jobs: JobQueue
    ledger: Ledger
    authenticator: TokenAuthenticator
    visible: TtlCache[bool]
    shared_links: SharedLinks
    function_cache: FunctionCache
    metrics: Metrics
    streams: ConcurrencyLimit
    threads: FairThreads
    query_threads: FairThreads
    calculations: ComputePool
    large_queries: ComputePool
    answered_at_once: RateLimit
    wake: Callable[[], None]
    workers_alive: Callable[[], int]
    worker_trouble: Callable[[], str | None]
    sign_in: SignIn | None

    async def in_thread(self, caller: Caller, call: Callable[..., V], /, *given: Any, **options: Any) -> V:
        """What the call returns, in one of the caller's threads; mostly it waits for the database."""
        return await self.threads.run(caller.account, call, *given, **options)

    async def calculate(
        self, request: Request, caller: Caller, calculation: str, /, *, size: int = 1, **about: Any
    ) -> dict[str, Any]:
        """The result of one of `hushsum.service.compute.calculations`, which ends when the client leaves.

        Those of about the same ``size`` are expected to take about as long.
        """
        kind = f"{calculation} {size.bit_length()}"
        work = self.calculations.run(caller.account, calculation, about, kind=kind)
        return await unless_client_leaves(request, work)

    def dataset(self, id: str, caller: Caller) -> Dataset:
        """A dataset of the caller; 404 if it belongs to another account."""
        found = self.datasets.find(id, owner=caller.account)
        if found is None:
            raise nothing_here()
        return found

    def tally(self, dataset: str, id: str) -> StoredTally:
        """A tally of a dataset; 422 if it is another's."""
        stored = self.datasets.tally(id, dataset=dataset)
        if stored is None:
            raise Refusal(422, "parameter-refused", "tally must be one of this dataset; create it first")
        return stored

    def upload(self, dataset: str, id: str, *, used: bool = False) -> Upload:
        """An upload of records that was not counted, or ``used`` by a request that is repeated."""
        found = self.datasets.upload(id, dataset=dataset)
        if found is None or (found.state != WAITING and not used) or found.format == "tally":
            raise Refusal(
                422,
                "parameter-refused",
                "upload must be a file of records that was not counted; upload the file again",
            )
        return found

    def check_cells(self, cells: int) -> None:
        """Refuse a table that is larger than the service takes."""
        if cells > self.settings.max_cells:
            most = self.settings.max_cells
            raise Refusal(422, "parameter-refused", f"a table must have at most {most} cells; use fewer")

    @property
    def stops(self) -> bool:
        """Whether the service stops."""
        return self.calculations.closed

    def stop_calculations(self) -> None:
        """End all calculations, and event streams: the service stops."""
        self.calculations.close()
        self.large_queries.close()

    def check_booking(self) -> None:
        """Raise if the ledger accepts no debits, because it may be a restored backup."""
        if self.ledger.rollback_problem() is not None:
            raise Refusal(
                503,
                "restore-not-accepted",
                "the ledger may be a restored backup, so no release is possible until an administrator "
                "accepts it; queries of released functions work",
            )

    def submit(self, kind: str, dataset: Dataset, key: str, body: RequestBody, actor: Actor) -> Job:
        """Queue a job, or find the one of this idempotency key, and wake the workers.

        Raises
        ------
        QuotaExceeded
            if the account has too many unfinished jobs.
        """
        request = body.model_dump(mode="json", exclude_defaults=True)
        job, _ = self.jobs.submit(
            kind, dataset=dataset.id, key=key, request=request, actor=actor, most=self.settings.owner_jobs
        )
        self.wake()
        return job

    def submit_confirmed(
        self,
        kind: JobKind,
        dataset: Dataset,
        key: str,
        body: ConfirmedReleaseRequest | ConfirmedModelRequest | ConfirmedStreamRequest,
        actor: Actor,
        claim: Claim,
        *,
        of: type[RequestBody],
        check: Callable[[], None] = lambda: None,
    ) -> JobResponse:
        """Queue the job that spends a claim which the owner has confirmed, or find the one of this key.

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
        self.check_booking()
        if self.jobs.of_key(dataset.id, kind, key) is None:
            check()
            # An early check only: the debit decides. It avoids a job that is bound to fail.
            self.ledger.dataset(dataset.id).price(claim, called=dataset.name)
        return JobResponse.model_validate(self.submit(kind, dataset, key, body, actor))

    def price(self, kind: JobKind, dataset: Dataset, claim: Claim, key: str | None) -> tuple[Charge, Account]:
        """What a claim would cost, and the account after it. A claim that is shown again, with the key of its
        job, costs nothing more: what is left may be less.

        Raises
        ------
        BudgetExhausted, ClaimError
            as a debit would.
        """
        budget = self.ledger.dataset(dataset.id)
        if key is not None and self.jobs.of_key(dataset.id, kind, key) is not None:
            return budget.cost(claim), budget.account
        return budget.price(claim, called=dataset.name)


async def context_of(request: Request) -> Context:
    """The context of the application that serves a request."""
    context: Context = request.app.state.context
    return context


AnyCaller = Annotated[Caller, Depends(caller_of)]
Admin = Annotated[Caller, Depends(needs("admin"))]
Uploader = Annotated[Caller, Depends(needs("upload"))]
Releaser = Annotated[Caller, Depends(needs("release"))]
UploaderOrReleaser = Annotated[Caller, Depends(needs("upload", "release"))]
Querier = Annotated[Caller, Depends(needs("query"))]
ContextDependency = Annotated[Context, Depends(context_of)]
ActorDependency = Annotated[Actor, Depends(actor_of)]
_KEYS = r"^[A-Za-z0-9_.-]{1,64}$"
IdempotencyKey = Annotated[str, Header(alias="Idempotency-Key", pattern=_KEYS)]
RepeatedKey = Annotated[str | None, Header(alias="Idempotency-Key", pattern=_KEYS)]
"""Of a claim that is shown again, because the request that it is for is repeated."""


class ThreadedRoute(APIRoute):
    """A route whose function runs in a thread, unless it is a coroutine: an account has a few threads only.

    Those who are not authenticated are counted by their address.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler that FastAPI calls."""
        handle = super().get_route_handler()
        if iscoroutinefunction(self.endpoint):
            return handle

        async def in_turn(request: Request) -> Response:
            # Before it has a place, which a slow body would keep.
            await request.body()
            caller = request.scope["state"].get("caller")
            name = address_group(request.scope["client"][0]) if caller is None else caller.account
            async with (await context_of(request)).threads.place(name):
                return await handle(request)

        return in_turn
