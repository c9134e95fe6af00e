"""Accounts, tokens and the log."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from hushsum.service.access import SCOPES, Caller, actor_of, caller_of, needs, nothing_here
from hushsum.service.context import Context, context_of
from hushsum.service.problems import Refusal
from hushsum.service.shapes import AccountTold, LogTold, Me, NewAccount, NewToken, TokenIssued, TokenTold
from hushsum.service.store import Actor

router = APIRouter(tags=["accounts"])
Admin = Annotated[Caller, Depends(needs("admin"))]
Here = Annotated[Context, Depends(context_of)]
Doer = Annotated[Actor, Depends(actor_of)]


@router.get("/me")
def me(caller: Annotated[Caller, Depends(caller_of)]) -> Me:
    """Who the token belongs to, and what it is good for."""
    return Me(
        account=caller.account,
        name=caller.name,
        role=caller.role,
        scopes=sorted(caller.scopes),
        token=caller.token,
        expires=caller.expires,
    )


@router.get("/accounts")
def list_accounts(caller: Admin, context: Here) -> list[AccountTold]:
    """Everybody who was let in."""
    return [AccountTold.model_validate(each) for each in context.accounts.all()]


@router.post("/accounts", status_code=201)
def create_account(asked: NewAccount, caller: Admin, context: Here, actor: Doer) -> AccountTold:
    """Let somebody in: an administrator, an owner of datasets, or an analyst."""
    return AccountTold.model_validate(context.accounts.create(asked.name, asked.role, actor))


@router.delete("/accounts/{account}", status_code=204, response_class=Response)
def disable_account(account: str, caller: Admin, context: Here, actor: Doer) -> Response:
    """Close an account for ever; its tokens no longer work."""
    if account == caller.account:
        raise Refusal(409, "own-account", "nobody closes the account that closes it; let another one do it")
    if not context.accounts.disable(account, actor):
        raise nothing_here()
    context.door.forget()
    return Response(status_code=204)


@router.post("/accounts/{account}/tokens", status_code=201)
def issue_token(account: str, asked: NewToken, caller: Admin, context: Here, actor: Doer) -> TokenIssued:
    """A first token for somebody. It is told here, and never again."""
    found = context.accounts.find(id=account)
    if found is None or found.disabled:
        raise nothing_here()
    return _issue(context, found.id, SCOPES[found.role], asked, actor)


@router.get("/accounts/{account}/tokens")
def list_tokens(account: str, caller: Admin, context: Here) -> list[TokenTold]:
    """What is remembered of somebody's tokens."""
    return [TokenTold.model_validate(each) for each in context.accounts.tokens_of(account)]


@router.get("/tokens")
def list_own_tokens(caller: Annotated[Caller, Depends(caller_of)], context: Here) -> list[TokenTold]:
    """What is remembered of the caller's own tokens."""
    return [TokenTold.model_validate(each) for each in context.accounts.tokens_of(caller.account)]


@router.post("/tokens", status_code=201)
def issue_own_token(
    asked: NewToken, caller: Annotated[Caller, Depends(caller_of)], context: Here, actor: Doer
) -> TokenIssued:
    """A further token for the caller, with no more than the scopes of the one in use.

    One that comes from a sign-in makes none that outlives it.
    """
    mine = tuple(scope for scope in SCOPES[caller.role] if scope in caller.scopes)
    parent = caller.expires if caller.signed_in else None
    return _issue(context, caller.account, mine, asked, actor, parent)


@router.delete("/tokens/{token}", status_code=204, response_class=Response)
def revoke_token(
    token: str, caller: Annotated[Caller, Depends(caller_of)], context: Here, actor: Doer
) -> Response:
    """End a token: one's own, or as an administrator anybody's."""
    whose = None if "admin" in caller.scopes else caller.account
    if not context.accounts.revoke(token, actor, account=whose):
        raise nothing_here()
    context.door.forget()
    return Response(status_code=204)


@router.get("/log")
def read_log(
    caller: Admin,
    context: Here,
    after: Annotated[int, Query(ge=0, lt=1 << 62)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> list[LogTold]:
    """Who did what, oldest first: appended to, and never changed."""
    return [LogTold.model_validate(each) for each in context.store.log_lines(after=after, limit=limit)]


def _issue(
    context: Context,
    account: str,
    allowed: tuple[str, ...],
    asked: NewToken,
    actor: Actor,
    parent: str | None = None,
) -> TokenIssued:
    scopes = allowed if asked.scopes is None else tuple(dict.fromkeys(asked.scopes))
    if not set(scopes) <= set(allowed):
        raise Refusal(
            403, "forbidden", "a token cannot have scopes beyond those of its role; ask for fewer scopes"
        )
    longest = context.settings.token_days
    days = longest if asked.days is None else asked.days
    if days > longest:
        raise Refusal(422, "parameter-refused", f"days must be at most {longest}; ask for fewer")
    if parent is not None and asked.days is not None:
        raise Refusal(
            422, "parameter-refused", "a token from a sign-in makes none that outlives it; leave out days"
        )
    secret, made = context.accounts.issue(
        account, scopes=scopes, days=days, label=asked.label, actor=actor, parent=parent
    )
    return TokenIssued(**TokenTold.model_validate(made).model_dump(), secret=secret)
