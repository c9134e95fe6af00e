"""Shared links of a function: made, listed and revoked by its owner. None exists until the owner makes it."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import FileResponse

from ...schemas import IssuedShareResponse, SharedFunctionResponse, ShareRequest, ShareResponse
from ...store import Share, SharedFunction, later, now
from ...store.rows import new_id
from ..authentication import existing
from ..context import ContextDependency, Releaser, ReleaserOrAdmin, ThreadedRoute
from ..problem_responses import ANY_ORIGIN, Refusal
from ..request_limits import address_group
from .functions import QUERY, answered, function_file
from .system import assets

router = APIRouter(tags=["shares"], route_class=ThreadedRoute)


@router.get("/functions/{function}/shares")
def list_shares(function: str, call: Releaser) -> list[ShareResponse]:
    """The links of a function, without their keys."""
    found = call.store.shares.of(call.function(function, owned=True).id)
    return [ShareResponse.model_validate(each) for each in found]


@router.post("/functions/{function}/shares", status_code=201)
def create_share(function: str, body: ShareRequest, call: Releaser) -> IssuedShareResponse:
    """A link by which anybody may query a function. Its key is returned only here."""
    found = call.function(function, owned=True)
    if not call.settings.sharing_is_on:
        raise Refusal(409, "sharing-is-off", "this service shares no functions; ask the administrator")
    if found.is_served:
        raise Refusal(
            409,
            "never-a-file",
            "a model in exact mode answers a limited number of points and cannot be shared; "
            "fit it in the mode file",
        )
    origins = tuple(dict.fromkeys(body.origins))
    expires = None if body.days is None else later(days=body.days)
    made = Share(new_id("sh"), found.id, body.label, origins, body.download, now(), expires, None)
    key = call.store.shares.create(made, call.actor, most=call.settings.max_links)
    described = ShareResponse.model_validate(made).model_dump()
    path = f"{call.settings.root_path}/shared/{key}"
    return IssuedShareResponse(**described, path=path, embed=f"{path}/embed" if made.origins else None)


@router.delete("/shares/{share}", status_code=204)
def revoke_share(share: str, call: ReleaserOrAdmin) -> None:
    """Revoke a link at once: one of the caller's own functions or, as an administrator, any."""
    owner = None if "admin" in call.caller.scopes else call.account
    existing(call.store.shares.revoke(share, call.actor, owner=owner))
    call.context.shared_links.clear_cache()


by_link_router = APIRouter(prefix="/shared/{key}", tags=["shared"], route_class=ThreadedRoute)

PAGE: Final = "shared.html"
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; sandbox allow-scripts allow-downloads; frame-ancestors {ancestors}"
)


async def shared_function(key: str, request: Request, context: ContextDependency) -> SharedFunction:
    """A dependency: the function that the key of the path leads to."""
    address = request.client.host if request.client else ""
    return await context.shared_links.find(key, address_group(address))


Shared = Annotated[SharedFunction, Depends(shared_function)]


@by_link_router.get("", response_class=Response, responses={200: {"content": {"text/html": {}}}})
async def shared_page(key: str, request: Request, context: ContextDependency) -> Response:
    """The page of a shared function. No site can frame it."""
    try:
        await shared_function(key, request, context)
    except Refusal as refused:
        if "text/html" not in request.headers.get("accept", ""):
            raise
        # The same page for every key: its script asks for the function, and says why there is none.
        return _page("'none'", "../", refused.status_code)
    return _page("'none'", "../")


@by_link_router.get("/embed", response_class=Response, responses={200: {"content": {"text/html": {}}}})
async def shared_widget(found: Shared) -> Response:
    """The same as a widget, for the sites that the owner has declared; 404 if there is none."""
    return _page(" ".join(existing(found.origins)), "../../")


@by_link_router.get("/function")
async def describe_shared(found: Shared, response: Response) -> SharedFunctionResponse:
    """The name, the claim and the public description of a shared function."""
    response.headers.update(ANY_ORIGIN)
    return SharedFunctionResponse.model_validate(found)


@by_link_router.get(
    "/file", response_class=FileResponse, responses={200: {"content": {"application/octet-stream": {}}}}
)
def download_shared(found: Shared, context: ContextDependency) -> FileResponse:
    """The .hush file, if the owner has shared it with the link."""
    if not found.download:
        raise Refusal(403, "forbidden", "this link does not include the file; ask whoever sent it")
    return function_file(context, found.function, found.name, ANY_ORIGIN)


@by_link_router.post("/query", **QUERY)
async def query_shared(found: Shared, request: Request, context: ContextDependency) -> Response:
    """Values with standard errors, as `POST /functions/{function}/query`, at fewer points at a time."""
    most = min(context.settings.max_points, context.settings.shared_max_points)
    response = await answered(request, context, found.function, who=found.share, most=most)
    response.headers.update(ANY_ORIGIN)
    return response


def _page(ancestors: str, up: str, status: int = 200) -> Response:
    headers: dict[str, Any] = {
        "content-security-policy": _POLICY.format(ancestors=ancestors),
        "x-robots-tag": "noindex",
    }
    if ancestors != "'none'":
        # It cannot name sites, and older browsers would obey it in place of frame-ancestors.
        headers |= {"x-frame-options": "", "cross-origin-resource-policy": "cross-origin"}
    # Addresses in the page are relative, since the service may stand below a path of a proxy's.
    body = assets()[PAGE].body.replace(b'"assets/', f'"{up}assets/'.encode())
    return Response(body, status, headers, assets()[PAGE].media_type)
