"""Messages that only the driver of a job can read.

A job has an X25519 key pair. Its public half travels with the tasks; the private half stays in the driver's
memory. A worker encrypts its result with AES-256-GCM under a key that HKDF-SHA256 derives from the exchange
of a fresh key pair with the job's public key (as in ECIES, and RFC 9180's base mode). So nothing that an
engine keeps of a job, in a spill, a shuffle file, a cache or a log, opens a partial tally, not even together
with the tasks; and when the driver ends, nothing does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from hushsum.errors import FileRefused, SecretRefused
from hushsum.files.container import Buffer, Section
from hushsum.files.encryption import CHUNK, KEY_BYTES, SALT_BYTES, decrypt, encrypt

_LABEL = b"hushsum job 1"


class JobKey:
    """The private key of one job; it never leaves the process that made it."""

    __slots__ = ("_private", "public")

    def __init__(self) -> None:
        self._private = X25519PrivateKey.generate()
        self.public = _raw(self._private.public_key())

    def __reduce__(self) -> NoReturn:
        raise SecretRefused(
            rule="the key of a job must stay in the process that made it",
            remedy="send its public half",
        )

    def open(self, part: str, sealed: Buffer) -> memoryview:
        """What `seal` encrypted for this job and this part.

        Raises
        ------
        FileRefused
            if it was sealed for another job or part, or changed on the way.
        """
        view = memoryview(sealed)
        if len(view) < KEY_BYTES:
            raise FileRefused(rule="the message of a worker is too short", remedy="run the job again")
        sender = bytes(view[:KEY_BYTES])
        try:
            shared = self._private.exchange(X25519PublicKey.from_public_bytes(sender))
        except ValueError:
            raise FileRefused(rule="the message of a worker is damaged", remedy="run the job again") from None
        return decrypt(
            view[KEY_BYTES:], shared, sender[:SALT_BYTES], _bound(sender, self.public, part), CHUNK
        )


def seal(public: bytes, part: str, pieces: Sequence[Buffer | Section]) -> bytes:
    """Encrypt pieces for the job with this public key, as the result of one part."""
    private = X25519PrivateKey.generate()
    sender = _raw(private.public_key())
    shared = private.exchange(X25519PublicKey.from_public_bytes(public))
    # The salt only has to be new for each key; the sender's public key is, and both sides know it.
    encrypted = encrypt(pieces, shared, sender[:SALT_BYTES], _bound(sender, public, part))
    return b"".join([sender, *encrypted])


def _bound(sender: bytes, public: bytes, part: str) -> bytes:
    """What every chunk is authenticated with."""
    return b"\0".join([_LABEL, sender, public, part.encode()])


def _raw(key: X25519PublicKey) -> bytes:
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw)
