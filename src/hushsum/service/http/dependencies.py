"""What routes share: their threads, and the parameters that FastAPI passes to them: the caller, the context,
the actor, the idempotency key.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from inspect import iscoroutinefunction
from typing import Annotated, Any

from fastapi import Depends, Header, Request, Response
from fastapi.routing import APIRoute

from hushsum.service.http.authentication import Caller, actor_of, caller_of, needs
from hushsum.service.http.context import Context, context_of
from hushsum.service.http.request_limits import address_group
from hushsum.service.store import Actor

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
