"""Who a peer is: an Ed25519 key pair, and TLS contexts that trust pinned public keys and nothing else.

A peer's *fingerprint* is its public key, 64 hexadecimal digits. There is no authority and no expiry: a party
that received a fingerprint over a trusted channel has pinned the key itself.

TLS needs certificates, so both sides make them on the fly. A process signs a short-lived certificate for a
throw-away key with its identity key. Its peer builds a trust anchor out of the pinned public key; OpenSSL
takes an anchor's key as given, so the anchor's own signature is not checked. The handshake then succeeds
exactly if the peer holds the private key of a pinned fingerprint, in both directions; OpenSSL alone decides.
"""

from __future__ import annotations

import datetime
import os
import re
import secrets
import ssl
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hushsum.errors import FileRefused, UsageError
from hushsum.transport.secret_files import read_secret, write_secret

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

_HEX: Final = re.compile(r"[0-9a-f]{64}")
_LIFETIME: Final = datetime.timedelta(days=30)
_SKEW: Final = datetime.timedelta(days=1)


def fingerprint_of(text: str) -> str:
    """A fingerprint as it is typed, checked.

    >>> fingerprint_of("AB" * 32)[:8]
    'abababab'
    """
    lowered = text.strip().lower()
    if not _HEX.fullmatch(lowered):
        raise UsageError(
            rule="a fingerprint must be 64 hexadecimal digits",
            got="something else",
            remedy="the command keys shows it",
        )
    return lowered


@dataclass(frozen=True, slots=True, repr=False)
class Identity:
    """A private key and the fingerprint others pin; it shows only the latter."""

    _key: Ed25519PrivateKey
    fingerprint: str

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> Identity:
        """Make a key and write it to a new file of mode 0600.

        Raises
        ------
        UsageError
            if the file exists: a key that peers have pinned is never replaced.
        """
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        key = Ed25519PrivateKey.generate()
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        write_secret(path, pem)
        return cls(key, _fingerprint(key.public_key()))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, maker: str = "hushsum summarize keys") -> Identity:
        """Read a key file; ``maker`` is the command that makes one.

        Raises
        ------
        UsageError
            if there is none, or other users of the machine can read it.
        FileRefused
            if it holds no Ed25519 key.
        """
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        pem = read_secret(path, maker=maker)
        try:
            key = load_pem_private_key(pem, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            key = None
        if not isinstance(key, Ed25519PrivateKey):
            raise FileRefused(
                rule=f"{os.fspath(path)!r} holds no Ed25519 key",
                remedy=f"make one with: {maker}",
            )
        return cls(key, _fingerprint(key.public_key()))

    def __repr__(self) -> str:
        return f"<Identity {self.fingerprint}>"

    def sign(self, data: bytes) -> bytes:
        """An Ed25519 signature of these bytes; callers begin them with the purpose."""
        return self._key.sign(data)

    def derived_key(self, purpose: bytes) -> bytes:
        """32 bytes that only the holder of the private key can compute, different for every purpose."""
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        return HKDF(SHA256(), 32, None, b"hushsum derived key " + purpose).derive(
            self._key.private_bytes_raw()
        )

    def server_context(self, peers: Sequence[str]) -> ssl.SSLContext:
        """TLS for the side that listens, which lets in the holders of these fingerprints and nobody else."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # No session tickets: every connection proves both keys anew.
        context.num_tickets = 0
        return self._context(context, peers)

    def client_context(self, peer: str) -> ssl.SSLContext:
        """TLS for the side that connects, to the holder of this fingerprint and nobody else."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        # The key is pinned; under which name a host is reached does not matter.
        context.check_hostname = False
        return self._context(context, [peer])

    def _context(self, context: ssl.SSLContext, peers: Sequence[str]) -> ssl.SSLContext:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.load_verify_locations(cadata=b"".join(_anchor(each) for each in peers))
        # OpenSSL reads certificates from files alone; this one is gone before the first connection.
        with tempfile.TemporaryDirectory(prefix="hushsum-") as folder:
            path = Path(folder) / "leaf.pem"
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(self._leaf())
            context.load_cert_chain(path)
        return context

    def _leaf(self) -> bytes:
        """A certificate of a fresh key, signed by this identity, and that key: PEM."""
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
        from cryptography.x509.oid import ExtendedKeyUsageOID

        leaf = Ed25519PrivateKey.generate()
        own = self._key.public_key()
        certificate = (
            _certificate("hushsum session", self.fingerprint, leaf.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
                critical=False,
            )
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(own), critical=False)
            .sign(self._key, None)
        )
        key = leaf.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return key + certificate.public_bytes(Encoding.PEM)


def verify(fingerprint: str, signature: bytes, data: bytes) -> bool:
    """Whether the holder of this fingerprint signed these bytes."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(fingerprint)).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True


def peer_of(connection: ssl.SSLSocket) -> str:
    """The fingerprint of the peer of an established connection, as OpenSSL verified it."""
    certificate: Any = connection.getpeercert()
    issuer = dict(pair for group in certificate["issuer"] for pair in group)
    return fingerprint_of(str(issuer["commonName"]))


def _anchor(fingerprint: str) -> bytes:
    """A certificate that states no more than: this public key may sign certificates. DER."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import Encoding

    try:
        pinned = Ed25519PublicKey.from_public_bytes(bytes.fromhex(fingerprint_of(fingerprint)))
    except ValueError:
        raise UsageError(rule="a fingerprint must be an Ed25519 public key", got="something else") from None
    certificate = (
        _certificate(fingerprint, "nobody", pinned)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(pinned), critical=False)
        .sign(Ed25519PrivateKey.generate(), None)
    )
    return certificate.public_bytes(Encoding.DER)


def _certificate(subject: str, issuer: str, key: Ed25519PublicKey) -> x509.CertificateBuilder:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key)
        .serial_number(secrets.randbits(120) | 1)
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _LIFETIME)
    )


def _fingerprint(key: Ed25519PublicKey) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
