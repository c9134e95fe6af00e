"""Accounts, tokens and the log."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from hushsum.service.http.access import actor_of, caller_of, needs, nothing_here
from hushsum.service.http.authentication import ADMINISTRATOR, SCOPES, Caller
from hushsum.service.http.context import Context, context_of
from hushsum.service.http.problem_responses import Refusal
from hushsum.service.schemas import (
    AccountRequest,
    AccountResponse,
    CallerResponse,
    IssuedTokenResponse,
    LogEntryResponse,
    QuotaUsage,
    TokenRequest,
    TokenResponse,
    UsageResponse,
)
from hushsum.service.store import Actor

router = APIRouter(tags=["accounts"])
Admin = Annotated[Caller, Depends(needs("admin"))]
Here = Annotated[Context, Depends(context_of)]
Doer = Annotated[Actor, Depends(actor_of)]


@router.get("/me")
def me(caller: Annotated[Caller, Depends(caller_of)]) -> CallerResponse:
    """Who the token belongs to, and what it is good for."""
    return CallerResponse(
        account=caller.account,
        name=caller.name,
        role=caller.role,
        scopes=sorted(caller.scopes),
        token=caller.token,
        expires=caller.expires,
        signed_in=caller.signed_in,
    )


@router.get("/usage")
def usage(caller: Annotated[Caller, Depends(caller_of)], context: Here) -> UsageResponse:
    """What the caller's account keeps and runs, beside what it may."""
    settings = context.settings
    kept = context.datasets.kept_by(caller.account)
    tokens = context.accounts.tokens_of(caller.account)
    return UsageResponse(
        bytes=QuotaUsage(used=kept.bytes, most=settings.owner_bytes),
        cells=QuotaUsage(used=kept.cells, most=settings.owner_cells),
        jobs=QuotaUsage(used=context.jobs.active_of(caller.account), most=settings.owner_jobs),
        tokens=QuotaUsage(used=sum(each.works for each in tokens), most=settings.max_tokens),
    )


@router.get("/accounts")
def list_accounts(caller: Admin, context: Here) -> list[AccountResponse]:
    """Everybody who was let in."""
    return [AccountResponse.model_validate(each) for each in context.accounts.all()]


@router.post("/accounts", status_code=201)
def create_account(asked: AccountRequest, caller: Admin, context: Here, actor: Doer) -> AccountResponse:
    """Let somebody in: an administrator, an owner of datasets, or an analyst."""
    return AccountResponse.model_validate(context.accounts.create(asked.name, asked.role, actor))


@router.delete("/accounts/{account}", status_code=204, response_class=Response)
def disable_account(account: str, caller: Admin, context: Here, actor: Doer) -> Response:
    """Close an account for ever; its tokens no longer work, and its jobs stop unless they are paid for."""
    if account == caller.account:
        raise Refusal(409, "own-account", "nobody closes the account that closes it; let another one do it")
    if not context.accounts.disable(account, actor):
        raise nothing_here()
    context.authenticator.clear_cache()
    return Response(status_code=204)


@router.post("/accounts/{account}/tokens", status_code=201)
def issue_token(
    account: str, asked: TokenRequest, caller: Admin, context: Here, actor: Doer
) -> IssuedTokenResponse:
    """A first token for somebody. It is returned here, and never again.

    One for an administrator is bound to the token in use, as with `POST /tokens`: it neither outlives it nor
    survives its revocation. Tokens of owners and analysts are not.
    """
    found = context.accounts.find(id=account)
    if found is None or found.disabled:
        raise nothing_here()
    bound = found.id == caller.account or found.role == ADMINISTRATOR
    return _issue(context, found.id, SCOPES[found.role], asked, actor, caller.token if bound else None)


@router.get("/accounts/{account}/tokens")
def list_tokens(account: str, caller: Admin, context: Here) -> list[TokenResponse]:
    """What is remembered of somebody's tokens."""
    return [TokenResponse.model_validate(each) for each in context.accounts.tokens_of(account)]


@router.get("/tokens")
def list_own_tokens(caller: Annotated[Caller, Depends(caller_of)], context: Here) -> list[TokenResponse]:
    """What is remembered of the caller's own tokens."""
    return [TokenResponse.model_validate(each) for each in context.accounts.tokens_of(caller.account)]


@router.post("/tokens", status_code=201)
def issue_own_token(
    asked: TokenRequest, caller: Annotated[Caller, Depends(caller_of)], context: Here, actor: Doer
) -> IssuedTokenResponse:
    """A further token for the caller, with no more than the scopes of the one in use.

    It expires no later than that one, and is revoked with it.
    """
    mine = tuple(scope for scope in SCOPES[caller.role] if scope in caller.scopes)
    return _issue(context, caller.account, mine, asked, actor, caller.token)


@router.delete("/tokens/{token}", status_code=204, response_class=Response)
def revoke_token(
    token: str, caller: Annotated[Caller, Depends(caller_of)], context: Here, actor: Doer
) -> Response:
    """End a token and those that it made: one's own, or as an administrator anybody's."""
    whose = None if "admin" in caller.scopes else caller.account
    if not context.accounts.revoke(token, actor, account=whose):
        raise nothing_here()
    context.authenticator.clear_cache()
    return Response(status_code=204)


@router.get("/log")
def read_log(
    caller: Admin,
    context: Here,
    after: Annotated[int, Query(ge=0, lt=1 << 62)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> list[LogEntryResponse]:
    """Who did what, oldest first: appended to, and never changed."""
    return [
        LogEntryResponse.model_validate(each) for each in context.store.log_lines(after=after, limit=limit)
    ]


def _issue(
    context: Context,
    account: str,
    allowed: tuple[str, ...],
    asked: TokenRequest,
    actor: Actor,
    parent: str | None = None,
) -> IssuedTokenResponse:
    scopes = allowed if asked.scopes is None else tuple(dict.fromkeys(asked.scopes))
    if not set(scopes) <= set(allowed):
        raise Refusal(
            403, "forbidden", "a token cannot have scopes beyond those of its role; ask for fewer scopes"
        )
    longest = context.settings.token_days
    days = longest if asked.days is None else asked.days
    if days > longest:
        raise Refusal(422, "parameter-refused", f"days must be at most {longest}; ask for fewer")
    made = context.accounts.issue(
        account,
        scopes=scopes,
        days=days,
        label=asked.label,
        actor=actor,
        parent=parent,
        most=context.settings.max_tokens,
    )
    if made is None:
        raise Refusal(401, "unauthorized", "the token in use was revoked or has expired; use another one")
    secret, token = made
    return IssuedTokenResponse(**TokenResponse.model_validate(token).model_dump(), secret=secret)
