"""Accounts, tokens, identities and the audit log."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from hushsum.service.schemas.fields import Label, Name, RequestBody, ResponseBody, Scope


class AccountRequest(RequestBody):
    """An account to create."""

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
    """The account that the token belongs to, and its scopes."""

    account: str
    name: str
    role: str
    scopes: list[str]
    token: str
    expires: str
    signed_in: bool


class QuotaUsage(ResponseBody):
    """How much of a quota is used, and its limit."""

    used: int
    most: int


class UsageResponse(ResponseBody):
    """What an account uses of its quotas: bytes of uploads, tallies and states of streams, cells of tallies,
    jobs, tokens.
    """

    bytes: QuotaUsage
    cells: QuotaUsage
    jobs: QuotaUsage
    tokens: QuotaUsage


class TokenRequest(RequestBody):
    """A token to issue; by default with all scopes of the role and the longest lifetime allowed."""

    label: Label = ""
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=4)] | None = None
    days: Annotated[int, Field(ge=1, le=3650)] | None = None


class TokenResponse(ResponseBody):
    """The stored description of a token; ``parent`` is the token that issued it, and is revoked with it."""

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
    """A new token; ``secret`` is returned only here."""

    secret: str


class ProviderResponse(ResponseBody):
    """A provider to sign in with."""

    name: str


class SignInResponse(ResponseBody):
    """The sign-in provider, or null if a token is the only way to sign in."""

    oidc: ProviderResponse | None


class IdentityRequest(RequestBody):
    """Who may sign in to an account: the value that the provider's claim must have."""

    subject: Annotated[str, StringConstraints(pattern=r"^[!-~]([ -~]*[!-~])?$", max_length=255)]


class IdentityResponse(ResponseBody):
    """Who may sign in to an account; ``sub`` is null until that person has signed in."""

    account: str
    issuer: str
    claim: str
    subject: str
    sub: str | None
    created: str


class LogEntryResponse(ResponseBody):
    """An entry of the audit log; names are null where nothing is known by the id any more."""

    sequence: int
    at: str
    request: str
    account: str
    action: str
    object: str
    account_name: str | None = None
    object_name: str | None = None
