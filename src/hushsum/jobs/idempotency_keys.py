"""The key a command has by default: the same for the same command, and telling nothing about the records."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from hushsum.errors import FilePath, LedgerUnavailable, Parameter
from hushsum.files.container import canonical_json, declared_fields

_STEP = 1 << 20
_FORM = 1
"""Of the settings in a key; another one where the meaning of a setting, or its default, changes."""


def release_key(sources: str | Sequence[str], *public: object) -> str:
    """A key made of the bytes of a tally, or of files of records, and of everything public that names the
    release: values of JSON and dataclasses of settings (`declared_fields`).

    Repeating a command after a crash gives the same key, so it resumes instead of spending again.

    Privacy
    -------
    A plain digest of secret files would let whoever reads the ledger test guesses about its records. So the
    digest is keyed with 32 random bytes that stay in the user's state folder.
    """
    digest = hmac.new(_secret(), digestmod=hashlib.sha256)
    digest.update(canonical_json([_FORM, declared_fields(public)]))
    for each in [sources] if isinstance(sources, str) else sources:
        with open(each, "rb") as stream:
            while piece := stream.read(_STEP):
                digest.update(piece)
    return f"auto-{digest.hexdigest()[:40]}"


def _secret() -> bytes:
    from hushsum.files.durable_files import state_folder

    path = state_folder() / "release-key"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            _make(path)
        key = path.read_bytes()
    except OSError:
        raise LedgerUnavailable(
            rule=("the folder ", FilePath(path.parent, service="of the state"), " cannot be written"),
            remedy=(
                "make it writable, name another in HUSHSUM_STATE, or give ",
                Parameter("idempotency_key"),
            ),
        ) from None
    if len(key) != 32:
        raise LedgerUnavailable(
            rule=("the file ", FilePath(path), " is damaged"),
            remedy=("remove it, or give ", Parameter("idempotency_key")),
        )
    return key


def _make(path: Path) -> None:
    """Write a fresh secret; if two processes do at once, the first one's stays."""
    own = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(secrets.token_bytes(32))
            stream.flush()
            os.fsync(stream.fileno())
        with suppress(FileExistsError):
            os.link(own, path)
    finally:
        os.unlink(own)
