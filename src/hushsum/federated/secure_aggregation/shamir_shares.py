"""Secrets of 32 bytes in shares, of which a threshold gives the secret back and fewer give nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hushsum.errors import UsageError

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
            rule="secure aggregation needs the package shamirs", remedy="install hushsum[federated]"
        ) from None
    return shamirs
