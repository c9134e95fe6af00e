"""A handshake succeeds exactly if both sides hold pinned keys."""

from __future__ import annotations

import os
import socket
import ssl
import stat
import threading
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from hushsum.errors import FileRefused, UsageError
from hushsum.parties import Identity
from hushsum.parties._tls import _certificate, fingerprint_of, peer_of
from tests.unit.parties.summarization.parties import identities


def shaken(server: ssl.SSLContext, client: ssl.SSLContext) -> tuple[str | None, str | None]:
    """Whom each side believes to talk to after a byte went each way; None where it refused."""
    near, far = socket.socketpair()
    near.settimeout(10)
    far.settimeout(10)
    seen: list[str | None] = [None]

    def serve() -> None:
        try:
            with server.wrap_socket(far, server_side=True) as connection:
                connection.recv(1)
                connection.sendall(b"y")
                seen[0] = peer_of(connection)
        except OSError:
            far.close()

    thread = threading.Thread(target=serve)
    thread.start()
    believed = None
    try:
        with client.wrap_socket(near) as connection:
            connection.sendall(b"x")
            if connection.recv(1) == b"y":
                believed = peer_of(connection)
    except OSError:
        near.close()
    thread.join()
    return seen[0], believed


def test_both_learn_who_the_other_is(tmp_path: Path) -> None:
    owner, curator, other = identities(tmp_path, "owner", "curator", "other")
    context = owner.server_context([other.fingerprint, curator.fingerprint])
    seen = shaken(context, curator.client_context(owner.fingerprint))
    assert seen == (curator.fingerprint, owner.fingerprint)


def test_a_key_that_is_not_pinned_is_refused_by_the_owner(tmp_path: Path) -> None:
    owner, curator, other = identities(tmp_path, "owner", "curator", "other")
    seen = shaken(owner.server_context([other.fingerprint]), curator.client_context(owner.fingerprint))
    assert seen == (None, None)


def test_an_owner_with_another_key_is_refused_by_the_curator(tmp_path: Path) -> None:
    owner, curator, other = identities(tmp_path, "owner", "curator", "other")
    seen = shaken(owner.server_context([curator.fingerprint]), curator.client_context(other.fingerprint))
    assert seen == (None, None)


def test_a_name_is_no_key(tmp_path: Path) -> None:
    """Somebody writes the pinned fingerprint into a certificate that another key signed."""
    owner, curator = identities(tmp_path, "owner", "curator")
    forged = Identity(Ed25519PrivateKey.generate(), curator.fingerprint)
    context = owner.server_context([curator.fingerprint])
    assert shaken(context, forged.client_context(owner.fingerprint)) == (None, None)
    assert shaken(context, curator.client_context(owner.fingerprint))[0] == curator.fingerprint


def test_a_pinned_key_does_not_vouch_for_another_name(tmp_path: Path) -> None:
    """One pinned peer signs an authority with the name of another, which signs the certificate."""
    owner, one, other = identities(tmp_path, "owner", "one", "other")
    between, leaf = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    authority = (
        _certificate(other.fingerprint, one.fingerprint, between.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(one._key, None)
    )
    forged = (
        _certificate("hushsum session", other.fingerprint, leaf.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(between, None)
    )
    parts = [leaf.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())]
    parts += [each.public_bytes(Encoding.PEM) for each in (forged, authority)]
    (tmp_path / "chain.pem").write_bytes(b"".join(parts))
    client = one.client_context(owner.fingerprint)
    client.load_cert_chain(tmp_path / "chain.pem")
    pinned = owner.server_context([one.fingerprint, other.fingerprint])
    assert shaken(pinned, client) == (None, None)
    assert shaken(pinned, one.client_context(owner.fingerprint))[0] == one.fingerprint


def test_no_certificate_is_refused(tmp_path: Path) -> None:
    (owner,) = identities(tmp_path, "owner")
    bare = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    bare.check_hostname = False
    bare.verify_mode = ssl.CERT_NONE
    assert shaken(owner.server_context([owner.fingerprint]), bare) == (None, None)


def test_earlier_tls_is_refused(tmp_path: Path) -> None:
    owner, curator = identities(tmp_path, "owner", "curator")
    old = curator.client_context(owner.fingerprint)
    old.minimum_version = ssl.TLSVersion.TLSv1_2
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    assert shaken(owner.server_context([curator.fingerprint]), old) == (None, None)


def test_a_key_file_is_secret_and_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.key"
    made = Identity.create(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Identity.load(path).fingerprint == made.fingerprint
    assert made.fingerprint in repr(made)
    with pytest.raises(UsageError, match="never replaced"):
        Identity.create(path)
    os.chmod(path, 0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        Identity.load(path)


def test_what_is_no_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.key"
    path.touch(0o600)
    with pytest.raises(FileRefused, match="no Ed25519 key"):
        Identity.load(path)
    with pytest.raises(UsageError, match="no key file"):
        Identity.load(tmp_path / "missing")
    with pytest.raises(UsageError, match="64 hexadecimal"):
        fingerprint_of("abc")
