"""Shared links of a function: made, listed and revoked by its owner. None exists until the owner makes it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from hushsum.service.http.authentication import Caller, needs, nothing_here
from hushsum.service.http.context import Context
from hushsum.service.http.dependencies import ActorDependency, ContextDependency, Releaser, ThreadedRoute
from hushsum.service.http.problem_responses import Refusal
from hushsum.service.schemas import IssuedShareResponse, ShareRequest, ShareResponse
from hushsum.service.store import Function

router = APIRouter(tags=["shares"], route_class=ThreadedRoute)

Revoker = Annotated[Caller, Depends(needs("release", "admin"))]


@router.get("/functions/{function}/shares")
def list_shares(function: str, caller: Releaser, context: ContextDependency) -> list[ShareResponse]:
    """The links of a function, without their keys."""
    found = _owned(context, function, caller)
    return [ShareResponse.model_validate(each) for each in context.shares.of(found.id)]


@router.post("/functions/{function}/shares", status_code=201)
def create_share(
    function: str, body: ShareRequest, caller: Releaser, context: ContextDependency, actor: ActorDependency
) -> IssuedShareResponse:
    """A link by which anybody may query a function. Its key is returned only here."""
    found = _owned(context, function, caller)
    if not context.settings.sharing_is_on:
        raise Refusal(409, "sharing-is-off", "this service shares no functions; ask the administrator")
    if found.is_served:
        raise Refusal(
            409,
            "never-a-file",
            "a model in exact mode answers a limited number of points and cannot be shared; "
            "fit it in the mode file",
        )
    key, made = context.shares.create(
        found.id,
        label=body.label,
        origins=tuple(dict.fromkeys(body.origins)),
        download=body.download,
        days=body.days,
        actor=actor,
        most=context.settings.max_links,
    )
    described = ShareResponse.model_validate(made).model_dump()
    path = f"{context.settings.root_path}/shared/{key}"
    return IssuedShareResponse(**described, path=path, embed=f"{path}/embed" if made.origins else None)


@router.delete("/shares/{share}", status_code=204, response_class=Response)
def revoke_share(share: str, caller: Revoker, context: ContextDependency, actor: ActorDependency) -> Response:
    """Revoke a link at once: one of the caller's own functions or, as an administrator, any."""
    owner = None if "admin" in caller.scopes else caller.account
    if not context.shares.revoke(share, actor, owner=owner):
        raise nothing_here()
    context.shared_links.clear_cache()
    return Response(status_code=204)


def _owned(context: Context, id: str, caller: Caller) -> Function:
    found = context.functions.find(id, account=caller.account)
    if found is None or not found.owned:
        raise nothing_here()
    return found
