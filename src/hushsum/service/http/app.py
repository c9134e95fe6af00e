"""The application factory."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from hushsum.errors import HushsumError, UsageError
from hushsum.ledger import Ledger
from hushsum.service.problem_types import MEDIA_TYPE
from hushsum.service.schemas import Problem
from hushsum.service.settings import Settings
from hushsum.service.store import Accounts, Actor, Store
from hushsum.service.store.accounts import new_token
from hushsum.service.store.database import agree_on_folder, starting
from hushsum.version import __version__

from .authentication import ADMINISTRATOR, SCOPES
from .compute_pool import FORK_SERVER
from .context import Context, Needed, only_known_parameters
from .middleware import PUBLIC, SIGN_IN, QueryFastPath, RequestMiddleware, is_public
from .problem_responses import answer_problem
from .request_limits import RateLimit, address_group
from .routes import ROUTERS, functions

if TYPE_CHECKING:
    from .oidc import SignIn


OPENAPI: Final = "/openapi.json"
_STATUSES: Final = {
    "400": "A request that cannot be read",
    "401": "No token, or one that no longer works",
    "403": "The token's scopes do not suffice",
    "404": "Nothing that the caller may see",
    "408": "A body that came too slowly",
    "409": "Another state than the request takes for granted: a name taken, a budget exhausted",
    "413": "Too long a body",
    "422": "A request that breaks a rule",
    "429": "Too many requests",
    "431": "Too long headers",
    "503": "Not now; try again",
    "507": "The disk is full",
}


def describe(app: FastAPI, routers: Iterable[APIRouter], root_path: str = "") -> dict[str, Any]:
    """The description, with who may call each route and the refusals that it may answer."""
    made = get_openapi(
        title="Hushsum",
        version=__version__,
        openapi_version="3.1.0",
        summary="Release a function of your private data once; query it forever.",
        routes=app.routes,
        servers=[{"url": root_path}] if root_path else None,
    )
    schemas = made["components"]["schemas"]
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas["Problem"] = Problem.model_json_schema()
    made["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    refused = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    routes = {
        (method, each.path_format): each
        for router in routers
        for each in router.routes
        if isinstance(each, APIRoute)
        for method in each.methods or ()
    }
    for path, item in made["paths"].items():
        for method, operation in item.items():
            operation["responses"].pop("422", None)
            operation["security"] = _security(routes.get((method.upper(), path)), path)
            if path in PUBLIC:
                continue
            stale = {"400": "Not a sign-in that this browser has begun lately"} if path in SIGN_IN else {}
            for status, text in (_STATUSES | stale).items():
                operation["responses"][status] = {"description": text, "content": refused}
    return made


def _security(route: APIRoute | None, path: str) -> list[dict[str, list[str]]]:
    """The callers of a route: anybody, anybody with a token, or a token with one of these scopes.

    Each entry is an alternative. A route that declares nothing gets none, and a test finds it.
    """
    if is_public(path):
        return []
    dependencies = () if route is None else route.dependant.dependencies
    needed = [each.call.scopes for each in dependencies if isinstance(each.call, Needed)]
    if not needed:
        raise AssertionError(f"{path} does not declare who may call it; take a call, such as a Releaser")
    # One that names no scope takes any token.
    return [{"token": [scope] if scope else []} for scopes in needed for scope in scopes or ("",)]


def as_text(app: FastAPI) -> str:
    """The description as it is committed."""
    return json.dumps(app.openapi(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


# How many descriptions one address may request.
_DESCRIPTIONS_PER_SECOND: Final = 5.0

# The name of the account that the first start creates.
FIRST = "admin"


def create_app(settings: Settings) -> FastAPI:
    """The service with these settings; its database is created or migrated first.

    Its workers run from the application's startup to its shutdown.

    Raises
    ------
    UsageError, LedgerUnavailable, FileRefused
        if the folder or the database cannot be used.
    """
    provider = _sign_in(settings)
    extensions = settings.import_extensions()
    settings.prepare()
    folder = settings.path("")
    with starting(settings.place, folder, wait_seconds=settings.database_seconds):
        # The ledger first: it notices a database that was lost, before an empty one takes its place.
        ledger = Ledger.create(
            settings.place, guard=settings.ledger_guard, wait_seconds=settings.database_seconds
        )
        store = Store.open(settings.place, create=True, wait_seconds=settings.database_seconds)
        settings.tally_key()
        agree_on_folder(store.database, folder)
        first_administrator(settings, store.accounts)
    context = Context(settings, store, ledger, extensions, provider)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        context.worker_pool.start()
        # An application may be started again.
        context.calculations.closed = context.large_queries.closed = False
        if settings.workers:
            FORK_SERVER.start()
        try:
            yield
        finally:
            context.stop_calculations()
            context.worker_pool.stop()

    app = FastAPI(
        title="Hushsum",
        version=__version__,
        openapi_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
        dependencies=[Depends(only_known_parameters)],
    )
    app.state.context = context
    # Routes are matched in order, and most requests are queries.
    for router in ROUTERS:
        app.include_router(router)
    for kind in (HTTPException, RequestValidationError, HushsumError):
        app.add_exception_handler(kind, answer_problem)
    app.add_middleware(QueryFastPath, state=app.state, query=functions.query)
    app.add_middleware(RequestMiddleware, context=context)
    _describe_once(app, settings.root_path)
    return app


def first_administrator(settings: Settings, accounts: Accounts) -> None:
    """Create the first account and print its token once to standard error, or use the configured token."""
    found = accounts.find(name=FIRST)
    account = found or accounts.create(FIRST, ADMINISTRATOR, Actor("service"))
    given = settings.admin_token or None
    known = None if given is None else accounts.known(given)
    if known is not None and (not known.works or known.account != account.id):
        reason = "was revoked" if known.revoked else f"has expired on {known.expires[:10]}"
        if known.account != account.id:
            reason = "belongs to another account"
        words = f"HUSHSUM_ADMIN_TOKEN {reason} and is not accepted; set another one: openssl rand -hex 32"
        print(words, file=sys.stderr, flush=True)
    if found is not None and (given is None or known is not None):
        return
    label = "first start" if given is None else "environment"
    made = new_token(account.id, SCOPES[ADMINISTRATOR], days=settings.token_days, label=label, secret=given)
    token = accounts.issue(made, Actor("service"))
    assert token is not None
    if given is None:
        words = f"The administrator's token, shown only once and valid until {token.expires[:10]}:"
        print(f"{words}\n\n    {token.secret}\n", file=sys.stderr, flush=True)


def _sign_in(settings: Settings) -> SignIn | None:
    if not settings.oidc_issuer:
        return None
    try:
        from .oidc import ProviderSettings, SignIn
    except ImportError:
        raise UsageError("signing in with a provider needs PyJWT", remedy="install hushsum[oidc]") from None
    return SignIn(ProviderSettings.of(settings), settings.failures_per_minute)


def _describe_once(app: FastAPI, root_path: str) -> None:
    limit = RateLimit(_DESCRIPTIONS_PER_SECOND, 10 * _DESCRIPTIONS_PER_SECOND)
    openapi = cache(partial(describe, app, ROUTERS, root_path))

    @cache
    def encoded() -> bytes:
        return json.dumps(openapi(), ensure_ascii=False, separators=(",", ":")).encode()

    async def show(request: Request) -> Response:
        address = address_group(request.scope["client"][0])
        limit.spend(address)
        content = await app.state.context.threads.run(address, encoded)
        return Response(content, media_type="application/json")

    app.openapi = openapi  # type: ignore[method-assign]
    # Anybody may ask for it, and to encode half a megabyte takes longer than most requests.
    app.add_route(OPENAPI, show, include_in_schema=False)
