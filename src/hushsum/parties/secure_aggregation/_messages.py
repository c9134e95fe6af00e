"""The messages of a secure aggregation: the agreement that all sign, requests, replies and bundles."""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import FileRefused, HushsumError, Parameter, PeerRefused, UsageError
from hushsum.files import check_spelling, pack, stored_rational, unpack
from hushsum.kernels import Kernel
from hushsum.parties._tls import Identity, fingerprint_of, verify
from hushsum.parties.secure_aggregation._masks import SHARE_BYTES, TAG_BYTES
from hushsum.privacy import (
    AUTO,
    LAPLACE,
    SECURE_AGGREGATION,
    SKELLAM,
    Calibration,
    Claim,
    IntegerNoise,
    Mechanism,
    Promise,
    ReleaseRequest,
    Trust,
    checked_unit,
    noise_shares,
    unit_in_words,
)
from hushsum.tables import Basis, Reading, reading_as_json, reading_from_json
from hushsum.tally import TableRelease, Tally, claimed_unit, differing_parameters

MOST_SITES: Final = 1 << 10
MOST_TERMS: Final = 1 << 22
_UNDECLARED_RECORDS: Final = 1 << 30
_REACH: Final = 64
"""Deviations of the noise for which the ring has room."""


@dataclass(frozen=True)
class AggregationTerms:
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

    run: str
    reading: Reading
    request: ReleaseRequest
    per_unit: int
    sites: tuple[str, ...]
    dropouts: int
    colluding: int

    def __post_init__(self) -> None:
        n, d, t = len(self.sites), self.dropouts, self.colluding
        if not 2 <= n <= MOST_SITES or len(set(self.sites)) != n or list(self.sites) != sorted(self.sites):
            raise UsageError("sites", f"must be from 2 to {MOST_SITES} different fingerprints", got=f"{n}")
        if d < 0 or t < 0 or t + 2 * d >= n:
            raise UsageError(
                "dropouts",
                ("and ", Parameter("colluding"), f" must satisfy colluding + 2·dropouts < {n}, the sites"),
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
        basis = tally.basis
        rows = basis.shape[0] if request.rows == AUTO else request.rows
        if type(rows) is not int or not 1 <= rows <= basis.shape[0]:
            raise UsageError("rows", f"must be from 1 to the tally's {basis.shape[0]}", got=f"{rows!r:.20}")
        unit, per_unit = claimed_unit(tally, request.unit, request.relation)
        return cls(
            run=run or secrets.token_hex(16),
            reading=basis.prefix(rows).reading(_kernel(tally)),
            request=replace(
                request, unit=unit, rows=rows, budget=None, idempotency_key=None, insecure_noise_seed=None
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
    def promise(self) -> Promise:
        """ε, δ and ρ of the sum."""
        return self.request.promise

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
        so many sites, even if those that collude sign both.
        """
        return len(self.sites) - self.dropouts

    @cached_property
    def _release(self) -> TableRelease:
        # Shares of noise are of laws that add up, which the Gamma-radius law does not.
        mechanism = LAPLACE if self.promise.pure else None
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
            self.promise,
            self._release.change,
            cells=self.cells,
            count_share=self._release.count_share,
            honest=self.trust.honest,
        )

    def noises(self, contributions: int) -> Calibration:
        """The noise of a sum of so many contributions."""
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
                remedy=("count with the same ", Parameter("max_per_unit")),
            )

    def to_bytes(self) -> bytes:
        """The one spelling of these terms."""
        return self._spelled

    @cached_property
    def _spelled(self) -> bytes:
        request = self.request
        promise = self.promise
        values = {
            "run": self.run,
            **reading_as_json(self.reading),
            "epsilon": None if promise.epsilon is None else str(promise.epsilon),
            "delta": str(promise.delta),
            "rho": None if promise.rho is None else str(promise.rho),
            "relation": str(self._release.claim.relation),
            "unit": self.unit,
            "per_unit": self.per_unit,
            "count_share": str(self._release.count_share),
            "population": request.population,
            "allow_large_delta": bool(request.allow_large_delta),
            "sites": list(self.sites),
            "dropouts": self.dropouts,
            "colluding": self.colluding,
        }
        return pack("aggregation terms", values, {})

    @classmethod
    def from_bytes(cls, data: bytes) -> AggregationTerms:
        """The terms back.

        Raises
        ------
        FileRefused
            if these bytes are none.
        """
        _, values, _ = unpack(data, "aggregation terms", most=MOST_TERMS)
        try:
            terms = cls._read(values)
            check_spelling(data, terms.to_bytes())
            return terms
        except FileRefused:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, HushsumError):
            raise FileRefused("these terms of an aggregation are damaged or of a later version") from None

    @classmethod
    def _read(cls, values: dict[str, Any]) -> AggregationTerms:
        whole = ("per_unit", "dropouts", "colluding")
        if any(type(values[name]) is not int or not 0 <= values[name] < 1 << 32 for name in whole):
            raise ValueError("numbers")
        run, population = values["run"], values["population"]
        if not isinstance(run, str) or not 1 <= len(run) <= 64 or not run.isalnum():
            raise ValueError("run")
        if population is not None and (type(population) is not int or not 1 <= population <= 1 << 60):
            raise ValueError("population")
        reading = reading_from_json(values)
        return cls(
            run=run,
            reading=reading,
            request=ReleaseRequest(
                epsilon=_rational(values["epsilon"]),
                delta=_rational(values["delta"]) or None,
                rho=_rational(values["rho"]),
                relation=values["relation"],
                unit=values["unit"],
                rows=reading.basis.shape[0],
                count_share=stored_rational(values["count_share"]),
                population=population,
                allow_large_delta=values["allow_large_delta"] is True,
            ),
            per_unit=values["per_unit"],
            sites=tuple(fingerprint_of(each) for each in values["sites"]),
            dropouts=values["dropouts"],
            colluding=values["colluding"],
        )


def _rational(text: object) -> Fraction | None:
    return None if text is None else stored_rational(text)


def _kernel(tally: Tally) -> Kernel | None:
    return None if tally.basis.counted_kernel() is not None else tally.kernel


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
