"""People, their tokens and identities, and the log."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from hushsum.service.schemas.fields import Name, RequestBody, ResponseBody, Scope


class AccountRequest(RequestBody):
    """Somebody to let in."""

    name: Name
    role: Literal["administrator", "owner", "analyst"]


class AccountResponse(ResponseBody):
    """An account."""

    id: str
    name: str
    role: str
    created: str
    disabled: bool


class CallerResponse(ResponseBody):
    """Who the token belongs to, and what it is good for."""

    account: str
    name: str
    role: str
    scopes: list[str]
    token: str
    expires: str
    signed_in: bool


class QuotaUsage(ResponseBody):
    """How much of something is used, and how much may be."""

    used: int
    most: int


class UsageResponse(ResponseBody):
    """What an account uses of its quotas: bytes of uploads and tallies, cells of tallies, jobs, tokens."""

    bytes: QuotaUsage
    cells: QuotaUsage
    jobs: QuotaUsage
    tokens: QuotaUsage


class TokenRequest(RequestBody):
    """A token to issue; by default with all scopes of the role and the longest life that is allowed."""

    label: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9 ._-]*$", max_length=80)] = ""
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=4)] | None = None
    days: Annotated[int, Field(ge=1, le=3650)] | None = None


class TokenResponse(ResponseBody):
    """What is remembered of a token; ``parent`` is the one that made it, and ends it."""

    id: str
    account: str
    label: str
    scopes: list[str]
    created: str
    expires: str
    revoked: str | None
    signed_in: bool
    parent: str | None


class IssuedTokenResponse(TokenResponse):
    """A new token, told once."""

    secret: str


class ProviderResponse(ResponseBody):
    """A provider to sign in with."""

    name: str


class SignInResponse(ResponseBody):
    """How people may sign in, besides with a token: null if with nothing else."""

    oidc: ProviderResponse | None


class IdentityRequest(RequestBody):
    """Who may sign in to an account: what the provider's claim must say of that person."""

    subject: Annotated[str, StringConstraints(pattern=r"^[!-~]([ -~]*[!-~])?$", max_length=255)]


class IdentityResponse(ResponseBody):
    """Who may sign in to an account; ``sub`` is null until that person has come."""

    account: str
    issuer: str
    claim: str
    subject: str
    sub: str | None
    created: str


class LogEntryResponse(ResponseBody):
    """A line of the log."""

    sequence: int
    at: str
    request: str
    account: str
    action: str
    object: str
