"""Secure aggregation of integer tables between sites, after Bonawitz et al. (CCS 2017).

`SiteState` and `ServerState` are state machines without sockets and clocks: they turn messages into messages.
The noise is drawn by the sites, inside the masks; `AggregationTerms` fix how much. `run_server` and
`join_as_site` run them between processes, with files, keys, state folders and ledgers.

All keys are for one run: they are derived from fresh X25519 pairs by HKDF-SHA256 with the digest of the terms
as salt. A mask is the ChaCha20 keystream of its key, read as integers modulo 2³² or 2⁶⁴.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, cast

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from hushsum._types import Secret
from hushsum.declaration import check_fields, request, required, setting
from hushsum.errors import FileRefused, HushsumError, PeerLost, PeerRefused, UsageError
from hushsum.errors import Parameter as NameOf
from hushsum.files import atomic_file, pack, unpack
from hushsum.kernels import positive_integer
from hushsum.operations import LedgerOptions, check_output
from hushsum.privacy import (
    AUTO,
    GAUSSIAN,
    LAPLACE,
    SECURE_AGGREGATION,
    SKELLAM,
    Calibration,
    Claim,
    IntegerNoise,
    Mechanism,
    Relation,
    ReleaseRequest,
    Statement,
    Trust,
    checked_unit,
    noise_shares,
    stated_json,
    unit_in_words,
)
from hushsum.releases import UNSEEN_SHARE, NoisyTable, PublicFacts, function_type, largest_step
from hushsum.tables import Basis, Reading, reading_as_json, reading_from_json
from hushsum.tally import TableRelease, Tally, claimed_unit, differing_parameters, load_tally, sums_with_share

from ._merge import narrowed
from ._runtime import (
    NO_LEDGER,
    RATIONAL,
    Address,
    Coordinator,
    EncryptedState,
    Field,
    Log,
    Message,
    Participant,
    PartySpec,
    Patience,
    Result,
    RunSpending,
    SecretStore,
    StateFolder,
    control,
    listener,
    own_affairs,
)
from ._tls import Identity, fingerprint_of, short, verify

Ring = NDArray[np.uint32] | NDArray[np.uint64]
KEY_BYTES: Final = 32
TAG_BYTES: Final = 16
_AT_A_TIME: Final = 1 << 20
_ZEROS: Final = bytes(8 * _AT_A_TIME)


def new_secret() -> bytes:
    """The private half of a fresh X25519 pair."""
    return X25519PrivateKey.generate().private_bytes_raw()


def public_half(secret: bytes) -> bytes:
    """The public half of a pair."""
    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def agreed_key(secret: bytes, peer: bytes, salt: bytes, purpose: bytes) -> bytes:
    """A key that the holders of two pairs share, for one purpose.

    Raises
    ------
    PeerRefused
        for a public half that gives no secret, such as one of small order.
    """
    try:
        shared = X25519PrivateKey.from_private_bytes(secret).exchange(X25519PublicKey.from_public_bytes(peer))
    except ValueError:
        raise PeerRefused("a site's public key gives no shared secret") from None
    return derived_key(shared, salt, purpose)


def derived_key(secret: bytes, salt: bytes, purpose: bytes) -> bytes:
    """A key of 32 bytes from a secret."""
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
    stream = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor()
    for start in range(0, len(vector), _AT_A_TIME):
        part = vector[start : start + _AT_A_TIME]
        mask = np.frombuffer(stream.update(_ZEROS[: part.nbytes]), vector.dtype)
        # Unsigned integers of NumPy wrap around, as the ring does.
        np.add(part, mask, out=part) if sign > 0 else np.subtract(part, mask, out=part)


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
    return ChaCha20Poly1305(key).encrypt(bytes(12), plain, bound)


def unseal(key: bytes, sealed: bytes, bound: bytes) -> bytes:
    """Decrypt; PeerRefused if a byte was changed, or it was sealed for somebody else."""
    try:
        return ChaCha20Poly1305(key).decrypt(bytes(12), sealed, bound)
    except InvalidTag:
        raise PeerRefused("a sealed share was changed, replayed, or made for another site or run") from None


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


MOST_SITES: Final = 1 << 10
MOST_TERMS: Final = 1 << 22
_UNDECLARED_RECORDS: Final = 1 << 30
# Deviations of the noise for which the ring has room.
_REACH: Final = 64


def _run_name(value: Any) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= 64 or not value.isalnum():
        raise ValueError("run")
    return value


_NUMBERS: Final = ("epsilon", "delta", "rho", "count_share")
_OPTIONS: Final = ("relation", "unit", "rows", "population", "allow_large_delta")


def _request_as_json(request: ReleaseRequest) -> dict[str, Any]:
    numbers = {name: getattr(request, name) for name in _NUMBERS}
    return {
        **{name: None if number is None else str(number) for name, number in numbers.items()},
        **{name: getattr(request, name) for name in _OPTIONS},
        **stated_json(request.statement),
    }


def _request_from_json(values: dict[str, Any]) -> ReleaseRequest:
    numbers = {name: RATIONAL.optional().read(values[name]) for name in _NUMBERS}
    if type(values["allow_large_delta"]) is not bool:
        raise TypeError("allow_large_delta")
    statement = Statement.from_json(values.get("statement", {}))
    return ReleaseRequest(**numbers, **{name: values[name] for name in _OPTIONS}, statement=statement)


_REQUEST: Final = Field(_request_from_json, _request_as_json)
_READING: Final = Field(reading_from_json, reading_as_json)
_FINGERPRINTS: Final = Field(lambda value: tuple(map(fingerprint_of, value)), list)


@dataclass(frozen=True)
class AggregationTerms(Message):
    """What all sites and the server know before the first message, and never change.

    Parameters
    ----------
    run : str
        Names the run; a key pair of a site serves one run.
    reading : Reading
        What each site counts, cut to the published rows, and how the sum is read.
    request : ReleaseRequest
        Promise, relation, unit and count share of the released sum.
    per_unit : int
        How many records, or lists of edges, one unit may be in.
    sites : tuple of str
        The fingerprints of the sites' keys, sorted.
    dropouts : int
        How many sites may leave before the sum is opened; nothing is opened if more do.
    colluding : int
        How many sites may collude, with each other or with the server. A site knows its own share
        of noise, so with 0 the claim does not hold against the sites themselves.

    Privacy
    -------
    At least ``n − dropouts`` tables are in a sum that is opened, ``n − dropouts − colluding`` of them from
    honest sites, whose shares of noise keep the promise alone (`hushsum.privacy`). A
    unit that is added to, removed from or replaced in the data of one site moves the sum as it moves that
    site's table. A person with records at several sites is in as many tables, and budgets add: the claim
    states that it assumes one.
    """

    kind: ClassVar[str] = "aggregation terms"
    most: ClassVar[int | None] = MOST_TERMS
    damaged: ClassVar[str] = "these terms of an aggregation are damaged or of a later version"

    run: Annotated[str, Field(_run_name)]
    reading: Annotated[Reading, _READING]
    request: Annotated[ReleaseRequest, _REQUEST]
    per_unit: int
    sites: Annotated[tuple[str, ...], _FINGERPRINTS]
    dropouts: int
    colluding: int

    def __post_init__(self) -> None:
        n, d, t = len(self.sites), self.dropouts, self.colluding
        if not 2 <= n <= MOST_SITES or len(set(self.sites)) != n or list(self.sites) != sorted(self.sites):
            raise UsageError("sites", f"must be from 2 to {MOST_SITES} different fingerprints", got=f"{n}")
        if d < 0 or t < 0 or t + 2 * d >= n:
            raise UsageError(
                "dropouts",
                ("and ", NameOf("colluding"), f" must satisfy colluding + 2·dropouts < {n}, the sites"),
                got=f"dropouts {d} and colluding {t}",
            )
        checked_unit(self.unit, self.reading.basis.units)
        if self.request.checked_mechanism is not None:
            raise UsageError(
                "mechanism", "must be left out of a secure aggregation", got=f"{self.request.mechanism!r}"
            )
        self.request.check_delta()
        _ = self._release, self.shares

    @classmethod
    def of(
        cls,
        tally: Tally,
        request: ReleaseRequest,
        sites: Sequence[str],
        *,
        dropouts: int = 0,
        colluding: int = 1,
        run: str | None = None,
    ) -> AggregationTerms:
        """Terms for tallies of the same fingerprint as this one, of which only the public part is read.

        ``rows`` of the request are cut off the basis; ``"auto"`` keeps all, since sites cannot look at a
        noisy count first.
        """
        basis, promise = tally.basis, request.promise
        most, given = basis.shape[0], cast(Any, request.rows)
        rows = most if given == AUTO else positive_integer("rows", given, at_most=most)
        unit, per_unit = claimed_unit(tally, request.unit, request.relation)
        return cls(
            run=run or secrets.token_hex(16),
            reading=basis.prefix(rows).reading(None if basis.counted_kernel() is not None else tally.kernel),
            # A sum that is opened has noise from all sites: it is neither booked nor seeded here.
            request=replace(
                request,
                epsilon=promise.epsilon,
                delta=promise.delta or None,
                rho=promise.rho,
                relation=Relation.of(request.relation),
                unit=unit,
                rows=rows,
                count_share=request.share_of_count,
                rounded=None,
                budget=None,
                idempotency_key=None,
                insecure_noise_seed=None,
            ),
            per_unit=per_unit,
            sites=tuple(sorted(fingerprint_of(each) for each in sites)),
            dropouts=dropouts,
            colluding=colluding,
        )

    @property
    def unit(self) -> str:
        """Whom the claim protects."""
        assert self.request.unit is not None
        return self.request.unit

    @property
    def basis(self) -> Basis:
        """What is counted: the published rows."""
        return self.reading.basis

    @property
    def cells(self) -> int:
        """The cells of the published table."""
        return math.prod(self.basis.shape)

    @property
    def least(self) -> int:
        """The fewest contributions that are opened, and the threshold of the shares of keys.

        Since ``2·(n − dropouts) > n + colluding``, two different lists of survivors cannot both be signed by
        that many sites, even if those that collude sign both.
        """
        return len(self.sites) - self.dropouts

    @cached_property
    def _release(self) -> TableRelease:
        # Shares of noise are of distributions that add up, which the Gamma radius does not.
        mechanism = LAPLACE if self.request.promise.pure else GAUSSIAN
        return TableRelease.of(
            replace(self.request, mechanism=mechanism),
            self.reading.basis,
            self.unit,
            self.per_unit,
            1,
            (f"no {self.unit} is at more than one site", *self.trust.assumptions()),
        )

    @property
    def trust(self) -> Trust:
        """How many sites there are, may leave, and may collude."""
        return Trust(SECURE_AGGREGATION, len(self.sites), self.dropouts, self.colluding)

    @property
    def claim(self) -> Claim:
        """What the sum promises to the units of every site; each site's ledger is debited with it."""
        claim = replace(self._release.claim, trust=self.trust)
        drawn = self.shares.table.mechanism
        return replace(claim, mechanism=Mechanism.of(SKELLAM)) if drawn == SKELLAM else claim

    @cached_property
    def shares(self) -> Calibration:
        """The noise that each site adds to its cells, and to its number of records."""
        return noise_shares(
            self.request.promise,
            self._release.change,
            cells=self.cells,
            count_share=self._release.count_share,
            honest=self.trust.honest,
        )

    def noises(self, contributions: int) -> Calibration:
        """The noise of a sum of that many contributions."""
        table, count = (IntegerNoise.sum_of([(contributions, share)]) for share in self.shares)
        return Calibration(table, count)

    @cached_property
    def ring_bits(self) -> int:
        """32 where the sum surely fits, else 64: of ``population`` records, or of 2³⁰ if none is declared.

        Wrapping around is a function of the noisy sum: it would cost accuracy, and never privacy.
        """
        records = max(self.request.population or _UNDECLARED_RECORDS, 1) * self.per_unit
        largest = max(self.basis.sensitivity(self._release.claim.relation).largest, 1)
        noise = max(each.variance for each in self.noises(len(self.sites)))
        return 32 if records * largest + _REACH * math.sqrt(noise) < 2**31 else 64

    @cached_property
    def digest(self) -> bytes:
        """Names these terms in every signature and key."""
        return hashlib.sha256(b"hushsum aggregation terms " + self.to_bytes()).digest()

    def check_tally(self, tally: Tally) -> None:
        """Refuse a tally that does not count what the terms say.

        Raises
        ------
        UsageError
            for another fingerprint, shape, unit or cap.
        """
        rows = self.basis.shape[0]
        counted = tally.basis.prefix(rows) if tally.basis.shape[0] >= rows else tally.basis
        if counted.fingerprint != self.basis.fingerprint:
            raise UsageError(
                "the tally must have the fingerprint of the terms",
                got=f"one that differs in {differing_parameters(self.basis, counted)}",
            )
        if claimed_unit(tally, self.unit, self.request.relation) != (self.unit, self.per_unit):
            raise UsageError(
                f"the tally must count the unit of the terms: {unit_in_words(self.unit, self.per_unit)}",
                got="another cap",
                remedy=("count with the same ", NameOf("max_per_unit")),
            )


KEYS, SHARES, MASKED, CONSENT, OPENING = STEPS = ("keys", "shares", "masked", "consent", "opening")
"""The replies, in their order."""

SEALED_BYTES: Final = 2 * SHARE_BYTES + TAG_BYTES
DIGEST_BYTES: Final = 32
_SIGNATURE: Final = 64
_PURPOSE: Final = b"hushsum aggregation message "
_ROOM: Final = 1 << 13
# Bytes of a fingerprint in a list.
_NAME: Final = 80

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
            f"a message of step {kind!r} must be at most {most_reply(terms, kind)} bytes", got=len(data)
        )
    body, signature = data[:-_SIGNATURE], data[-_SIGNATURE:]
    _, values, arrays = unpack(body, kind)
    signer = values.pop("sender", None)
    if values.pop("terms", None) != terms.digest.hex():
        raise PeerRefused("a message belongs to another run, or to other terms")
    if not isinstance(signer, str) or signer not in terms.sites or sender not in (None, signer):
        raise PeerRefused("a message names a site that it must not come from")
    if not verify(signer, signature, _PURPOSE + hashlib.sha256(body).digest()):
        raise PeerRefused("a message does not carry its site's signature")
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


def bundle(kind: str, replies: Mapping[str, bytes]) -> bytes:
    """The replies of several sites in one request."""
    return pack(kind, {}, {site: np.frombuffer(data, np.int8) for site, data in replies.items()})


def unbundle(arrays: Arrays, kind: str, terms: AggregationTerms) -> dict[str, Reply]:
    """The replies in such a request, each verified to be of the site that it stands for."""
    return {site: read_reply(data.tobytes(), kind, terms, sender=site) for site, data in arrays.items()}


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
    """The digest of a share that its owner publishes, so that a wrong share is recognised when it is
    revealed.
    """
    named = f"share {kind} {owner} {holder} ".encode("ascii")
    return hashlib.sha256(named + terms.digest + share).digest()


def seed_digest(terms: AggregationTerms, owner: str, seed: bytes) -> str:
    """The digest of a seed that its owner publishes, so that shares which join to another seed are
    recognised.

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


_REQUESTS: Final = ("aggregation terms", "roster", "deliveries", "survivors", "consents")
SELF, PAIRWISE = "self", "pairwise"

Draw = Callable[[], NDArray[np.int64]]
Stage = Callable[[Callable[[], bytes]], bytes]


def _bind(store: SecretStore, terms: AggregationTerms, party: str) -> None:
    """Bind the state of a party to one run; PeerRefused if it is bound to another."""
    bound = store.get("run")
    if bound is None:
        store.put("run", terms.digest)
    elif bound != terms.digest:
        remedy = ("give another ", NameOf("state"))
        raise PeerRefused(f"the state of this {party} belongs to another run", remedy=remedy)


class SiteState(Secret):
    """The state of one site in a run: its secrets and the messages that it has sent.

    `answer` is a function of requests: the same request gets the same reply, also after a restart with the
    same ``store``, and a second, different request of a step is refused. So no mask covers two tables, and a
    server that claims of one site both that it survived and that it dropped out gets one kind of share.

    Parameters
    ----------
    identity : Identity
        The key that the terms pin for this site.
    terms : AggregationTerms
        What this site has agreed to; a request on other terms is refused.
    draw : callable
        The site's table and number of records with its share of noise; called once, after `stage` has
        debited.
    store : SecretStore
        Where secrets, and every reply before it leaves, are kept.
    stage : callable, optional
        Debits the site's ledger and stores what the given function makes, or returns what an earlier
        attempt stored (`hushsum.privacy.stage`). Default: no ledger.

    Privacy
    -------
    What leaves: public keys; shares sealed for their holders, and digests of these and of the seed, which is
    random; the noisy table under a self mask and one mask
    for every other site; a signature; and for every site one share, of its self mask if its table is in the
    sum and of its mask key if not. The last happens once, after ``terms.least`` sites signed the same list of
    at least as many survivors.
    """

    REFUSAL = "the state of a site is secret and cannot be pickled", None
    noun = "server"
    continued = ()

    def __init__(
        self,
        identity: Identity,
        terms: AggregationTerms,
        draw: Draw,
        store: SecretStore,
        *,
        stage: Stage = lambda make: make(),
    ) -> None:
        if identity.fingerprint not in terms.sites:
            raise PeerRefused("the terms do not name this site's fingerprint")
        self._identity = identity
        self._me = identity.fingerprint
        self.terms = terms
        self._draw = draw
        self._store = store
        self._stage = stage
        _bind(store, terms, "site")
        if store.get("ended") is not None:
            raise PeerRefused("the run has ended at this site", remedy="agree on the terms of a new one")
        self._notes: dict[str, dict[str, Any]] = {}
        self._arrays: dict[str, dict[str, NDArray[Any]]] = {}
        self._replies: dict[str, tuple[bytes, bytes]] = {}
        replying = (self._keys, self._shares, self._masked, self._consent, self._opening)
        self._replying = dict(zip(STEPS, replying, strict=True))
        for step in STEPS:
            kept = store.get(step)
            if kept is not None:
                self._recall(step, kept)

    def forget(self) -> None:
        """Overwrite the keys, seeds and shares of a run that has ended, and take no further part in it.

        Who gets the key file and the state of this site later cannot take the masks off its table then.
        """
        self._store.put("ended", self.terms.digest)
        for step in STEPS:
            self._store.put(step, b"")
        self._notes.clear()
        self._arrays.clear()

    @property
    def steps(self) -> int:
        """How many steps this site has answered."""
        return len(self._replies)

    @property
    def sent_table(self) -> bool:
        """Whether this site's masked table may have left it."""
        return MASKED in self._replies

    @property
    def most_request(self) -> int:
        """The longest request of the server, in bytes."""
        return most_request(self.terms)

    def end(self, run: str) -> bytes:
        """Take note that the sum is open; PeerRefused unless this site's table may be in it."""
        if not self.sent_table:
            raise PeerRefused(
                "the run ended without this site's table", remedy="agree on the terms of a new run"
            )
        return control("ready", run=self.terms.run)

    def reason(self, error: HushsumError) -> str:
        """What the server learns of a refusal: broken rules alone."""
        broken = isinstance(error, PeerRefused | FileRefused)
        return str(error) if broken else "this site cannot take part"

    def __repr__(self) -> str:
        return f"<SiteState {self._me[:12]} steps={self.steps}>"

    def answer(self, request: bytes) -> bytes:
        """The reply to a request of the server.

        Raises
        ------
        FileRefused
            if the request is damaged or too long.
        PeerRefused
            if it breaks the protocol; nothing is revealed then, and the state is as before.
        OwnRefusal
            if the site's own ledger or tally refused; what it says is not for the server.
        """
        if len(request) > most_request(self.terms):
            raise FileRefused("a request must not be that long", got=len(request))
        kind, values, arrays = unpack(request, *_REQUESTS)
        step = STEPS[_REQUESTS.index(kind)]
        digest = hashlib.sha256(request).digest()
        known = self._replies.get(step)
        if known is not None:
            if known[0] != digest:
                raise PeerRefused(f"step {step!r} was requested before, with other contents")
            return known[1]
        if self.steps != STEPS.index(step):
            raise PeerRefused(f"step {step!r} was requested out of order")
        try:
            reply, notes, secret = self._replying[step](request, values, arrays)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise FileRefused(f"the request of step {step!r} is malformed") from None
        held = {**secret, "reply": np.frombuffer(reply, np.int8)}
        kept = pack(f"step {step}", {**notes, "request": digest.hex()}, held)
        # Durable before it leaves: after a crash the same bytes are sent again, or nothing was.
        self._store.put(step, kept)
        self._recall(step, kept)
        return reply

    def _recall(self, step: str, kept: bytes) -> None:
        _, notes, arrays = unpack(kept, f"step {step}")
        reply = arrays.pop("reply").tobytes()
        self._replies[step] = (bytes.fromhex(notes.pop("request")), reply)
        self._notes[step], self._arrays[step] = notes, arrays

    def _keys(self, request: bytes, values: Any, arrays: Any) -> _Answer:
        if AggregationTerms.from_bytes(request).digest != self.terms.digest:
            raise PeerRefused("the server's terms are not those that this site has agreed to")
        mask, sealing, seed = new_secret(), new_secret(), secrets.token_bytes(KEY_BYTES)
        public = {"mask_key": public_half(mask).hex(), "sealing_key": public_half(sealing).hex()}
        reply = signed_reply(self._identity, KEYS, self.terms, public, {})
        return reply, {}, {"secrets": bytes_array([mask, sealing, seed], KEY_BYTES)}

    def _shares(self, request: bytes, values: Any, arrays: Any) -> _Answer:
        terms = self.terms
        keys = unbundle(arrays, KEYS, terms)
        self._enough(keys, "keys")
        if self._me not in keys or keys[self._me].data != self._replies[KEYS][1]:
            raise PeerRefused("the roster does not contain the keys that this site sent")
        public = {site: (_key(reply, "mask_key"), _key(reply, "sealing_key")) for site, reply in keys.items()}
        if len({each for pair in public.values() for each in pair}) != 2 * len(public):
            raise PeerRefused("the roster repeats a key")
        mask, sealing, seed = self._secrets()
        split = {"shares": len(terms.sites), "threshold": terms.least}
        of_seed, of_mask = split_secret(seed, **split), split_secret(mask, **split)
        roster = sorted(keys)
        sealed, digests, own = [], [], b""
        for holder in roster:
            point = terms.sites.index(holder)
            pair = of_seed[point], of_mask[point]
            for kind, share in zip((SELF, PAIRWISE), pair, strict=True):
                digests.append(share_digest(kind, terms, self._me, holder, share))
            if holder == self._me:
                own = b"".join(pair)
            else:
                key = agreed_key(sealing, public[holder][1], terms.digest, _sealing(self._me, holder))
                sealed.append(seal(key, b"".join(pair), _sealing(self._me, holder)))
        given = {"sealed": bytes_array(sealed, SEALED_BYTES), "digests": bytes_array(digests, DIGEST_BYTES)}
        stated = {"roster": roster, "seed": seed_digest(terms, self._me, seed)}
        reply = signed_reply(self._identity, SHARES, terms, stated, given)
        seen = {site: reply.data for site, reply in keys.items()}
        notes = {
            "public": {site: [each.hex() for each in pair] for site, pair in public.items()},
            "keys": {site: hashlib.sha256(data).hexdigest() for site, data in seen.items()},
        }
        return reply, notes, {"own": bytes_array([own], 2 * SHARE_BYTES)}

    def _masked(self, request: bytes, values: Any, arrays: Any) -> _Answer:
        terms, public = self.terms, self._notes[SHARES]["public"]
        senders = site_list(values["senders"], terms)
        self._enough(senders, "shares")
        if self._me not in senders or not set(senders) <= set(public):
            raise PeerRefused("shares were dealt by sites that are not on the roster, or not by this one")
        others = [site for site in senders if site != self._me]
        boxes = rows_of_bytes(arrays["sealed"], len(others), SEALED_BYTES)
        mask, sealing, seed = self._secrets()
        held = {self._me: self._arrays[SHARES]["own"].tobytes()}
        for site, box in zip(others, boxes, strict=True):
            purpose = _sealing(site, self._me)
            key = agreed_key(sealing, bytes.fromhex(public[site][1]), terms.digest, purpose)
            held[site] = unseal(key, box, purpose)
        seen = self._transcript(senders)

        def make() -> bytes:
            vector = self._draw()
            if vector.shape != (terms.cells + 1,):
                raise PeerRefused("the site's table does not have the shape of the terms")
            ring = in_ring(vector, terms.ring_bits)
            add_mask(ring, self_mask_key(seed, terms.digest, self._me), sign=1)
            for site in others:
                purpose = pair_purpose(self._me, site)
                key = agreed_key(mask, bytes.fromhex(public[site][0]), terms.digest, purpose)
                add_mask(ring, key, sign=1 if self._me < site else -1)
            signed = ring.view(np.int32 if terms.ring_bits == 32 else np.int64)
            return signed_reply(self._identity, MASKED, terms, {"transcript": seen}, {"masked": signed})

        with own_affairs("the site's ledger does not allow this run"):
            reply = self._stage(make)
        # What an earlier attempt staged under other masks must not be sent as if it were under these.
        if read_reply(reply, MASKED, terms, sender=self._me).values.get("transcript") != seen:
            raise PeerRefused("this site's ledger holds a masked table of the run under other keys")
        shares = bytes_array([held[site] for site in senders], 2 * SHARE_BYTES)
        return reply, {"senders": list(senders), "transcript": seen}, {"held": shares}

    def _consent(self, request: bytes, values: Any, arrays: Any) -> _Answer:
        survivors = site_list(values["sites"], self.terms)
        self._enough(survivors, "tables")
        if self._me not in survivors:
            raise PeerRefused("the server claims that this site dropped out, and it did not")
        if not set(survivors) <= set(self._notes[MASKED]["senders"]):
            raise PeerRefused("the list of survivors names a site that dealt no shares")
        stated = {"survivors": list(survivors), "transcript": self._notes[MASKED]["transcript"]}
        return signed_reply(self._identity, CONSENT, self.terms, stated, {}), stated, {}

    def _opening(self, request: bytes, values: Any, arrays: Any) -> _Answer:
        terms, agreed = self.terms, self._notes[CONSENT]
        consents = unbundle(arrays, CONSENT, terms)
        if not set(consents) <= set(agreed["survivors"]):
            raise PeerRefused("a consent comes from a site that is not a survivor")
        if any(each.values != agreed for each in consents.values()):
            raise PeerRefused("sites were shown different lists of participants")
        self._enough(consents, "consents")
        senders, survivors = self._notes[MASKED]["senders"], set(agreed["survivors"])
        held = dict(zip(senders, self._arrays[MASKED]["held"], strict=True))
        revealed: dict[str, list[bytes]] = {SELF: [], PAIRWISE: []}
        for site in senders:
            # Never both: one opens the sum, both would open the table of this site.
            kind = SELF if site in survivors else PAIRWISE
            whole = held[site].tobytes()
            revealed[kind].append(whole[:SHARE_BYTES] if kind == SELF else whole[SHARE_BYTES:])
        given = {kind: bytes_array(shares, SHARE_BYTES) for kind, shares in revealed.items()}
        return signed_reply(self._identity, OPENING, terms, {}, given), {}, {}

    def _enough(self, sites: Any, what: str) -> None:
        if len(sites) < self.terms.least:
            raise PeerRefused(
                f"the {what} of at least {self.terms.least} sites are needed", got=f"{len(sites)}"
            )

    def _secrets(self) -> list[bytes]:
        return rows_of_bytes(self._arrays[KEYS]["secrets"], 3, KEY_BYTES)

    def _transcript(self, senders: tuple[str, ...]) -> str:
        keys = self._notes[SHARES]["keys"]
        return transcript(self.terms, keys, senders)


_Answer = tuple[bytes, dict[str, Any], dict[str, NDArray[Any]]]


def _key(reply: Reply, name: str) -> bytes:
    key = bytes.fromhex(reply.values[name])
    if len(key) != KEY_BYTES:
        raise ValueError("key")
    return key


def _sealing(sender: str, holder: str) -> bytes:
    return f"sealed share {sender} {holder}".encode("ascii")


DONE: Final = "done"


class ServerState(Secret):
    """Where one run stands: the step, who has replied, and in the end the sum.

    ``take`` accepts a reply of the step that is open, `close_step` ends the step with those who replied, and
    ``request_for`` is what a site is to be sent. Replies and closed steps are in ``store`` before anybody
    hears of them, so a server that starts again with it sends the same lists.
    """

    REFUSAL = "the state of a server cannot be pickled: it holds masked tables and shares", None
    noun = "site"
    resumable = False

    def __init__(self, terms: AggregationTerms, store: SecretStore) -> None:
        self.terms = terms
        self.run, self.parties = terms.run, terms.sites
        self._store = store
        self._replies: dict[str, dict[str, Reply]] = {step: {} for step in STEPS}
        self._closed: dict[str, tuple[str, ...]] = {}
        self._sum: Ring = np.zeros(terms.cells + 1, ring_type(terms.ring_bits))
        self._opened: NDArray[np.int64] | None = None
        self._requests: dict[tuple[str, str], bytes] = {}
        _bind(store, terms, "server")
        self._recall()

    @property
    def step(self) -> str:
        """The step whose replies are awaited; ``"done"`` when the sum is open."""
        return next((step for step in STEPS if step not in self._closed), DONE)

    @property
    def members(self) -> tuple[str, ...]:
        """The sites that take part in the open step, which replied in the step before.

        After the last step: the sites whose tables are in the sum.
        """
        if self.done:
            return self.survivors
        place = len(self._closed)
        return self.terms.sites if place == 0 else self._closed[STEPS[place - 1]]

    @property
    def awaited(self) -> tuple[str, ...]:
        """The sites whose reply to the open step has not come."""
        if self.step == DONE:
            return ()
        return tuple(site for site in self.members if site not in self._replies[self.step])

    @property
    def done(self) -> bool:
        """Whether the sum is open."""
        return self.step == DONE

    @property
    def most_reply(self) -> int:
        """The longest reply to the open step, in bytes."""
        return 0 if self.done else most_reply(self.terms, self.step)

    def greeting(self, party: str) -> bytes:
        """Nothing: every site knows the terms."""
        return b""

    def greeted(self, party: str, data: bytes) -> None:
        """Nothing is greeted."""

    def refused(self, party: str, reason: HushsumError) -> None:
        """A site that refuses is away, and may come back."""

    def open_step(self) -> None:
        """A step is open until it is closed, and then the next one."""

    @property
    def survivors(self) -> tuple[str, ...]:
        """The sites whose tables are in the sum; known when that step is closed."""
        return self._closed[MASKED]

    @property
    def sum(self) -> NDArray[np.int64]:
        """The noisy cells, and last the noisy number of records."""
        if self._opened is None:
            raise PeerRefused("the sum has not been opened")
        return self._opened

    def request_for(self, site: str) -> bytes | None:
        """What a site is to be sent now; None if it is not awaited."""
        step = self.step
        if site not in self.awaited:
            return None
        # Shares are delivered to each site apart; every other request is the same for all.
        key = (step, site if step == MASKED else "")
        if key not in self._requests:
            self._requests[key] = self._request(step, site)
        return self._requests[key]

    def _request(self, step: str, site: str) -> bytes:
        if step == KEYS:
            return self.terms.to_bytes()
        if step == SHARES:
            return bundle("roster", self._data(KEYS))
        if step == MASKED:
            return self._deliveries(site)
        if step == CONSENT:
            return pack("survivors", {"sites": list(self._closed[MASKED])}, {})
        return bundle("consents", self._data(CONSENT))

    def take(self, site: str, data: bytes) -> None:
        """Take the reply of a site to the open step; the same bytes again change nothing.

        Raises
        ------
        PeerRefused, FileRefused
            if it is not the site's, not of this step or run, has another shape, a wrong share, or differs
            from what the site replied before.
        """
        step = self.step
        if step == DONE:
            raise PeerRefused("the run is over")
        known = self._replies[step].get(site)
        if known is not None:
            if known.data != (hashlib.sha256(data).digest() if step == MASKED else data):
                raise PeerRefused("this site has joined before, or replies again with other contents")
            return
        if site not in self.members:
            raise PeerRefused("this site is not, or no longer, part of the run")
        try:
            reply = read_reply(data, step, self.terms, sender=site)
            self._check(step, reply)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise FileRefused(f"the reply to step {step!r} is malformed") from None
        self._store.put(_name(step, site), data)
        self._accept(step, reply)

    def close_step(self) -> None:
        """End the open step with those who replied; after the last one the sum is open.

        Raises
        ------
        PeerLost
            if they are fewer than ``terms.least``: more may still come.
        PeerRefused
            if shares do not give the secret of a site: the sum cannot be opened.
        """
        step = self.step
        if step == DONE:
            return
        came = tuple(sorted(self._replies[step]))
        if len(came) < self.terms.least:
            raise PeerLost(
                f"at least {self.terms.least} sites must reply to step {step!r}",
                got=f"{len(came)}",
                remedy="start this command again, and the sites, to continue the run",
            )
        if step == OPENING:
            self._open()
        self._store.put(f"closed.{step}", pack("closed", {"sites": list(came)}, {}))
        self._closed[step] = came
        self._requests.clear()

    def _recall(self) -> None:
        for step in STEPS:
            for site in self.terms.sites:
                data = self._store.get(_name(step, site))
                if data is not None:
                    self._accept(step, read_reply(data, step, self.terms, sender=site))
            kept = self._store.get(f"closed.{step}")
            if kept is None:
                return
            _, values, _ = unpack(kept, "closed")
            if step == OPENING:
                self._open()
            self._closed[step] = site_list(values["sites"], self.terms)

    def _accept(self, step: str, reply: Reply) -> None:
        if step == MASKED:
            masked = reply.arrays["masked"]
            self._sum += masked.view(self._sum.dtype)
            # A table is large, and all that is needed of it is in the sum and in the store.
            reply = Reply(reply.sender, reply.values, {}, hashlib.sha256(reply.data).digest())
        self._replies[step][reply.sender] = reply

    def _check(self, step: str, reply: Reply) -> None:
        roster = self._closed.get(KEYS, ())
        if step == KEYS:
            for name in ("mask_key", "sealing_key"):
                if len(bytes.fromhex(reply.values[name])) != KEY_BYTES:
                    raise ValueError("key")
        elif step == SHARES:
            if reply.values["roster"] != list(roster):
                raise PeerRefused("shares were made for another roster")
            rows_of_bytes(reply.arrays["sealed"], len(roster) - 1, SEALED_BYTES)
            if len(bytes.fromhex(reply.values["seed"])) != DIGEST_BYTES:
                raise ValueError("seed")
            rows_of_bytes(reply.arrays["digests"], 2 * len(roster), DIGEST_BYTES)
        elif step == MASKED:
            masked = reply.arrays["masked"]
            if masked.shape != self._sum.shape or masked.dtype != f"i{self._sum.dtype.itemsize}":
                raise PeerRefused("a masked table does not have the shape of the terms")
            if reply.values["transcript"] != self._transcript():
                raise PeerRefused("a table was masked for another list of participants")
        elif step == CONSENT:
            expected = {"survivors": list(self._closed[MASKED]), "transcript": self._transcript()}
            if reply.values != expected:
                raise PeerRefused("a consent is to another list of participants")
        else:
            self._check_shares(reply)

    def _check_shares(self, reply: Reply) -> None:
        for kind, owners in self._owners().items():
            shares = rows_of_bytes(reply.arrays[kind], len(owners), SHARE_BYTES)
            for owner, share in zip(owners, shares, strict=True):
                found = share_digest(kind, self.terms, owner, reply.sender, share)
                if found != self._digest(kind, owner, reply.sender):
                    raise PeerRefused("a share is not the one that was dealt")

    def _owners(self) -> dict[str, list[str]]:
        """Whose shares are revealed: seeds of survivors, mask keys of those who dealt shares and left."""
        survivors, senders = set(self._closed[MASKED]), self._closed[SHARES]
        return {
            SELF: [site for site in senders if site in survivors],
            PAIRWISE: [site for site in senders if site not in survivors],
        }

    def _digest(self, kind: str, owner: str, holder: str) -> bytes:
        place = 2 * self._closed[KEYS].index(holder) + (kind == PAIRWISE)
        row: bytes = self._replies[SHARES][owner].arrays["digests"][place].tobytes()
        return row

    def _deliveries(self, site: str) -> bytes:
        senders, roster = self._closed[SHARES], self._closed[KEYS]
        boxes = []
        for sender in senders:
            if sender != site:
                # The sender leaves itself out of its list.
                place = [each for each in roster if each != sender].index(site)
                boxes.append(self._replies[SHARES][sender].arrays["sealed"][place].tobytes())
        sealed = bytes_array(boxes, SEALED_BYTES)
        return pack("deliveries", {"senders": list(senders)}, {"sealed": sealed})

    def _open(self) -> None:
        """Remove the masks from the sum: each survivor's own mask, and the pairwise masks of the sites that
        left.
        """
        terms, total = self.terms, self._sum.copy()
        openings = self._replies[OPENING]
        for kind, owners in self._owners().items():
            for row, owner in enumerate(owners):
                points = {
                    terms.sites.index(holder) + 1: reply.arrays[kind][row].tobytes()
                    for holder, reply in openings.items()
                }
                try:
                    secret = join_shares(points, threshold=terms.least)
                except ValueError:
                    raise _wrong_shares(owner) from None
                if kind == SELF:
                    if seed_digest(terms, owner, secret) != self._replies[SHARES][owner].values["seed"]:
                        raise _wrong_shares(owner)
                    add_mask(total, self_mask_key(secret, terms.digest, owner), sign=-1)
                else:
                    self._remove_pairs(total, owner, secret)
        self._opened = from_ring(total)

    def _remove_pairs(self, total: Ring, gone: str, secret: bytes) -> None:
        if public_half(secret) != self._mask_key(gone):
            raise _wrong_shares(gone)
        for site in self._closed[MASKED]:
            key = agreed_key(secret, self._mask_key(site), self.terms.digest, pair_purpose(gone, site))
            add_mask(total, key, sign=-1 if site < gone else 1)

    def _mask_key(self, site: str) -> bytes:
        return bytes.fromhex(self._replies[KEYS][site].values["mask_key"])

    def _transcript(self) -> str:
        keys = {
            site: hashlib.sha256(self._replies[KEYS][site].data).hexdigest() for site in self._closed[KEYS]
        }
        return transcript(self.terms, keys, self._closed[SHARES])

    def _data(self, step: str) -> dict[str, bytes]:
        return {site: self._replies[step][site].data for site in self._closed[step]}


def _wrong_shares(owner: str) -> PeerRefused:
    return PeerRefused(
        f"the shares that site {short(owner)} dealt do not give its secret: the sum stays closed",
        remedy="agree on the terms of a new run, without that site",
    )


def _name(step: str, site: str) -> str:
    return f"{step}.{site}"


def released_sum(terms: AggregationTerms, total: NDArray[np.int64], contributions: int) -> NoisyTable:
    """The public function of a sum of that many contributions.

    Privacy
    -------
    Post-processing of the sum. The noise that it states is that of all contributions; the claim rests on that
    of the honest ones among them.
    """
    noise, count_noise = terms.noises(contributions)
    cells = narrowed(total[:-1].reshape(terms.basis.shape))
    function = function_type(terms.reading)(
        reading=terms.reading,
        cells=cells,
        facts=PublicFacts(terms.claim, statement=terms.request.statement),
        noise=noise,
        noisy_count=int(total[-1]),
        count_noise=count_noise,
    )
    if not terms.basis.fractional:
        return function
    return function.rounded_at_release(largest_step(noise.variance, UNSEEN_SHARE))


KEYS_COMMAND = "hushsum federate keys"


@request
class TermsRequest:
    """What the released sum promises, and against whom.

    A site knows its own share of noise: with ``colluding=0`` the claim does not hold against the sites
    themselves.
    """

    release: ReleaseRequest
    colluding: int = setting(
        1, "Number of colluding sites against which the claim holds, alone or with the server.", at_least=0
    )
    dropouts: int = setting(0, "Number of sites that may leave before the sum is opened.", at_least=0)

    def __post_init__(self) -> None:
        check_fields(self)


def terms_as_json(terms: AggregationTerms) -> dict[str, Any]:
    """What people agree on, for a machine."""
    return {
        "run": terms.run,
        "digest": terms.digest.hex(),
        "sites": list(terms.sites),
        "dropouts": terms.dropouts,
        "colluding": terms.colluding,
        "rows": terms.basis.shape[0],
        "width": terms.basis.shape[1],
        "fingerprint": terms.basis.fingerprint,
        "ring_bits": terms.ring_bits,
        "claim": terms.claim.in_numbers(),
    }


def write_terms(
    tally: str,
    request: TermsRequest,
    sites: Sequence[str],
    output: str,
    *,
    encryption_key: bytes | None = None,
) -> AggregationTerms:
    """Write the terms of a run; of the tally only its public part is used."""
    path = check_output(output, inputs=[tally])
    counted = load_tally(tally, encryption_key=encryption_key)
    terms = AggregationTerms.of(
        counted, request.release, sites, dropouts=request.dropouts, colluding=request.colluding
    )
    with atomic_file(path, mode=0o644) as stream:
        stream.write(terms.to_bytes())
    return terms


def read_terms(path: str) -> AggregationTerms:
    """The terms in a file; see `Message.load`."""
    return AggregationTerms.load(path, maker="hushsum federate terms")


@dataclass(frozen=True, slots=True)
class Aggregated:
    """The released function of a run, and which sites it contains."""

    file: str
    terms: AggregationTerms
    survivors: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The result for a machine."""
        return {"file": self.file, "survivors": list(self.survivors), **terms_as_json(self.terms)}


def run_server(
    terms_file: str,
    party: PartySpec,
    output: str,
    listen: Address,
    *,
    patience: Patience,
    log: Log,
    listening: Callable[[int], None] = lambda _: None,
) -> Aggregated:
    """Carry the messages of a run, open the sum and write it as a released function.

    Raises
    ------
    PeerLost
        if too few sites replied in time.
    """
    terms = read_terms(terms_file)
    identity = Identity.load(party.key, maker=KEYS_COMMAND)
    path = check_output(output, inputs=[terms_file, party.key])
    with _run_folder(party, output, terms) as folder, listener(listen, backlog=len(terms.sites) + 4) as place:
        machine = ServerState(terms, EncryptedState(folder, identity))
        listening(place.getsockname()[1])
        Coordinator(identity, machine, patience=patience, log=log).serve(
            place,
            finish=lambda: released_sum(terms, machine.sum, len(machine.survivors)).save(path),
            closed=lambda step: log(f"step {step!r} is complete"),
        )
    return Aggregated(output, terms, machine.survivors)


@request
class SiteRequest:
    """What a site takes part with: the terms it has agreed to, its key, state and ledger."""

    terms: str = required("The terms that all have agreed to.", metavar="FILE")
    party: PartySpec
    ledger: LedgerOptions = NO_LEDGER


@dataclass(frozen=True, slots=True)
class SiteEnded(Result):
    """How a run ended for a site."""

    run: str
    claim: Claim
    idempotency_key: str | None


def join_as_site(
    request: SiteRequest,
    tally_file: str,
    server: Address,
    *,
    sites: Sequence[str] | None = None,
    encryption_key: bytes | None = None,
    patience: Patience,
    log: Log,
    approve: Callable[[Claim], None] = lambda _: None,
) -> SiteEnded:
    """Take part in a run with a tally; resumes after a crash with the same state.

    ``sites`` are the fingerprints that this site got from the others by itself; None compares none. Terms
    are written by one party, who could name keys of its own in place of the others': their noise would be
    known to it. The ledger is debited after everything that can be refused was, and before the masked table
    leaves.

    Raises
    ------
    UsageError
        if the tally does not count what the terms say, or the terms name other sites than ``sites``.
    BudgetExhausted
        if the ledger has too little left; nothing is sent then.
    """
    terms = read_terms(request.terms)
    identity = Identity.load(request.party.key, maker=KEYS_COMMAND)
    tally = load_tally(tally_file, encryption_key=encryption_key)
    terms.check_tally(tally)
    if identity.fingerprint not in terms.sites:
        raise UsageError(
            "key",
            "must be the key of a site that the terms name",
            got=f"one with the fingerprint {short(identity.fingerprint)}",
        )
    if sites is not None:
        _check_sites(terms, sites, identity.fingerprint)
    approve(terms.claim)
    spending = site_spending(terms, request.ledger.given(), identity.fingerprint)
    with _run_folder(request.party, tally_file, terms) as folder:
        machine = SiteState(
            identity,
            terms,
            lambda: sums_with_share(tally, terms.basis.shape[0], *terms.shares),
            EncryptedState(folder, identity),
            stage=spending.staged_bytes,
        )
        if machine.steps == 0:
            spending.afford()

        def answered() -> None:
            done = machine.steps
            log(f"answered step {done} of {len(STEPS)}: {STEPS[done - 1]}")

        try:
            Participant(identity, server, machine, patience=patience, log=log).take_part(answered)
        except (PeerLost, PeerRefused) as error:
            raise type(error)(f"{error}. {spending.in_words(sent=machine.sent_table)}") from None
        spending.settle(sent=machine.sent_table)
        machine.forget()
    return SiteEnded(terms.run, terms.claim, spending.key)


def site_spending(terms: AggregationTerms, ledger: LedgerOptions | None, fingerprint: str) -> RunSpending:
    """What taking part costs the site with this fingerprint, and how its ledger describes it."""
    subject = {
        "kind": "secure aggregation",
        "run": terms.run,
        "fingerprint": terms.basis.fingerprint,
        "rows": terms.basis.shape[0],
    }
    return RunSpending("federate", ledger, fingerprint, terms.digest.hex(), terms.claim, subject)


def _check_sites(terms: AggregationTerms, known: Sequence[str], own: str) -> None:
    """Refuse terms whose other sites are not exactly the sites whose keys this site knows."""
    pinned, named = {fingerprint_of(each) for each in known} - {own}, set(terms.sites) - {own}
    if pinned == named:
        return
    strange, missing = sorted(named - pinned), sorted(pinned - named)
    listed = [f"also {short(each)}" for each in strange] + [f"not {short(each)}" for each in missing]
    raise UsageError(
        "terms",
        "must name the sites whose fingerprints were given, and no others",
        got=", ".join(listed[:4]) + (", …" if len(listed) > 4 else ""),
    )


def _run_folder(party: PartySpec, file: str, terms: AggregationTerms) -> StateFolder:
    """The folder of one run among those of a party, named by what all have agreed to.

    The same terms find the run again, unfinished or ended; other terms begin with new keys.

    Privacy
    -------
    A key pair masks one table and a sum is opened once, because the mark that a run has ended is never
    removed for the sake of another run.
    """
    return StateFolder(Path(party.state or f"{file}.federate") / terms.digest.hex()[:32])
