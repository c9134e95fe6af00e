"""The side of an owner: which points are sent, bid for and delivered."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushsum._types import Floats, Integers
from hushsum.errors import DataRefused, FileRefused, UsageError
from hushsum.files import pack, unpack
from hushsum.privacy import random_places

from ._curator import Store
from ._features import SummaryFeatures, best_first, scores
from ._messages import BID, CERTAIN, DELIVER, PHASES, THRESHOLD, Answer, Broadcast, RunTerms


class OwnerState:
    """One owner's records and how far its run has come; holds no socket, and decides by the rule alone.

    A broadcast of another run, out of order, or unlike the one already answered under its number is refused
    with `FileRefused`, and changes nothing. The same broadcast again gets the same answer, bit for bit. The
    owner's ``cap`` holds whatever is requested.

    Parameters
    ----------
    name : str
        This owner's name in the terms.
    records : array-like of shape (n_records, dim)
        The points, in the columns that are compared.
    terms : RunTerms
        What was agreed.
    extra : array-like of shape (n_records, n_extra), optional
        What is sent with a point and not compared, such as a label.
    cap : int, optional
        The most points that may ever leave: terms that allow more are refused. (A cap that only the owner
        knew would change what the claim rests on.)
    features : SummaryFeatures, optional
        In the mode that sends hashes: the terms' features under the seed that owners and consumer share.
    store : callable, optional
        Takes the state's bytes before an answer is handed out; make it durable, and `restore` it after a
        crash.

    Privacy
    -------
    A point's gain depends on that point and on what was broadcast, exactly (integers). Ties are broken by
    place, so that one record more leaves the order of the others as it was. Coins are drawn for every
    record in every round, whatever the others do.
    """

    def __init__(
        self,
        name: str,
        records: ArrayLike,
        terms: RunTerms,
        *,
        extra: ArrayLike | None = None,
        cap: int | None = None,
        features: SummaryFeatures | None = None,
        store: Store | None = None,
        insecure_noise_seed: int | None = None,
    ) -> None:
        if name not in terms.owners:
            raise UsageError("name", "must be one of the owners in the terms", got="another")
        self.name = name
        self.terms = terms
        self._features = _own_features(terms, features)
        self._points: Floats = np.ascontiguousarray(np.asarray(records, dtype=np.float64))
        self._hashes = self._features.hashes(self._points)
        self._extra = _extra_columns(extra, len(self._points), terms.extra)
        if cap is not None and (terms.cap is None or terms.cap > cap):
            raise UsageError(
                "the terms allow more points of one owner than this owner's cap",
                remedy="agree on a smaller cap, since a cap is part of what is claimed",
            )
        self._sent: NDArray[np.bool_] = np.zeros(len(self._points), np.bool_)
        self._step = 0
        self._seen = ""
        self._chosen: Integers = np.empty(0, np.int64)
        self._bid: int | None = None
        self._best = -1
        self._store = store
        self._seed = insecure_noise_seed

    def __repr__(self) -> str:
        return f"<OwnerState CONFIDENTIAL name={self.name!r} step={self._step}>"

    @property
    def step(self) -> int:
        """The number of the last broadcast that was answered."""
        return self._step

    @property
    def sent(self) -> int:
        """How many points have left; for this owner's eyes."""
        return int(self._sent.sum())

    def answer(self, broadcast: Broadcast) -> Answer:
        """What the rule allows for this broadcast.

        Raises
        ------
        FileRefused
            another run, a step out of order, a phase that the rule does not have, or a wrong width.
        """
        data = broadcast.to_bytes()
        digest = hashlib.sha256(data).hexdigest()
        if broadcast.step == self._step and digest == self._seen:
            return self._answer()
        self._check(Broadcast.from_bytes(data))
        if broadcast.phase == BID:
            self._offer(broadcast)
        elif broadcast.phase == DELIVER:
            self._choose(np.array([self._best] if broadcast.requested and self._best >= 0 else [], np.int64))
            self._bid = None
        else:
            self._choose(self._allowed(broadcast))
        self._step, self._seen = broadcast.step, digest
        if self._store is not None:
            self._store(self.save())
        return self._answer()

    def save(self) -> bytes:
        """How far the run has come, without the records; confidential."""
        values = {
            "run": self.terms.run,
            "name": self.name,
            "step": self._step,
            "seen": self._seen,
            "bid": self._bid,
            "best": self._best,
            "records": self._digest(),
        }
        return pack("owner", values, {"sent": self._sent.astype(np.int8), "chosen": self._chosen})

    def restore(self, data: bytes) -> None:
        """Go on where `save` stopped, with the same records in the same order.

        Raises
        ------
        FileRefused
            the bytes are damaged, or belong to another run or other records.
        """
        _, values, arrays = unpack(data, "owner")
        mine = unpack(self.save(), "owner")[1]
        if any(values.get(name) != mine[name] for name in ("run", "name", "records")):
            raise FileRefused("this state is of another run or of other records")
        self._step, self._seen = values["step"], values["seen"]
        self._bid, self._best = values["bid"], values["best"]
        self._sent, self._chosen = arrays["sent"].astype(np.bool_), arrays["chosen"]

    def _digest(self) -> str:
        """A digest of records, columns and a secret seed, by which they are recognised after a restart."""
        digest = hashlib.sha256(self._points.tobytes() + self._extra.tobytes())
        digest.update(str(self._features.seed).encode())
        return digest.hexdigest()

    def _check(self, broadcast: Broadcast) -> None:
        phases = PHASES[self.terms.rule]
        expected = phases[self._step % len(phases)]
        if broadcast.run != self.terms.run:
            raise FileRefused("this broadcast belongs to another run")
        if broadcast.step != self._step + 1:
            raise FileRefused(
                f"broadcast {self._step + 1} is due",
                got=broadcast.step,
                remedy="a round is answered once, in order",
            )
        if broadcast.phase != expected or broadcast.round != self._step // len(phases) + 1:
            raise FileRefused("this broadcast has another phase or round than its number")
        if broadcast.round > self.terms.rounds:
            raise FileRefused("the agreed number of rounds is over")
        if broadcast.direction.shape != (self._features.width,):
            raise FileRefused("this broadcast's direction has another width than the terms'")
        if (broadcast.threshold is not None) != (self.terms.rule == THRESHOLD):
            raise FileRefused("this broadcast follows another rule than the agreed one")
        if broadcast.quota > self.terms.batch:
            raise FileRefused("this broadcast requests more than the agreed batch")

    def _allowed(self, broadcast: Broadcast) -> Integers:
        """The places of the points to send, in an order that one record more does not change."""
        gains = scores(self._hashes, broadcast.direction)
        if broadcast.threshold is None:
            unsent = np.flatnonzero(~self._sent)
            order = best_first(gains[unsent], self._hashes[unsent], broadcast.quota)
            return unsent[order]
        allowed = ~self._sent & (gains >= broadcast.threshold)
        if broadcast.chance < CERTAIN:
            seed = None if self._seed is None else self._seed * MAX_STEPS + broadcast.step
            coins = random_places(len(gains), CERTAIN, insecure_noise_seed=seed)
            allowed &= coins < broadcast.chance
        return np.flatnonzero(allowed)

    def _offer(self, broadcast: Broadcast) -> None:
        self._chosen = np.empty(0, np.int64)
        self._bid, self._best = None, -1
        if self._room() != 0 and not self._sent.all():
            gains = scores(self._hashes, broadcast.direction)
            gains[self._sent] = np.iinfo(np.int64).min
            self._best = int(np.argmax(gains))
            self._bid = int(gains[self._best])

    def _choose(self, places: Integers) -> None:
        room = self._room()
        self._chosen = places.astype(np.int64)[: len(places) if room is None else room]
        self._sent[self._chosen] = True

    def _room(self) -> int | None:
        """How many points may still leave; None without a cap."""
        return None if self.terms.cap is None else max(self.terms.cap - self.sent, 0)

    def _answer(self) -> Answer:
        hashed = self.terms.hashed
        points = self._hashes[self._chosen].astype(np.float64) if hashed else self._points[self._chosen]
        return Answer(self.terms.run, self._step, self.name, points, self._extra[self._chosen], self._bid)


MAX_STEPS = 1 << 20


def _extra_columns(extra: ArrayLike | None, rows: int, columns: int) -> Floats:
    values: Floats = np.empty((rows, 0)) if extra is None else np.asarray(extra, dtype=np.float64)
    values = np.ascontiguousarray(values.reshape(rows, -1) if values.size or rows == 0 else values)
    if values.shape != (rows, columns):
        raise DataRefused("extra", f"must have {columns} columns and a row for each record")
    if not np.isfinite(values).all():
        raise DataRefused("extra", "must be finite numbers", got="one that is not")
    return values


def _own_features(terms: RunTerms, features: SummaryFeatures | None) -> SummaryFeatures:
    """The terms' features, or in hashed mode the same under the owners' own seed."""
    if not terms.hashed:
        if features not in (None, terms.features):
            raise UsageError("features", "must be those of the terms unless hashes are sent")
        return terms.features
    if features is None:
        raise UsageError("features", "must be given where hashes are sent, with the seed that owners share")
    if replace(features, seed=terms.features.seed) != terms.features:
        raise UsageError("features", "must be those of the terms up to the seed")
    return features
