"""The secret that owners and consumer share where the curator is sent hashes instead of points."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from dataclasses import dataclass, replace
from typing import Final

from hushsum.errors import FileRefused
from hushsum.summarize.features import SummaryFeatures
from hushsum.transport.secret_files import read_secret, write_secret

MAKER: Final = "hushsum summarize secret"
_FORM: Final = re.compile(rb"hushsum hash secret 1\n([0-9a-f]{64})\n")


@dataclass(frozen=True, slots=True, repr=False)
class HashSecret:
    """32 random bytes from which the features' seed follows; the curator must never have them.

    One owner makes it and hands it to the other owners and the consumer. Take a new one for every run: under
    one secret equal points have equal hashes in all runs.

    Privacy
    -------
    The seed has 256 bits, so it cannot be guessed by trying. It hides coordinates and nothing else: pairwise
    distances of what is sent show, and anyone who has the secret can solve for the points. No claim is made.

    Examples
    --------
    >>> secret = HashSecret(bytes(32))
    >>> features = secret.features(SummaryFeatures(dim=2, bandwidth=1.0, features=50, seed=0))
    >>> features.seed == secret.seed, secret
    (True, <HashSecret f284027b3135…>)
    """

    _bytes: bytes

    def __repr__(self) -> str:
        return f"<HashSecret {self.check[:12]}…>"

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> HashSecret:
        """Draw one and write it to a new file of mode 0600; UsageError if the file exists."""
        made = cls(secrets.token_bytes(32))
        write_secret(path, b"hushsum hash secret 1\n" + made._bytes.hex().encode() + b"\n")
        return made

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> HashSecret:
        """Read a secret file.

        Raises
        ------
        UsageError
            if there is none, or other users of the machine can read it.
        FileRefused
            if it holds something else.
        """
        found = _FORM.fullmatch(read_secret(path, maker=MAKER))
        if found is None:
            raise FileRefused(
                rule=f"{os.fspath(path)!r} holds no hash secret", remedy=f"make one with: {MAKER}"
            )
        return cls(bytes.fromhex(found[1].decode()))

    @property
    def seed(self) -> int:
        """The features' seed, 256 bits."""
        return int.from_bytes(self._digest("seed"), "big")

    @property
    def check(self) -> str:
        """By which parties see that they hold the same secret; public, and reveals nothing about it."""
        return self._digest("check").hex()

    def features(self, public: SummaryFeatures) -> SummaryFeatures:
        """The features of the terms under this secret's seed."""
        return replace(public, seed=self.seed)

    def _digest(self, purpose: str) -> bytes:
        return hashlib.sha256(f"hushsum/summary-hashes/{purpose}/".encode() + self._bytes).digest()
