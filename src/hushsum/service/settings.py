"""Every setting of the service, and where it is read from."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from hushsum.errors import UsageError, shown
from hushsum.ledger import file_of

from .store import Quota
from .trusted_proxies import X_FORWARDED_FOR, TrustedProxies

PREFIX = "HUSHSUM_"
SHORTEST_TOKEN = 32
FOLDERS = ("uploads", "tallies", "functions", "served", "streams")
# The folder from which processes of the service import it.
SOURCE = str(Path(__file__).parents[2])
_ROOT = re.compile(r"(?:/[A-Za-z0-9._~-]+)+")


# A secret setting is read from the file that the variable with this ending names, if that is set instead.
FILE = "_FILE"


def _setting(default: Any, help: str, *, secret: bool = False) -> Any:
    return field(default=default, repr=not secret, metadata={"help": help, "secret": secret})


@dataclass(frozen=True, slots=True)
class Settings:
    """How one service runs. Each field is read from ``HUSHSUM_`` and its name in capitals; a secret one also
    from the file that the same name with ``_FILE`` gives.
    """

    folder: str = _setting("hushsum-service", "Folder of uploads, tallies, functions and the database.")
    database: str = _setting(
        "", "PostgreSQL URL or SQLite path; default: service.db in the folder.", secret=True
    )
    guard: str = _setting(
        "",
        "The ledger's rollback guard: a file, or the URL of another database; default: in the folder.",
        secret=True,
    )
    host: str = _setting("127.0.0.1", "Address to listen on.")
    port: int = _setting(8000, "Port to listen on.")
    root_path: str = _setting("", "Path below which a proxy serves the service, such as /hushsum.")
    trusted_proxies: str = _setting("", "Proxies whose forwarding header is trusted: addresses and networks.")
    forwarded_header: str = _setting(
        X_FORWARDED_FOR, "The forwarding header that the proxies set: x-forwarded-for or forwarded."
    )
    admin_token: str = _setting(
        "", "Administrator token of at least 32 characters, instead of a new one.", secret=True
    )
    workers: int = _setting(1, "Worker processes, which count and release.")
    worker_memory_bytes: int = _setting(
        8 << 30, "Memory of a worker; an upload that expands to more is refused."
    )
    lease_seconds: float = _setting(15.0, "How long a worker that does not report keeps its job.")
    cache_seconds: float = _setting(2.0, "How long a revoked token or grant may work in another process.")
    database_seconds: float = _setting(10.0, "How long a request waits for the database before it gets 503.")
    max_upload_bytes: int = _setting(1 << 30, "Largest upload.")
    max_body_bytes: int = _setting(1 << 20, "Largest body of any other request but a query.")
    max_query_bytes: int = _setting(64 << 20, "Largest body of a query.")
    max_points: int = _setting(100_000, "Most points of one query.")
    max_cells: int = _setting(100_000_000, "Most cells (rows × width) of a tally.")
    owner_bytes: int = _setting(8 << 30, "Bytes of uploads, tallies and streams that an owner may store.")
    owner_cells: int = _setting(200_000_000, "Cells of tallies that an owner may store.")
    owner_jobs: int = _setting(50, "Jobs that an account may have queued and running.")
    job_seconds: float = _setting(3600.0, "Worker time that a job may take before its debit.")
    upload_hours: float = _setting(24.0, "Age at which an upload that was not counted is deleted.")
    token_days: int = _setting(90, "Longest lifetime of a token.")
    max_tokens: int = _setting(50, "Valid tokens that an account may have.")
    queries_per_second: float = _setting(5000.0, "Queries an account may send, with bursts of a second.")
    requests_per_second: float = _setting(50.0, "Other requests of an account, with bursts of ten seconds.")
    failures_per_minute: float = _setting(30.0, "Wrong tokens accepted from one address.")
    requests_at_once: int = _setting(64, "Concurrent requests of an account.")
    sharing: str = _setting("owners", "Who may share functions by links: owners, or nobody (off).")
    max_links: int = _setting(20, "Valid links that a function may have.")
    shared_requests_per_second: float = _setting(
        20.0, "Requests by shared links from one address, with bursts of ten seconds."
    )
    link_requests_per_second: float = _setting(
        100.0, "Requests by one shared link from all addresses, with bursts of ten seconds."
    )
    shared_max_points: int = _setting(10_000, "Most points of one query by a shared link.")
    streams_at_once: int = _setting(10, "Event streams that an account may have open.")
    calculations_at_once: int = _setting(
        2, "Claims, plans and the like that are calculated at a time; an account has at most half of them."
    )
    large_queries_at_once: int = _setting(
        2, "Large queries answered at a time; at most half of them of one account."
    )
    ready_seconds: float = _setting(2.0, "How long an ordinary query may take before /readyz fails.")
    calculation_seconds: float = _setting(60.0, "Longest time of one calculation or query.")
    calculation_memory_bytes: int = _setting(2 << 30, "Memory of the process of each.")
    connections_per_address: int = _setting(
        200, "Open connections from one address that is not a trusted proxy."
    )
    extensions: str = _setting(
        "", "Comma-separated modules that register further kernels, methods and models."
    )
    tally_key_file: str = _setting("", "File of a 32-byte key that encrypts tallies at rest.")
    log_level: str = _setting("INFO", "DEBUG, INFO, WARNING or ERROR.")
    oidc_issuer: str = _setting("", "Address of an OpenID Connect provider that people may sign in with.")
    oidc_client_id: str = _setting("", "The client id of this service at the provider.")
    oidc_client_secret: str = _setting("", "The client secret of this service at the provider.", secret=True)
    oidc_name: str = _setting("single sign-on", "The provider's name on the web page.")
    oidc_account_claim: str = _setting("email", "Claim that accounts are linked by: email, sub or another.")
    oidc_public_url: str = _setting("", "The public URL of the service.")

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                zero = each.name in ("port", "workers")
                if not (0 < value < 1 << 50 or (zero and value == 0)):
                    rule = f"{PREFIX}{each.name.upper()} must be a positive number"
                    raise UsageError(rule, got=f"{value!r}")
        token = self.admin_token
        plain = token.isascii() and token.isprintable() and " " not in token
        if token and (len(token) < SHORTEST_TOKEN or not plain):
            raise UsageError(
                (
                    f"{PREFIX}ADMIN_TOKEN must have at least {SHORTEST_TOKEN} letters, digits and "
                    "signs without spaces"
                ),
                remedy="make one with: openssl rand -hex 32",
            )
        if self.root_path and not _ROOT.fullmatch(self.root_path):
            rule = f"{PREFIX}ROOT_PATH must begin with a slash and end without one, such as /hushsum"
            raise UsageError(rule)
        TrustedProxies.of(self.trusted_proxies, self.forwarded_header)
        if self.sharing not in ("owners", "off"):
            raise UsageError(f"{PREFIX}SHARING must be owners or off")
        if self.log_level not in ("DEBUG", "INFO", "WARNING", "ERROR"):
            raise UsageError(f"{PREFIX}LOG_LEVEL must be DEBUG, INFO, WARNING or ERROR")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None, **given: Any) -> Settings:
        """The settings of an environment, by default this process's; ``given`` ones that are not None win.

        Raises
        ------
        UsageError
            for a value of the wrong kind; the message does not show it.
        """
        known = os.environ if environment is None else environment
        values: dict[str, Any] = {}
        for each in fields(cls):
            kind: type[Any] = type(each.default)
            text = _text(known, each.name, secret=each.metadata["secret"])
            try:
                values |= {each.name: kind(text)} if text else {}
            except ValueError:
                rule = f"{PREFIX}{each.name.upper()} must be a number"
                raise UsageError(rule, got="something else") from None
        values.update({name: value for name, value in given.items() if value is not None})
        return cls(**values)

    @property
    def sharing_is_on(self) -> bool:
        """Whether owners may share functions, and links work."""
        return self.sharing == "owners"

    @property
    def proxies(self) -> TrustedProxies:
        """The proxies that are believed."""
        return TrustedProxies.of(self.trusted_proxies, self.forwarded_header)

    @property
    def place(self) -> str:
        """The database's path or URL; service and ledger share it."""
        return self.database or str(Path(self.folder) / "service.db")

    @property
    def ledger_guard(self) -> str | None:
        """The ledger's rollback guard; None if its database is a file, which has its own."""
        if self.guard or file_of(self.place) is not None:
            return self.guard or None
        return str(Path(self.folder) / "rollback_guard.json")

    @property
    def most_running(self) -> int:
        """How many jobs of one owner may run at once: all but one worker, so that others need not wait."""
        return max(1, self.workers - 1)

    @property
    def quota(self) -> Quota:
        """The limits of one owner's stored bytes and cells."""
        return Quota(self.owner_bytes, self.owner_cells)

    @property
    def most_model_numbers(self) -> int:
        """How many numbers a model may hold: in tables, or in records that it keeps."""
        return self.max_cells // 4

    @property
    def largest_state(self) -> int:
        """Bytes of a stream's state: a step reads it, changes it and writes it, in the memory of a worker."""
        return self.worker_memory_bytes // 4

    def check_cells(self, cells: int) -> None:
        """Refuse a table that is larger than the service takes."""
        if cells > self.max_cells:
            rule = f"a table must have at most {self.max_cells} cells"
            raise UsageError(rule, remedy="use fewer rows or features")

    def path(self, kind: str, name: str = "") -> Path:
        """A place in one of the `FOLDERS`."""
        return Path(self.folder) / kind / name

    def import_extensions(self) -> list[str]:
        """Import the modules of `extensions`, in this process; their names.

        Raises
        ------
        UsageError
            if one cannot be imported.
        """
        names = self.extensions.replace(",", " ").split()
        for name in names:
            try:
                import_module(name)
            except ImportError as error:
                rule = f"{PREFIX}EXTENSIONS must name modules that can be imported"
                remedy = "install it beside Hushsum, or add its folder to PYTHONPATH"
                raise UsageError(rule, got=shown(name), remedy=remedy) from error
        return names

    def prepare(self) -> None:
        """Make the folders, for the owner of the process alone."""
        for kind in ("", *FOLDERS):
            path = self.path(kind)
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not os.access(path, os.W_OK | os.X_OK):
                raise UsageError(f"the folder {str(path)!r} must be writable", remedy=f"check {PREFIX}FOLDER")

    def tally_key(self) -> bytes | None:
        """The key of tallies at rest, if there is one."""
        from hushsum.operations import read_key

        return read_key(self.tally_key_file) if self.tally_key_file else None

    def for_worker(self) -> str:
        """The settings that a worker process receives, without secrets it does not need."""
        return json.dumps(asdict(replace(self, admin_token="", oidc_client_secret="")))


def _text(environment: Mapping[str, str], name: str, *, secret: bool) -> str:
    """The text of a setting in the environment or, for a secret one, in the file that this names."""
    variable = PREFIX + name.upper()
    given = environment.get(variable, "")
    path = environment.get(variable + FILE, "") if secret else ""
    if not path:
        return given
    if given:
        raise UsageError(f"give one of {variable} and {variable}{FILE}, and not both")
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        text = ""
    if not text:
        rule = f"the file that {variable}{FILE} names must be readable text"
        raise UsageError(rule, remedy="check path and permissions")
    return text
