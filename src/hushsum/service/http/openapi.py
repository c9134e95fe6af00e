"""The description of the service: OpenAPI 3.1, the same bytes for the same code."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from fastapi import APIRouter, FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from hushsum.service.http.authentication import Needed, caller_of
from hushsum.service.http.middleware import PUBLIC, SIGN_IN, is_public
from hushsum.service.problem_types import MEDIA_TYPE
from hushsum.service.schemas import Problem
from hushsum.version import __version__

OPENAPI: Final = "/openapi.json"
ANY_TOKEN: Final = ""
_METHODS: Final = ("get", "post", "put", "delete")
_STATUSES: Final = {
    "400": "A request that cannot be read",
    "401": "No token, or one that no longer works",
    "403": "The token's scopes do not suffice",
    "404": "Nothing that the caller may see",
    "408": "A body that came too slowly",
    "409": "Another state than the request takes for granted: a name taken, a budget exhausted",
    "413": "Too long a body",
    "422": "A request that breaks a rule",
    "429": "Too many requests",
    "431": "Too long headers",
    "503": "Not now; try again",
    "507": "The disk is full",
}


def describe(app: FastAPI, routers: Iterable[APIRouter], root_path: str = "") -> dict[str, Any]:
    """The description, with who may call each route and the refusals that it may answer."""
    made = get_openapi(
        title="Hushsum",
        version=__version__,
        openapi_version="3.1.0",
        summary="Release a function of your private data once; query it forever.",
        routes=app.routes,
        servers=[{"url": root_path}] if root_path else None,
    )
    schemas = made["components"]["schemas"]
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas["Problem"] = Problem.model_json_schema()
    made["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    refused = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    assert MEDIA_TYPE in refused
    routes = {
        (method, each.path_format): each
        for router in routers
        for each in router.routes
        if isinstance(each, APIRoute)
        for method in each.methods or ()
    }
    for path, item in made["paths"].items():
        for method in _METHODS:
            if method not in item:
                continue
            operation = item[method]
            operation["responses"].pop("422", None)
            operation["security"] = _security(routes.get((method.upper(), path)), path)
            if path in PUBLIC:
                continue
            stale = {"400": "Not a sign-in that this browser has begun lately"} if path in SIGN_IN else {}
            for status, text in (_STATUSES | stale).items():
                operation["responses"][status] = {"description": text, "content": refused}
    return made


def _security(route: APIRoute | None, path: str) -> list[dict[str, list[str]]]:
    """Who may call a route: nobody needs a token, any token will do, or one of these scopes is needed.

    Each entry is an alternative. A route that declares nothing gets none, and a test finds it.
    """
    if is_public(path):
        return []
    scopes = [] if route is None else list(scopes_of(route.dependant)) + list(declared_scopes(route.endpoint))
    if not scopes:
        raise AssertionError(f"{path} does not declare who may call it; depend on needs(...) or caller_of")
    return [{"token": [] if scope == ANY_TOKEN else [scope]} for scope in dict.fromkeys(scopes)]


def scopes_of(dependant: Dependant) -> Iterator[str]:
    """The scopes that the dependencies of a route ask for; `ANY_TOKEN` where any token will do."""
    for each in dependant.dependencies:
        if isinstance(each.call, Needed):
            yield from each.call.scopes
        elif each.call is caller_of:
            yield ANY_TOKEN


def declared_scopes(endpoint: Callable[..., Any]) -> tuple[str, ...]:
    """The scopes of a route that checks its caller itself."""
    needed: Needed | None = getattr(endpoint, "needed", None)
    return () if needed is None else needed.scopes


def as_text(app: FastAPI) -> str:
    """The description as it is committed."""
    return json.dumps(app.openapi(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
