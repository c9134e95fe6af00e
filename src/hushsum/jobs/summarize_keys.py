"""Make a key pair of a party of a summarization, or a secret for hashes, or show what others see of one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushsum.jobs.output_files import check_output
from hushsum.summarize.hash_secret import HashSecret
from hushsum.transport.peer_identity import Identity


@dataclass(frozen=True, slots=True)
class KeysShown:
    """A key file and its fingerprint; ``made`` if it was not there before."""

    file: str
    fingerprint: str
    made: bool

    def as_json(self) -> dict[str, Any]:
        """The result for a machine."""
        return {"file": self.file, "fingerprint": self.fingerprint, "made": self.made}


def show_keys(file: str) -> KeysShown:
    """The fingerprint of a key file, which is made if it is not there."""
    made = not Path(file).exists()
    if made:
        check_output(file)
    identity = Identity.create(file) if made else Identity.load(file)
    return KeysShown(file, identity.fingerprint, made)


@dataclass(frozen=True, slots=True)
class SecretShown:
    """A secret file and the check by which its holders see that it is the same; ``made`` if it is new."""

    file: str
    check: str
    made: bool

    def as_json(self) -> dict[str, Any]:
        """The result for a machine."""
        return {"file": self.file, "check": self.check, "made": self.made}


def show_secret(file: str) -> SecretShown:
    """The check of a secret file, which is made if it is not there."""
    made = not Path(file).exists()
    if made:
        check_output(file)
    secret = HashSecret.create(file) if made else HashSecret.load(file)
    return SecretShown(file, secret.check, made)
