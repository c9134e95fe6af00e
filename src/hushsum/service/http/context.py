"""The parts of a running service, and what its routes do with them for a caller."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from fastapi import Depends, Header, Request, Response
from fastapi.routing import APIRoute

from hushsum.errors import UsageError
from hushsum.ledger import Ledger
from hushsum.privacy import Claim
from hushsum.service.jobs import WorkerPool
from hushsum.service.jobs.requests import confirmation, public_file
from hushsum.service.queries import FunctionCache
from hushsum.service.schemas import Confirmed, PublicRequest, RequestBody
from hushsum.service.settings import Settings
from hushsum.service.store import Actor, AnswerGuard, Dataset, Function, Job, Store, StoredTally, Upload
from hushsum.service.store.datasets import WAITING

from .authentication import Caller, SharedLinks, TokenAuthenticator, TtlCache, existing
from .compute_pool import ComputePool, unless_client_leaves
from .metrics import Metrics
from .problem_responses import Refusal
from .request_limits import ConcurrencyLimit, FairThreads, RateLimit, address_group

if TYPE_CHECKING:
    from .oidc import SignIn

V = TypeVar("V")
Check = Callable[[], object]
# Jobs that spend a claim.
JobKind = Literal["release", "model", "stream"]

_THREADS = 32
# Threads for owners' requests, and as many for queries; an account has a few of each.
_THREADS_EACH = 4
_NICENESS_OF_CALCULATIONS = 10
# The service itself, which answers small queries, comes before the processes that calculate.
_NICENESS_OF_QUERIES = 5
# Processor time of one account's queries that are answered on the event loop: per second, and in a burst.
_MILLISECONDS_AT_ONCE = 100.0, 20.0


class Context:
    """The parts of a running service, which its requests share."""

    def __init__(
        self, settings: Settings, store: Store, ledger: Ledger, extensions: list[str], sign_in: SignIn | None
    ) -> None:
        self.settings = settings
        self.store = store
        self.ledger = ledger
        self.sign_in = sign_in
        self.authenticator = TokenAuthenticator(store.accounts, settings.cache_seconds)
        self.visible: TtlCache[bool] = TtlCache(settings.cache_seconds)
        self.shared_links = SharedLinks(store.shares, settings)
        self.function_cache = FunctionCache(partial(AnswerGuard, store.database, ledger))
        self.metrics = Metrics()
        self.worker_pool = WorkerPool(settings)
        self.streams = ConcurrencyLimit(settings.streams_at_once)
        self.threads = FairThreads(each=_THREADS_EACH, most=_THREADS)
        self.query_threads = FairThreads(each=_THREADS_EACH, most=_THREADS)
        self.answered_at_once = RateLimit(*_MILLISECONDS_AT_ONCE)
        pool = partial(
            ComputePool,
            memory=settings.calculation_memory_bytes,
            seconds=settings.calculation_seconds,
            extensions=extensions,
        )
        self.calculations = pool(most=settings.calculations_at_once, niceness=_NICENESS_OF_CALCULATIONS)
        self.large_queries = pool(most=settings.large_queries_at_once, niceness=_NICENESS_OF_QUERIES)

    @property
    def stops(self) -> bool:
        """Whether the service stops."""
        return self.calculations.closed

    def stop_calculations(self) -> None:
        """End all calculations, and event streams: the service stops."""
        self.calculations.close()
        self.large_queries.close()


async def context_of(request: Request) -> Context:
    """The context of the application that serves a request."""
    context: Context = request.app.state.context
    return context


class Call:
    """A request of an authenticated caller."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.context: Context = request.app.state.context
        self.settings: Settings = self.context.settings
        self.store: Store = self.context.store
        self.ledger: Ledger = self.context.ledger
        self.caller: Caller = request.scope["state"]["caller"]
        self.account = self.caller.account
        # The caller and the request as the audit log records them.
        self.actor = Actor(self.account, request.scope["state"]["request"])

    async def in_thread(self, call: Callable[..., V], /, *given: Any, **options: Any) -> V:
        """The result of a call that runs in one of the caller's threads; mostly it waits for the database."""
        return await self.context.threads.run(self.account, call, *given, **options)

    async def calculate(self, calculation: str, /, *, size: int = 1, **about: Any) -> dict[str, Any]:
        """The result of one of `hushsum.service.compute.calculations`, which ends when the client leaves.

        Those of about the same ``size`` are expected to take about as long.
        """
        kind = f"{calculation} {size.bit_length()}"
        work = self.context.calculations.run(self.account, calculation, about, kind=kind)
        return await unless_client_leaves(self.request, work)

    def dataset(self, id: str) -> Dataset:
        """A dataset of the caller; 404 if it belongs to another account."""
        return existing(self.store.datasets.find(id, owner=self.account))

    def function(self, id: str, *, owned: bool = False) -> Function:
        """A function that the caller may query, or with ``owned`` may decide about; 404 for another."""
        found = existing(self.store.functions.find(id, account=self.account))
        existing(found.owned or not owned)
        return found

    def tally(self, dataset: str, id: str) -> StoredTally:
        """A tally of a dataset; 422 if it is another's."""
        stored = self.store.datasets.tally(id, dataset=dataset)
        if stored is None:
            raise UsageError("tally", "must be one of this dataset", remedy="create it first")
        return stored

    def upload(
        self, dataset: str, id: str, *, name: str = "upload", used: bool = False, tally: bool = False
    ) -> Upload:
        """An upload of records that was not counted, or ``used`` by a request that is repeated; or of a
        ``tally``, where these can be given. ``name`` is the parameter that names it.
        """
        found = self.store.datasets.upload(id, dataset=dataset)
        if found is None or (found.state != WAITING and not used) or (found.format == "tally" and not tally):
            rule = "must be a file of records that was not counted"
            raise UsageError(name, rule, remedy="upload the file again")
        return found

    def public_path(self, dataset: str, body: PublicRequest) -> str | None:
        """The path of the upload that a request declares public."""
        public = public_file(self.store.datasets, self.settings, dataset, body)
        return None if public is None else public.path

    def check_booking(self) -> None:
        """Raise if the ledger accepts no debits, because it may be a restored backup."""
        if self.ledger.rollback_problem() is not None:
            detail = "the ledger may be a restored backup, so no release is possible until an administrator "
            detail += "accepts it; queries of released functions work"
            raise Refusal(503, "restore-not-accepted", detail)

    def submit(self, kind: str, dataset: Dataset, key: str, body: RequestBody) -> Job:
        """Queue a job, or find the one of this idempotency key, and wake the workers.

        Raises
        ------
        QuotaExceeded
            if the account has too many unfinished jobs.
        """
        request = body.model_dump(mode="json", exclude_defaults=True)
        most = self.settings.owner_jobs
        job = self.store.jobs.submit(kind, dataset.id, key, request, self.actor, most=most)
        self.context.worker_pool.wake()
        return job

    def submit_confirmed(
        self,
        kind: JobKind,
        dataset: Dataset,
        key: str,
        body: Confirmed,
        claimed: dict[str, Any],
        *checks: Check,
    ) -> Job:
        """Queue the job that spends a claim which the owner has confirmed, or find the one of this key.

        The ``checks`` are made for a new job.

        Raises
        ------
        Refusal
            409 unless the body confirms this claim; 503 if the ledger accepts no debits.
        """
        claim = Claim.from_json(claimed)
        if body.confirm != confirmation(kind, dataset.id, body, claim):
            detail = "confirm must be that of the claim for these parameters; request the claim first"
            raise Refusal(409, "not-confirmed", detail)
        self.check_booking()
        if self.store.jobs.of_key(dataset.id, kind, key) is None:
            for check in checks:
                check()
            # An early check only: the debit decides. It avoids a job that is bound to fail.
            self.ledger.dataset(dataset.id).price(claim, called=dataset.name)
        return self.submit(kind, dataset, key, body)

    def priced(
        self, kind: JobKind, dataset: Dataset, key: str | None, body: RequestBody, claimed: dict[str, Any]
    ) -> dict[str, Any]:
        """The fields of a `ClaimResponse`. A claim that is shown again, with the key of its job, costs
        nothing more: what is left may be less.

        Raises
        ------
        BudgetExhausted, ClaimError
            as a debit would.
        """
        claim = Claim.from_json(claimed)
        budget = self.ledger.dataset(dataset.id)
        if key is not None and self.store.jobs.of_key(dataset.id, kind, key) is not None:
            charge, after = budget.cost(claim), budget.account
        else:
            charge, after = budget.price(claim, called=dataset.name)
        return {
            "claim": claim.in_numbers(),
            "cost": charge.as_json(),
            "remaining": after.remaining.as_json(),
            "confirm": confirmation(kind, dataset.id, body, claim),
        }


class Needed:
    """A dependency: the call of an account whose token has one of the scopes; of any account, if none is
    named.

    The OpenAPI description is made from it.
    """

    def __init__(self, *scopes: str) -> None:
        self.scopes = scopes

    # A coroutine only because FastAPI runs others in a thread, which costs more than they do.
    async def __call__(self, request: Request) -> Call:
        """The call, or a 403; the middleware has authenticated the request."""
        call = Call(request)
        if self.scopes and set(self.scopes).isdisjoint(call.caller.scopes):
            needed = " or ".join(map(repr, self.scopes))
            detail = f"this needs a token with the scope {needed}; get one from an administrator"
            raise Refusal(403, "forbidden", detail)
        return call


AnyCaller = Annotated[Call, Depends(Needed())]
Admin = Annotated[Call, Depends(Needed("admin"))]
Uploader = Annotated[Call, Depends(Needed("upload"))]
Releaser = Annotated[Call, Depends(Needed("release"))]
UploaderOrReleaser = Annotated[Call, Depends(Needed("upload", "release"))]
ReleaserOrAdmin = Annotated[Call, Depends(Needed("release", "admin"))]
Querier = Annotated[Call, Depends(Needed("query"))]
ContextDependency = Annotated[Context, Depends(context_of)]
_KEYS = r"^[A-Za-z0-9_.-]{1,64}$"
IdempotencyKey = Annotated[str, Header(alias="Idempotency-Key", pattern=_KEYS)]
# The key of a job whose claim is shown again, because its request is repeated.
RepeatedKey = Annotated[str | None, Header(alias="Idempotency-Key", pattern=_KEYS)]


async def only_known_parameters(request: Request) -> None:
    """A dependency: a query parameter that the route does not declare is refused, like an unknown field.

    Routes that read their parameters themselves check them themselves. Public routes accept anything, since
    other sites may add parameters to links.
    """
    route = request.scope["route"]
    if not request.scope["query_string"] or "caller" not in request.scope["state"]:
        return
    if "parameters" not in (route.openapi_extra or {}):
        known = {each.alias for each in route.dependant.query_params}
        if not known.issuperset(request.query_params):
            raise UsageError("the address has unknown query parameters", remedy="leave them out")


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
