"""Accounts, their use and tokens, the audit log, and sign-in with an identity provider."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic.json_schema import SkipJsonSchema

from hushsum.errors import UsageError

from ...logs import log_event
from ...schemas import AccountRequest, IdentityRequest, SignInResponse, TokenRequest, UsageResponse
from ...store import Account, Identity, IssuedToken, LogEntry, Token
from ...store.accounts import TICKET_SECONDS, new_token
from ...store.database import LAST_SEQUENCE, MOST_LINES
from ..authentication import ADMINISTRATOR, SCOPES, Caller, existing
from ..context import Admin, AnyCaller, Call, ContextDependency, ThreadedRoute
from ..problem_responses import Refusal

if TYPE_CHECKING:
    from hushsum.service.http.oidc import SignIn


router = APIRouter(tags=["accounts"], route_class=ThreadedRoute)

# A text that may be left out; an address cannot say null.
Text = str | SkipJsonSchema[None]
Sequence = Annotated[int, Query(ge=0, le=LAST_SEQUENCE)]
Day = Annotated[str, Query(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]


@router.get("/me")
async def me(call: AnyCaller) -> Caller:
    """The account that the token belongs to, and its scopes."""
    return call.caller


@router.get("/usage")
def usage(call: AnyCaller) -> UsageResponse:
    """The use of each quota of the caller's account."""
    settings, store = call.settings, call.store
    kept = store.datasets.kept_by(call.account)
    tokens = store.accounts.tokens_of(call.account)
    quotas = {
        "bytes": (kept.bytes, settings.owner_bytes),
        "cells": (kept.cells, settings.owner_cells),
        "jobs": (store.jobs.active_of(call.account), settings.owner_jobs),
        "tokens": (sum(each.works for each in tokens), settings.max_tokens),
    }
    found = {name: {"used": used, "most": most} for name, (used, most) in quotas.items()}
    return UsageResponse.model_validate(found)


@router.get("/accounts")
def list_accounts(call: Admin) -> list[Account]:
    """All accounts."""
    return call.store.accounts.all()


@router.post("/accounts", status_code=201)
def create_account(body: AccountRequest, call: Admin) -> Account:
    """Create an account: an administrator, an owner of datasets, or an analyst."""
    return call.store.accounts.create(body.name, body.role, call.actor)


@router.delete("/accounts/{account}", status_code=204)
def disable_account(account: str, call: Admin) -> None:
    """Close an account permanently: its tokens stop working, and its unpaid jobs are cancelled."""
    if account == call.account:
        detail = "an administrator cannot close their own account; let another administrator do it"
        raise Refusal(409, "own-account", detail)
    existing(call.store.accounts.disable(account, call.actor))
    call.context.authenticator.clear_cache()
    call.context.shared_links.clear_cache()
    call.context.visible.clear()


@router.post("/accounts/{account}/tokens", status_code=201)
def issue_token(account: str, body: TokenRequest, call: Admin) -> IssuedToken:
    """A first token for an account. The secret is returned only here.

    One for an administrator is bound to the token in use, as with `POST /tokens`: it neither outlives it nor
    survives its revocation. Tokens of owners and analysts are not.
    """
    found = existing(call.store.accounts.find(id=account))
    existing(not found.disabled)
    bound = found.id == call.account or found.role == ADMINISTRATOR
    return _issue(call, body, found.id, SCOPES[found.role], call.caller.token if bound else None)


@router.get("/accounts/{account}/tokens")
def list_tokens(account: str, call: Admin) -> list[Token]:
    """The tokens of an account, without their secrets."""
    return call.store.accounts.tokens_of(account)


@router.get("/tokens")
def list_own_tokens(call: AnyCaller) -> list[Token]:
    """The caller's own tokens, without their secrets."""
    return call.store.accounts.tokens_of(call.account)


@router.post("/tokens", status_code=201)
def issue_own_token(body: TokenRequest, call: AnyCaller) -> IssuedToken:
    """Another token for the caller, with at most the scopes of the one in use.

    It expires no later than that one, and is revoked with it.
    """
    caller = call.caller
    mine = tuple(scope for scope in SCOPES[caller.role] if scope in caller.scopes)
    return _issue(call, body, call.account, mine, caller.token)


@router.delete("/tokens/{token}", status_code=204)
def revoke_token(token: str, call: AnyCaller) -> None:
    """Revoke a token and those issued with it: the caller's own or, as an administrator, any."""
    whose = None if "admin" in call.caller.scopes else call.account
    existing(call.store.accounts.revoke(token, call.actor, account=whose))
    call.context.authenticator.clear_cache()


@router.get("/log")
def read_log(
    call: Admin,
    after: Sequence = 0,
    before: Sequence = LAST_SEQUENCE,
    account: Annotated[Text, Query(max_length=40)] = None,
    action: Annotated[Text, Query(min_length=1, max_length=40)] = None,
    since: Day = "0001-01-01",
    until: Day = "9999-12-31",
    order: Literal["oldest", "newest"] = "oldest",
    limit: Annotated[int, Query(ge=1, le=MOST_LINES)] = 100,
) -> list[LogEntry]:
    """The append-only audit log, with the names of accounts and objects.

    `account` is an id, `action` a part of the text, `since` and `until` are days, both included.
    """
    days = since, until
    return call.store.log_lines(
        after, before, account, action or "", days, newest=order == "newest", limit=limit
    )


def _issue(
    call: Call, body: TokenRequest, account: str, allowed: tuple[str, ...], parent: str | None
) -> IssuedToken:
    scopes = allowed if body.scopes is None else tuple(dict.fromkeys(body.scopes))
    if not set(scopes) <= set(allowed):
        detail = "a token cannot have scopes beyond those of its role; request fewer scopes"
        raise Refusal(403, "forbidden", detail)
    longest = call.settings.token_days
    days = longest if body.days is None else body.days
    if days > longest:
        raise UsageError("days", f"must be at most {longest}", remedy="request fewer")
    token = new_token(account, scopes, days=days, label=body.label, parent=parent)
    made = call.store.accounts.issue(token, call.actor, most=call.settings.max_tokens)
    if made is None:
        raise Refusal(401, "unauthorized", "the token in use was revoked or has expired; use another one")
    return made


sign_in_router = APIRouter(tags=["sign-in"], route_class=ThreadedRoute)
Parameter = Annotated[str | None, Query(max_length=4096)]

FLOW: Final = "hushsum-sign-in"
TICKET: Final = "hushsum-signed-in"
REQUESTED_WITH: Final = "hushsum"
_REDIRECT: Final[dict[int | str, dict[str, Any]]] = {303: {"description": "To the next step"}}
_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Not signed in · Hushsum</title>
<link rel="stylesheet" href="../assets/page.css">
</head>
<body><main>
<h1>Not signed in</h1><p role="alert">{sentence}</p><p><a href="../">Back to the page</a></p>
</main></body>
</html>
"""


@sign_in_router.get("/sign-in")
async def sign_in_options(context: ContextDependency) -> SignInResponse:
    """The sign-in provider, if one is configured."""
    provider = context.sign_in
    return SignInResponse.model_validate({"oidc": provider and {"name": provider.terms.name}})


@sign_in_router.get("/oidc/start", status_code=303, response_class=Response, responses=_REDIRECT)
def start(request: Request, context: ContextDependency) -> Response:
    """Send the browser to the provider, with a cookie that it must bring back."""
    provider = existing(context.sign_in)
    try:
        address, cookie = provider.begin()
    except Refusal as refusal:
        return _shown(request, refusal)
    answer = RedirectResponse(address, 303)
    # Lax, since the provider sends the browser back from another site.
    _set(answer, provider, FLOW, cookie, seconds=provider.flow_seconds, strict=False)
    return answer


@sign_in_router.get("/oidc/callback", status_code=303, response_class=Response, responses=_REDIRECT)
def callback(
    request: Request,
    context: ContextDependency,
    state: Parameter = None,
    code: Parameter = None,
    iss: Parameter = None,
    error: Parameter = None,
) -> Response:
    """Where the provider sends the browser back to: all checks happen here, and no token is issued yet."""
    provider = existing(context.sign_in)
    given = {"state": state, "code": code, "iss": iss, "error": error}
    sent = {name: value for name, value in given.items() if value is not None}
    try:
        cookie = request.cookies.get(_named(provider, FLOW), "")
        ticket = provider.admit(
            context.store.identities, cookie, sent, _address(request), request.scope["state"]["request"]
        )
    except Refusal as refused:
        return _shown(request, refused)
    answer = RedirectResponse(f"{context.settings.root_path}/#signed-in", 303)
    _set(answer, provider, FLOW, "", seconds=0, strict=False)
    _set(answer, provider, TICKET, ticket, seconds=TICKET_SECONDS, strict=True)
    return answer


@sign_in_router.post("/oidc/finish", status_code=201)
def finish(request: Request, response: Response, context: ContextDependency) -> IssuedToken:
    """The token of a sign-in, for the page that began it: valid for eight hours, returned only here.

    Needs the header `X-Requested-With: hushsum`, which no other site can send along with the cookie.
    """
    provider = existing(context.sign_in)
    origin = request.headers.get("origin", provider.terms.origin)
    if (
        request.headers.get("x-requested-with") != REQUESTED_WITH
        or request.headers.get("sec-fetch-site", "same-origin") != "same-origin"
        or origin != provider.terms.origin
    ):
        detail = f"this is for the service's own page; send X-Requested-With: {REQUESTED_WITH}"
        raise Refusal(403, "forbidden", detail)
    ticket = request.cookies.get(_named(provider, TICKET), "")
    with provider.watching(_address(request)):
        redeemed = context.store.identities.redeem(
            ticket, scopes=SCOPES, request=request.scope["state"]["request"], most=context.settings.max_tokens
        )
        if redeemed is None:
            raise Refusal(401, "sign-in-stale", "there is no sign-in to finish in this browser; begin again")
    _set(response, provider, TICKET, "", seconds=0, strict=True)
    return redeemed


@sign_in_router.get("/accounts/{account}/identity")
def show_identity(account: str, call: Admin) -> Identity:
    """The person who may sign in to an account."""
    return existing(call.store.identities.of(account))


@sign_in_router.post("/accounts/{account}/identity", status_code=201)
def link_identity(account: str, body: IdentityRequest, call: Admin) -> Identity:
    """Let one person at the provider sign in to an account, replacing an earlier link."""
    provider = call.context.sign_in
    if provider is None:
        raise Refusal(409, "no-provider", "this service has no sign-in provider; set HUSHSUM_OIDC_ISSUER")
    issuer, claim = provider.terms.issuer, provider.terms.account_claim
    subject = provider.subject(body.subject)
    made = existing(call.store.identities.link(account, issuer, claim, subject, call.actor))
    call.context.authenticator.clear_cache()
    return made


@sign_in_router.delete("/accounts/{account}/identity", status_code=204)
def unlink_identity(account: str, call: Admin) -> None:
    """Remove the link of an account; tokens from sign-ins stop working."""
    existing(call.store.identities.unlink(account, call.actor))
    call.context.authenticator.clear_cache()


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


def _named(provider: SignIn, name: str) -> str:
    """With the prefix a browser accepts the cookie from this host by HTTPS only, not from others."""
    return f"__Host-{name}" if provider.terms.secure else name


def _set(answer: Response, provider: SignIn, name: str, value: str, *, seconds: int, strict: bool) -> None:
    answer.set_cookie(
        _named(provider, name),
        value,
        max_age=seconds,
        path="/",
        secure=provider.terms.secure,
        httponly=True,
        samesite="strict" if strict else "lax",
    )


def _shown(request: Request, refusal: Refusal) -> Response:
    """A refusal as a page, for a browser that came by a link; as a problem for everybody else."""
    log_event("sign-in refused", request=request.scope["state"]["request"], kind=refusal.kind)
    if "text/html" not in request.headers.get("accept", ""):
        raise refusal
    sentence = html.escape(str(refusal.detail))
    return HTMLResponse(
        _PAGE.format(sentence=sentence[:1].upper() + sentence[1:] + "."),
        refusal.status_code,
        dict(refusal.headers or {}),
    )
