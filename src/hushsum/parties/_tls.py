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
import socket
import ssl
import stat
import struct
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hushsum.errors import FileRefused, PeerLost, PeerRefused, UsageError

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
            "a fingerprint must be 64 hexadecimal digits",
            got="something else",
            remedy="the command keys shows it",
        )
    return lowered


def short(fingerprint: str) -> str:
    """A fingerprint as people read it."""
    return f"{fingerprint[:12]}…"


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

        key = Ed25519PrivateKey.generate()
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        write_secret(path, pem)
        return cls(key, key.public_key().public_bytes_raw().hex())

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

        pem = read_secret(path, maker=maker)
        try:
            key = load_pem_private_key(pem, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            key = None
        if not isinstance(key, Ed25519PrivateKey):
            raise FileRefused(f"{os.fspath(path)!r} holds no Ed25519 key", remedy=f"make one with: {maker}")
        return cls(key, key.public_key().public_bytes_raw().hex())

    def __repr__(self) -> str:
        return f"<Identity {self.fingerprint}>"

    def sign(self, data: bytes) -> bytes:
        """An Ed25519 signature of these bytes; callers begin them with the purpose."""
        return self._key.sign(data)

    def derived_key(self, purpose: bytes) -> bytes:
        """32 bytes that only the holder of the private key can compute, different for every purpose."""

        derivation = HKDF(SHA256(), 32, None, b"hushsum derived key " + purpose)
        return derivation.derive(self._key.private_bytes_raw())

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
            write_secret(path, self._leaf())
            context.load_cert_chain(path)
        return context

    def _leaf(self) -> bytes:
        """A certificate of a fresh key, signed by this identity, and that key: PEM."""

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
    try:
        pinned = Ed25519PublicKey.from_public_bytes(bytes.fromhex(fingerprint_of(fingerprint)))
    except ValueError:
        raise UsageError("a fingerprint must be an Ed25519 public key", got="something else") from None
    certificate = (
        _certificate(fingerprint, "nobody", pinned)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(pinned), critical=False)
        .sign(Ed25519PrivateKey.generate(), None)
    )
    return certificate.public_bytes(Encoding.DER)


def _certificate(subject: str, issuer: str, key: Ed25519PublicKey) -> x509.CertificateBuilder:
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


_MOST_OF_A_SECRET = 1 << 16


def write_secret(path: str | os.PathLike[str], secret: bytes) -> None:
    """Write a new file of mode 0600, durably.

    Raises
    ------
    UsageError
        if the file exists: others rely on what it holds.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise UsageError(f"{os.fspath(path)!r} exists, and a key is never replaced") from None
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(secret)
        stream.flush()
        os.fsync(stream.fileno())


def read_secret(path: str | os.PathLike[str], *, maker: str) -> bytes:
    """What a secret file holds; ``maker`` is the command that makes one.

    Raises
    ------
    UsageError
        if there is none, or other users of the machine can read it.
    """
    name = os.fspath(path)
    try:
        with open(path, "rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            held = stream.read(_MOST_OF_A_SECRET)
    except FileNotFoundError:
        raise UsageError(f"no key file {name!r}", remedy=f"make one with: {maker}") from None
    if stat.S_IMODE(mode) & 0o077:
        raise UsageError(f"{name!r} must be readable by its owner alone", remedy=f"run: chmod 600 {name}")
    return held


VERSION: Final = 1
MAGIC: Final = b"HSPR"
_HEAD: Final = struct.Struct(">4sHHI")
_STEP: Final = 1 << 20
_LARGEST: Final = (1 << 32) - 1
_KEEPALIVE: Final = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))


class TlsConnection:
    """One connection to a peer whose key was verified; ``peer`` is its fingerprint."""

    __slots__ = ("_socket", "_transfer", "peer")

    def __init__(self, connection: ssl.SSLSocket, *, transfer: float) -> None:
        self._socket = connection
        self._transfer = transfer
        try:
            self.peer = peer_of(connection)
        except (OSError, ValueError):
            connection.close()
            raise

    def send(self, payload: bytes) -> None:
        """Send one message.

        Raises
        ------
        PeerLost
            if the peer went away, or did not take it in time.
        """
        if len(payload) > _LARGEST:
            raise PeerRefused(f"a message must be at most {_LARGEST} bytes", got=len(payload))
        deadline = time.monotonic() + self._transfer
        whole = memoryview(_HEAD.pack(MAGIC, VERSION, 0, len(payload)) + payload)
        try:
            while whole:
                self._socket.settimeout(_left(deadline))
                whole = whole[self._socket.send(whole[:_STEP]) :]
        except OSError:
            raise PeerLost("the peer went away, or did not take a message in time") from None

    def receive(self, *, most: int, wait: float) -> bytes:
        """The next message, of at most ``most`` bytes; ``wait`` seconds until it begins.

        Raises
        ------
        PeerRefused
            if it is not a frame of this version, or too long; nothing of its size was allocated.
        PeerLost
            if none came in time, it did not end in time, or the connection ended.
        """
        begun = time.monotonic()
        first = self._take(1, begun + wait)
        deadline = time.monotonic() + self._transfer
        magic, version, zero, length = _HEAD.unpack(first + self._take(_HEAD.size - 1, deadline))
        if magic != MAGIC or zero:
            raise PeerRefused("the peer sent something that is not a message of this protocol")
        if version != VERSION:
            raise PeerRefused(
                f"the peer uses version {version} of the protocol, this side {VERSION}",
                remedy="install the same Hushsum on both",
            )
        if length > most:
            raise PeerRefused(f"a message must be at most {most} bytes here", got=f"one of {length}")
        return bytes(self._take(length, deadline))

    def interrupt(self) -> None:
        """End what another thread waits for on this connection."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End the connection; what was sent has left or is lost."""
        self.interrupt()
        self._socket.close()

    def __enter__(self) -> TlsConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, size: int, deadline: float) -> bytearray:
        """Exactly ``size`` bytes, grown as they come."""
        data = bytearray()
        while len(data) < size:
            try:
                self._socket.settimeout(_left(deadline))
                piece = self._socket.recv(min(_STEP, size - len(data)))
            except TimeoutError:
                raise PeerLost("the peer did not send a message in time") from None
            except ssl.SSLError as error:
                if "ALERT" in (error.reason or ""):
                    raise PeerRefused(
                        "the peer does not accept this side's key", remedy="have it pinned"
                    ) from None
                piece = b""
            except OSError:
                piece = b""
            if not piece:
                raise PeerLost("the connection to the peer ended")
            data += piece
        return data


def connect(
    identity: Identity, host: str, port: int, fingerprint: str, *, timeout: float, transfer: float
) -> TlsConnection:
    """Connect to the peer with this fingerprint.

    Raises
    ------
    PeerLost
        if no peer answers.
    PeerRefused
        if the peer that answers does not hold that key, or who does not accept ours.
    """
    context = identity.client_context(fingerprint)
    try:
        plain = socket.create_connection((host, port), timeout)
    except OSError:
        raise PeerLost(f"nobody answers at {host}:{port}") from None
    try:
        _prepare(plain)
        made = TlsConnection(context.wrap_socket(plain), transfer=transfer)
    except ssl.SSLCertVerificationError:
        plain.close()
        raise PeerRefused(f"who answers at {host}:{port} does not hold the pinned key") from None
    except (OSError, ValueError):
        plain.close()
        raise PeerLost(f"the connection to {host}:{port} ended before both keys were proven") from None
    try:
        # With TLS 1.3 the side that connects learns only by this greeting whether its own key was accepted.
        made.receive(most=0, wait=timeout)
    except BaseException:
        made.close()
        raise
    return made


def incoming(listener: socket.socket, *, wait: float | None) -> socket.socket:
    """The next connection, of which nothing is known yet; TimeoutError after ``wait`` seconds."""
    listener.settimeout(wait)
    plain, _ = listener.accept()
    return plain


def secured(
    plain: socket.socket, context: ssl.SSLContext, *, handshake: float, transfer: float
) -> TlsConnection:
    """An encrypted connection to a peer that has proven a pinned key within ``handshake`` seconds.

    Raises
    ------
    PeerRefused
        if it did not.
    """
    try:
        plain.settimeout(handshake)
        _prepare(plain)
        made = TlsConnection(context.wrap_socket(plain, server_side=True), transfer=transfer)
    except (OSError, ValueError):
        plain.close()
        raise PeerRefused("somebody connected who does not hold a pinned key") from None
    try:
        made.send(b"")
    except PeerLost:
        made.close()
        raise PeerRefused("somebody with a pinned key went away at once") from None
    return made


def _prepare(connection: socket.socket) -> None:
    """Small messages at once; and a peer whose machine died is noticed, so that it can come back."""
    # Of a peer that is gone already, Python's TLS would leave the socket open.
    connection.getpeername()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        # Not every system has all of them; its own, slower defaults hold then.
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
