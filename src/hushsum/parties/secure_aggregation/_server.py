"""The server of a secure aggregation: a state machine that collects replies and opens the sum, once.

Nobody trusts it. It learns who takes part and the noisy sum of at least ``terms.least`` tables.
"""

from __future__ import annotations

import hashlib
from typing import Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import FileRefused, HushsumError, Parameter, PeerLost, PeerRefused, SecretRefused
from hushsum.files import pack, unpack
from hushsum.parties._kept_state import SecretStore
from hushsum.parties._tls import short
from hushsum.parties.secure_aggregation import _messages as messages
from hushsum.parties.secure_aggregation._masks import (
    KEY_BYTES,
    SHARE_BYTES,
    Ring,
    add_mask,
    agreed_key,
    from_ring,
    join_shares,
    pair_purpose,
    public_half,
    ring_type,
    self_mask_key,
)
from hushsum.parties.secure_aggregation._messages import (
    CONSENT,
    KEYS,
    MASKED,
    OPENING,
    SHARES,
    STEPS,
    AggregationTerms,
    Reply,
)
from hushsum.parties.secure_aggregation._site import PAIRWISE, SELF
from hushsum.releases import UNSEEN_SHARE, NoisyTable, function_of, largest_step
from hushsum.tables import Table
from hushsum.version import PRODUCER

DONE: Final = "done"


class ServerState:
    """Where one run stands: the step, who has replied, and in the end the sum.

    ``take`` accepts a reply of the step that is open, `close_step` ends the step with those who replied, and
    ``request_for`` is what a site is to be sent. Replies and closed steps are in ``store`` before anybody
    hears of them, so a server that starts again with it sends the same lists.
    """

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
        bound = store.get("run")
        if bound is None:
            store.put("run", terms.digest)
        elif bound != terms.digest:
            raise PeerRefused(
                "the state of this server belongs to another run",
                remedy=("give another ", Parameter("state")),
            )
        self._recall()

    def __reduce__(self) -> NoReturn:
        raise SecretRefused("the state of a server cannot be pickled: it holds masked tables and shares")

    @property
    def step(self) -> str:
        """The step whose replies are awaited; ``"done"`` when the sum is open."""
        return next((step for step in STEPS if step not in self._closed), DONE)

    @property
    def members(self) -> tuple[str, ...]:
        """The sites that take part in the open step: those that replied to the one before."""
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
    def audience(self) -> tuple[str, ...]:
        """The sites whose tables are in the sum."""
        return self.survivors

    @property
    def most_reply(self) -> int:
        """The longest reply to the open step, in bytes."""
        return 0 if self.done else messages.most_reply(self.terms, self.step)

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
            return messages.bundle("roster", self._data(KEYS))
        if step == MASKED:
            return self._deliveries(site)
        if step == CONSENT:
            return pack("survivors", {"sites": list(self._closed[MASKED])}, {})
        return messages.bundle("consents", self._data(CONSENT))

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
            reply = messages.read_reply(data, step, self.terms, sender=site)
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
                    self._accept(step, messages.read_reply(data, step, self.terms, sender=site))
            kept = self._store.get(f"closed.{step}")
            if kept is None:
                return
            _, values, _ = unpack(kept, "closed")
            if step == OPENING:
                self._open()
            self._closed[step] = messages.site_list(values["sites"], self.terms)

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
            messages.rows_of_bytes(reply.arrays["sealed"], len(roster) - 1, messages.SEALED_BYTES)
            if len(bytes.fromhex(reply.values["seed"])) != messages.DIGEST_BYTES:
                raise ValueError("seed")
            messages.rows_of_bytes(reply.arrays["digests"], 2 * len(roster), messages.DIGEST_BYTES)
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
            shares = messages.rows_of_bytes(reply.arrays[kind], len(owners), SHARE_BYTES)
            for owner, share in zip(owners, shares, strict=True):
                found = messages.share_digest(kind, self.terms, owner, reply.sender, share)
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
        sealed = messages.bytes_array(boxes, messages.SEALED_BYTES)
        return pack("deliveries", {"senders": list(senders)}, {"sealed": sealed})

    def _open(self) -> None:
        """Take the masks off: those that survivors made for themselves, and those shared with who left."""
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
                    if (
                        messages.seed_digest(terms, owner, secret)
                        != self._replies[SHARES][owner].values["seed"]
                    ):
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
        return messages.transcript(self.terms, keys, self._closed[SHARES])

    def _data(self, step: str) -> list[bytes]:
        return [self._replies[step][site].data for site in self._closed[step]]


def _wrong_shares(owner: str) -> PeerRefused:
    return PeerRefused(
        f"the shares that site {short(owner)} dealt do not give its secret: the sum stays closed",
        remedy="agree on the terms of a new run, without that site",
    )


def _name(step: str, site: str) -> str:
    return f"{step}.{site}"


def released_sum(terms: AggregationTerms, total: NDArray[np.int64], contributions: int) -> NoisyTable:
    """The public function of a sum of so many contributions.

    Privacy
    -------
    Post-processing of the sum. The noise that it states is that of all contributions; the claim rests on that
    of the honest ones among them.
    """
    noise, count_noise = terms.noises(contributions)
    cells: Table = total[:-1].reshape(terms.basis.shape)
    narrow = np.iinfo(np.int32)
    if cells.min() >= narrow.min and cells.max() <= narrow.max:
        cells = cells.astype(np.int32)
    function = function_of(
        reading=terms.reading,
        cells=cells,
        claim=terms.claim,
        noise=noise,
        noisy_count=int(total[-1]),
        count_noise=count_noise,
        producer=PRODUCER,
    )
    if not terms.basis.fractional:
        return function
    return function.rounded_at_release(largest_step(noise.variance, UNSEEN_SHARE))
