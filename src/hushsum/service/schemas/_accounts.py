"""Accounts, tokens, identities and the audit log."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, StringConstraints
from pydantic_core import PydanticCustomError

from hushsum.service.schemas._fields import Label, Name, Reason, RequestBody, ResponseBody, Scope


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


class FunctionResponse(ResponseBody):
    """A released function: its claim and everything else that is public. Sums of a function that is not
    ``signed`` are counts of records, each weighted by its similarity.
    """

    id: str
    dataset: str
    name: str
    sha256: str
    created: str
    owned: bool
    download: bool
    signed: bool
    facts: dict[str, Any]


class GrantRequest(RequestBody):
    """What an analyst may do with a function besides querying it."""

    download: bool = False


class GrantResponse(ResponseBody):
    """An account that may query a function."""

    account: str
    download: bool


class QueryRequest(RequestBody):
    """Query points: rows of numbers, or sets of integers for a kernel on sets."""

    points: list[list[float]]


class QueryResponse(ResponseBody):
    """One answer per point; null where it is not known. ``probability`` and ``decision`` have one row per
    point with one number per class.
    """

    of: str
    level: float
    prediction: list[float | int | bool | str] | None = None
    value: list[float | None] | None = None
    stderr: list[float | None] | None = None
    lower: list[float | None] | None = None
    upper: list[float | None] | None = None
    bound: list[float | None] | None = None
    probability: list[list[float | None]] | None = None
    decision: list[list[float | None]] | list[float | None] | None = None
    score: list[float | None] | None = None


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


class HealthResponse(ResponseBody):
    """Whether the process is alive or ready; and if not, why."""

    status: str
    reasons: list[str] = Field(default=[])


class LedgerStateResponse(ResponseBody):
    """Whether the ledger accepts debits; ``problem`` is why not, until an administrator accepts a restore."""

    id: str
    problem: str | None


class RestoreRequest(RequestBody):
    """The decision to continue with a ledger that may be a restored backup."""

    reason: Reason


class RestoreResponse(ResponseBody):
    """How many datasets were frozen; the owner of each opens it again with a write-off."""

    frozen: int


class ErrorFields(BaseModel):
    """What an error is about; a text may be a list of strings and parts that clients spell themselves."""

    parameter: str | None
    rule: str | dict[str, Any] | list[str | dict[str, Any]]
    got: str | None
    remedy: str | dict[str, Any] | list[str | dict[str, Any]] | None
    sha256: str | None = None


class Problem(BaseModel):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    request: str
    faults: list[dict[str, str]] = []
    error: ErrorFields | None = None
