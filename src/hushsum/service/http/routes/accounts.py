"""Accounts, tokens and the audit log."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response

from hushsum.service.http.authentication import ADMINISTRATOR, SCOPES, nothing_here
from hushsum.service.http.context import Context
from hushsum.service.http.dependencies import (
    ActorDependency,
    Admin,
    AnyCaller,
    ContextDependency,
    ThreadedRoute,
)
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
from hushsum.service.store import Actor, LogFilter
from hushsum.service.store.log_reader import MOST_LINES

router = APIRouter(tags=["accounts"], route_class=ThreadedRoute)

Sequence = Annotated[int, Query(ge=0, lt=1 << 62)]
Day = Annotated[str, Query(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]


@router.get("/me")
async def me(caller: AnyCaller) -> CallerResponse:
    """The account that the token belongs to, and its scopes."""
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
def usage(caller: AnyCaller, context: ContextDependency) -> UsageResponse:
    """What the caller's account uses of its quotas."""
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
def list_accounts(caller: Admin, context: ContextDependency) -> list[AccountResponse]:
    """All accounts."""
    return [AccountResponse.model_validate(each) for each in context.accounts.all()]


@router.post("/accounts", status_code=201)
def create_account(
    body: AccountRequest, caller: Admin, context: ContextDependency, actor: ActorDependency
) -> AccountResponse:
    """Create an account: an administrator, an owner of datasets, or an analyst."""
    return AccountResponse.model_validate(context.accounts.create(body.name, body.role, actor))


@router.delete("/accounts/{account}", status_code=204, response_class=Response)
def disable_account(
    account: str, caller: Admin, context: ContextDependency, actor: ActorDependency
) -> Response:
    """Close an account permanently: its tokens stop working, and its unpaid jobs are cancelled."""
    if account == caller.account:
        raise Refusal(
            409,
            "own-account",
            "an administrator cannot close their own account; let another administrator do it",
        )
    if not context.accounts.disable(account, actor):
        raise nothing_here()
    context.authenticator.clear_cache()
    context.shared_links.clear_cache()
    context.visible.clear()
    return Response(status_code=204)


@router.post("/accounts/{account}/tokens", status_code=201)
def issue_token(
    account: str, body: TokenRequest, caller: Admin, context: ContextDependency, actor: ActorDependency
) -> IssuedTokenResponse:
    """A first token for an account. The secret is returned only here.

    One for an administrator is bound to the token in use, as with `POST /tokens`: it neither outlives it nor
    survives its revocation. Tokens of owners and analysts are not.
    """
    found = context.accounts.find(id=account)
    if found is None or found.disabled:
        raise nothing_here()
    bound = found.id == caller.account or found.role == ADMINISTRATOR
    return _issue(context, found.id, SCOPES[found.role], body, actor, caller.token if bound else None)


@router.get("/accounts/{account}/tokens")
def list_tokens(account: str, caller: Admin, context: ContextDependency) -> list[TokenResponse]:
    """The tokens of an account, without their secrets."""
    return [TokenResponse.model_validate(each) for each in context.accounts.tokens_of(account)]


@router.get("/tokens")
def list_own_tokens(caller: AnyCaller, context: ContextDependency) -> list[TokenResponse]:
    """The caller's own tokens, without their secrets."""
    return [TokenResponse.model_validate(each) for each in context.accounts.tokens_of(caller.account)]


@router.post("/tokens", status_code=201)
def issue_own_token(
    body: TokenRequest,
    caller: AnyCaller,
    context: ContextDependency,
    actor: ActorDependency,
) -> IssuedTokenResponse:
    """Another token for the caller, with at most the scopes of the one in use.

    It expires no later than that one, and is revoked with it.
    """
    mine = tuple(scope for scope in SCOPES[caller.role] if scope in caller.scopes)
    return _issue(context, caller.account, mine, body, actor, caller.token)


@router.delete("/tokens/{token}", status_code=204, response_class=Response)
def revoke_token(
    token: str,
    caller: AnyCaller,
    context: ContextDependency,
    actor: ActorDependency,
) -> Response:
    """Revoke a token and those issued with it: the caller's own or, as an administrator, any."""
    whose = None if "admin" in caller.scopes else caller.account
    if not context.accounts.revoke(token, actor, account=whose):
        raise nothing_here()
    context.authenticator.clear_cache()
    return Response(status_code=204)


@router.get("/log")
def read_log(
    caller: Admin,
    context: ContextDependency,
    after: Sequence = 0,
    before: Sequence | None = None,
    account: Annotated[str | None, Query(max_length=40)] = None,
    action: Annotated[str | None, Query(min_length=1, max_length=40)] = None,
    since: Day | None = None,
    until: Day | None = None,
    order: Literal["oldest", "newest"] = "oldest",
    limit: Annotated[int, Query(ge=1, le=MOST_LINES)] = 100,
) -> list[LogEntryResponse]:
    """The append-only audit log, with the names of accounts and objects.

    `account` is an id, `action` a part of the text, `since` and `until` are days, both included.
    """
    found = context.log.lines(
        LogFilter(after, before, account, action, since, until),
        newest_first=order == "newest",
        limit=limit,
    )
    return [
        LogEntryResponse(**asdict(each.line), account_name=each.account_name, object_name=each.object_name)
        for each in found
    ]


def _issue(
    context: Context,
    account: str,
    allowed: tuple[str, ...],
    body: TokenRequest,
    actor: Actor,
    parent: str | None = None,
) -> IssuedTokenResponse:
    scopes = allowed if body.scopes is None else tuple(dict.fromkeys(body.scopes))
    if not set(scopes) <= set(allowed):
        raise Refusal(
            403, "forbidden", "a token cannot have scopes beyond those of its role; request fewer scopes"
        )
    longest = context.settings.token_days
    days = longest if body.days is None else body.days
    if days > longest:
        raise Refusal(422, "parameter-refused", f"days must be at most {longest}; request fewer")
    made = context.accounts.issue(
        account,
        scopes=scopes,
        days=days,
        label=body.label,
        actor=actor,
        parent=parent,
        most=context.settings.max_tokens,
    )
    if made is None:
        raise Refusal(401, "unauthorized", "the token in use was revoked or has expired; use another one")
    secret, token = made
    return IssuedTokenResponse(**TokenResponse.model_validate(token).model_dump(), secret=secret)
