"""Sign-in with a provider, and the identities linked to accounts."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from hushsum.service.http.authentication import SCOPES, nothing_here
from hushsum.service.http.context import Context
from hushsum.service.http.dependencies import ActorDependency, Admin, ContextDependency, ThreadedRoute
from hushsum.service.http.oidc.provider_settings import comparable
from hushsum.service.http.oidc.sign_in_cookie import FLOW_SECONDS
from hushsum.service.http.oidc.sign_in_errors import not_admitted
from hushsum.service.http.problem_responses import Refusal
from hushsum.service.logs import log_event
from hushsum.service.schemas import (
    IdentityRequest,
    IdentityResponse,
    IssuedTokenResponse,
    ProviderResponse,
    SignInResponse,
    TokenResponse,
)
from hushsum.service.store.identities import TICKET_SECONDS

if TYPE_CHECKING:
    from hushsum.service.http.oidc.sign_in import SignIn

router = APIRouter(tags=["sign-in"], route_class=ThreadedRoute)
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


@router.get("/sign-in")
async def sign_in_options(context: ContextDependency) -> SignInResponse:
    """The sign-in provider, if one is configured."""
    provider = context.sign_in
    return SignInResponse(oidc=None if provider is None else ProviderResponse(name=provider.terms.name))


@router.get("/oidc/start", status_code=303, response_class=Response, responses=_REDIRECT)
def start(request: Request, context: ContextDependency) -> Response:
    """Send the browser to the provider, with a cookie that it must bring back."""
    provider = _provider(context)
    try:
        address, cookie = provider.begin()
    except Refusal as refusal:
        return _shown(request, refusal)
    answer = RedirectResponse(address, 303)
    # Lax, since the provider sends the browser back from another site.
    _set(answer, provider, FLOW, cookie, seconds=FLOW_SECONDS, strict=False)
    return answer


@router.get("/oidc/callback", status_code=303, response_class=Response, responses=_REDIRECT)
def callback(
    request: Request,
    context: ContextDependency,
    state: Parameter = None,
    code: Parameter = None,
    iss: Parameter = None,
    error: Parameter = None,
) -> Response:
    """Where the provider sends the browser back to: all checks happen here, and no token is issued yet."""
    provider = _provider(context)
    given = {"state": state, "code": code, "iss": iss, "error": error}
    sent = {name: value for name, value in given.items() if value is not None}
    try:
        flow, who = provider.resume(request.cookies.get(_named(provider, FLOW), ""), sent, _address(request))
        ticket, refusal = context.identities.admit(
            who.issuer,
            who.claim,
            who.subject,
            sub=who.sub,
            flow=flow.id,
            request=request.scope["state"]["request"],
        )
        if ticket is None:
            raise not_admitted(refusal)
    except Refusal as refused:
        return _shown(request, refused)
    answer = RedirectResponse(f"{context.settings.root_path}/#signed-in", 303)
    _set(answer, provider, FLOW, "", seconds=0, strict=False)
    _set(answer, provider, TICKET, ticket, seconds=TICKET_SECONDS, strict=True)
    return answer


@router.post("/oidc/finish", status_code=201)
def finish(request: Request, response: Response, context: ContextDependency) -> IssuedTokenResponse:
    """The token of a sign-in, for the page that began it: valid for eight hours, returned only here.

    Needs the header `X-Requested-With: hushsum`, which no other site can send along with the cookie.
    """
    provider = _provider(context)
    origin = request.headers.get("origin", provider.terms.origin)
    if (
        request.headers.get("x-requested-with") != REQUESTED_WITH
        or request.headers.get("sec-fetch-site", "same-origin") != "same-origin"
        or origin != provider.terms.origin
    ):
        raise Refusal(
            403, "forbidden", f"this is for the service's own page; send X-Requested-With: {REQUESTED_WITH}"
        )
    ticket = request.cookies.get(_named(provider, TICKET), "")
    with provider.watching(_address(request)):
        redeemed = context.identities.redeem(
            ticket,
            scopes=SCOPES,
            request=request.scope["state"]["request"],
            most=context.settings.max_tokens,
        )
        if redeemed is None:
            raise Refusal(401, "sign-in-stale", "there is no sign-in to finish in this browser; begin again")
    _set(response, provider, TICKET, "", seconds=0, strict=True)
    secret, token = redeemed
    return IssuedTokenResponse(**TokenResponse.model_validate(token).model_dump(), secret=secret)


@router.get("/accounts/{account}/identity")
def show_identity(account: str, caller: Admin, context: ContextDependency) -> IdentityResponse:
    """Who may sign in to an account."""
    found = context.identities.of(account)
    if found is None:
        raise nothing_here()
    return IdentityResponse.model_validate(found)


@router.post("/accounts/{account}/identity", status_code=201)
def link_identity(
    account: str, body: IdentityRequest, caller: Admin, context: ContextDependency, actor: ActorDependency
) -> IdentityResponse:
    """Let one person at the provider sign in to an account, replacing an earlier link."""
    provider = context.sign_in
    if provider is None:
        raise Refusal(409, "no-provider", "this service has no sign-in provider; set HUSHSUM_OIDC_ISSUER")
    terms = provider.terms
    made = context.identities.link(
        account, terms.issuer, terms.claim, comparable(terms.claim, body.subject), actor
    )
    if made is None:
        raise nothing_here()
    context.authenticator.clear_cache()
    return IdentityResponse.model_validate(made)


@router.delete("/accounts/{account}/identity", status_code=204, response_class=Response)
def unlink_identity(
    account: str, caller: Admin, context: ContextDependency, actor: ActorDependency
) -> Response:
    """Remove the link of an account; tokens from sign-ins stop working."""
    if not context.identities.unlink(account, actor):
        raise nothing_here()
    context.authenticator.clear_cache()
    return Response(status_code=204)


def _provider(context: Context) -> SignIn:
    if context.sign_in is None:
        raise nothing_here()
    return context.sign_in


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
