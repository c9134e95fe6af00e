"""The web page and its files."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from fastapi import APIRouter, Request, Response

from hushsum.plotting.web_page import reader_module
from hushsum.service.http.authentication import nothing_here
from hushsum.service.http.dependencies import ThreadedRoute

router = APIRouter(tags=["system"], route_class=ThreadedRoute)

FRONT: Final = "index.html"
READER: Final = "reader.js"
"""The reader of ``.hush`` files, which is not below ``web``: other pages use it too."""
_MODULES: Final = b"<!-- modules -->"
_MEDIA: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of the page."""

    body: bytes
    media_type: str
    tag: str


@cache
def assets() -> dict[str, Asset]:
    """The files by their names below ``web``, and the reader, read once. No other file is served."""
    found = dict(_inside(files("hushsum.service") / "web", ""))
    return {**found, READER: _asset(READER, reader_module().encode())}


def _inside(folder: Traversable, prefix: str) -> list[tuple[str, Asset]]:
    found: list[tuple[str, Asset]] = []
    for each in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if each.is_dir():
            found += _inside(each, f"{prefix}{each.name}/")
        elif _ending(each.name) in _MEDIA:
            found.append((f"{prefix}{each.name}", _asset(each.name, each.read_bytes())))
    return found


def _asset(name: str, body: bytes) -> Asset:
    return Asset(body, _MEDIA[_ending(name)], f'"{hashlib.sha256(body).hexdigest()[:32]}"')


def _ending(name: str) -> str:
    return f".{name.rpartition('.')[2]}"


@cache
def front() -> bytes:
    """The page, with the names of all modules: a browser then fetches them at once, not one by one."""
    alone = ("app/early.js", "app/shared.js")
    modules = [name for name in assets() if name.startswith("app/") and name not in alone]
    links = "\n".join(f'<link rel="modulepreload" href="assets/{name}">' for name in modules)
    return assets()[FRONT].body.replace(_MODULES, links.encode())


@router.get("/", response_class=Response, responses={200: {"content": {"text/html": {}}}})
async def page() -> Response:
    """The web page."""
    return Response(front(), media_type=_MEDIA[".html"])


@router.get("/assets/{name:path}", response_class=Response, include_in_schema=False)
async def asset(name: str, request: Request) -> Response:
    """A style sheet or script of the page.

    Modules of two versions must never meet in one tab, so a browser always revalidates its copy.
    """
    found = assets().get(name)
    if found is None or name.endswith(".html"):
        raise nothing_here()
    # Pages of shared functions run in an origin of their own, and fetch these files from this one.
    headers = {
        "cache-control": "no-cache",
        "etag": found.tag,
        "access-control-allow-origin": "*",
        "cross-origin-resource-policy": "cross-origin",
    }
    if request.headers.get("if-none-match") == found.tag:
        return Response(status_code=304, headers=headers)
    return Response(found.body, media_type=found.media_type, headers=headers)
