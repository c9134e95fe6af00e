"""Authorization: the dependencies by which routes declare the scopes they need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import Request

from hushsum.service.http.authentication import Caller
from hushsum.service.http.problem_responses import Refusal
from hushsum.service.store import Actor

E = TypeVar("E", bound=Callable[..., Any])


# The dependencies are coroutines only because FastAPI runs others in a thread, which costs more than they do.
async def caller_of(request: Request) -> Caller:
    """The caller; the middleware has authenticated the request."""
    caller: Caller = request.scope["state"]["caller"]
    return caller


async def actor_of(request: Request) -> Actor:
    """The caller and request as the audit log records them."""
    return Actor((await caller_of(request)).account, request.scope["state"]["request"])


@dataclass(frozen=True, slots=True)
class Needed:
    """A dependency: the caller, whose token must have one of the scopes."""

    scopes: tuple[str, ...]

    async def __call__(self, request: Request) -> Caller:
        """The caller, or a 403."""
        caller = await caller_of(request)
        if caller.scopes.isdisjoint(self.scopes):
            needed = " or ".join(map(repr, self.scopes))
            raise Refusal(
                403, "forbidden", f"this needs a token with the scope {needed}; get one from an administrator"
            )
        return caller


def needs(*scopes: str) -> Needed:
    """The dependency on one of these scopes; the OpenAPI description is made from it."""
    return Needed(scopes)


async def only_known_parameters(request: Request) -> None:
    """A dependency: a query parameter that the route does not declare is refused, like an unknown field.

    Routes that read their parameters themselves check them themselves. Public routes accept anything, since
    other sites may add parameters to links.
    """
    route = request.scope["route"]
    if not request.scope["query_string"] or "caller" not in request.scope["state"]:
        return
    if "parameters" not in (route.openapi_extra or {}):
        known = {each.alias for each in route.dependant.query_params}
        if not known.issuperset(request.query_params):
            raise Refusal(
                422, "parameter-refused", "the address has unknown query parameters; leave them out"
            )


def nothing_here() -> Refusal:
    """The same response for what does not exist and for what belongs to another account."""
    return Refusal(
        404, "not-found", "there is nothing here, or nothing that you may access; check the address"
    )


def checked_by(needed: Needed) -> Callable[[E], E]:
    """Marks a route that calls ``needed`` itself, so that the OpenAPI description shows it."""

    def mark(endpoint: E) -> E:
        endpoint.needed = needed  # type: ignore[attr-defined]
        return endpoint

    return mark
