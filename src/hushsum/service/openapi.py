"""The description of the service: OpenAPI 3.1, the same bytes for the same code."""

from __future__ import annotations

import json
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from hushsum.service.guard import PUBLIC, SIGN_IN
from hushsum.service.problems import MEDIA_TYPE
from hushsum.service.shapes import Problem
from hushsum.version import __version__

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
    "503": "Not now; try again",
    "507": "The disk is full",
}


def describe(app: FastAPI) -> dict[str, Any]:
    """The description, with the refusals that every route may answer."""
    made = get_openapi(
        title="Hushsum",
        version=__version__,
        openapi_version="3.1.0",
        summary="Release a function of your private data once; ask it questions for ever.",
        routes=app.routes,
    )
    schemas = made["components"]["schemas"]
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas["Problem"] = Problem.model_json_schema()
    made["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    refused = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    assert MEDIA_TYPE in refused
    for path, item in made["paths"].items():
        for method in _METHODS:
            if method not in item:
                continue
            operation = item[method]
            operation["responses"].pop("422", None)
            if path in PUBLIC:
                continue
            operation["security"] = [] if path in SIGN_IN else [{"token": []}]
            stale = {"400": "Not a sign-in that this browser has begun lately"} if path in SIGN_IN else {}
            for status, text in (_STATUSES | stale).items():
                operation["responses"][status] = {"description": text, "content": refused}
    return made


def as_text(app: FastAPI) -> str:
    """The description as it is committed."""
    return json.dumps(app.openapi(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
