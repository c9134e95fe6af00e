"""The service's tables, and their rows as values; ``migrations`` makes the tables, and brings those of an
earlier version to this one's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

import sqlalchemy as sa

from hushsum.kernels import kernel_from_json

# The migration this code needs; a test compares it with Alembic's newest.
REVISION = "0001"

# The oldest migration whose code works with these tables too: a service of that version may run beside one of
# this version while a deployment is upgraded. Raise it with a migration that older code cannot live with.
OLDEST_CODE = "0001"

VERSION_TABLE = "hushsum_service_version"

metadata = sa.MetaData()
# The table of each kind of row.
TABLES: Final[dict[type[Any], sa.Table]] = {}


class Words(sa.TypeDecorator[tuple[str, ...]]):
    """Words without spaces, which are stored with spaces between them."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: Iterable[str] | None, dialect: sa.Dialect) -> str:
        """The text that is stored."""
        return " ".join(value or ())

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> tuple[str, ...]:
        """The words."""
        return tuple((value or "").split())


_TYPES: Final[dict[Any, Any]] = {
    str: sa.Text,
    # SQLite numbers the rows of an INTEGER key alone.
    int: sa.BigInteger().with_variant(sa.Integer, "sqlite"),
    float: sa.Float,
    bool: sa.Boolean,
    dict: sa.JSON(none_as_null=True),
    tuple: Words,
}
Key = Annotated[str, "primary_key"]
NumberKey = Annotated[int, "primary_key"]
Unique = Annotated[str, "unique"]
Indexed = Annotated[str, "index"]


def _table(name: str, row: type[Any], *more: sa.schema.SchemaItem) -> sa.Table:
    """A table with a column for each field of a row, and ``more``; a field that may be None may be null."""
    hints = get_type_hints(row, include_extras=True)
    TABLES[row] = sa.Table(name, metadata, *(_column(*each) for each in hints.items()), *more)
    return TABLES[row]


def _column(name: str, hint: Any) -> sa.Column[Any]:
    allowed = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    kind, *options = get_args(allowed[0]) if get_origin(allowed[0]) is Annotated else (allowed[0],)
    stored = _TYPES[get_origin(kind) or kind]
    marked: dict[str, Any] = dict.fromkeys(options, True)
    return sa.Column(name, stored, nullable=NoneType in allowed, **marked)


def now() -> str:
    """The time, in a form that sorts."""
    return later(days=0.0)


def later(*, days: float) -> str:
    """A future time, in a form that sorts."""
    return (datetime.now(UTC) + timedelta(days=days)).isoformat(timespec="microseconds")


@dataclass(frozen=True, slots=True)
class Account:
    """An account of the service."""

    id: Key
    name: Unique
    role: str
    created: str
    disabled: bool


@dataclass(frozen=True, slots=True)
class Token:
    """The stored description of a token, without its secret; ``parent`` is the token that issued it, and with
    which it is revoked. ``signed_in``: it comes from a sign-in at a provider.
    """

    id: Key
    account: Indexed
    label: str
    scopes: tuple[str, ...]
    created: str
    expires: str
    revoked: str | None
    signed_in: bool
    parent: Indexed | None

    @property
    def works(self) -> bool:
        """Whether it can be used now, if its account is open."""
        return self.revoked is None and self.expires > now()


@dataclass(frozen=True, slots=True)
class IssuedToken(Token):
    """A new token; ``secret`` is returned only here."""

    secret: str


@dataclass(frozen=True, slots=True)
class Identity:
    """An account, and the person at a provider who may sign in to it.

    ``subject`` is the value that the provider's ``claim`` must have; ``sub`` is the provider's
    id of the person who signed in first. An email address may pass to another person, ``sub`` never does.
    """

    account: Key
    issuer: str
    claim: str
    subject: str
    sub: str | None
    created: str


@dataclass(frozen=True, slots=True)
class Dataset:
    """An owner's dataset: a name for a budget. The ledger knows it by its id, so that names of different
    owners never meet. A deleted one keeps its row, for the functions that were released from it; its name is
    free again.
    """

    id: Key
    owner: Indexed
    name: str
    created: str
    deleted: str | None


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that waits to be counted, or was."""

    id: Key
    dataset: Indexed
    format: str
    size: int
    state: str
    created: str
    name: str | None

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.id}.{self.format}"


@dataclass(frozen=True, slots=True)
class ListedUpload(Upload):
    """An upload. Its content cannot be downloaded. One that waits is deleted when it was counted, and at
    ``expires`` otherwise, unless a job needs it then.
    """

    expires: str | None


@dataclass(frozen=True, slots=True)
class StoredTally:
    """The public description of a confidential tally in the service's folder, without its counts."""

    id: Key
    dataset: Indexed
    cells: int
    size: int
    facts: dict[str, Any]
    created: str


@dataclass(frozen=True, slots=True)
class JobState:
    """A job: queued, running, done, failed or cancelled. While ``paying`` it cannot be cancelled, since its
    debit may be in the ledger. ``problem`` is an RFC 9457 object if it failed or was cancelled.
    """

    id: Key
    kind: str
    dataset: Indexed
    state: Indexed
    paying: bool
    progress: float | None
    result: dict[str, Any] | None
    problem: dict[str, Any] | None
    created: str
    updated: str


@dataclass(frozen=True, slots=True)
class Job(JobState):
    """A job as workers know it.

    ``lease``: before this time (in seconds) no other worker takes the job. ``seconds``: how long workers have
    worked on it, up to ``touched``; ``before``: how much of that was before it was last requested. ``stop``:
    why it is to stop before its debit.
    """

    account: Indexed
    key: str
    request: dict[str, Any]
    attempts: int
    lease: float
    touched: float
    seconds: float
    before: float
    stop: str | None

    @property
    def function(self) -> str:
        """The id of the function that the job releases."""
        return "fn_" + self.id.removeprefix("job_")

    @property
    def ledger_key(self) -> str:
        """The idempotency key of its debit in the ledger."""
        kind = f"{self.kind}:" if self.kind in ("model", "stream") else ""
        return f"{self.dataset}:{kind}{self.key}"

    @property
    def stream(self) -> str:
        """The id of the stream that the job starts."""
        return "st_" + self.id.removeprefix("job_")


@dataclass(frozen=True, slots=True)
class StoredFunction:
    """A released function; ``facts`` are public."""

    id: Key
    dataset: Indexed
    name: str
    sha256: str
    facts: dict[str, Any]
    created: str


@dataclass(frozen=True, slots=True)
class Function(StoredFunction):
    """A released function, and what the account that looked it up may do with it."""

    owned: bool
    granted_download: bool

    @property
    def is_served(self) -> bool:
        """Whether it is a model in exact mode, which has no public file."""
        return is_exact(self.facts)

    @property
    def download(self) -> bool:
        """Whether the account may have its file."""
        return (self.owned or self.granted_download) and not self.is_served

    @property
    def signed(self) -> bool:
        """Whether its sums are not counts of records, because its kernel may be negative."""
        return is_signed(self.facts)


@dataclass(frozen=True, slots=True)
class Share:
    """The stored description of a link by which anybody may query a function, without its key; ``origins``
    are the sites that may frame it.
    """

    id: Key
    function: Indexed
    label: str
    origins: tuple[str, ...]
    download: bool
    created: str
    expires: str | None
    revoked: str | None

    @property
    def works(self) -> bool:
        """Whether it can be used now, if the account of its owner is open."""
        return self.revoked is None and (self.expires is None or self.expires > now())


@dataclass(frozen=True, slots=True)
class SharedFunction:
    """A function as whoever has the link sees it: nothing of its owner, its dataset or its grants."""

    share: str
    function: str
    name: str
    sha256: str
    facts: dict[str, Any]
    origins: tuple[str, ...]
    download: bool
    expires: str | None

    @property
    def signed(self) -> bool:
        """Whether its sums are not counts of records, because its kernel may be negative."""
        return is_signed(self.facts)

    @property
    def works(self) -> bool:
        """Whether the link has not expired meanwhile."""
        return self.expires is None or self.expires > now()


@dataclass(frozen=True, slots=True)
class LogLine:
    """An entry of the audit log: who did what to which object, and when."""

    sequence: NumberKey
    at: str
    request: str
    account: str
    action: str
    object: str


def is_signed(facts: dict[str, Any]) -> bool:
    """Whether a function's kernel may be negative; a model has none."""
    return "model" not in facts and kernel_from_json(facts["kernel"]).signed


def is_exact(facts: dict[str, Any]) -> bool:
    """Whether these are the facts of a model in exact mode."""
    return bool(facts.get("model", {}).get("mode") == "exact")


@dataclass(frozen=True, slots=True)
class _SignIn:
    """A sign-in that was proven at a provider, and waits for the page to fetch a token. Its key stops a
    replay.
    """

    flow: Key
    hash: Unique
    account: Indexed
    expires: str
    used: str | None


@dataclass(frozen=True, slots=True)
class _Grant:
    """An account that may query a function."""

    function: Key
    account: Key
    download: bool
    created: str


@dataclass(frozen=True, slots=True)
class _Served:
    """How many answers were given by each path of a model in exact mode; its store must not have fewer."""

    function: Key
    number: NumberKey
    answers: int


def _hash() -> sa.Column[str]:
    """The digest of a secret that is not stored."""
    return sa.Column("hash", sa.Text, nullable=False, unique=True)


accounts = _table("hushsum_accounts", Account)
tokens = _table("hushsum_tokens", Token, _hash())
identities = _table(
    "hushsum_identities",
    Identity,
    # Nobody signs in to two accounts, whatever the code believes.
    sa.UniqueConstraint("issuer", "claim", "subject", name="hushsum_identities_subjects"),
)
sign_ins = _table("hushsum_sign_ins", _SignIn)
datasets = _table(
    "hushsum_datasets", Dataset, sa.UniqueConstraint("owner", "name", name="hushsum_datasets_names")
)
uploads = _table("hushsum_uploads", Upload)
tallies = _table("hushsum_tallies", StoredTally)
jobs = _table(
    "hushsum_jobs",
    Job,
    # The same key never makes two jobs, whatever the code believes.
    sa.UniqueConstraint("dataset", "kind", "key", name="hushsum_jobs_keys"),
)
functions = _table("hushsum_functions", StoredFunction)
grants = _table("hushsum_grants", _Grant)
shares = _table("hushsum_shares", Share, _hash())
served = _table("hushsum_served", _Served)
# Append-only: triggers refuse every change.
log = _table("hushsum_log", LogLine)

# Alembic's own, to be read without Alembic.
version = sa.Table(VERSION_TABLE, metadata, sa.Column("version_num", sa.String(32), primary_key=True))
