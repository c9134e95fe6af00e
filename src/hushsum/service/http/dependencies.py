"""Parameters that FastAPI passes to routes: the caller, the context, the actor, the idempotency key."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Header

from hushsum.service.http.authentication import Caller, actor_of, caller_of, needs
from hushsum.service.http.context import Context, context_of
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
