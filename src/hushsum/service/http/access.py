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
    """Who sent this request; the guard has seen to it that there is somebody."""
    caller: Caller = request.scope["state"]["caller"]
    return caller


async def actor_of(request: Request) -> Actor:
    """The same for the log."""
    return Actor((await caller_of(request)).account, request.scope["state"]["request"])


@dataclass(frozen=True, slots=True)
class Needed:
    """A dependency: the caller, whose token must have one of the scopes."""

    scopes: tuple[str, ...]

    async def __call__(self, request: Request) -> Caller:
        """The caller, or a refusal."""
        caller = await caller_of(request)
        if caller.scopes.isdisjoint(self.scopes):
            wanted = " or ".join(map(repr, self.scopes))
            raise Refusal(
                403, "forbidden", f"this needs a token with the scope {wanted}; ask for one, or leave it"
            )
        return caller


def needs(*scopes: str) -> Needed:
    """The dependency on one of these scopes; the description of the service is made from it."""
    return Needed(scopes)


async def only_known_parameters(request: Request) -> None:
    """A dependency: a parameter of the address that the route does not know is refused, like a field.

    A route that reads its parameters itself, and describes them by hand, knows better; and to one that is
    public, other sites may send people with parameters of their own.
    """
    route = request.scope["route"]
    if not request.scope["query_string"] or "caller" not in request.scope["state"]:
        return
    if "parameters" not in (route.openapi_extra or {}):
        known = {each.alias for each in route.dependant.query_params}
        if not known.issuperset(request.query_params):
            raise Refusal(
                422, "parameter-refused", "the address has parameters that it does not take; leave them out"
            )


def nothing_here() -> Refusal:
    """The same answer for what does not exist and for what somebody else owns."""
    return Refusal(404, "not-found", "there is nothing here, or nothing that you may see; check the address")


def checked_by(needed: Needed) -> Callable[[E], E]:
    """Marks a route that calls ``needed`` itself, so that the description of the service shows it."""

    def mark(endpoint: E) -> E:
        endpoint.needed = needed  # type: ignore[attr-defined]
        return endpoint

    return mark
