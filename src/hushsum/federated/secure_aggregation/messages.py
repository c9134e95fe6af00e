"""The messages of a secure aggregation: what the server requests, and what sites sign in reply.

| step | the server sends | each site replies |
|---|---|---|
| 1 | ``terms`` | ``keys``: two public X25519 keys |
| 2 | ``roster``: the signed keys of all who came | ``shares``: sealed shares of seed and mask key, digests |
| 3 | ``deliveries``: what others sealed for it | ``masked``: its noisy table under masks |
| 4 | ``survivors``: whose tables arrived | ``consent``: its signature of that list |
| 5 | ``consents``: the signatures of the others | ``opening``: one share for each of the sites |

A reply is its packed body followed by an Ed25519 signature of 64 bytes. The body names the terms by their
digest, so that no reply of another run or on other terms is taken for one of this.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import FileRefused, PeerRefused
from hushsum.federated.secure_aggregation.masks import TAG_BYTES
from hushsum.federated.secure_aggregation.shamir_shares import SHARE_BYTES
from hushsum.federated.secure_aggregation.terms import AggregationTerms
from hushsum.transport.peer_identity import Identity, verify
from hushsum.transport.serialization import pack, unpack

KEYS, SHARES, MASKED, CONSENT, OPENING = STEPS = ("keys", "shares", "masked", "consent", "opening")
"""The replies, in their order."""

SEALED_BYTES: Final = 2 * SHARE_BYTES + TAG_BYTES
DIGEST_BYTES: Final = 32
_SIGNATURE: Final = 64
_PURPOSE: Final = b"hushsum aggregation message "
_ROOM: Final = 1 << 13
_NAME: Final = 80
"""Bytes of a fingerprint in a list."""

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Reply:
    """A verified reply: who signed it, its values and arrays, and its bytes."""

    sender: str
    values: dict[str, Any]
    arrays: Arrays
    data: bytes


def signed_reply(
    identity: Identity,
    kind: str,
    terms: AggregationTerms,
    values: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> bytes:
    """The bytes of a reply of this site."""
    named = {"terms": terms.digest.hex(), "sender": identity.fingerprint}
    body = pack(kind, {**values, **named}, arrays)
    return body + identity.sign(_PURPOSE + hashlib.sha256(body).digest())


def read_reply(data: bytes, kind: str, terms: AggregationTerms, *, sender: str | None = None) -> Reply:
    """A reply of this kind, by a site of the terms, with a signature that holds.

    Raises
    ------
    FileRefused
        if it is damaged, too long, or of another kind.
    PeerRefused
        if it belongs to other terms or to nobody of them, is not signed, or signed by another than
        ``sender``.
    """
    if len(data) > most_reply(terms, kind):
        raise FileRefused(
            rule=f"a message of step {kind!r} must be at most {most_reply(terms, kind)} bytes", got=len(data)
        )
    body, signature = data[:-_SIGNATURE], data[-_SIGNATURE:]
    _, values, arrays = unpack(body, kind)
    signer = values.pop("sender", None)
    if values.pop("terms", None) != terms.digest.hex():
        raise PeerRefused(rule="a message belongs to another run, or to other terms")
    if not isinstance(signer, str) or signer not in terms.sites or sender not in (None, signer):
        raise PeerRefused(rule="a message names a site that it must not come from")
    if not verify(signer, signature, _PURPOSE + hashlib.sha256(body).digest()):
        raise PeerRefused(rule="a message does not carry its site's signature")
    return Reply(signer, values, arrays, data)


def most_reply(terms: AggregationTerms, kind: str) -> int:
    """The longest reply of a kind, in bytes."""
    sites = len(terms.sites)
    return {
        KEYS: 0,
        SHARES: sites * (SEALED_BYTES + 2 * DIGEST_BYTES),
        MASKED: (terms.cells + 1) * terms.ring_bits // 8,
        CONSENT: sites * _NAME,
        OPENING: sites * SHARE_BYTES,
    }[kind] + _ROOM


def most_request(terms: AggregationTerms) -> int:
    """The longest message of the server to a site."""
    sites = len(terms.sites)
    return max(sites * (_ROOM + SEALED_BYTES), sites * (most_reply(terms, CONSENT) + _NAME), 1 << 22) + _ROOM


def bundle(kind: str, messages: Sequence[bytes]) -> bytes:
    """Several replies in one request."""
    lengths = np.array([len(each) for each in messages], np.int64)
    return pack(kind, {}, {"lengths": lengths, "messages": np.frombuffer(b"".join(messages), np.int8)})


def unbundle(arrays: Arrays, most: int) -> list[bytes]:
    """The replies of such a request; ValueError if their lengths do not add up."""
    lengths, whole = arrays["lengths"], arrays["messages"]
    if lengths.ndim != 1 or lengths.dtype != np.int64 or not 0 < len(lengths) <= most:
        raise ValueError("lengths")
    if whole.ndim != 1 or whole.dtype != np.int8:
        raise ValueError("messages")
    if lengths.min() < 0 or lengths.max() > len(whole) or int(lengths.sum()) != len(whole):
        raise ValueError("lengths")
    data, ends = whole.tobytes(), np.cumsum(lengths)
    return [data[end - length : end] for end, length in zip(ends.tolist(), lengths.tolist(), strict=True)]


def site_list(value: object, terms: AggregationTerms) -> tuple[str, ...]:
    """Fingerprints of the terms, sorted, each once; ValueError otherwise."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ValueError("sites")
    if value != sorted(set(value)) or not set(value) <= set(terms.sites):
        raise ValueError("sites")
    return tuple(value)


def rows_of_bytes(array: NDArray[Any], rows: int, width: int) -> list[bytes]:
    """The rows of an array of bytes; ValueError for another shape."""
    if array.shape != (rows, width) or array.dtype != np.int8:
        raise ValueError("bytes")
    return [row.tobytes() for row in array]


def bytes_array(rows: Sequence[bytes], width: int) -> NDArray[np.int8]:
    """Byte strings of one length as the rows of an array."""
    return np.frombuffer(b"".join(rows), np.int8).reshape(len(rows), width)


def share_digest(kind: str, terms: AggregationTerms, owner: str, holder: str, share: bytes) -> bytes:
    """What an owner publishes of a share, so that a wrong one is recognised when it is revealed."""
    named = f"share {kind} {owner} {holder} ".encode("ascii")
    return hashlib.sha256(named + terms.digest + share).digest()


def seed_digest(terms: AggregationTerms, owner: str, seed: bytes) -> str:
    """What an owner publishes of its seed, so that shares which join to another one are recognised.

    The seed is 32 random bytes, so its digest tells nothing of it, nor of the mask that HKDF makes of it.
    """
    return hashlib.sha256(f"seed {owner} ".encode("ascii") + terms.digest + seed).hexdigest()


def transcript(terms: AggregationTerms, keys: Mapping[str, str], senders: Sequence[str]) -> str:
    """A digest of what a site has seen: terms, digests of the signed keys of all, and who dealt shares."""
    seen = hashlib.sha256(b"hushsum aggregation transcript " + terms.digest)
    for site in sorted(keys):
        seen.update(bytes.fromhex(keys[site]))
    seen.update(" ".join(sorted(senders)).encode("ascii"))
    return seen.hexdigest()
