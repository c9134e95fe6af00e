"""Random schedules of a secure aggregation: delays, losses, duplicates, crashes, and a server that lies.

`honest_schedule` runs an honest server through faults and compares the sum. `lying_schedule` lets a server do
what it likes with the lists of survivors, and collude with sites. `split_schedule` lets it show sites
different lists of who dealt shares, before that. In all an `Eavesdropper` keeps every byte that the server
sees, joins whatever shares are among them, takes off every mask that follows, and looks whether the table of
one site, or the sum of too few, comes out. All raise AssertionError, and nothing else, when the protocol is
broken.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import combinations
from unittest.mock import patch

import numpy as np

from hushsum.errors import FileRefused, PeerLost, PeerRefused
from hushsum.files import pack, unpack
from hushsum.parties import secure_aggregation as messages
from hushsum.parties import verify
from hushsum.parties.secure_aggregation import (
    CONSENT,
    DONE,
    KEYS,
    MASKED,
    OPENING,
    PAIRWISE,
    SELF,
    SHARE_BYTES,
    SHARES,
    AggregationTerms,
    Ring,
    add_mask,
    agreed_key,
    from_ring,
    join_shares,
    pair_purpose,
    ring_type,
    self_mask_key,
)
from tests.aggregation_runs import Run, small_terms, table_of

SIZES = ((3, 0, 1), (3, 1, 0), (3, 1, 0), (4, 1, 1), (5, 1, 2))
"""Sites, dropouts that are allowed, sites that may collude."""

SPLIT_SIZES = ((4, 1, 1), (5, 1, 1), (5, 1, 2), (5, 2, 0), (6, 2, 1), (6, 1, 3))
"""The same, for lists that differ."""

_MOST_EVENTS = 300
_LIES = 60
_REQUEST, _DELIVER, _CRASH_SITE, _CRASH_SERVER, _LEAVE, _CLOSE = range(6)
_WEIGHTS = (45, 35, 5, 2, 3, 10)

_mask_keys: set[bytes] = set()
"""The beginnings of all mask keys of this process."""
_read_terms = lru_cache(64)(AggregationTerms.from_bytes)


@contextmanager
def repeated_checks_once() -> Iterator[None]:
    """Signatures and terms that were checked before are not checked again: most of the time of a schedule."""
    with (
        patch.object(messages, "verify", lru_cache(1 << 12)(verify)),
        patch.object(AggregationTerms, "from_bytes", staticmethod(_read_terms)),
    ):
        yield


class Eavesdropper:
    """Everything that the server of a run, and the sites that collude with it, can know.

    What a share is, is decided by the digests that its owner signed, not by the place where it was sent, so
    that a site which reveals more than it must is recognised.
    """

    def __init__(self, run: Run, colluding: Iterable[str] = ()) -> None:
        self._run = run
        self._colluding = set(colluding)
        self._sent: dict[str, dict[str, set[bytes]]] = defaultdict(lambda: defaultdict(set))
        self._shown: dict[str, list[str]] = {}

    def hear(self, site: str, step: str, reply: bytes) -> None:
        """One reply, as it leaves a site."""
        self._sent[step][site].add(reply)
        if step == MASKED:
            # The list that the server showed it, which may not be that of all.
            self._shown[site] = list(self._run.sites[site]._notes[MASKED]["senders"])

    def check(self) -> None:
        """Look for masks that covered two tables, sites that gave both kinds of shares, and open tables."""
        assert all(len(replies) <= 1 for replies in self._sent[MASKED].values()), "a mask covered two tables"
        for step in (KEYS, SHARES):
            assert all(len(each) <= 1 for each in self._sent[step].values()), "one step was answered twice"
        for site in self._sent[KEYS]:
            key = bytes.fromhex(self._reply(KEYS, site).values["mask_key"])[:16]
            assert key not in _mask_keys, "a mask key served two runs"
            _mask_keys.add(key)
        revealed = self._revealed()
        for owner in self._sent[SHARES]:
            gave = {kind: set(revealed[owner, kind]) - self._colluding for kind in (SELF, PAIRWISE)}
            assert not gave[SELF] & gave[PAIRWISE], "one site gave both kinds"
        secrets = {
            key: join_shares(self._points(shares), threshold=self._run.terms.least)
            for key, shares in revealed.items()
            if len(shares) >= self._run.terms.least
        }
        for owner in self._sent[SHARES]:
            if owner not in self._colluding:
                assert not {(owner, SELF), (owner, PAIRWISE)} <= set(secrets), "both secrets can be joined"
        left = {
            site: self._without_known_masks(site, next(iter(replies)), secrets)
            for site, replies in self._sent[MASKED].items()
            if site not in self._colluding
        }
        self._try_to_open(left)

    def _reply(self, step: str, site: str) -> messages.Reply:
        (data,) = self._sent[step][site]
        return messages.read_reply(data, step, self._run.terms)

    def _revealed(self) -> dict[tuple[str, str], dict[str, bytes]]:
        """By owner and kind, the shares that are known, by their holders."""
        terms, roster = self._run.terms, sorted(self._sent[KEYS])
        dealt: dict[bytes, tuple[str, str, str]] = {}
        for owner in self._sent[SHARES]:
            reply = self._reply(SHARES, owner)
            rows = iter(reply.arrays["digests"])
            for holder in reply.values["roster"]:
                for kind in (SELF, PAIRWISE):
                    dealt[next(rows).tobytes()] = (owner, kind, holder)
        found: dict[tuple[str, str], dict[str, bytes]] = defaultdict(dict)

        def learn(holder: str, share: bytes) -> None:
            for owner in roster:
                for kind in (SELF, PAIRWISE):
                    digest = messages.share_digest(kind, terms, owner, holder, share)
                    if dealt.get(digest) == (owner, kind, holder):
                        found[owner, kind][holder] = share

        for holder, replies in self._sent[OPENING].items():
            for data in replies:
                for array in messages.read_reply(data, OPENING, terms).arrays.values():
                    for start in range(0, array.size, SHARE_BYTES):
                        learn(holder, array.tobytes()[start : start + SHARE_BYTES])
        for holder in self._colluding:
            for box in self._run.sites[holder]._arrays.get(MASKED, {}).get("held", ()):
                learn(holder, box.tobytes()[:SHARE_BYTES])
                learn(holder, box.tobytes()[SHARE_BYTES:])
        return found

    def _points(self, shares: dict[str, bytes]) -> dict[int, bytes]:
        return {self._run.terms.sites.index(holder) + 1: share for holder, share in shares.items()}

    def _try_to_open(self, left: dict[str, Ring]) -> None:
        """Masks between sites cancel in their sum: none may be open of fewer honest sites than the claim
        counts on.
        """
        terms = self._run.terms
        for many in range(1, terms.trust.honest):
            for chosen in combinations(left, many):
                total = sum((left[site] for site in chosen[1:]), left[chosen[0]])
                tables = [table_of(site, terms) for site in chosen]
                opened = np.array_equal(from_ring(total), sum(tables[1:], tables[0]))
                assert not opened, "one table was opened" if many == 1 else "a sum of too few was opened"

    def _without_known_masks(self, site: str, reply: bytes, secrets: dict[tuple[str, str], bytes]) -> Ring:
        terms = self._run.terms
        masked = messages.read_reply(reply, MASKED, terms).arrays["masked"]
        rest: Ring = masked.view(ring_type(terms.ring_bits)).copy()
        if (site, SELF) in secrets:
            add_mask(rest, self_mask_key(secrets[site, SELF], terms.digest, site), sign=-1)
        for other in self._shown[site]:
            if other == site:
                continue
            known = secrets.get((site, PAIRWISE)), other
            if known[0] is None:
                theirs = secrets.get((other, PAIRWISE))
                if theirs is None and other in self._colluding:
                    theirs = self._run.sites[other]._secrets()[0]
                known = theirs, site
            if known[0] is not None:
                public = bytes.fromhex(self._reply(KEYS, known[1]).values["mask_key"])
                key = agreed_key(known[0], public, terms.digest, pair_purpose(site, other))
                add_mask(rest, key, sign=-1 if site < other else 1)
        return rest


def _least(terms: AggregationTerms) -> int:
    """The fewest tables that may be opened, whatever the machines believe."""
    return len(terms.sites) - terms.dropouts


def honest_schedule(seed: int) -> str:
    """One run under faults; returns how it ended: ``"opened"``, ``"too few"`` or ``"not over"``."""
    rng = random.Random(seed)
    run = Run(small_terms(*rng.choice(SIZES)))
    heard = Eavesdropper(run)
    refused: list[str] = []
    ended = _with_faults(run, heard, refused, rng)
    heard.check()
    assert all(times <= 1 for times in run.drawn.values()), "noise was drawn twice"
    if run.server.step == DONE:
        assert len(run.server.survivors) >= _least(run.terms), "a sum of too few tables was opened"
        assert np.array_equal(run.server.sum, run.expected()), "a wrong sum was opened"
    assert not refused, "a site refused a request of an honest server"
    return ended


def _with_faults(run: Run, heard: Eavesdropper, refused: list[str], rng: random.Random) -> str:
    leaving = {site for site in run.terms.sites if rng.random() < 0.15}
    gone: set[str] = set()
    wire: list[tuple[str, bytes]] = []
    for event in rng.choices(range(6), _WEIGHTS, k=_MOST_EVENTS):
        if run.server.step == DONE:
            return "opened"
        site = rng.choice(run.terms.sites)
        if event == _REQUEST and site not in gone:
            request = run.server.request_for(site)
            if request is not None:
                try:
                    reply = run.sites[site].answer(request)
                except (PeerRefused, FileRefused):
                    refused.append(run.server.step)
                    continue
                heard.hear(site, run.server.step, reply)
                # Lost, sent, or sent twice, and delivered later in any order.
                wire.extend([(site, reply)] * rng.choice((0, 1, 1, 1, 2)))
        elif event == _DELIVER and wire:
            sender, reply = wire[rng.randrange(len(wire))]
            if rng.random() < 0.8:
                wire.remove((sender, reply))
            with suppress(PeerRefused, FileRefused):  # late, or of an earlier step
                run.server.take(sender, reply)
        elif event == _CRASH_SITE:
            run.crash_site(site)
        elif event == _CRASH_SERVER:
            run.crash_server()
        elif event == _LEAVE and site in leaving:
            gone.add(site)
        elif event == _CLOSE or not set(run.server.awaited) - gone:
            try:
                run.server.close_step()
            except PeerLost:
                if len(run.terms.sites) - len(gone) < run.terms.least:
                    return "too few"
    return "opened" if run.server.step == DONE else "not over"


def lying_schedule(seed: int) -> int:
    """A server that lies about survivors and colludes; returns how many sites revealed shares."""
    rng = random.Random(seed)
    run = Run(small_terms(*rng.choice(SIZES)))
    terms = run.terms
    colluding = set(rng.sample(terms.sites, terms.colluding))
    heard = Eavesdropper(run, colluding)
    dropped = set(rng.sample(terms.sites, rng.randint(0, terms.dropouts)))
    while run.server.step != CONSENT:
        step = run.server.step
        # Those whose table is declared lost have sent it: the server has seen it, and takes no note of it.
        for site in run.server.awaited:
            request = run.server.request_for(site)
            assert request is not None
            reply = run.sites[site].answer(request)
            heard.hear(site, step, reply)
            if step != MASKED or site not in dropped:
                run.server.take(site, reply)
        run.server.close_step()
    arrived = run.server._closed[MASKED]
    # Two or three lists, which differ in a site or more, and any order of signing and opening.
    lists = [arrived]
    for _ in range(rng.randint(1, 2)):
        without = rng.sample(arrived, rng.randint(1, max(1, terms.dropouts)))
        lists.append(tuple(site for site in arrived if site not in without))
    seen = run.sites[arrived[0]]._notes[MASKED]["transcript"]
    consents: dict[tuple[str, ...], dict[str, bytes]] = defaultdict(dict)
    for listed in lists:
        stated = {"survivors": list(listed), "transcript": seen}
        for site in colluding & set(arrived):
            consents[listed][site] = messages.signed_reply(run.keys[site], CONSENT, terms, stated, {})
    opened = 0
    honest = [site for site in arrived if site not in colluding]
    for _ in range(_LIES):
        site, listed = rng.choice(honest), rng.choice(lists)
        with suppress(PeerRefused, FileRefused):
            if rng.random() < 0.6:
                survivors = pack("survivors", {"sites": list(listed)}, {})
                consents[listed][site] = run.sites[site].answer(survivors)
                continue
            given = sorted(consents[listed].items())
            if rng.random() < 0.2:
                given = rng.sample(given, rng.randint(0, len(given)))
            reply = run.sites[site].answer(messages.bundle("consents", dict(given)))
            heard.hear(site, OPENING, reply)
            _, _, arrays = unpack(reply[:-64], OPENING)
            opened += 1
            assert len(listed) >= _least(terms), "shares for too few tables"
            assert len(arrays[SELF]) == len(listed), "shares for another list"
    heard.check()
    return opened


def split_schedule(seed: int) -> int:
    """A server that shows sites different lists of who dealt shares; returns how many revealed shares.

    A site masks for the sites on its list alone. If these are sites that collude or are declared lost, the
    server knows all its masks once others reveal their shares.
    """
    rng = random.Random(seed)
    run = Run(small_terms(*rng.choice(SPLIT_SIZES)))
    terms = run.terms
    colluding = set(rng.sample(terms.sites, terms.colluding))
    heard = Eavesdropper(run, colluding)
    while run.server.step != MASKED:
        step = run.server.step
        for site in run.server.awaited:
            request = run.server.request_for(site)
            assert request is not None
            heard.hear(site, step, run.sites[site].answer(request))
            run.server.take(site, run.sites[site].answer(request))
        run.server.close_step()
    lost = set(rng.sample(sorted(set(terms.sites) - colluding), rng.randint(0, terms.dropouts)))
    listed = [site for site in terms.sites if site not in lost]
    seen: dict[str, set[str]] = defaultdict(set)
    for site in terms.sites:
        reply = run.sites[site].answer(_shortened(run, site, colluding | lost, rng))
        heard.hear(site, MASKED, reply)
        seen[messages.read_reply(reply, MASKED, terms).values["transcript"]].add(site)
    consents: dict[str, dict[str, bytes]] = defaultdict(dict)
    for transcript in seen:
        stated = {"survivors": listed, "transcript": transcript}
        for site in colluding:
            consents[transcript][site] = messages.signed_reply(run.keys[site], CONSENT, terms, stated, {})
    honest = [site for site in listed if site not in colluding]
    for site in honest:
        with suppress(PeerRefused):
            consent = run.sites[site].answer(pack("survivors", {"sites": listed}, {}))
            consents[messages.read_reply(consent, CONSENT, terms).values["transcript"]][site] = consent
    opened = 0
    for site in honest:
        for signed in consents.values():
            with suppress(PeerRefused, FileRefused):
                heard.hear(site, OPENING, run.sites[site].answer(messages.bundle("consents", signed)))
                opened += 1
                break
    heard.check()
    return opened


def _shortened(run: Run, site: str, preferred: set[str], rng: random.Random) -> bytes:
    """Deliveries to a site, of all senders or of as few as it accepts; those that help the server stay."""
    request = run.server.request_for(site)
    assert request is not None
    _, values, arrays = unpack(request, "deliveries")
    others = [each for each in values["senders"] if each != site]
    if site in preferred or rng.random() < 0.6:
        return request
    order = sorted(others, key=lambda each: (each not in preferred, rng.random()))
    kept = sorted(order[: rng.randint(run.terms.least - 1, len(others))])
    rows = [others.index(each) for each in kept]
    return pack("deliveries", {"senders": sorted([*kept, site])}, {"sealed": arrays["sealed"][rows]})
