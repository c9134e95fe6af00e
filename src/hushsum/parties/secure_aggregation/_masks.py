"""Keys that two sites share, masks made of them, and shares sealed for one recipient.

All keys are for one run: they are derived from fresh X25519 pairs by HKDF-SHA256 with the digest of the terms
as salt. A mask is the ChaCha20 keystream of its key, read as integers modulo 2³² or 2⁶⁴.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import PeerRefused, UsageError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey


Ring = NDArray[np.uint32] | NDArray[np.uint64]
KEY_BYTES: Final = 32
TAG_BYTES: Final = 16
_AT_A_TIME: Final = 1 << 20
_ZEROS: Final = bytes(8 * _AT_A_TIME)


def new_secret() -> bytes:
    """The private half of a fresh X25519 pair."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return X25519PrivateKey.generate().private_bytes_raw()


def public_half(secret: bytes) -> bytes:
    """The public half of a pair."""
    return _private(secret).public_key().public_bytes_raw()


def agreed_key(secret: bytes, peer: bytes, salt: bytes, purpose: bytes) -> bytes:
    """A key that the holders of two pairs share, for one purpose.

    Raises
    ------
    PeerRefused
        for a public half that gives no secret, such as one of small order.
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

    try:
        shared = _private(secret).exchange(X25519PublicKey.from_public_bytes(peer))
    except ValueError:
        raise PeerRefused("a site's public key gives no shared secret") from None
    return derived_key(shared, salt, purpose)


def derived_key(secret: bytes, salt: bytes, purpose: bytes) -> bytes:
    """A key of 32 bytes from a secret."""
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA256(), KEY_BYTES, salt, b"hushsum aggregation " + purpose).derive(secret)


def pair_purpose(one: str, other: str) -> bytes:
    """What the mask between two sites is derived for; the same on both sides."""
    first, second = sorted((one, other))
    return f"pairwise mask {first} {second}".encode("ascii")


def self_mask_key(seed: bytes, salt: bytes, site: str) -> bytes:
    """The key of the mask that a site adds for itself."""
    return derived_key(seed, salt, f"self mask {site}".encode("ascii"))


def ring_type(bits: int) -> Any:
    """The unsigned type of integers modulo 2^bits."""
    return np.dtype("<u4") if bits == 32 else np.dtype("<u8")


def add_mask(vector: Ring, key: bytes, *, sign: int) -> None:
    """Add or subtract the mask of a key, in place, modulo the ring."""
    start = 0
    for piece in _keystream(key, len(vector), vector.dtype):
        part = vector[start : start + len(piece)]
        # Unsigned integers of NumPy wrap around, as the ring does.
        np.add(part, piece, out=part) if sign > 0 else np.subtract(part, piece, out=part)
        start += len(piece)


def _keystream(key: bytes, size: int, dtype: Any) -> Iterator[Ring]:
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

    stream = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor()
    for start in range(0, size, _AT_A_TIME):
        many = min(_AT_A_TIME, size - start)
        yield np.frombuffer(stream.update(_ZEROS[: many * dtype.itemsize]), dtype)


def in_ring(vector: NDArray[np.int64], bits: int) -> Ring:
    """Signed integers modulo 2^bits."""
    ring: Ring = vector.astype(np.uint64).astype(ring_type(bits))
    return ring


def from_ring(vector: Ring) -> NDArray[np.int64]:
    """The signed integers next to zero of elements of the ring."""
    signed = vector.view(np.int32 if vector.dtype.itemsize == 4 else np.int64)
    return signed.astype(np.int64)


def seal(key: bytes, plain: bytes, bound: bytes) -> bytes:
    """Encrypt for one recipient, bound to ``bound``; a key seals one message, so the nonce is fixed."""
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    return ChaCha20Poly1305(key).encrypt(bytes(12), plain, bound)


def unseal(key: bytes, sealed: bytes, bound: bytes) -> bytes:
    """Decrypt; PeerRefused if a byte was changed, or it was sealed for somebody else."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    try:
        return ChaCha20Poly1305(key).decrypt(bytes(12), sealed, bound)
    except InvalidTag:
        raise PeerRefused("a sealed share was changed, replayed, or made for another site or run") from None


def _private(secret: bytes) -> X25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return X25519PrivateKey.from_private_bytes(secret)


PRIME: Final = 2**256 + 297
"""The smallest prime above 2²⁵⁶."""
SHARE_BYTES: Final = 33
SECRET_BYTES: Final = 32


def split_secret(secret: bytes, *, shares: int, threshold: int) -> list[bytes]:
    """As many shares, at the points 1, 2, …; each is SHARE_BYTES long.

    >>> parts = split_secret(bytes(range(32)), shares=5, threshold=3)
    >>> join_shares({5: parts[4], 1: parts[0], 2: parts[1]}, threshold=3) == bytes(range(32))
    True
    """
    if len(secret) != SECRET_BYTES:
        raise ValueError("a secret has 32 bytes")
    made = _shamirs().shares(
        int.from_bytes(secret, "big"), quantity=shares, modulus=PRIME, threshold=threshold, compact=True
    )
    return [each.value.to_bytes(SHARE_BYTES, "big") for each in made]


def join_shares(shares: Mapping[int, bytes], *, threshold: int) -> bytes:
    """The secret of shares by their points; ValueError if there are too few, or they are of no secret."""
    if len(shares) < threshold:
        raise ValueError("too few shares")
    library = _shamirs()
    chosen = sorted(shares.items())[:threshold]
    points = [library.share(point, int.from_bytes(value, "big")) for point, value in chosen]
    whole = int(library.interpolate(points, modulus=PRIME, threshold=threshold))
    if whole >= 1 << 8 * SECRET_BYTES:
        raise ValueError("shares of no secret")
    return whole.to_bytes(SECRET_BYTES, "big")


def _shamirs() -> Any:
    try:
        import shamirs
    except ModuleNotFoundError:
        raise UsageError(
            "secure aggregation needs the package shamirs", remedy="install hushsum[federated]"
        ) from None
    return shamirs
