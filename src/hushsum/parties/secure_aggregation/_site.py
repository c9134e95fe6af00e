"""A site in a secure aggregation: a state machine that answers the server's requests, each once."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import FileRefused, HushsumError, Parameter, PeerRefused, SecretRefused
from hushsum.files import pack, unpack
from hushsum.parties._kept_state import SecretStore
from hushsum.parties._messages import own_affairs, ready
from hushsum.parties._tls import Identity
from hushsum.parties.secure_aggregation import _messages as messages
from hushsum.parties.secure_aggregation._masks import (
    KEY_BYTES,
    SHARE_BYTES,
    add_mask,
    agreed_key,
    in_ring,
    new_secret,
    pair_purpose,
    public_half,
    seal,
    self_mask_key,
    split_secret,
    unseal,
)
from hushsum.parties.secure_aggregation._messages import (
    CONSENT,
    KEYS,
    MASKED,
    OPENING,
    SHARES,
    STEPS,
    AggregationTerms,
)

_REQUESTS: Final = ("aggregation terms", "roster", "deliveries", "survivors", "consents")
SELF, PAIRWISE = "self", "pairwise"

Draw = Callable[[], NDArray[np.int64]]
Stage = Callable[[Callable[[], bytes]], bytes]


class SiteState:
    """What one site knows and has said in one run.

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
        bound = store.get("run")
        if bound is None:
            store.put("run", terms.digest)
        elif bound != terms.digest:
            raise PeerRefused(
                "the state of this site belongs to another run", remedy=("give another ", Parameter("state"))
            )
        if store.get("ended") is not None:
            raise PeerRefused("the run has ended at this site", remedy="agree on the terms of a new one")
        self._notes: dict[str, dict[str, Any]] = {}
        self._arrays: dict[str, dict[str, NDArray[Any]]] = {}
        self._replies: dict[str, tuple[bytes, bytes]] = {}
        self._replying: dict[str, Callable[[bytes, Any, Any], _Answer]] = {
            KEYS: self._keys,
            SHARES: self._shares,
            MASKED: self._masked,
            CONSENT: self._consent,
            OPENING: self._opening,
        }
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
        return messages.most_request(self.terms)

    def end(self, run: str) -> bytes:
        """Take note that the sum is open; PeerRefused unless this site's table may be in it."""
        if not self.sent_table:
            raise PeerRefused(
                "the run ended without this site's table", remedy="agree on the terms of a new run"
            )
        return ready(self.terms.run)

    def reason(self, error: HushsumError) -> str:
        """What the server learns of a refusal: broken rules alone."""
        broken = isinstance(error, PeerRefused | FileRefused)
        return str(error) if broken else "this site cannot take part"

    def __repr__(self) -> str:
        return f"<SiteState {self._me[:12]} steps={self.steps}>"

    def __reduce__(self) -> NoReturn:
        raise SecretRefused("the state of a site is secret and cannot be pickled")

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
        if len(request) > messages.most_request(self.terms):
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
        reply = messages.signed_reply(self._identity, KEYS, self.terms, public, {})
        return reply, {}, {"secrets": messages.bytes_array([mask, sealing, seed], KEY_BYTES)}

    def _shares(self, request: bytes, values: Any, arrays: Any) -> _Answer:
        terms = self.terms
        listed = messages.unbundle(arrays, len(terms.sites))
        keys = {reply.sender: reply for reply in (messages.read_reply(each, KEYS, terms) for each in listed)}
        if len(keys) != len(listed):
            raise PeerRefused("the roster names a site twice")
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
                digests.append(messages.share_digest(kind, terms, self._me, holder, share))
            if holder == self._me:
                own = b"".join(pair)
            else:
                key = agreed_key(sealing, public[holder][1], terms.digest, _sealing(self._me, holder))
                sealed.append(seal(key, b"".join(pair), _sealing(self._me, holder)))
        given = {
            "sealed": messages.bytes_array(sealed, messages.SEALED_BYTES),
            "digests": messages.bytes_array(digests, messages.DIGEST_BYTES),
        }
        stated = {"roster": roster, "seed": messages.seed_digest(terms, self._me, seed)}
        reply = messages.signed_reply(self._identity, SHARES, terms, stated, given)
        seen = {site: reply.data for site, reply in keys.items()}
        notes = {
            "public": {site: [each.hex() for each in pair] for site, pair in public.items()},
            "keys": {site: hashlib.sha256(data).hexdigest() for site, data in seen.items()},
        }
        return reply, notes, {"own": messages.bytes_array([own], 2 * SHARE_BYTES)}

    def _masked(self, request: bytes, values: Any, arrays: Any) -> _Answer:
        terms, public = self.terms, self._notes[SHARES]["public"]
        senders = messages.site_list(values["senders"], terms)
        self._enough(senders, "shares")
        if self._me not in senders or not set(senders) <= set(public):
            raise PeerRefused("shares were dealt by sites that are not on the roster, or not by this one")
        others = [site for site in senders if site != self._me]
        boxes = messages.rows_of_bytes(arrays["sealed"], len(others), messages.SEALED_BYTES)
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
            return messages.signed_reply(
                self._identity, MASKED, terms, {"transcript": seen}, {"masked": signed}
            )

        with own_affairs("the site's ledger does not allow this run"):
            reply = self._stage(make)
        # What an earlier attempt staged under other masks must not be sent as if it were under these.
        if messages.read_reply(reply, MASKED, terms, sender=self._me).values.get("transcript") != seen:
            raise PeerRefused("this site's ledger holds a masked table of the run under other keys")
        shares = messages.bytes_array([held[site] for site in senders], 2 * SHARE_BYTES)
        return reply, {"senders": list(senders), "transcript": seen}, {"held": shares}

    def _consent(self, request: bytes, values: Any, arrays: Any) -> _Answer:
        survivors = messages.site_list(values["sites"], self.terms)
        self._enough(survivors, "tables")
        if self._me not in survivors:
            raise PeerRefused("the server claims that this site dropped out, and it did not")
        if not set(survivors) <= set(self._notes[MASKED]["senders"]):
            raise PeerRefused("the list of survivors names a site that dealt no shares")
        stated = {"survivors": list(survivors), "transcript": self._notes[MASKED]["transcript"]}
        return messages.signed_reply(self._identity, CONSENT, self.terms, stated, {}), stated, {}

    def _opening(self, request: bytes, values: Any, arrays: Any) -> _Answer:
        terms, agreed = self.terms, self._notes[CONSENT]
        listed = messages.unbundle(arrays, len(terms.sites))
        consents = [messages.read_reply(each, CONSENT, terms) for each in listed]
        signers = {each.sender for each in consents}
        if len(signers) != len(consents) or not signers <= set(agreed["survivors"]):
            raise PeerRefused("a consent comes twice, or from a site that is not a survivor")
        if any(each.values != agreed for each in consents):
            raise PeerRefused("sites were shown different lists of participants")
        self._enough(signers, "consents")
        senders, survivors = self._notes[MASKED]["senders"], set(agreed["survivors"])
        held = dict(zip(senders, self._arrays[MASKED]["held"], strict=True))
        revealed: dict[str, list[bytes]] = {SELF: [], PAIRWISE: []}
        for site in senders:
            # Never both: one opens the sum, both would open the table of this site.
            kind = SELF if site in survivors else PAIRWISE
            whole = held[site].tobytes()
            revealed[kind].append(whole[:SHARE_BYTES] if kind == SELF else whole[SHARE_BYTES:])
        given = {kind: messages.bytes_array(shares, SHARE_BYTES) for kind, shares in revealed.items()}
        return messages.signed_reply(self._identity, OPENING, terms, {}, given), {}, {}

    def _enough(self, sites: Any, what: str) -> None:
        if len(sites) < self.terms.least:
            raise PeerRefused(
                f"the {what} of at least {self.terms.least} sites are needed", got=f"{len(sites)}"
            )

    def _secrets(self) -> list[bytes]:
        return messages.rows_of_bytes(self._arrays[KEYS]["secrets"], 3, KEY_BYTES)

    def _transcript(self, senders: tuple[str, ...]) -> str:
        keys = self._notes[SHARES]["keys"]
        return messages.transcript(self.terms, keys, senders)


_Answer = tuple[bytes, dict[str, Any], dict[str, NDArray[Any]]]


def _key(reply: messages.Reply, name: str) -> bytes:
    key = bytes.fromhex(reply.values[name])
    if len(key) != KEY_BYTES:
        raise ValueError("key")
    return key


def _sealing(sender: str, holder: str) -> bytes:
    return f"sealed share {sender} {holder}".encode("ascii")
