"""The web page and its files."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from fastapi import APIRouter, Request, Response

from hushsum.service.http.access import nothing_here

router = APIRouter(tags=["system"])

FRONT: Final = "index.html"
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
    """The files by their names below ``web``, read once. No other file is served."""
    return dict(_inside(files("hushsum.service") / "web", ""))


def _inside(folder: Traversable, prefix: str) -> list[tuple[str, Asset]]:
    found: list[tuple[str, Asset]] = []
    for each in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if each.is_dir():
            found += _inside(each, f"{prefix}{each.name}/")
        elif (media_type := _MEDIA.get(f".{each.name.rpartition('.')[2]}")) is not None:
            body = each.read_bytes()
            tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
            found.append((f"{prefix}{each.name}", Asset(body, media_type, tag)))
    return found


@cache
def front() -> bytes:
    """The page, with the names of all modules: a browser then fetches them at once, not one by one."""
    modules = [name for name in assets() if name.startswith("app/") and name != "app/early.js"]
    links = "\n".join(f'<link rel="modulepreload" href="assets/{name}">' for name in modules)
    return assets()[FRONT].body.replace(_MODULES, links.encode())


@router.get("/", response_class=Response, responses={200: {"content": {"text/html": {}}}})
def page() -> Response:
    """The web page."""
    return Response(front(), media_type=_MEDIA[".html"])


@router.get("/assets/{name:path}", response_class=Response, include_in_schema=False)
def asset(name: str, request: Request) -> Response:
    """A style sheet or script of the page.

    Modules of two versions must never meet in one tab, so a browser always revalidates its copy.
    """
    found = assets().get(name)
    if found is None or name == FRONT:
        raise nothing_here()
    headers = {"cache-control": "no-cache", "etag": found.tag}
    if request.headers.get("if-none-match") == found.tag:
        return Response(status_code=304, headers=headers)
    return Response(found.body, media_type=found.media_type, headers=headers)
