"""Shared links, and what whoever has one sees of a function."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from hushsum.service.schemas.fields import Label, RequestBody, ResponseBody

_ORIGIN = re.compile(
    r"https?://(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?::[0-9]{1,5})?"
)


def _checked_origin(text: str) -> str:
    """One site: a scheme and a host, without wildcards or paths, as it stands in a response header."""
    host, _, port = text.partition("://")[2].partition(":")
    plain = text.startswith("http://") and host not in ("localhost", "127.0.0.1")
    if not _ORIGIN.fullmatch(text) or plain or int(port or "443") > 65_535:
        raise PydanticCustomError("must be a site such as https://www.example.org", "not an origin")
    return text


Origin = Annotated[str, StringConstraints(max_length=255), AfterValidator(_checked_origin)]


class ShareRequest(RequestBody):
    """A link to make. ``origins`` are the sites that may embed the function, none by default; with
    ``download`` the link also leads to the .hush file; without ``days`` it works until it is revoked.
    """

    label: Label = ""
    origins: Annotated[list[Origin], Field(max_length=20)] = Field(default=[])
    download: bool = False
    days: Annotated[int, Field(ge=1, le=3650)] | None = None


class ShareResponse(ResponseBody):
    """The stored description of a link, without its key."""

    id: str
    function: str
    label: str
    origins: list[str]
    download: bool
    created: str
    expires: str | None
    revoked: str | None
    works: bool


class IssuedShareResponse(ShareResponse):
    """A new link: the paths of the page and, with origins, of the widget. They are returned only here."""

    path: str
    embed: str | None


class SharedFunctionResponse(ResponseBody):
    """A shared function: its name, its claim and what else is public of it."""

    name: str
    sha256: str
    download: bool
    signed: bool
    facts: dict[str, Any]
